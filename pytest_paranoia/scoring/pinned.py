"""What decides how upstream's tests come out, apart from the code under test: put back to the pinned revision."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from pytest_paranoia.workspaces import laying

_TEST_FOLDERS = {"tests", "test", "testing"}
_TEST_FILES = ("conftest.py", "test_*.py", "*_test.py")
_CONFIGURATION = (
    *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml"),
    *("sitecustomize.py", "usercustomize.py", "*.pth"),
)
# Folders of a distribution's metadata: pytest loads the plugins that entry points there name.
_METADATA = ("*.dist-info", "*.egg-info", "*.egg")


def decides_tests(path: str, targets: Collection[str] = ()) -> bool:
    """Whether a file at *path* could decide how the tests *targets* come out, apart from the code under test."""
    *folders, name = (part.lower() for part in PurePosixPath(path).parts)
    if not _TEST_FOLDERS.isdisjoint(folders):
        return True
    if any(fnmatch(part, pattern) for part in (*folders, name) for pattern in _METADATA):
        return True
    if any(fnmatch(name, pattern) for pattern in (*_TEST_FILES, *_CONFIGURATION)):
        return True
    return path in {os.path.normpath(target.partition("::")[0]) for target in targets}


def below(path: str, places: Collection[str]) -> bool:
    """Whether *path* is one of *places* or lies in one that is a folder."""
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def restore(start: Path, tree: Path, decides: Callable[[str], bool]) -> None:
    """Make the files that *decides* tells the same in *tree* as in *start*, whatever stands in their way.

    Afterwards and not by leaving changes out: a folder that became a link or a file would make half of them absurd.
    """
    for path in list(_entries(tree)):
        if decides(path):
            laying.remove(os.fsencode(tree / path))
    for path in _entries(start):
        if decides(path):
            _make_way(tree, path)
            shutil.copy2(start / path, tree / path, follow_symlinks=False)


def _entries(root: Path) -> Iterator[str]:
    """Yield files and links below *root*, its own ``.git`` apart; folders that the agent closed are opened."""
    for folder, subfolders, files in os.walk(root):
        here = Path(folder)
        for name in list(subfolders):
            if here == root and name == ".git":
                subfolders.remove(name)
            elif (here / name).is_symlink():
                files.append(name)
            else:
                _open(here / name)
        yield from ((here / name).relative_to(root).as_posix() for name in files)


def _open(folder: Path) -> None:
    mode = folder.stat().st_mode
    if mode & 0o700 != 0o700:
        folder.chmod(mode | 0o700)


def _make_way(tree: Path, path: str) -> None:
    current = tree
    for part in Path(path).parts[:-1]:
        current = current / part
        if current.is_symlink() or not current.is_dir():
            laying.remove(os.fsencode(current))
            current.mkdir()
        _open(current)
    target = tree / path
    if target.is_dir() and not target.is_symlink():
        laying.remove_tree(target)
    else:
        laying.remove(os.fsencode(target))
