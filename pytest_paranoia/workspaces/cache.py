"""The machine cache: folders that are built once, under a lock, and appear complete or not at all.

Layout below the root: ``<kind>/<key>`` finished folders, ``staging/`` folders in the making, ``locks/``, and in
``sizes/`` how many files each finished folder has. A key is a hash of everything its folder depends on, so an entry
never changes and is never stale; one that somebody deleted in part is made again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import filelock
import platformdirs

from pytest_paranoia.errors import SourceError

# Longer than all time limits of one preparation together: who waits longer waits for something broken.
LOCK_SECONDS = 3600.0

# Left behind by tools that ran inside a content folder; never content.
_RESIDUE = frozenset({"__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".DS_Store"})


class _Built(threading.local):
    def __init__(self) -> None:
        self.kinds: list[str] = []


built = _Built()
"""Kinds of the entries that this thread has built, in order: ``paranoia prepare`` tells what it did."""


def cache_root() -> Path:
    """Return ``$PARANOIA_CACHE`` or the user's cache folder, absolute."""
    chosen = os.environ.get("PARANOIA_CACHE")
    return Path(chosen or platformdirs.user_cache_dir("pytest-paranoia")).expanduser().absolute()


def cached(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """Return the folder ``<kind>/<key>``, having *build* fill it first where it does not exist.

    One process builds, others wait for it. *build* gets an empty folder that becomes the entry by one rename, so a
    killed build leaves nothing that could be taken for complete.
    """
    root = cache_root()
    final, size = root / kind / key, root / "sizes" / f"{kind}-{key}"
    if final.exists() and _whole(final, size):
        return final
    staging = root / "staging"
    try:
        for folder in (final.parent, staging, root / "locks", size.parent):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"the cache folder {root} cannot be used: {error} (set PARANOIA_CACHE)") from error
    lock = filelock.FileLock(root / "locks" / f"{kind}-{key}.lock", timeout=LOCK_SECONDS)
    try:
        held = lock.acquire()
    except filelock.Timeout as error:
        raise SourceError(f"waited {LOCK_SECONDS:.0f} s for {lock.lock_file}: another preparation hangs") from error
    with held:
        if final.exists():
            if _whole(final, size):
                return final
            try:
                # In one step, so that nobody finds less of it than there was.
                final.rename(staging / f"{kind}-{key}.{os.urandom(4).hex()}")
            except OSError as error:
                raise SourceError(f"{final} lacks files and cannot be moved away: {error}; remove it") from error
        # Only a holder of this lock makes folders of this name: what lies there is of a killed build. Its orphaned
        # tools may still write to them, so the new folder gets a new name and stubborn rests wait for the next time.
        for left in staging.glob(f"{kind}-{key}.*"):
            shutil.rmtree(left, ignore_errors=True)
        building = Path(tempfile.mkdtemp(prefix=f"{kind}-{key}.", dir=staging))
        try:
            building.chmod(0o755)
            build(building)
            size.write_text(f"{count_files(building)}\n")
            building.rename(final)
            _looked_at.add(final)
        except BaseException as error:
            shutil.rmtree(building, ignore_errors=True)
            if isinstance(error, OSError):
                raise SourceError(f"cannot prepare {kind} in {root}: {error}") from error
            raise
    built.kinds.append(kind)
    return final


_looked_at: set[Path] = set()
"""Entries that this process has found whole: trials look for those that are deleted later (``steady.py``)."""


def _whole(final: Path, size: Path) -> bool:
    """Return whether an entry has all its files; one of which nobody noted how many is taken as it is."""
    if final in _looked_at:
        return True
    found = count_files(final)
    try:
        whole = found >= int(size.read_text())
    except (OSError, ValueError):
        whole = True
        with suppress(OSError):
            size.parent.mkdir(exist_ok=True)
            size.write_text(f"{found}\n")
    if whole:
        _looked_at.add(final)
    return whole


def count_files(folder: Path) -> int:
    """Return how many files and links are below *folder*, without residue of tools; 0 where it does not exist."""
    count = 0
    for where, folders, files in os.walk(folder):
        linked = [name for name in folders if os.path.islink(os.path.join(where, name))]  # noqa: PTH114, PTH118
        folders[:] = [name for name in folders if name not in _RESIDUE and name not in linked]
        count += len(linked) + sum(name not in _RESIDUE and not name.endswith(".pyc") for name in files)
    return count


def digest(*parts: str | bytes) -> str:
    """Return the sha256 of *parts*; lengths go in as well, so no two lists of parts read the same."""
    total = hashlib.sha256()
    for part in parts:
        data = os.fsencode(part)  # a file's name may be no UTF-8
        total.update(b"%d:" % len(data))
        total.update(data)
    return total.hexdigest()


def file_digest(path: Path) -> str:
    """Return the sha256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def content_of(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield (relative name, path) of every file and link below *folder*, sorted, without residue of tools."""
    found: list[tuple[str, Path]] = []
    for where, folders, files in os.walk(folder):
        here = Path(where)
        linked = [name for name in folders if (here / name).is_symlink()]
        folders[:] = [name for name in folders if name not in _RESIDUE and name not in linked]
        names = [name for name in (*files, *linked) if name not in _RESIDUE and not name.endswith(".pyc")]
        found += [((here / name).relative_to(folder).as_posix(), here / name) for name in names]
    yield from sorted(found)


def tree_digest(path: Path) -> str:
    """Return the hash of a file or of a folder's content: names, bytes, link targets and the executable bit."""
    if path.is_file():
        return digest("file", _entry_digest(path))
    return digest("folder", *(part for name, entry in content_of(path) for part in (name, _entry_digest(entry))))


def _entry_digest(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link {os.readlink(path)}"  # noqa: PTH115 - Path would normalise the target
    if not stat.S_ISREG(mode):
        raise SourceError(f"{path} is neither a file, a folder nor a link")
    return f"{'executable' if mode & 0o111 else 'file'} {file_digest(path)}"
