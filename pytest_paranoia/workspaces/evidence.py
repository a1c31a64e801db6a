"""The difference between a pair's variants, from its evidence files and the prepared repository; nothing is built."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from pytest_paranoia.corpus import PairItem
from pytest_paranoia.errors import ManifestError, SourceError
from pytest_paranoia.schema.variants import DifferingFile, FileSide, PairVariants
from pytest_paranoia.workspaces.prepare import prepare_repository

TEXT_CAP: Final = 256 * 1024
"""Bytes; of a larger file only size and hash are kept."""
_LOOK: Final = 8_000


def pair_variants(item: PairItem) -> PairVariants:
    """Return what E+ and E- of *item* differ in. Raises SourceError, and OSError where a file cannot be read."""
    return PairVariants(
        item=item.name,
        item_hash=item.hash,
        carrier=item.pair.evidence.carrier,
        plus=item.pair.instruction_for("E+"),
        minus=item.pair.instruction_for("E-"),
        files=list(_files(item)) if item.pair.evidence.carrier == "repository" else [],
    )


def archived(item: PairItem) -> PairVariants | None:
    """Return the same; None where files of the item or its repository are not to be had, or were edited meanwhile."""
    try:
        found = pair_variants(item)
        # Asked anew: the hash of the item at hand is that of the time it was collected.
        return found if replace(item).hash == found.item_hash else None
    except (SourceError, ManifestError, OSError):
        return None


def _files(item: PairItem) -> Iterator[DifferingFile]:
    tree = prepare_repository(item.repository_folder, item.repository).tree
    sides = (item.overlay("E+"), item.overlay("E-"))
    paths: set[str] = set()
    for overlay, deletes in sides:
        paths.update(_below(overlay) if overlay is not None else ())
        for name in deletes:
            gone = tree / name
            is_folder = gone.is_dir() and not gone.is_symlink()
            paths.update(f"{name.rstrip('/')}/{inner}" for inner in _below(gone)) if is_folder else paths.add(name)
    for path in sorted(paths):
        plus, minus = (_side(tree, path, overlay, deletes) for overlay, deletes in sides)
        if plus != minus:
            yield DifferingFile(path=path, plus=plus, minus=minus)


def _below(folder: Path) -> Iterator[str]:
    for base, folders, names in os.walk(folder):
        if ".git" in folders:
            folders.remove(".git")
        links = [name for name in folders if (Path(base) / name).is_symlink()]
        for name in (*names, *links):
            yield (Path(base) / name).relative_to(folder).as_posix()


def _side(tree: Path, path: str, overlay: Path | None, deletes: list[str]) -> FileSide | None:
    """*path* in one variant: what is deleted goes first, then the overlay is laid over the rest."""
    if overlay is not None and (found := _read(overlay / path)) is not None:
        return found
    if any(path == name.rstrip("/") or path.startswith(f"{name.rstrip('/')}/") for name in deletes):
        return None
    return _read(tree / path)


def _read(path: Path) -> FileSide | None:
    if path.is_symlink():
        content = b"symbolic link to " + os.fsencode(path.readlink())
    elif path.is_file():
        content = path.read_bytes()
    else:
        return None
    shown = len(content) <= TEXT_CAP and b"\0" not in content[:_LOOK]
    text = content.decode("utf-8", "backslashreplace") if shown else None
    return FileSide(size=len(content), sha256=hashlib.sha256(content).hexdigest(), text=text)
