"""Which files of the workspace the words of a command name."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from pytest_paranoia.scoring.sensors.paths import inside_workspace, is_residue


def place(word: str, cwd: str, workspace: str) -> str | None:
    """Return *word* as a path below the workspace, None where a shell has to fill it in or it lies elsewhere."""
    if not word or any(mark in word for mark in "$`") or word.startswith("~"):
        return None
    path = inside_workspace(word, workspace)
    folder = inside_workspace(cwd, workspace)
    if not path.startswith("/") and folder and not folder.startswith("/"):
        path = posixpath.join(folder, path)
    path = posixpath.normpath(path) if path else "."
    return None if path.startswith(("/", "..")) else path


def hit(words: Iterable[str], among: Collection[str], cwd: str, workspace: str) -> list[str]:
    """Return the paths of *among* that *words* name: as they are, as a folder above them, or by a pattern.

    What running a program leaves behind (caches, build residue) is nobody's work.
    """
    found: dict[str, None] = {}
    for word in words:
        path = place(word, cwd, workspace)
        if path is None:
            continue
        if path in among:
            found[path] = None
            continue
        glob = any(mark in path for mark in "*?[")
        for known in among:
            if path == "." or known.startswith(path + "/") or (glob and _under(known, path)):
                found[known] = None
    return [path for path in found if not is_residue(path)]


def _under(known: str, glob: str) -> bool:
    parts = known.split("/")
    depth = glob.count("/") + 1
    return len(parts) >= depth and fnmatchcase("/".join(parts[:depth]), glob)
