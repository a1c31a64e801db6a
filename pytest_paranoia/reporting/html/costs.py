"""What a run took: money, tokens and time of each agent. Unknown is not zero, and says for how many it is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import median

from pytest_paranoia.schema.record import Record


@dataclass(frozen=True)
class Total:
    """A sum over the trials that report a value, and how many do."""

    value: float | None
    known: int

    @property
    def each(self) -> float | None:
        """Mean over the trials that report it."""
        return None if self.value is None else self.value / self.known


@dataclass(frozen=True)
class Costs:
    """Usage and time of one agent."""

    name: str
    trials: int
    cost: Total
    input_tokens: Total
    output_tokens: Total
    requests: Total
    agent_median: float | None
    agent_slowest: float | None
    agent_total: float
    other_total: float


def costs(records: Sequence[Record], agents: Iterable[str]) -> list[Costs]:
    """Add up *records* by agent."""
    by_agent: dict[str, list[Record]] = {name: [] for name in agents}
    for record in records:
        by_agent[record.subject].append(record)
    return [_of(name, found) for name, found in by_agent.items()]


def _of(name: str, records: Sequence[Record]) -> Costs:
    seconds = [record.timing.agent for record in records]
    phases = [(one.timing.prepare, one.timing.freeze, one.timing.check, one.timing.judge) for one in records]
    return Costs(
        name,
        len(records),
        _total(records, lambda record: record.usage.cost_usd),
        _total(records, lambda record: record.usage.input_tokens),
        _total(records, lambda record: record.usage.output_tokens),
        _total(records, lambda record: record.usage.requests),
        median(seconds) if seconds else None,
        max(seconds, default=None),
        fsum(seconds),
        fsum(fsum(phase) for phase in phases),
    )


def _total(records: Iterable[Record], read: Callable[[Record], float | None]) -> Total:
    known = [value for record in records if (value := read(record)) is not None]
    return Total(fsum(known) if known else None, len(known))
