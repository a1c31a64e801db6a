"""Snapshots: what is in a tree, looked at from outside; nothing in it is followed, opened for long or trusted."""

from __future__ import annotations

import base64
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

Kind = Literal["file", "symlink", "fifo", "socket", "device", "directory"]


class Entry(NamedTuple):
    """One entry of a snapshot: enough to tell cheaply whether it may have changed (ctime cannot be set back)."""

    kind: Kind
    mode: int
    size: int
    mtime: int
    ctime: int
    inode: int


Snapshot = dict[bytes, Entry]


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISLNK(mode):
        return "symlink"
    if stat.S_ISFIFO(mode):
        return "fifo"
    return "socket" if stat.S_ISSOCK(mode) else "device"


class Access:
    """Opens what the agent closed, and closes it again: the agent may go on working after a first freeze."""

    def __init__(self) -> None:
        self._modes: list[tuple[bytes, int]] = []

    def open_up(self, path: bytes) -> None:
        """Give the owner all rights to a file or folder (no link: nothing moves while we look)."""
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        os.chmod(path, mode | 0o700)
        self._modes.append((path, mode))

    def restore(self) -> None:
        """Give back the modes that were there."""
        for path, mode in reversed(self._modes):
            with suppress(OSError):
                os.chmod(path, mode)


def snapshot(
    root: Path,
    *,
    skip: frozenset[bytes] = frozenset(),
    access: Access | None = None,
    notes: list[str] | None = None,
) -> Snapshot:
    """Return the entries below *root* by relative path, links not followed; top-level names in *skip* left out.

    With ``access`` closed folders are opened; what has no name short enough to be asked for is told in ``notes``.
    """
    entries: Snapshot = {}
    base = os.fsencode(root)
    stack = [b""]
    while stack:
        folder = stack.pop()
        try:
            found = _listing(os.path.join(base, folder) if folder else base, access)
        except OSError as error:
            if notes is None or isinstance(error, PermissionError):
                raise
            notes.append(f"{printable(folder)[0][:200]}…: left out, {error.strerror}")
            continue
        for name, info in found:
            if not folder and name in skip:
                continue
            path = os.path.join(folder, name) if folder else name
            kind = _kind(info.st_mode)
            entries[path] = Entry(
                kind, stat.S_IMODE(info.st_mode), info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino
            )
            if kind == "directory":
                stack.append(path)
    return entries


def _listing(folder: bytes, access: Access | None) -> list[tuple[bytes, os.stat_result]]:
    try:
        with os.scandir(folder) as listing:
            return [(found.name, found.stat(follow_symlinks=False)) for found in listing]
    except PermissionError:
        if access is None:
            raise
        access.open_up(folder)
        return _listing(folder, None)


def read_plain(path: bytes, limit: int, access: Access | None = None) -> bytes | None:
    """Return the content of a regular file of at most *limit* bytes, else None; never blocks, never follows a link."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except PermissionError:
        if access is None:
            raise
        access.open_up(path)
        descriptor = os.open(path, flags)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        data = stream.read(limit + 1)
    return data if len(data) <= limit else None


def printable(path: bytes) -> tuple[str, str | None]:
    """Return a path as people may see it, and the base64 of its bytes where the two differ."""
    text = path.decode("utf-8", "backslashreplace")
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return shown, (None if os.fsencode(shown) == path else base64.b64encode(path).decode())
