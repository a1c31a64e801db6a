"""Two runs against each other, as lines: what changed, how sure that is, and what the sample could have shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.metrics.comparing import Comparison, compare
from pytest_paranoia.metrics.frame import frame, undefined_as_none
from pytest_paranoia.reporting.tables.grid import grid
from pytest_paranoia.reporting.tables.model import Column, Table, decimal
from pytest_paranoia.reporting.terminal import NARROW, WIDTH
from pytest_paranoia.reporting.text import one_line, wrapped
from pytest_paranoia.store.summary import RunSummary

METRICS: Final = ("tsr", "vr", "er_pooled", "fcs", "erf", "roh", "cave")
"""What is compared by default. Holm's correction covers all that is tested, so not everything is."""
_HIGHER_IS_BETTER: Final = frozenset({"tsr", "tsr_plus", "tsr_minus", "er_pooled", "delta"})
_NEITHER: Final = frozenset({"rate_minus"})
_ALPHA: Final = 0.05
Arms = Sequence[tuple[str, str]]


class NothingToCompare(ParanoiaError):
    """The two runs share no agent or no item."""


class Judged(NamedTuple):
    """Whether a threshold holds, and the numbers in words."""

    passed: bool
    told: str


@dataclass(frozen=True)
class Threshold:
    """A metric may get worse by at most ``points``."""

    metric: str
    points: float

    def __post_init__(self) -> None:
        if self.metric in _NEITHER:
            raise ValueError(f"{self.metric} is neither better nor worse when it rises")

    def judged(self, row: Mapping[str, Any], significant: bool) -> Judged:
        """Return whether *row* passes, and the numbers it rests on. Undefined fails, as it does with gates."""
        left, right, effect = (undefined_as_none(row[name]) for name in ("left", "right", "effect"))
        if effect is None or left is None or right is None:
            return Judged(False, f"undefined, allowed {self.points:g}")
        worse = -effect if self.metric in _HIGHER_IS_BETTER else effect
        numbers = f"{decimal(left)} -> {decimal(right)}, {'worse' if worse > 0 else 'better'} by {decimal(abs(worse))}"
        told = f"{numbers if worse else f'{decimal(left)} -> {decimal(right)}, unchanged'}, allowed {self.points:g}"
        passed = worse <= self.points + 1e-9
        if significant:
            sure = bool(row["p_holm"] < _ALPHA)
            told += f", p (Holm) {row['p_holm']:.3f}" if not np.isnan(row["p_holm"]) else ", p undefined"
            passed = passed or not sure
        return Judged(passed, told)


def arms(before: RunSummary, after: RunSummary, chosen: Arms = ()) -> list[tuple[str, str]]:
    """Return which agent is compared with which: as *chosen*, else each with itself, else the only one of each run."""
    for left, right in chosen:
        for name, summary in ((left, before), (right, after)):
            if name not in summary.agents:
                there = ", ".join(summary.agents) or "none"
                raise NothingToCompare(f"{summary.path}: no agent {name} in this run; there: {there}")
    if chosen:
        return list(chosen)
    shared = [(name, name) for name in before.agents if name in after.agents]
    if not shared and len(before.agents) == len(after.agents) == 1:
        shared = [(next(iter(before.agents)), next(iter(after.agents)))]
    if not shared:
        raise NothingToCompare(
            f"{before.path} and {after.path}: no agent in both ({', '.join(before.agents) or 'none'}; "
            f"{', '.join(after.agents) or 'none'}); say which with --agent OLD=NEW"
        )
    return shared


def compared(
    before: RunSummary, after: RunSummary, agents: Arms, metrics: Sequence[str] = METRICS, **statistics: Any
) -> Comparison:
    """Return the comparison of *agents*, pairs of names, on the items both runs have. Raises NothingToCompare."""
    left, right = frame(before.records), frame(after.records)
    sides = [
        (old if old == new else f"{old} -> {new}", left[left["agent"] == old], right[right["agent"] == new])
        for old, new in agents
    ]
    found = compare(sides, metrics=tuple(dict.fromkeys(metrics)), **statistics)
    if not len(found.rows) or not found.rows["items"].any():
        raise NothingToCompare(f"{before.path} and {after.path}: no item with the same content is scored in both")
    alone = sorted((before.agents.keys() ^ after.agents.keys()) - {name for pair in agents for name in pair})
    notes = (f"in one run only, not compared: {', '.join(alone)}",) if alone else ()
    return Comparison(found.rows, (*notes, *found.notes), found.power)


def table(comparison: Comparison) -> Table:
    """Return *comparison* as a table."""
    columns = (
        Column("agent", "agent", "text"),
        Column("metric", "metric", "text"),
        Column("items", "items", "count"),
        Column("dropped", "dropped", "count"),
        Column("left", "before"),
        Column("right", "after"),
        Column("effect", "change [95% CI]", "estimate"),
        Column("relative", "change in %", "estimate"),
        Column("p", "p", "p"),
        Column("p_holm", "p (Holm)", "p"),
        Column("detectable", "detectable"),
    )
    title = "After minus before, on the same items"
    return Table("comparison", title, "paranoia docs statistics", columns, comparison.rows, "items")


def lines(
    before: RunSummary, after: RunSummary, comparison: Comparison, width: int = 110, encoding: str = "ascii"
) -> list[str]:
    """Return *comparison* for a terminal: what was left out is grouped by reason, and every item is named."""
    title = f"compared: {before.path.name} (before) with {after.path.name} (after), on the same items"
    out = [*wrapped(one_line(title, encoding), width), *grid(table(comparison), width, encoding)]
    meaning = f"detectable: smallest true change that these items show with {comparison.power:.0%} power"
    out += wrapped(meaning, width, "", "  ")
    out += ["left out:"] if comparison.notes else []
    for note in comparison.notes:
        out += wrapped(one_line(note, encoding), width, "  ", "    ")
    return out


def compared_lines(before: RunSummary, after: RunSummary, width: int) -> list[str]:
    """Return the comparison of an earlier run with this one, for the end of a session, as wide as its summary.

    Raises ParanoiaError.
    """
    fitting = min(max(width, NARROW), WIDTH)
    return lines(before, after, compared(before, after, arms(before, after)), fitting)
