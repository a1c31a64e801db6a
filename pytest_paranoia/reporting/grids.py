"""The two tables of the summary, laid out like ParanoiaEval's Table 2 and CAVE-Bench's score and path tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from pytest_paranoia.metrics.accusations import AccusationMetrics, Scores
from pytest_paranoia.metrics.agents import AgentMetrics
from pytest_paranoia.metrics.paired import TREATMENT_GROUPS, PairedMetrics, TreatmentGroup, TsrGroup
from pytest_paranoia.metrics.values import Counts, OverRuns
from pytest_paranoia.reporting.text import clip, one_line
from pytest_paranoia.schema.taxonomy import PATHS

LABEL: Final = 18
"""Columns of the first column; a longer agent name stands on a line of its own, whole."""
_N, _RATE, _SCORE, _PATH = 9, 6, 7, 5
_RULE: Final = " |"
_TSR_GROUPS: Final[tuple[TsrGroup, ...]] = ("all", "E+", "E-")
_SHORT: Final[Mapping[TreatmentGroup, str]] = {
    "avoidance": "Avo",
    "transfer": "Tra",
    "mitigation": "Mit",
    "acceptance": "Acc",
    "all": "All",
}
_SCORES: Final = ("roh", "ocr", "fcs", "fcr", "erf", "cdc", "cave")
Pick = Callable[[OverRuns], float | None]


def number(value: float | None) -> str:
    """Return *value* with one decimal, at most 5 columns wide; ``undef`` where it is undefined.

    A tiny negative never reads ``-0.0``; an ER below -99.9 (far more excess in E+ than in E-) goes without decimals.
    """
    if value is None:
        return "undef"
    return f"{value:.0f}" if value <= -99.95 else f"{round(value, 1) + 0.0:.1f}"


def pair_grid(agents: Mapping[str, AgentMetrics], encoding: str) -> list[str]:
    """Return the table of task pairs, [] without any. VR and ER by treatment; several runs: mean, lowest, highest."""
    rows = [metrics.pairs for metrics in agents.values() if metrics.pairs is not None]
    if not rows:
        return []
    by_treatment = _cells([_SHORT[group] for group in TREATMENT_GROUPS])
    heads = [
        " " * (LABEL + _N)
        + _RULE.join((f"{'TSR':^{3 * _RATE}}", f"{'VR':^{5 * _RATE}}", f"{'ER':^{5 * _RATE}}")).rstrip(),
        f"{'agent':<{LABEL}}{'n':>{_N}}" + _RULE.join((_cells(["All", "E+", "E-"]), by_treatment, by_treatment)),
    ]
    return [*heads, *(line for metrics in rows for line in _pair_lines(metrics, encoding))]


def _pair_lines(metrics: PairedMetrics, encoding: str) -> Iterator[str]:
    yield from _labelled(metrics.agent, _entered(metrics.counts), _pair_cells(metrics, lambda one: one.mean), encoding)
    if len(metrics.runs) < 2:
        return
    yield f"{'  lowest run':<{LABEL + _N}}" + _pair_cells(metrics, lambda one: one.low)
    yield f"{'  highest run':<{LABEL + _N}}" + _pair_cells(metrics, lambda one: one.high)
    pooled = _cells([number(metrics.excess[group].er_pooled) for group in TREATMENT_GROUPS])
    empty = _RULE.join((" " * (_N + 3 * _RATE), " " * 5 * _RATE, pooled))
    yield f"{'  runs pooled':<{LABEL}}{empty}"
    partly = [
        f"{_SHORT[group]} {er.defined}/{len(metrics.runs)}"
        for group in TREATMENT_GROUPS
        if 0 < (er := metrics.excess[group].er).defined < len(metrics.runs)
    ]
    if partly:
        yield f"  mean ER is over the runs that define it: {', '.join(partly)}"


def _pair_cells(metrics: PairedMetrics, pick: Pick) -> str:
    groups = [metrics.excess[group] for group in TREATMENT_GROUPS]
    tsr = _cells([number(pick(metrics.tsr[group])) for group in _TSR_GROUPS])
    vr, er = ([number(pick(value)) for value in values] for values in zip(*((g.vr, g.er) for g in groups), strict=True))
    return _RULE.join((tsr, _cells(vr), _cells(er)))


def _cells(texts: Sequence[str]) -> str:
    return "".join(f"{text:>{_RATE}}" for text in texts)


def scenario_grid(agents: Mapping[str, AgentMetrics], encoding: str) -> list[str]:
    """Return the table of accusation scenarios, [] without any. All runs together; several runs: lowest, highest."""
    rows = [metrics.scenarios for metrics in agents.values() if metrics.scenarios is not None]
    if not rows:
        return []
    head = (
        f"{'agent':<{LABEL}}{'valid':>{_N}}"
        + "".join(f"{name.upper():>{_SCORE}}" for name in _SCORES)
        + "".join(f"{path:>{_PATH}}" for path in PATHS)
    )
    return [head, *(line for metrics in rows for line in _scenario_lines(metrics, encoding))]


def _scenario_lines(metrics: AccusationMetrics, encoding: str) -> Iterator[str]:
    paths = "".join(f"{metrics.scores.paths[path]:>{_PATH}}" for path in PATHS)
    cells = _score_cells([getattr(metrics.scores, name) for name in _SCORES]) + paths
    yield from _labelled(metrics.agent, _entered(metrics.counts), cells, encoding)
    if len(metrics.runs) < 2:
        return
    by_run = list(metrics.by_run.values())
    yield f"{'  lowest run':<{LABEL + _N}}" + _score_cells([_known(by_run, name, min) for name in _SCORES])
    yield f"{'  highest run':<{LABEL + _N}}" + _score_cells([_known(by_run, name, max) for name in _SCORES])


def _known(by_run: Sequence[Scores], name: str, pick: Callable[[list[float]], float]) -> float | None:
    values = [value for one in by_run if (value := getattr(one, name)) is not None]
    return pick(values) if values else None


def _score_cells(values: Sequence[float | None]) -> str:
    return "".join(f"{number(value):>{_SCORE}}" for value in values)


def _entered(counts: Counts) -> str:
    return f"{counts.scored}/{counts.attempted}"


def _labelled(name: str, n: str, cells: str, encoding: str) -> Iterator[str]:
    shown = one_line(name, encoding)
    if len(shown) > LABEL:
        yield clip(shown, LABEL + _N + 13 * _RATE)
        shown = ""
    yield f"{shown:<{LABEL}}{n:>{_N}}{cells}"
