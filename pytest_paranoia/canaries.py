"""The canary: one string that every evaluator-only file of a content root holds and nothing an agent sees does.

Whoever finds it in training data or in a transcript knows that the answers were there too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from pytest_paranoia.corpus import ItemRoot, content_root, manifests
from pytest_paranoia.errors import ManifestError

DECLARATION = "canary.txt"
SHORTEST = 20
"""Characters below which a string may stand somewhere by chance."""


def place(root: ItemRoot) -> Path:
    """Return where *root* declares its canary, if it does."""
    return root.oracles / DECLARATION


@lru_cache
def declared(root: ItemRoot) -> str | None:
    """Return the canary that ``oracles/canary.txt`` of *root* declares, None where there is no such file.

    Raises ManifestError where the file is no single line of at least 20 characters.
    """
    path = place(root)
    shown = root.nodeid(path)
    if not path.exists():
        return None
    try:
        lines = path.read_text(encoding="utf-8").strip().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{shown}: not readable as text in UTF-8: {error}") from None
    if len(lines) != 1 or len(lines[0]) < SHORTEST:
        raise ManifestError(
            f"{shown}: found {len(lines)} lines{f' ({lines[0]!r})' if len(lines) == 1 else ''}, expected one line of "
            f"at least {SHORTEST} characters that stands nowhere else: a few words and a random UUID"
        )
    return lines[0]


def without(folder: Path, canary: str) -> list[Path]:
    """Return the files below *folder* that do not hold *canary*; what is no UTF-8 has no place for it."""
    return [path for path, text in _texts(folder) if canary not in text]


def holding(folder: Path, canary: str) -> list[Path]:
    """Return the files below *folder* that hold *canary*."""
    return [path for path, text in _texts(folder) if canary in text]


def unclaimed_without(root: ItemRoot, canary: str) -> list[Path]:
    """Return the evaluator-only files of *root* that belong to no item and do not hold *canary*, judge/ included."""
    owned = [root.oracles / manifest.parent.relative_to(root.tasks) for manifest in manifests(root)]
    found = [path for path in without(root.oracles, canary) if not any(path.is_relative_to(item) for item in owned)]
    # Only ours: a user's root brings no judging contract.
    return found + (without(root.folder / "judge", canary) if root.folder == content_root() else [])


def _texts(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or "__pycache__" in path.parts:
            continue
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
