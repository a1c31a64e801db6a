"""The two tables of the summary, laid out like ParanoiaEval's Table 2 and CAVE-Bench's score and path tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal

from pytest_paranoia.metrics.accusations import AccusationMetrics, Scores
from pytest_paranoia.metrics.agents import AgentMetrics
from pytest_paranoia.metrics.paired import TREATMENT_GROUPS, PairedMetrics, TreatmentGroup, TsrGroup
from pytest_paranoia.metrics.values import Counts, OverRuns
from pytest_paranoia.reporting.text import clip, one_line
from pytest_paranoia.schema.taxonomy import PATHS

WIDE: Final = 110
"""Columns that the whole tables take; where there are fewer they are in two blocks each, of at most 80."""
LABEL: Final = 18
"""Columns of the first column; a longer agent name stands on a line of its own, whole."""
_N, _RATE, _SCORE, _PATH = 9, 6, 7, 5
_NAME: Final = 80
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
Part = Literal["TSR", "VR", "ER"]
Pick = Callable[[OverRuns], float | None]


def number(value: float | None) -> str:
    """Return *value* with one decimal, at most 5 columns wide; ``undef`` where it is undefined.

    A tiny negative never reads ``-0.0``; an ER below -99.9 (far more excess in E+ than in E-) goes without decimals.
    """
    if value is None:
        return "undef"
    return f"{value:.0f}" if value <= -99.95 else f"{round(value, 1) + 0.0:.1f}"


def pair_grid(agents: Mapping[str, AgentMetrics], encoding: str, width: int = WIDE) -> list[str]:
    """Return the table of task pairs, [] without any. VR and ER by treatment; several runs: mean, lowest, highest.

    Below WIDE columns ER stands in a block of its own under TSR and VR; both fit 80.
    """
    rows = [metrics.pairs for metrics in agents.values() if metrics.pairs is not None]
    if not rows:
        return []
    blocks: list[tuple[Part, ...]] = [("TSR", "VR", "ER")] if width >= WIDE else [("TSR", "VR"), ("ER",)]
    out: list[str] = []
    for parts in blocks:
        names = {"TSR": ["All", "E+", "E-"]}
        columns = {part: names.get(part, [_SHORT[group] for group in TREATMENT_GROUPS]) for part in parts}
        titles = [f"{part:^{len(heads) * _RATE}}" for part, heads in columns.items()]
        out += ["" for _ in out[:1]]
        out.append((" " * (LABEL + _N) + _RULE.join(titles)).rstrip())
        out.append(f"{'agent':<{LABEL}}{'n':>{_N}}" + _RULE.join(_cells(heads) for heads in columns.values()))
        out += [line for metrics in rows for line in _pair_lines(metrics, encoding, parts)]
    return out


def _pair_lines(metrics: PairedMetrics, encoding: str, parts: Sequence[Part]) -> Iterator[str]:
    first = _pair_cells(metrics, lambda one: one.mean, parts)
    yield from _labelled(metrics.agent, _entered(metrics.counts), first, encoding)
    if len(metrics.runs) < 2:
        return
    yield f"{'  lowest run':<{LABEL + _N}}" + _pair_cells(metrics, lambda one: one.low, parts)
    yield f"{'  highest run':<{LABEL + _N}}" + _pair_cells(metrics, lambda one: one.high, parts)
    if "ER" not in parts:
        return
    pooled = _cells([number(metrics.excess[group].er_pooled) for group in TREATMENT_GROUPS])
    before = [" " * 3 * _RATE, " " * 5 * _RATE] if len(parts) > 1 else []
    yield f"{'  runs pooled':<{LABEL}}{' ' * _N}{_RULE.join([*before, pooled])}"
    partly = [
        f"{_SHORT[group]} {er.defined}/{len(metrics.runs)}"
        for group in TREATMENT_GROUPS
        if 0 < (er := metrics.excess[group].er).defined < len(metrics.runs)
    ]
    if partly:
        yield f"  mean ER is over the runs that define it: {', '.join(partly)}"


def _pair_cells(metrics: PairedMetrics, pick: Pick, parts: Sequence[Part]) -> str:
    groups = [metrics.excess[group] for group in TREATMENT_GROUPS]
    values: dict[Part, list[OverRuns]] = {
        "TSR": [metrics.tsr[group] for group in _TSR_GROUPS],
        "VR": [group.vr for group in groups],
        "ER": [group.er for group in groups],
    }
    return _RULE.join(_cells([number(pick(value)) for value in values[part]]) for part in parts)


def _cells(texts: Sequence[str]) -> str:
    return "".join(f"{text:>{_RATE}}" for text in texts)


def scenario_grid(agents: Mapping[str, AgentMetrics], encoding: str, width: int = WIDE) -> list[str]:
    """Return the table of accusation scenarios, [] without any. All runs together; several runs: lowest, highest.

    Below WIDE columns the decision paths stand in a block of their own under the scores.
    """
    rows = [metrics.scenarios for metrics in agents.values() if metrics.scenarios is not None]
    if not rows:
        return []
    scores = "".join(f"{name.upper():>{_SCORE}}" for name in _SCORES)
    paths = "".join(f"{path:>{_PATH}}" for path in PATHS)
    start = f"{'agent':<{LABEL}}{'valid':>{_N}}"
    out: list[str] = []
    for with_scores, with_paths in ((True, True),) if width >= WIDE else ((True, False), (False, True)):
        out += ["" for _ in out[:1]]
        out.append(start + scores * with_scores + paths * with_paths)
        for metrics in rows:
            out += _scenario_lines(metrics, encoding, with_scores, with_paths)
    return out


def _scenario_lines(metrics: AccusationMetrics, encoding: str, with_scores: bool, with_paths: bool) -> Iterator[str]:
    paths = "".join(f"{metrics.scores.paths[path]:>{_PATH}}" for path in PATHS)
    scores = _score_cells([getattr(metrics.scores, name) for name in _SCORES])
    yield from _labelled(metrics.agent, _entered(metrics.counts), scores * with_scores + paths * with_paths, encoding)
    if len(metrics.runs) < 2 or not with_scores:
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
        yield clip(shown, _NAME)
        shown = ""
    yield f"{shown:<{LABEL}}{n:>{_N}}{cells}"
