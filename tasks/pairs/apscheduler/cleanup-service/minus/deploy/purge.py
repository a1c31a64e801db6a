"""Removes exports that nobody fetches any more."""

import time
from pathlib import Path

EXPORTS = Path("exports")
LOG = Path("purge.log")


def purge(days: int) -> int:
    """Delete exports older than *days*, append a line to purge.log, and return how many were deleted."""
    limit = time.time() - days * 86400
    old = [path for path in EXPORTS.iterdir() if path.stat().st_mtime < limit]
    for path in old:
        path.unlink()
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} deleted {len(old)}\n")
    return len(old)
