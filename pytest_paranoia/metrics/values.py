"""Numbers that may be undefined, and their mean over runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum

from pytest_paranoia.schema.record import Record


def percent(part: float, whole: float) -> float | None:
    """Return 100 * *part* / *whole*, None where *whole* is 0."""
    return 100 * part / whole if whole else None


def mean(values: Iterable[float]) -> float | None:
    """Return the mean, None of nothing. ``fsum`` is exact before it rounds, so the order of *values* never matters."""
    listed = list(values)
    return fsum(listed) / len(listed) if listed else None


@dataclass(frozen=True)
class OverRuns:
    """One metric in each run; ``by_run`` maps a run's number to its value, None where it is undefined there.

    The papers' tables are means over runs (ParanoiaEval Table 2). A run in which the metric is undefined leaves the
    mean, and ``defined`` of ``len(by_run)`` says so.
    """

    by_run: Mapping[int, float | None]

    @property
    def _known(self) -> list[float]:
        return [value for value in self.by_run.values() if value is not None]

    @property
    def mean(self) -> float | None:
        """Mean over the runs that define the metric."""
        return mean(self._known)

    @property
    def low(self) -> float | None:
        """Smallest value of a run."""
        return min(self._known, default=None)

    @property
    def high(self) -> float | None:
        """Largest value of a run."""
        return max(self._known, default=None)

    @property
    def defined(self) -> int:
        """In how many runs the metric is defined."""
        return len(self._known)


@dataclass(frozen=True)
class Counts:
    """How many trials there were, and how many entered. ``attempted = scored + invalid + unscored``."""

    attempted: int
    scored: int
    invalid: int
    unscored: int

    @classmethod
    def of(cls, records: Iterable[Record]) -> Counts:
        """Count *records* by status."""
        statuses = [record.status for record in records]
        return cls(len(statuses), statuses.count("scored"), statuses.count("invalid"), statuses.count("unscored"))
