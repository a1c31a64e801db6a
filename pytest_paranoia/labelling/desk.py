"""One sitting at the page: which trials are labelled, by whom, and what may be seen meanwhile."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError

from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.judging.archive import Shelf
from pytest_paranoia.judging.case import Case
from pytest_paranoia.judging.llm.neutral import MARK
from pytest_paranoia.labelling.agreeing import FIELDS, differing
from pytest_paranoia.labelling.labels import Label, Mark, material
from pytest_paranoia.labelling.sheet import found, sheet
from pytest_paranoia.labelling.store import LabelStore, Outdated
from pytest_paranoia.schema.problems import first_problem
from pytest_paranoia.schema.record import Record
from pytest_paranoia.store.names import trial_folder_name
from pytest_paranoia.store.trials import TRIALS

_OWN: Final = ("schema_version", "trial", "kind", "material", "annotator", "agreed_by")
_KEPT: Final = 8


class Refused(ParanoiaError):
    """A request that cannot be carried out; ``status`` is HTTP's, ``details`` go into the answer."""

    def __init__(self, status: int, message: str, **details: Any) -> None:
        super().__init__(message)
        self.status = status
        self.details = details


@dataclass
class Desk:
    """Labelling of *records* in the run directory *run* by ``annotator``; with ``between`` the adjudication of two.

    An annotator sees own labels only: neither the judge's nor anybody else's. The order of the trials is mixed, another
    one for each annotator, so that the two variants of a task are seldom neighbours.
    """

    run: Path
    records: Sequence[Record]
    shelf: Shelf
    scratch: Path
    annotator: str
    between: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        self.store = LabelStore(self.run)
        order = f"{self.annotator}/{'/'.join(self.between or ())}"
        self.records = sorted(self.records, key=lambda one: hashlib.sha256(f"{order}/{one.trial}".encode()).digest())
        self._cases: dict[int, Case] = {}

    @property
    def mode(self) -> Literal["label", "adjudicate"]:
        """What is done here."""
        return "adjudicate" if self.between else "label"

    def listing(self) -> dict[str, Any]:
        """Return the list of trials with the state of their labels. Raises StoreError for a damaged label."""
        own = self.store.all(self.annotator)
        sides = [self.store.all(name) for name in self.between or ()]
        trials = []
        for number, record in enumerate(self.records):
            label = own.get(record.trial)
            state = "empty" if label is None else "complete" if label.complete else "draft"
            entry: dict[str, Any] = {"number": number, "item": record.item, "kind": record.kind, "state": state}
            if self.between:
                pair = [side.get(record.trial) for side in sides]
                entry["ready"] = all(one is not None and one.complete for one in pair)
                if entry["ready"]:
                    entry["differ"] = differing(pair[0], pair[1])  # type: ignore[arg-type]
            trials.append(entry)
        return {"mode": self.mode, "annotator": self.annotator, "run": self.run.name, "trials": trials}

    def blinded(self, text: str) -> str:
        """Return an error's *text* without what tells which agent made a trial: names of trials and their folders."""
        for number, record in enumerate(self.records, start=1):
            shown = f"trial {number} ({record.item})"
            for name in (record.trial, trial_folder_name(record.trial), record.nodeid):
                text = text.replace(name, shown)
        for name in {name for one in self.records for name in (one.subject, one.agent.name, one.agent.model or "")}:
            if name:
                text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", MARK, text)
        return text

    def _record(self, number: int) -> Record:
        if not 0 <= number < len(self.records):
            raise Refused(404, f"there is no trial {number} here")
        return self.records[number]

    def case(self, number: int) -> Case:
        """Return the case of trial *number*, the last few kept. Raises ParanoiaError where it cannot be read."""
        record = self._record(number)
        if number not in self._cases:
            while len(self._cases) >= _KEPT:
                self._cases.pop(next(iter(self._cases)))
            self._cases[number] = self.shelf.case(self.run, record, self.scratch)
        return self._cases[number]

    def _material(self, record: Record) -> str:
        try:
            return material(self.run / TRIALS / trial_folder_name(record.trial))
        except OSError as error:
            raise Refused(500, f"{record.trial}: {error.filename}: {error.strerror}; its archive is damaged") from error

    def _blank(self, record: Record) -> Label:
        return Label(
            trial=record.trial,
            kind=record.kind,
            material=self._material(record),
            annotator=self.annotator,
            agreed_by=list(self.between or ()),
        )

    def _sides(self, record: Record) -> tuple[Label, Label]:
        assert self.between is not None
        found = [self.store.read(name, record.trial) for name in self.between]
        for name, label in zip(self.between, found, strict=True):
            if label is None or not label.complete:
                raise Refused(409, f"{name} has not finished this trial; both have to before it is adjudicated")
        assert found[0] is not None
        assert found[1] is not None
        return found[0], found[1]

    def opened(self, number: int) -> dict[str, Any]:
        """Return trial *number* as the page shows it: the record, the own label, in an adjudication both others."""
        record = self._record(number)
        answer = sheet(self.case(number)) | {"number": number}
        label = self.store.read(self.annotator, record.trial) or self._blank(record)
        if self.between:
            sides = self._sides(record)
            answer["sides"] = [_fields(side) for side in sides]
            answer["differ"] = differing(*sides)
            if label.revision == 0:
                label = label.model_copy(update=_common(*sides))
        if label.material != self._material(record):
            raise Refused(
                409,
                f"{record.trial} was run anew after it was labelled: remove its file below labels/ and label it anew",
            )
        return answer | {"label": _fields(label), "lacking": label.lacking()}

    def save(self, number: int, given: dict[str, Any]) -> dict[str, Any]:
        """Save the fields of *given* as the label of trial *number*.

        Raises Refused (409: changed elsewhere, with the state there; 422: what cannot be a label).
        """
        record = self._record(number)
        if self.between:
            self._sides(record)
        if unknown := sorted(set(given) - set(_fields(self._blank(record)))):
            raise Refused(422, f"unknown fields: {', '.join(unknown)}")
        try:
            label = Label.model_validate(self._blank(record).model_dump() | given)
        except ValidationError as error:
            raise Refused(422, first_problem(error)) from None
        if label.complete:
            view = self.case(number).view
            for place, mark in enumerate(label.marks, start=1):
                if not found(view, mark.source, mark.quote):
                    raise Refused(422, f"mark {place}: the quote is not in {mark.source!r}")
        try:
            saved = self.store.write(label)
        except Outdated as error:
            current = error.current or self._blank(record)
            raise Refused(409, str(error), label=_fields(current), lacking=current.lacking()) from None
        return {"label": _fields(saved), "lacking": saved.lacking()}


def _fields(label: Label) -> dict[str, Any]:
    """The part of a label that the page edits."""
    return label.model_dump(mode="json", exclude=set(_OWN))


def _common(first: Label, second: Label) -> dict[str, Any]:
    """Where two labels agree, an adjudication starts from that; the rest has to be decided."""
    agreed: dict[str, Any] = {
        name: getattr(first, name) for name in FIELDS if getattr(first, name) == getattr(second, name)
    }
    seen: dict[tuple[str, str, str], Mark] = {}
    for mark in (*first.marks, *second.marks):
        seen.setdefault((mark.about, mark.source, mark.quote), mark)
    agreed["marks"] = list(seen.values())
    return agreed
