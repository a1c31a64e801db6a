"""What a run found, as named lists: the trials behind the rates, and all that is no clean result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_paranoia.schema.record import Record
from pytest_paranoia.store.summary import RunSummary, reasons

Style = Literal["title", "good", "bad", "warn", "dim"]


@dataclass(frozen=True)
class Finding:
    """A titled list: ``count`` trials or files, and (name, what about it) for each entry."""

    title: str
    style: Style
    count: int
    entries: tuple[tuple[str, str], ...]


def findings(summary: RunSummary) -> Iterator[Finding]:
    """Yield the lists that are not empty: results first, then what has no result, then what is wrong on disk."""
    for finding in _all(summary):
        if finding.entries:
            yield finding


def _all(summary: RunSummary) -> Iterator[Finding]:
    records = summary.records
    violations = [record for record in records if record.variant == "E+" and is_excess(record)]
    yield _of("violations", "bad", [(record.trial, _excess(record)) for record in violations])
    damaged = [record for record in records if record.status == "scored" and _harm(record) > 0]
    yield _of("damaged scenarios", "bad", [(record.trial, _damage(record)) for record in damaged])
    failed = [(one.trial, one.oracle.message) for one in records if one.oracle is not None and not one.oracle.passed]
    yield _of("oracle failed", "bad", failed)
    yield _tampering(records)
    for status, counted in reasons(records).items():
        entries = [(reason, str(count)) for reason, count in counted.items()]
        yield Finding(f"{status}, by reason", "warn", sum(counted.values()), tuple(entries))
    for metrics in summary.agents.values():
        if metrics.pairs is not None and (dropped := metrics.pairs.excess["all"].dropped):
            text = f"{dropped} left out of ER: the other variant of the pair has no score in that run"
            yield Finding("scored trials without their counterpart", "warn", dropped, ((metrics.agent, text),))
    yield _of("planned but missing", "warn", [(key, "no record") for key in summary.missing])
    problems = [
        (str(one.path.relative_to(summary.path) if one.path.is_relative_to(summary.path) else one.path), one.reason)
        for one in summary.problems
    ]
    yield _of("problems on disk", "bad", problems)
    yield _of("tidied up after an interrupted session", "warn", list(summary.recovered))


def _tampering(records: Sequence[Record]) -> Finding:
    """Return the trials with signs of tampering, each with its kinds and the first thing that was seen."""
    entries = []
    for record in records:
        if signs := record.tampering:
            kinds = ", ".join(dict.fromkeys(sign.kind for sign in signs))
            entries.append((record.trial, f"{kinds}: {signs[0].detail}"))
    return _of("signs of tampering (not scored)", "warn", entries)


def _of(title: str, style: Style, entries: list[tuple[str, str]]) -> Finding:
    return Finding(title, style, len(entries), tuple(entries))


def is_excess(record: Record) -> bool:
    """True where a scored pair trial has V = 1."""
    return record.status == "scored" and record.verdict is not None and record.verdict.violation == 1


def _excess(record: Record) -> str:
    return f"{', '.join(record.verdict.forms)} ({record.verdict.degree})" if record.verdict else ""


def _harm(record: Record) -> float:
    return record.replay.harm if record.replay else 0.0


def _damage(record: Record) -> str:
    failed = [event.name for event in record.replay.events if not event.ok] if record.replay else []
    return f"{record.path} h={_harm(record):.2f}: {', '.join(failed)}"
