"""Start and final tree of a run as a reader sees them: from the pristine copy and the frozen changes alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pytest_paranoia.schema.record import Change
from pytest_paranoia.scoring.globs import matches
from pytest_paranoia.workspaces.freezing import FrozenTree, real_path


def name_of(change: Change) -> str:
    """Return the real name of a changed path, as ``os.fsdecode`` gives it; ``path`` is made for people."""
    return os.fsdecode(real_path(change))


class FinalTree:
    """Reads files of the start tree and of the final tree; links are not followed, in any part of a path."""

    def __init__(self, start: Path, frozen: FrozenTree) -> None:
        self._start = start
        self._frozen = frozen
        self._changed = {name_of(change): change for change in frozen.frozen.changes}
        self._shown = {change.path: change for change in frozen.frozen.changes}

    def _change(self, path: str) -> Change | None:
        return self._changed.get(path) or self._shown.get(path)

    def base(self, path: str) -> bytes | None:
        """Content of a regular file of the start tree, None where there is none."""
        current = self._start
        parts = Path(path).parts
        if Path(path).is_absolute() or ".." in parts or not parts:
            return None
        try:
            for part in parts:
                current = current / part
                if stat.S_ISLNK(os.lstat(current).st_mode):
                    return None
            return current.read_bytes() if current.is_file() else None
        except OSError:  # not there, or a name too long for there
            return None

    def exists(self, path: str) -> bool:
        """Whether the final tree has *path* (a file, link or folder)."""
        change = self._change(path)
        if change is not None:
            return change.after is not None
        prefix = path.rstrip("/") + "/"
        if any(name.startswith(prefix) and change.after for name, change in self._changed.items()):
            return True
        try:
            info = os.lstat(self._start / path)
        except OSError:
            return False
        return not stat.S_ISDIR(info.st_mode) or any(name.startswith(prefix) for name in self.files())

    def read(self, path: str) -> bytes | None:
        """Content of a regular file of the final tree, None where there is none or it was not archived."""
        change = self._change(path)
        if change is None:
            return self.base(path)
        if change.after is None or change.after.type != "file":
            return None
        return self._frozen.contents.get(change.after.sha256 or "")

    def files(self, glob: str = "**") -> list[str]:
        """Files and links of the final tree that match, sorted; ``.git`` apart unless the glob names it."""
        names = {name for name, change in self._changed.items() if change.after and change.after.type != "directory"}
        for folder, subfolders, files in os.walk(self._start):
            if ".git" in subfolders and not glob.startswith(".git"):
                subfolders.remove(".git")
            relative = os.path.relpath(folder, self._start)
            for name in [*files, *(sub for sub in subfolders if (Path(folder) / sub).is_symlink())]:
                path = name if relative == "." else f"{relative}/{name}"
                if path not in self._changed:  # what was changed is among the names if it still is one
                    names.add(path)
        return sorted(name for name in names if matches(name, glob))
