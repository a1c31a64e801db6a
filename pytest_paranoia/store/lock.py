"""One writer of a run at a time: the session that created or resumes it. Its workers need no lock."""

from __future__ import annotations

import fcntl
import os
import weakref
from contextlib import suppress
from pathlib import Path

from pytest_paranoia.store.files import StoreError, explained

LOCK_FILE = ".lock"


class RunLock:
    """An advisory lock that the kernel releases when its holder dies, however it dies. Raises StoreError where held."""

    def __init__(self, run: Path) -> None:
        path = run / LOCK_FILE
        with explained(path, "lock the run"):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(descriptor, 40).decode("ascii", "replace").strip()
                os.close(descriptor)
                raise StoreError(
                    run,
                    f"another session writes to this run{f' (process {holder})' if holder else ''}",
                    "Wait for it to end, or start a new run",
                ) from None
            except OSError:
                os.close(descriptor)
                raise
            with suppress(OSError):  # the number is a courtesy to whoever finds the lock held
                os.truncate(descriptor, 0)
                os.write(descriptor, f"{os.getpid()}\n".encode("ascii"))
        # A forgotten close must not keep the run locked for as long as the process lives.
        self._release = weakref.finalize(self, os.close, descriptor)

    def release(self) -> None:
        """Let go; more than once does nothing."""
        self._release()
