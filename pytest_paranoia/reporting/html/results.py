"""The statistics of a run as the page lays them out: by agent, treatment, situation, path and factor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from pytest_paranoia.metrics.analysis import Analysis
from pytest_paranoia.metrics.pairing import POOLED
from pytest_paranoia.reporting.html.charts.bars import Bars, bars
from pytest_paranoia.reporting.html.charts.scatter import Scatter, scatter
from pytest_paranoia.reporting.html.charts.slope import Slope, slope
from pytest_paranoia.reporting.html.numbers import Estimate, defined
from pytest_paranoia.schema.taxonomy import (
    CONFRONTATIONS,
    HARMS,
    PATHS,
    PRESSURES,
    SITUATIONS,
    SURFACES,
    TREATMENTS,
    VECTORS,
)

Row = Mapping[str, Any]
SCORES: Final = ("cave", "roh", "ocr", "fcs", "fcr", "erf", "cdc")
_FACTORS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "g": ("Accusation vector", VECTORS),
    "d": ("Harm", HARMS),
    "q": ("Confrontation", CONFRONTATIONS),
    "p": ("Pressure", PRESSURES),
    "s": ("Execution surface", SURFACES),
}


class Lookup:
    """Rows of a table of the analysis by agent, kind of group and group."""

    def __init__(self, table: pd.DataFrame) -> None:
        self._rows: dict[tuple[str, str, str], Row] = {}
        for row in table.to_dict("records"):
            self._rows[str(row["agent"]), str(row["group_kind"]), str(row["group"])] = {
                str(key): value for key, value in row.items()
            }

    def overall(self, agent: str) -> Row | None:
        """Return the row over everything of *agent*, however its group is called."""
        return next((row for (name, kind, _), row in self._rows.items() if (name, kind) == (agent, "all")), None)

    def get(self, agent: str, kind: str, group: str) -> Row | None:
        """Return one row, None where the run has nothing of it."""
        return self._rows.get((agent, kind, group))

    def groups(self, kind: str) -> set[str]:
        """Return all groups of *kind* that the run has."""
        return {group for _, found, group in self._rows if found == kind}


@dataclass(frozen=True)
class PairRow:
    """Pair metrics of one agent in one group."""

    agent: int
    name: str
    pairs: float | None
    complete: float | None
    dropped: float | None
    runs: float | None
    tsr: Estimate
    tsr_plus: Estimate
    tsr_minus: Estimate
    vr: Estimate
    rate_minus: Estimate
    er_mean: Estimate
    er: Estimate
    delta: Estimate
    p: float | None
    p_holm: float | None

    @classmethod
    def of(cls, agent: int, name: str, row: Row) -> PairRow:
        """Read a row of ``Analysis.effects``."""
        return cls(
            agent=agent,
            name=name,
            pairs=defined(row["pairs"]),
            complete=defined(row["complete"]),
            dropped=defined(row["dropped"]),
            runs=defined(row["runs"]),
            tsr=Estimate.of(row, "tsr", "pairs"),
            tsr_plus=Estimate.of(row, "tsr_plus", "pairs"),
            tsr_minus=Estimate.of(row, "tsr_minus", "pairs"),
            vr=Estimate.of(row, "vr", "pairs"),
            rate_minus=Estimate.of(row, "rate_minus", "pairs"),
            er_mean=Estimate.of(row, "er_mean", "pairs"),
            er=Estimate.of(row, "er_pooled", "pairs"),
            delta=Estimate.of(row, "delta", "pairs"),
            p=defined(row["p"]),
            p_holm=defined(row["p_holm"]),
        )


@dataclass(frozen=True)
class ScenarioRow:
    """Scenario metrics of one agent."""

    agent: int
    name: str
    valid: float | None
    attempted: float | None
    scores: Mapping[str, Estimate]
    paths: Mapping[str, int]

    @classmethod
    def of(cls, agent: int, name: str, row: Row) -> ScenarioRow:
        """Read a row of ``Analysis.scenarios``."""
        return cls(
            agent,
            name,
            defined(row.get("valid")),
            defined(row.get("attempted")),
            {score: Estimate.of(row, score, "scenarios") for score in SCORES},
            {path: int(row[f"n_{path}"]) for path in PATHS},
        )


@dataclass(frozen=True)
class Cell:
    """One field of a heatmap: a rate from 0 to 100 and what it is a rate of; ``step`` is its colour, 0 to 10."""

    estimate: Estimate
    of: float | None

    @property
    def step(self) -> int:
        """Colour step of the value."""
        return round(min(max(self.estimate.value or 0.0, 0.0), 100.0) / 10)


@dataclass(frozen=True)
class HeatRow:
    """A row of a heatmap; ``key`` is what the filter of the trial table looks for."""

    title: str
    key: str
    cells: Sequence[Cell | None]


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation of TSR with VR over agents."""

    rho: float
    p: float | None
    agents: int


@dataclass(frozen=True)
class Pairs:
    """All of the page that task pairs fill. ``pooled`` is over all agents, where there are several."""

    rows: list[PairRow]
    pooled: PairRow | None
    correlation: Correlation | None
    treatments: list[tuple[str, list[tuple[str, PairRow | None]]]]
    slopes: list[Slope]
    scatter: Scatter
    situations: list[tuple[str, list[HeatRow]]]


@dataclass(frozen=True)
class Scenarios:
    """All of the page that accusation scenarios fill."""

    rows: list[ScenarioRow]
    bars: Bars
    factors: list[tuple[str, list[HeatRow]]]
    groups: list[tuple[str, list[HeatRow]]]


def pairs(analysis: Analysis, agents: Sequence[str]) -> Pairs | None:
    """Lay out the effects, None where the run has no pairs."""
    found = Lookup(analysis.effects)
    rows = [PairRow.of(at, name, row) for at, name in enumerate(agents) if (row := found.overall(name)) is not None]
    if not rows:
        return None
    treatments: list[tuple[str, list[tuple[str, PairRow | None]]]] = [
        (treatment, [(name, _pair_row(found, at, name, treatment)) for at, name in enumerate(agents)])
        for treatment in TREATMENTS
        if treatment in found.groups("treatment")
    ]
    slopes = [slope("All treatments", [_ends(found.overall(name), name) for name in agents])]
    for treatment, _ in treatments if len(treatments) > 1 else ():
        ends = [_ends(found.get(name, "treatment", treatment), name) for name in agents]
        slopes.append(slope(treatment.capitalize(), ends, small=True))
    points = [
        (name, Estimate.of(row, "tsr"), Estimate.of(row, "vr")) for name in agents for row in [found.overall(name)]
    ]
    present = found.groups("situation")
    situations: list[tuple[str, list[HeatRow]]] = []
    for treatment in TREATMENTS:
        listed = [
            HeatRow(name, name, [_cell(found.get(agent, "situation", name), "vr", "pairs") for agent in agents])
            for name in SITUATIONS[treatment]
            if name in present
        ]
        if listed:
            situations.append((treatment, listed))
    known = {name for names in SITUATIONS.values() for name in names}
    if others := sorted(present - known):
        cells = [[_cell(found.get(agent, "situation", name), "vr", "pairs") for agent in agents] for name in others]
        situations.append(("other", [HeatRow(name, name, row) for name, row in zip(others, cells, strict=True)]))
    over_all = found.overall(POOLED)
    pooled = None if over_all is None else PairRow.of(-1, "All agents", over_all)
    return Pairs(rows, pooled, _correlation(analysis.correlations), treatments, slopes, scatter(points), situations)


def _correlation(table: pd.DataFrame) -> Correlation | None:
    for row in table[table["group_kind"] == "all"].to_dict("records"):
        if (rho := defined(row["rho"])) is not None:
            return Correlation(rho, defined(row["p"]), int(row["agents"]))
    return None


def scenarios(analysis: Analysis, agents: Sequence[str]) -> Scenarios | None:
    """Lay out the accusation scores, None where the run has no scenarios."""
    found = Lookup(analysis.scenarios)
    rows = [ScenarioRow.of(at, name, row) for at, name in enumerate(agents) if (row := found.overall(name)) is not None]
    if not rows:
        return None
    return Scenarios(
        rows,
        bars([(row.name, {path: row.paths[path] for path in PATHS}) for row in rows]),
        [
            (title, listed)
            for kind, (title, names) in _FACTORS.items()
            if (listed := list(_heat(found, agents, kind, names)))
        ],
        [
            (title, list(_heat(found, agents, kind, dict.fromkeys(sorted(found.groups(kind)), ""))))
            for title, kind in (("Domain", "domain"), ("Family", "family"))
        ],
    )


def _heat(found: Lookup, agents: Sequence[str], kind: str, names: Mapping[str, str]) -> Iterable[HeatRow]:
    for name, meaning in names.items():
        if name in found.groups(kind):
            cells = [_cell(found.get(agent, kind, name), "cave", "valid") for agent in agents]
            yield HeatRow(f"{name} {meaning}".strip(), name, cells)


def _pair_row(found: Lookup, at: int, name: str, treatment: str) -> PairRow | None:
    row = found.get(name, "treatment", treatment)
    return None if row is None else PairRow.of(at, name, row)


def _ends(row: Row | None, name: str) -> tuple[str, Estimate, Estimate]:
    return name, Estimate.of(row, "rate_minus"), Estimate.of(row, "vr")


def _cell(row: Row | None, value: str, of: str) -> Cell | None:
    return None if row is None else Cell(Estimate.of(row, value), defined(row.get(of)))
