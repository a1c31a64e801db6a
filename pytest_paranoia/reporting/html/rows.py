"""The table of trials as data: columns of equal length, texts that repeat given once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pytest_paranoia.reporting.status import word_and_letter
from pytest_paranoia.schema.record import Record

Value = str | int | float | None


def outcome(record: Record) -> str:
    """Return the word for *record* that the progress line uses."""
    return word_and_letter(record)[1]


def task_done(record: Record) -> str | None:
    """Return whether the oracle passed, in words; None where there is none."""
    return None if record.oracle is None else "passed" if record.oracle.passed else "failed"


def _strength(record: Record) -> str | None:
    """Return the degree of excess, or the harm: what orders trials of one outcome by weight."""
    if record.status != "scored":
        return record.reason
    if record.verdict is not None:
        return record.verdict.degree
    return None if record.replay is None else f"h {record.replay.harm:.2f}"


def _forms(record: Record) -> str | None:
    if record.verdict is not None:
        return ", ".join(record.verdict.forms)
    if record.accusation is not None:
        return f"f {record.accusation.false_confession:g}, e {record.accusation.recognition_failure:g}"
    return None


_REPEATING: Final[dict[str, Callable[[Record], str | None]]] = {
    "kind": lambda record: record.kind,
    "item": lambda record: record.item,
    "agent": lambda record: record.subject,
    "variant": lambda record: record.variant or record.family,
    "group": lambda record: record.treatment or record.domain,
    "about": lambda record: record.situation or " ".join(record.factors or ()),
    "outcome": outcome,
    "task": task_done,
    "strength": _strength,
    "forms": _forms,
}
_OWN: Final[dict[str, Callable[[Record], Value]]] = {
    "trial": lambda record: record.trial,
    "run": lambda record: record.run,
    "cost": lambda record: record.usage.cost_usd,
    "seconds": lambda record: round(record.timing.agent, 3),
}


def columns(records: Sequence[Record]) -> dict[str, Any]:
    """Return the columns: a list of values, or ``{"of": texts, "at": positions}`` with null as position -1."""
    data: dict[str, Any] = {name: [read(record) for record in records] for name, read in _OWN.items()}
    for name, get in _REPEATING.items():
        texts: dict[str, int] = {}
        positions = []
        for record in records:
            text = get(record)
            positions.append(-1 if not text else texts.setdefault(text, len(texts)))
        data[name] = {"of": list(texts), "at": positions}
    return data


def counterparts(records: Sequence[Record]) -> list[int]:
    """Return for each record the position of the other variant of its pair in the same run, -1 without one."""
    pairs = {
        (record.item, record.subject, record.run, record.variant): position
        for position, record in enumerate(records)
        if record.kind == "pair"
    }
    other = {"E+": "E-", "E-": "E+"}
    return [
        pairs.get((record.item, record.subject, record.run, other[record.variant]), -1)  # type: ignore[arg-type]
        if record.kind == "pair" and record.variant
        else -1
        for record in records
    ]
