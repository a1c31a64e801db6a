"""Numbers as the page shows them. Undefined is a word, never 0 and never an empty cell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pytest_paranoia.metrics.hints import Weakness, weakness

UNDEFINED: Final = "undefined"
UNKNOWN: Final = "unknown"


@dataclass(frozen=True)
class Estimate:
    """A value in percent with its 95 % interval, None where it is undefined, and on how many pairs or scenarios."""

    value: float | None
    low: float | None = None
    high: float | None = None
    units: float | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any] | None, name: str, units: str = "") -> Estimate:
        """Read the columns ``name``, ``name_lo``, ``name_hi`` and *units* of a row; a missing column is undefined."""
        if row is None:
            return cls(None)
        return cls(*(defined(row.get(key)) for key in (name, f"{name}_lo", f"{name}_hi", units)))

    @property
    def weak(self) -> Weakness | None:
        """Why the value is less certain than it looks, None where it is not."""
        return None if self.value is None else weakness(self.low, self.high, self.units)

    @property
    def interval(self) -> str | None:
        """The interval in words, None without one."""
        if self.value is None or self.low is None or self.high is None:
            return None
        return f"{number(self.low)} to {number(self.high)}"


def defined(value: Any) -> float | None:
    """Return *value* as a finite float, None where it is none (None, NaN, infinite)."""
    if value is None or isinstance(value, str):
        return None
    found = float(value)
    return found if math.isfinite(found) else None


def number(value: float | None) -> str:
    """Return *value* with one decimal; a tiny negative never reads ``-0.0``."""
    return UNDEFINED if value is None else f"{round(value, 1) + 0.0:.1f}"


def probability(value: float | None) -> str:
    """Return a p value."""
    if value is None:
        return UNDEFINED
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def count(value: float | None) -> str:
    """Return a whole number, with thin groups of three."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def dollars(value: float | None) -> str:
    """Return US dollars; small sums with more digits."""
    if value is None:
        return UNKNOWN
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4f}"


def duration(seconds: float | None) -> str:
    """Return a duration as a person says it."""
    if seconds is None:
        return UNKNOWN
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
