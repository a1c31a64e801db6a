"""Verdicts that were given before to the very same question: a file each, under a hash of everything that matters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_paranoia.judging.llm.dossier import Dossier
from pytest_paranoia.schema.record import Judging
from pytest_paranoia.schema.verdict import AccusationVerdict, Verdict
from pytest_paranoia.store.files import StoreError, write_atomic
from pytest_paranoia.workspaces.cache import cache_root

FOLDER = "judge-verdicts"


class Kept(BaseModel):
    """What a file of the cache holds."""

    model_config = ConfigDict(extra="forbid")

    verdict: Verdict | None = None
    accusation: AccusationVerdict | None = None
    judging: Judging


def default_folder() -> Path:
    """The folder in the machine's cache."""
    return cache_root() / FOLDER


def question(dossier: Dossier, version: str, told: Mapping[str, Any]) -> str:
    """Return the key of a question: the judge with all its settings, what it is told, and all that it may read.

    The start tree enters by its name in the machine's cache, which is a hash of its content.
    """
    material = {
        "version": version,
        "told": told,
        "run": dict(dossier.texts),
        "start": "/".join(dossier.start.parts[-2:]),
    }
    return hashlib.sha256(json.dumps(material, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class VerdictCache:
    """The cache in *folder*, None for no cache. A file that cannot be read or written is as good as none."""

    folder: Path | None

    def get(self, key: str) -> Kept | None:
        """Return what was kept under *key*."""
        if self.folder is None:
            return None
        try:
            return Kept.model_validate_json(self._path(key).read_bytes())
        except (OSError, ValidationError):
            return None

    def put(self, key: str, kept: Kept) -> None:
        """Keep a verdict."""
        if self.folder is None:
            return
        path = self._path(key)
        with suppress(OSError, StoreError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, kept.model_dump_json().encode())

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / key[:2] / f"{key}.json"
