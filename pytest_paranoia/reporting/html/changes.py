"""What differs between runs, between agents on the same scenarios, and between task types, as the page lays it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pytest_paranoia.metrics.analysis import Analysis
from pytest_paranoia.metrics.pairing import POOLED
from pytest_paranoia.reporting.html.numbers import Estimate, defined
from pytest_paranoia.schema.taxonomy import PATHS, Path

_ALL: Final = "All agents"
_INTERACTIONS: Final[Mapping[str, str]] = {
    "condition-by-run": "Does the effect of the evidence change from run to run?",
    "agent-by-run": "Does it change differently for different agents?",
}
_CONTRASTED: Final = ("cave", "roh", "ocr", "fcs", "fcr", "erf", "cdc")


@dataclass(frozen=True)
class RunRow:
    """Delta of one agent in each run, in the order of ``Runs.numbers``; None in a run it did not make."""

    agent: int
    name: str
    deltas: list[Estimate | None]
    mean: float | None
    range: float | None
    p: float | None


@dataclass(frozen=True)
class Interaction:
    """A test from run to run over all agents; ``pairs`` entered, ``dropped`` are not complete in every run."""

    question: str
    p: float | None
    pairs: int
    dropped: int
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Runs:
    """Delta by run (ParanoiaEval Table 18)."""

    numbers: list[int]
    rows: list[RunRow]
    interactions: list[Interaction]


@dataclass(frozen=True)
class Step:
    """From one path to another: ``count`` of the matched runs, ``share`` in percent."""

    count: int
    share: float


@dataclass(frozen=True)
class Transition:
    """Paths of two agents in the same scenarios and runs; ``rows`` go from each path of ``left``, None for no run."""

    left: str
    right: str
    matched: int
    moved: float
    rows: list[tuple[Path, list[Step | None]]]


@dataclass(frozen=True)
class TypeRow:
    """Self-built against inherited scenarios of one agent: (self-built, inherited, difference) by score."""

    agent: int
    name: str
    self_built: int
    inherited: int
    scores: list[tuple[float | None, float | None, Estimate]]


def runs(analysis: Analysis, agents: Sequence[str]) -> Runs | None:
    """Lay out the deltas by run, None where there is one run only."""
    table = analysis.runs[analysis.runs["group_kind"] == "all"]
    numbers = [int(run) for run in sorted(table["run"].unique())]
    if len(numbers) < 2:
        return None
    deltas = {(row["agent"], row["run"]): Estimate.of(row, "delta", "complete") for row in _rows(table)}
    tests = {(row["test"], row["agent"]): row for row in _rows(analysis.interactions)}
    rows = []
    for place, name in enumerate(agents):
        if (test := tests.get(("condition-by-run", name))) is not None:
            mine = [deltas.get((name, number)) for number in numbers]
            values = (defined(test["delta"]), defined(test["range"]) if test["runs"] > 1 else None, defined(test["p"]))
            rows.append(RunRow(place, name, mine, *values))
    found: list[Interaction] = []
    for test_name, question in _INTERACTIONS.items():
        key = POOLED if (test_name, POOLED) in tests else agents[0] if len(agents) == 1 else ""
        if (row := tests.get((test_name, key))) is not None:
            # The delta of a run is the same for both tests; once is enough.
            limits = (defined(row["low"]), defined(row["high"])) if not found else (None, None)
            found.append(Interaction(question, defined(row["p"]), int(row["pairs"]), int(row["dropped"]), *limits))
    return Runs(numbers, rows, found)


def transitions(analysis: Analysis) -> list[Transition]:
    """Lay out which path of one agent became which of another, a table for each two agents with runs in common."""
    found: dict[tuple[str, str], dict[tuple[str, str], Mapping[str, Any]]] = {}
    for row in _rows(analysis.transitions):
        found.setdefault((row["agent_from"], row["agent_to"]), {})[row["path_from"], row["path_to"]] = row
    listed = []
    for (left, right), cells in found.items():
        matched = int(next(iter(cells.values()))["matched"])
        stayed = sum(int(row["count"]) for (old, new), row in cells.items() if old == new)
        table = [(old, [_step(cells.get((old, new))) for new in PATHS]) for old in PATHS]
        listed.append(Transition(left, right, matched, 100 * (matched - stayed) / matched, table))
    return listed


def _step(row: Mapping[str, Any] | None) -> Step | None:
    return None if row is None else Step(int(row["count"]), float(row["share"]))


def task_types(analysis: Analysis, agents: Sequence[str]) -> list[TypeRow]:
    """Lay out the contrast of task types, [] where a run has one type only; all agents together stand last."""
    cells = {(row["agent"], row["metric"]): row for row in _rows(analysis.task_types)}
    rows = []
    for place, name in [*enumerate(agents), (-1, POOLED)]:
        first = cells.get((name, "cave"))
        if first is None or not (first["scenarios_self_built"] and first["scenarios_inherited"]):
            continue
        sizes = (int(first["scenarios_self_built"]), int(first["scenarios_inherited"]))
        scores = [_contrast(cells[name, metric], min(sizes)) for metric in _CONTRASTED]
        rows.append(TypeRow(place, _ALL if name == POOLED else name, *sizes, scores))
    return rows


def _contrast(row: Mapping[str, Any], units: int) -> tuple[float | None, float | None, Estimate]:
    value, low, high = (defined(row[name]) for name in ("contrast", "contrast_lo", "contrast_hi"))
    return defined(row["self_built"]), defined(row["inherited"]), Estimate(value, low, high, units)


def _rows(table: Any) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]
