"""Spare trees: a used copy of a start tree is put right and used again, instead of deleted and copied anew.

Copying and deleting was most of what a trial cost: making a file takes many times what looking at one does, and ext4
searches the longer for a free inode the more of them were deleted within the last minute. What was changed is known
from the kernel's own ctime and inode numbers, which no agent can set, and is taken from the start tree again; where
anything else is found, the tree is deleted after all.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_paranoia.workspaces import laying
from pytest_paranoia.workspaces.prepare import copy_tree
from pytest_paranoia.workspaces.snapshots import Entry, Snapshot, snapshot
from pytest_paranoia.workspaces.stage import scratch_folder

KEEP = 4
"""Trees that one process keeps. A session goes through the trials of an item before those of the next one."""


@dataclass(frozen=True)
class Loan:
    """A tree on loan: a copy of ``start`` at ``folder``, with the ``state`` it has while nobody has touched it.

    It is only lent again for the same ``use``, so that no check takes place where an agent was. ``owner`` is the user
    that all of it belongs to, None for this process's.
    """

    use: str
    start: Path
    folder: Path
    state: Snapshot
    owner: int | None = None


class Spares:
    """The spare trees of one process, in a scratch folder of its own that ``close`` removes."""

    def __init__(self) -> None:
        self._holding = ExitStack()
        self._folder: Path | None = None
        self._number = 0
        self._trees: list[Loan] = []
        """The one last given back is the last."""

    def take(self, use: str, start: Path, target: Path, owner: int | None = None) -> Loan:
        """Put a tree equal to *start* at *target*, which must not exist, as *owner*'s (None: this process's user's)."""
        for spare in self._trees:
            if (spare.use, spare.start, spare.owner) == (use, start, owner):
                self._trees.remove(spare)
                with suppress(OSError):  # somebody tidied up the folder for temporary files
                    spare.folder.rename(target)
                    return Loan(use, start, target, spare.state, owner)
                break
        copy_tree(start, target)
        if owner is not None:
            laying.own(target, owner, owner)
        return Loan(use, start, target, snapshot(target), owner)

    def give_back(self, loan: Loan) -> None:
        """Take a tree back in which no process runs any more. One that cannot be put right stays where it is."""
        try:
            state = put_right(loan)
            if self._folder is None:
                self._folder = self._holding.enter_context(scratch_folder())
            self._number += 1
            folder = loan.folder.rename(self._folder / str(self._number))
        except (OSError, RecursionError, _Unfit):
            return
        self._trees.append(Loan(loan.use, loan.start, folder, state, loan.owner))
        if len(self._trees) > KEEP:
            laying.remove_tree(self._trees.pop(0).folder)

    def close(self) -> None:
        """Remove all spare trees."""
        self._trees.clear()
        self._folder = None
        self._holding.close()


SPARES = Spares()


class _Unfit(Exception):
    """The tree has something that putting it right does not take away."""


def put_right(loan: Loan) -> Snapshot:
    """Make a tree equal to its start again and return its new state."""
    start, tree, before = os.fsencode(loan.start), os.fsencode(loan.folder), loan.state
    if not stat.S_ISDIR(os.lstat(tree).st_mode):
        raise _Unfit
    _mend(start, tree)
    after = snapshot(loan.folder)
    for path in after.keys() - before.keys():
        folder = os.path.dirname(path)
        if folder in before or not folder:  # what lies in an added folder goes with it
            _remove(os.path.join(tree, path))
    folders = sorted(path for path, entry in before.items() if entry.kind == "directory")
    for path in folders:
        if path not in after or after[path].kind != "directory":
            _remove(os.path.join(tree, path))
            os.mkdir(os.path.join(tree, path))
    mended = set()
    for path, entry in before.items():
        if entry.kind != "directory" and after.get(path) != entry:
            _remove(os.path.join(tree, path))
            shutil.copy2(os.path.join(start, path), os.path.join(tree, path), follow_symlinks=False)
            mended.add(os.path.dirname(path))
    # Last, since all of the above changes a folder's times.
    for path in folders:
        if path in mended or after.get(path) != before[path]:
            _mend(os.path.join(start, path), os.path.join(tree, path))
    _mend(start, tree)
    if loan.owner is not None:
        laying.own(loan.folder, loan.owner, loan.owner)
    state = snapshot(loan.folder)
    if state.keys() != before.keys() or not all(_alike(before[path], entry) for path, entry in state.items()):
        raise _Unfit
    return state


def _mend(source: bytes, folder: bytes) -> None:
    """Give a folder the mode and the times of its source."""
    if os.listxattr(folder) != os.listxattr(source):
        raise _Unfit  # an access list, for example, which new files would inherit
    info = os.lstat(source)
    os.chmod(folder, stat.S_IMODE(info.st_mode))
    os.utime(folder, ns=(info.st_atime_ns, info.st_mtime_ns))


def _alike(old: Entry, new: Entry) -> bool:
    """Whether two entries look the same; how large a folder is, is the file system's affair."""
    same_size = old.size == new.size or old.kind == "directory"
    return same_size and (old.kind, old.mode, old.mtime) == (new.kind, new.mode, new.mtime)


def _remove(path: bytes) -> None:
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(info.st_mode):
        shutil.rmtree(path)
    else:
        os.unlink(path)
