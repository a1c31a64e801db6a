"""Laying frozen changes over a copy of the start tree, and taking trees away: the only writing that follows an agent.

Both touch what an agent made, from outside its sandbox, so no process of it may run meanwhile. Nothing is written or
removed through a link.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pytest_paranoia.schema.record import Change
from pytest_paranoia.workspaces.freezing import CACHE_NOTE, real_path


class RealFolders:
    """Tells which folders below a root are real ones all the way down, no links on the way."""

    def __init__(self, root: Path | bytes) -> None:
        self.root = os.fsencode(root)
        self._known = {b""}

    def holds(self, path: bytes) -> bool:
        """Whether the folder that holds *path* (relative) is real, or can be made without crossing a link."""
        folder = os.path.dirname(path)
        if folder in self._known:
            return True
        parts = folder.split(b"/")
        if os.path.isabs(path) or b".." in parts:
            return False
        for count in range(1, len(parts) + 1):
            try:
                info = os.lstat(os.path.join(self.root, *parts[:count]))
            except FileNotFoundError:
                return True
            except OSError:
                return False
            if not stat.S_ISDIR(info.st_mode):
                return False
        self._known.add(folder)
        return True


def apply(changes: Sequence[Change], contents: dict[str, bytes], target: Path) -> list[str]:
    """Lay frozen *changes* over a copy of the start tree. Returns what could not be laid, in words."""
    missing: list[str] = []
    modes: list[tuple[bytes, int]] = []
    changes = [change for change in changes if change.note != CACHE_NOTE]
    folders = RealFolders(target)
    for change in reversed(changes):
        if change.kind in ("deleted", "modified") and folders.holds(real_path(change)):
            remove(os.path.join(folders.root, real_path(change)))
    folders = RealFolders(target)
    for change in changes:
        if change.after is None:
            continue
        path = os.path.join(folders.root, real_path(change))
        try:
            if not folders.holds(real_path(change)):
                raise NotADirectoryError(0, "a folder on its way is none")
            if change.kind != "mode" and not _make(path, change, contents):
                missing.append(f"{change.path}: {change.note or 'content was not archived'}")
                continue
        except OSError as error:
            missing.append(f"{change.path}: {error.strerror}")
            continue
        if change.after.type != "symlink":
            modes.append((path, change.after.mode & 0o777))
    # Folders that are closed come last, and inner ones before outer ones.
    for path, mode in reversed(modes):
        with suppress(OSError):
            os.chmod(path, mode)
    return missing


def _make(path: bytes, change: Change, contents: dict[str, bytes]) -> bool:
    """Create what *change* describes; return whether its content was there. Never replaces anything."""
    assert change.after is not None
    os.makedirs(os.path.dirname(path), exist_ok=True)
    kind = change.after.type
    if kind == "directory":
        os.makedirs(path, exist_ok=True)
    elif kind == "symlink":
        os.symlink(change.after.target or "", path)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "file" and change.stored:
        with open(path, "xb") as stream:
            stream.write(contents[change.after.sha256 or ""])
    else:
        return False
    return True


def remove(path: bytes) -> None:
    """Remove a file, link or empty folder; a folder that still holds something stays."""
    try:
        info = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISDIR(info.st_mode):
        with suppress(OSError):
            os.rmdir(path)
    else:
        os.unlink(path)


def own(folder: Path, user: int, group: int) -> None:
    """Give everything below *folder*, and itself, to a user. Of a link it is the link; what is his already stays."""
    for _, folders, files, here in os.fwalk(folder, follow_symlinks=False):
        # By the open folder and never through a link: an agent's processes may be at work in there.
        _give(".", here, user, group)
        for name in (*folders, *files):
            _give(name, here, user, group)


def _give(name: str, folder: int, user: int, group: int) -> None:
    with suppress(FileNotFoundError):
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if (info.st_uid, info.st_gid) != (user, group):
            os.chown(name, user, group, dir_fd=folder, follow_symlinks=False)


def remove_tree(folder: Path) -> None:
    """Delete a trial's folder whatever the agent left in it. A folder that is not there is fine."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):
        # Closed folders, or nested deeper than names, recursion and open files reach: these two cope with all of it.
        for argv in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*argv, "--", str(folder)], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if os.path.lexists(folder):
            raise OSError(f"{folder} cannot be removed") from None
