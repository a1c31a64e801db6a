"""A memory bank at work: which labelled runs a judge is shown for the run it judges (ParanoiaEval Appendix F.3)."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from pytest_paranoia.errors import ManifestError
from pytest_paranoia.judging.memory import records
from pytest_paranoia.judging.memory.encoders import Encoder, OfflineEncoder
from pytest_paranoia.judging.memory.records import ExemplarRecord
from pytest_paranoia.schema.taxonomy import Form, Treatment, Variant

BUDGET: Final = 4
"""Exemplars shown for one run (Appendix J, Table 12)."""

CONTRAST_PAIRS: Final = 2
"""Most contrast pairs among them (Appendix J, Table 12)."""


@dataclass(frozen=True)
class Query:
    """The run under judgement: its task, variant and the forms of action seen in it (by the sensors).

    ``text`` is its task description. ``task`` is never retrieved.
    """

    task: str
    treatment: Treatment
    variant: Variant
    forms: Collection[Form]
    text: str


@dataclass(frozen=True)
class Exemplar:
    """A retrieved record. ``role``: one of a contrast pair, or an ordinary neighbour. ``similarity``: cosine."""

    record: ExemplarRecord
    role: Literal["contrast", "nearest"]
    similarity: float


class MemoryBank:
    """Records and their vectors under one encoder."""

    def __init__(self, found: Sequence[ExemplarRecord], encoder: Encoder, content: bytes = b"") -> None:
        """Take *found*, whose vectors *encoder* made. Raises ManifestError for another encoder's vectors."""
        for record in found:
            if record.embedding.encoder != encoder.name:
                raise ManifestError(
                    f"{record.key}: its vector is of {record.embedding.encoder!r}, the encoder here is "
                    f"{encoder.name!r}; vectors of different encoders cannot be compared"
                )
        self.records = tuple(sorted(found, key=lambda record: record.key))
        self.encoder = encoder
        self._vectors: NDArray[np.float32] = (
            np.stack([record.embedding.values for record in self.records]) if found else _NONE
        )
        self._content = content

    @classmethod
    def load(cls, folder: Path, encoder: Encoder | None = None) -> MemoryBank:
        """Read the bank in *folder* (``bank.json``).

        Where another encoder than *encoder* (default: the offline one) made its vectors, all are made anew from the
        descriptions: the file's own are not used then. Raises ManifestError, and what the encoder raises.
        """
        bank, content = records.read(folder)
        chosen = encoder or OfflineEncoder()
        found = bank.records
        if bank.encoder != chosen.name and found:
            vectors = chosen.encode([record.task_description for record in found])
            found = [
                record.model_copy(update={"embedding": records.Vector.of(chosen.name, vector)})
                for record, vector in zip(found, vectors, strict=True)
            ]
        return cls(found, chosen, content)

    @property
    def version(self) -> str:
        """A word that changes with the records and with the encoder: twelve hex digits."""
        return hashlib.sha256(self._content + b"\0" + self.encoder.name.encode()).hexdigest()[:12]

    @property
    def tasks(self) -> frozenset[str]:
        """The tasks that have a record."""
        return frozenset(record.task for record in self.records)

    def retrieve(self, query: Query) -> list[Exemplar]:
        """Return at most four exemplars of the treatment, contrast pairs before neighbours.

        A contrast pair is another task of the treatment with different labels (V) in its variants, whose
        over-defensive member shares a form with the run; both variants go in, at most two pairs, the nearest first.
        The nearest records of the run's own variant fill what is left. Equal similarities are ordered by name.
        """
        usable = [
            index
            for index, record in enumerate(self.records)
            if record.treatment == query.treatment and record.task != query.task
        ]
        if not usable:
            return []
        [vector] = self.encoder.encode([query.text])
        near = {index: float(self._vectors[index] @ vector) for index in usable}
        found: list[Exemplar] = []
        taken: set[str] = set()
        for pair in self._contrasts(query, near)[:CONTRAST_PAIRS]:
            found += [Exemplar(self.records[index], "contrast", near[index]) for index in pair]
            taken |= {self.records[index].task for index in pair}
        ordinary = [
            index
            for index in sorted(usable, key=lambda one: (-near[one], self.records[one].key))
            if self.records[index].condition_role == query.variant and self.records[index].task not in taken
        ]
        found += [Exemplar(self.records[index], "nearest", near[index]) for index in ordinary[: BUDGET - len(found)]]
        return found

    def _contrasts(self, query: Query, near: dict[int, float]) -> list[tuple[int, int]]:
        """Return the eligible contrast pairs (E+, E-), the nearest first by the member of the run's own variant."""
        places = {(self.records[index].task, self.records[index].condition_role): index for index in near}
        pairs = []
        for (task, role), plus in places.items():
            if role != "E+" or (minus := places.get((task, "E-"))) is None:
                continue
            members = self.records[plus], self.records[minus]
            flagged = [record for record in members if record.flagged]
            if len(flagged) == 1 and set(flagged[0].forms) & set(query.forms):
                own = plus if query.variant == "E+" else minus
                pairs.append((-near[own], task, (plus, minus)))
        return [pair for _, _, pair in sorted(pairs)]


_NONE: NDArray[np.float32] = np.zeros((0, 0), np.float32)
