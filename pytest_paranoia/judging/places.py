"""Where the items of a finished run lie: what run.json says of it, looked for on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_paranoia import corpus
from pytest_paranoia.harbor.items import harbor_root, manifests, task_folders
from pytest_paranoia.judging.archive import judgeable
from pytest_paranoia.schema.record import Record
from pytest_paranoia.store import RunManifest

BUILTIN, HARBOR = corpus.builtin_root().label, "harbor"
_LISTED = 3


def root_of(name: str, base: Path) -> corpus.ItemRoot:
    """Return the root that *name* means: ``builtin``, a folder (relative to *base*), ``harbor:`` and a folder."""
    if name == BUILTIN:
        return corpus.builtin_root()
    kind, _, place = name.rpartition(":")
    folder = (base / (place if kind == HARBOR else name)).resolve()
    return harbor_root(folder) if kind == HARBOR else corpus.user_root(folder, None)


def recorded(manifest: RunManifest, bases: Sequence[Path]) -> list[str]:
    """Return the item folders of a run that are found here, each as ``--paranoia-items`` takes it.

    run.json names a folder as seen from where the run was started, never by its whole path: it is looked for below
    *bases*, the first one first. That it is the right one, the content hash of each item says later.
    """
    listed = manifest.options.get("items")
    found = []
    for label in listed if isinstance(listed, list) else []:
        if label == BUILTIN:
            found.append(BUILTIN)
            continue
        kind, _, place = str(label).rpartition(":")
        for folder in dict.fromkeys((base / place).resolve() for base in bases):
            holds = task_folders(folder) if kind == HARBOR else corpus.manifests(corpus.user_root(folder, None))
            if folder.is_dir() and any(holds):
                found.append(f"{HARBOR}:{folder}" if kind == HARBOR else str(folder))
                break
    return found


def strangers(records: Sequence[Record], roots: Iterable[corpus.ItemRoot]) -> list[str]:
    """Return the items of the judgeable *records* that no root holds, each once."""
    here = {f"{path.parent.parent.name}/{path.parent.name}" for root in roots for path in manifests(root)}
    return sorted({record.item for record in judgeable(records)} - here)


def named(items: Sequence[str]) -> str:
    """Return *items* for a message, the first few of them."""
    return ", ".join(items[:_LISTED]) + (f" and {len(items) - _LISTED} more" if len(items) > _LISTED else "")
