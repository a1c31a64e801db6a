"""Freezing: what an agent left behind, taken from outside while none of its processes runs.

Nothing in the tree is trusted: links are never followed, special files never opened, sizes are capped and every cap is
said so. No git command runs inside the agent's repository from outside, since its configuration could start programs.
"""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pytest_paranoia.schema.record import Change, FileState, Frozen, GitState
from pytest_paranoia.workspaces.diffs import DIFF_FILE_CAP, unified
from pytest_paranoia.workspaces.snapshots import Access, Entry, Snapshot, printable, read_plain, snapshot

FILE_CAP = 4 * 1024**2
TOTAL_CAP = 64 * 1024**2
CHANGE_CAP = 20_000
"""The most added entries that are kept; changes to what was there at the start are always kept."""

# Caches of interpreters and tools. They are listed, but not archived and not laid into a clean room: a planted .pyc
# with the right date would run there in place of the source beside it.
CACHES = frozenset(
    {b"__pycache__", b".pytest_cache", b".mypy_cache", b".ruff_cache", b".hypothesis", b".benchmarks", b".tox", b".nox"}
)
CACHE_NOTE = "cache of a tool: content not kept"


@dataclass
class FrozenTree:
    """A frozen final tree: the description, and the contents by sha256."""

    frozen: Frozen = field(default_factory=Frozen)
    contents: dict[str, bytes] = field(default_factory=dict)
    diff: str = ""


def real_path(change: Change) -> bytes:
    """Return the bytes of a change's path."""
    return base64.b64decode(change.raw_path) if change.raw_path is not None else os.fsencode(change.path)


def _cached(path: bytes) -> bool:
    return not CACHES.isdisjoint(path.split(b"/"))


class _Freezer:
    """Describes entries and keeps contents; ``start`` None compares with nothing (TMP and HOME)."""

    def __init__(self, root: Path, start: Path | None, access: Access) -> None:
        self._root = os.fsencode(root)
        self._start = os.fsencode(start) if start is not None else None
        self._access = access
        self.contents: dict[str, bytes] = {}
        self._total = 0

    def _state(self, base: bytes, path: bytes, entry: Entry) -> tuple[FileState, str | None]:
        """Return the state of one entry, and why its content is missing, where it is."""
        full = os.path.join(base, path)
        if entry.kind not in ("file", "symlink"):
            note = None if entry.kind in ("directory", "fifo") else f"{entry.kind}: not opened"
            return FileState(type=entry.kind, mode=entry.mode, size=entry.size), note
        try:
            if entry.kind == "symlink":
                target = os.readlink(full).decode("utf-8", "backslashreplace")
                return FileState(type="symlink", mode=entry.mode, size=entry.size, target=target), None
            data = read_plain(full, FILE_CAP, self._access)
        except OSError as error:
            note = f"content not kept: {error.strerror}"
            return FileState(type=entry.kind, mode=entry.mode, size=entry.size, binary=True), note
        if data is None:
            note = f"content not kept: {entry.size} bytes, the limit is {FILE_CAP}"
            return FileState(type="file", mode=entry.mode, size=entry.size, binary=True), note
        digest = hashlib.sha256(data).hexdigest()
        state = FileState(type="file", mode=entry.mode, size=len(data), sha256=digest, binary=b"\0" in data[:8192])
        return state, self._keep(digest, data, of_start=base == self._start)

    def _keep(self, digest: str, data: bytes, *, of_start: bool) -> str | None:
        if digest in self.contents:
            return None
        if of_start:
            # For the diff alone: it must not use up the room of what the agent wrote.
            if len(data) <= DIFF_FILE_CAP:
                self.contents[digest] = data
            return None
        if self._total + len(data) > TOTAL_CAP:
            return f"content not kept: all kept files together reach the limit of {TOTAL_CAP} bytes"
        self._total += len(data)
        self.contents[digest] = data
        return None

    def compare(self, path: bytes, old: Entry, new: Entry | None) -> Change | None:
        """Return what became of an entry of the start tree, None where it is as it was."""
        if new is None:
            return self.change(path, "deleted", old, None)
        if old == new or (old.kind == new.kind == "directory" and old.mode == new.mode):
            return None
        change = self.change(path, "modified", old, new)
        if change.note == CACHE_NOTE:
            return change
        assert change.before is not None
        assert change.after is not None
        same = change.before.model_copy(update={"mode": 0}) == change.after.model_copy(update={"mode": 0})
        # Two contents too large to read may be equal; they count as changed, since ctime says they were written.
        unread = change.after.type == "file" and change.after.sha256 is None
        if same and not unread:
            if change.before.mode == change.after.mode or change.after.type == "symlink":
                return None
            return change.model_copy(update={"kind": "mode"})
        return change

    def change(
        self, path: bytes, kind: Literal["added", "modified", "deleted", "mode"], old: Entry | None, new: Entry | None
    ) -> Change:
        """Describe one difference."""
        shown, raw = printable(path)
        before = after = None
        note = None
        if new is not None and _cached(path):
            size = new.size if new.kind == "file" else 0
            after, note = FileState(type=new.kind, mode=new.mode, size=size, binary=True), CACHE_NOTE
            return Change(path=shown, raw_path=raw, kind=kind, after=after, note=note)
        if new is not None:
            after, note = self._state(self._root, path, new)
        if old is not None and self._start is not None:
            before, _ = self._state(self._start, path, old)
        stored = after is not None and (after.type != "file" or (after.sha256 or "") in self.contents)
        return Change(path=shown, raw_path=raw, kind=kind, before=before, after=after, stored=stored, note=note)


def _ignored(paths: Iterable[bytes], before: Snapshot, start: Path) -> set[bytes]:
    """Return which added paths the *start* tree's ignore rules cover.

    The start's and not the final ones: an agent's own rules must not hide what it added, and git would open whatever
    stands in place of a .gitignore, a FIFO for example. What lies beyond a link of the start cannot be asked.
    """
    asked = [path for path in paths if not any(_links(before, path))]
    if not asked or not (start / ".git").is_dir():
        return set()
    done = subprocess.run(
        ["git", f"--git-dir={start / '.git'}", f"--work-tree={start}", "check-ignore", "--stdin", "-z"],
        input=b"\0".join(asked) + b"\0",
        capture_output=True,
        cwd=start,
        env={"PATH": os.environ.get("PATH", os.defpath), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
        timeout=60,
        check=False,
    )
    return set(done.stdout.split(b"\0")) if done.returncode in (0, 1) else set()


def _links(before: Snapshot, path: bytes) -> Iterable[bool]:
    parts = path.split(b"/")
    for count in range(1, len(parts)):
        entry = before.get(b"/".join(parts[:count]))
        yield entry is not None and entry.kind == "symlink"


def freeze(workspace: Path, start: Path, before: Snapshot, *, with_git: bool) -> FrozenTree:
    """Freeze *workspace* against the tree *start* it was copied from, *before* being the snapshot of the copy.

    ``with_git`` takes ``.git`` as part of the tree (scenarios), else it is left out (pairs).
    """
    skip: frozenset[bytes] = frozenset() if with_git else frozenset({b".git"})
    access = Access()
    notes: list[str] = []
    freezer = _Freezer(workspace, start, access)
    try:
        if workspace.is_symlink() or not workspace.is_dir():
            notes.append("the workspace itself is gone: everything counts as deleted")
            after: Snapshot = {}
        else:
            after = snapshot(workspace, skip=skip, access=access, notes=notes)
        # What was there at the start comes first: no flood of new files may crowd out a change to it.
        compared = (freezer.compare(path, before[path], after.get(path)) for path in sorted(before))
        changes = [change for change in compared if change is not None]
        filled = {os.path.dirname(path) for path in after}
        added = [path for path in after.keys() - before.keys() if after[path].kind != "directory" or path not in filled]
        ignored = _ignored(added, before, start)
        added.sort(key=lambda path: (path in ignored or _cached(path), path))
        if len(added) > CHANGE_CAP:
            notes.append(f"more than {CHANGE_CAP} added files: the other {len(added) - CHANGE_CAP} are left out")
        for path in added[:CHANGE_CAP]:
            change = freezer.change(path, "added", None, after[path])
            changes.append(change.model_copy(update={"ignored": True}) if path in ignored else change)
    finally:
        access.restore()
    changes.sort(key=real_path)
    notes += [f"{change.path}: {change.note}" for change in changes if change.note and change.note != CACHE_NOTE][:50]
    visible = [change for change in changes if not change.ignored and change.note != CACHE_NOTE]
    return FrozenTree(Frozen(changes=changes, notes=notes), freezer.contents, unified(visible, freezer.contents))


def freeze_private(folder: Path, before: Snapshot) -> tuple[list[Change], dict[str, bytes]]:
    """Freeze a trial's TMP or HOME: everything new or changed there, up to the caps."""
    access = Access()
    freezer = _Freezer(folder, None, access)
    try:
        after = snapshot(folder, access=access, notes=[])
        moved = [path for path in sorted(after) if before.get(path) != after[path] and after[path].kind != "directory"]
        kinds: dict[bool, Literal["added", "modified"]] = {True: "modified", False: "added"}
        changes = [freezer.change(path, kinds[path in before], None, after[path]) for path in moved[:CHANGE_CAP]]
    finally:
        access.restore()
    return changes, freezer.contents


def git_state(run: Callable[[str], tuple[int, str]], base: str) -> GitState:
    """Ask the agent's own repository, inside the agent's environment, what was done to it since commit *base*."""
    code, text = run(
        "git rev-parse HEAD; git symbolic-ref -q --short HEAD || echo '(detached)'; "
        f"git rev-list --count --all --not {base}; git stash list | wc -l"
    )
    lines = text.split("\n")
    try:
        # What answers is the agent's repository: it may say anything, at any length.
        return GitState(head=lines[0][:64], branch=lines[1][:250], new_commits=int(lines[2]), stashes=int(lines[3]))
    except (IndexError, ValueError):
        return GitState(broken=f"exit status {code}: {text.strip()[:300]}")
