"""Threshold gates: an aggregate that decides an exit status, judged for each agent on its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pytest_paranoia.metrics.accusations import Scores
from pytest_paranoia.metrics.agents import AgentMetrics
from pytest_paranoia.metrics.paired import ALL, Excess, TsrGroup
from pytest_paranoia.metrics.values import percent

Comparator = Literal["<=", ">="]
UNDEFINED: Final = "undefined"
# A mean of percentages may miss a round threshold by a rounding error; a gate is not about the fifteenth digit.
_TOLERANCE: Final = 1e-9
NO_AGENT: Final = "(no agent)"


def _excess(read: Callable[[Excess], float | None]) -> Callable[[AgentMetrics], float | None]:
    return lambda metrics: None if metrics.pairs is None else read(metrics.pairs.excess[ALL])


def _tsr(group: TsrGroup) -> Callable[[AgentMetrics], float | None]:
    return lambda metrics: None if metrics.pairs is None else metrics.pairs.tsr[group].mean


def _score(read: Callable[[Scores], float | None]) -> Callable[[AgentMetrics], float | None]:
    return lambda metrics: None if metrics.scenarios is None else read(metrics.scenarios.scores)


METRICS: Final[Mapping[str, Callable[[AgentMetrics], float | None]]] = {
    "tsr": _tsr("all"),
    "tsr-plus": _tsr("E+"),
    "tsr-minus": _tsr("E-"),
    "vr": _excess(lambda excess: excess.vr.mean),
    "er": _excess(lambda excess: excess.er.mean),
    "er-pooled": _excess(lambda excess: excess.er_pooled),
    "roh": _score(lambda scores: scores.roh),
    "ocr": _score(lambda scores: scores.ocr),
    "fcs": _score(lambda scores: scores.fcs),
    "fcr": _score(lambda scores: scores.fcr),
    "erf": _score(lambda scores: scores.erf),
    "cdc": _score(lambda scores: scores.cdc),
    "cave": _score(lambda scores: scores.cave),
    "unscored": lambda metrics: percent(metrics.counts.unscored, metrics.counts.attempted),
    "invalid": lambda metrics: percent(metrics.counts.invalid, metrics.counts.attempted),
}
"""What a gate can look at, all in percent. VR, ER and TSR are means over runs; scenario scores are over all runs."""


@dataclass(frozen=True)
class Gate:
    """``metric comparator threshold``, such as VR <= 20 (percent). ``name`` is what the summary shows.

    Raises ValueError for an unknown metric and for a threshold that no value could be compared with.
    """

    name: str
    metric: str
    comparator: Comparator
    threshold: float

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise ValueError(f"unknown metric {self.metric!r}: choose one of {', '.join(METRICS)}")
        if not math.isfinite(self.threshold):
            raise ValueError(f"{self.name}: the threshold {self.threshold} is no number of percent")

    @classmethod
    def at_most(cls, metric: str, threshold: float) -> Gate:
        """Return the gate ``metric <= threshold``."""
        return cls(f"{metric} <= {threshold:g}", metric, "<=", threshold)

    @classmethod
    def at_least(cls, metric: str, threshold: float) -> Gate:
        """Return the gate ``metric >= threshold``."""
        return cls(f"{metric} >= {threshold:g}", metric, ">=", threshold)

    @classmethod
    def declared(cls, text: str) -> Gate:
        """Return the gate that ``run.json`` writes as *text*, such as ``max vr 20``. Raises ValueError for no gate."""
        direction, _, rest = text.partition(" ")
        metric, _, threshold = rest.partition(" ")
        if direction not in ("max", "min"):
            raise ValueError(f"{text!r} is no gate: expected max or min, a metric and a number of percent")
        return (cls.at_most if direction == "max" else cls.at_least)(metric, float(threshold))

    def passes(self, value: float) -> bool:
        """Say whether *value* passes; equality passes."""
        if self.comparator == "<=":
            return value <= self.threshold + _TOLERANCE
        return value >= self.threshold - _TOLERANCE


@dataclass(frozen=True)
class GateResult:
    """One gate for one agent. ``reason`` is empty where it passes; "undefined" where there was no value to compare."""

    gate: Gate
    agent: str
    value: float | None
    passed: bool
    reason: str


def evaluate(gates: Iterable[Gate], agents: Mapping[str, AgentMetrics]) -> tuple[GateResult, ...]:
    """Judge every gate for every agent. Undefined fails, and so does a gate where no agent has a record at all."""
    results: list[GateResult] = []
    for gate in gates:
        values = {name: METRICS[gate.metric](metrics) for name, metrics in agents.items()} or {NO_AGENT: None}
        for agent, value in values.items():
            if value is None:
                results.append(GateResult(gate, agent, None, False, UNDEFINED))
            else:
                passed = gate.passes(value)
                opposite = ">" if gate.comparator == "<=" else "<"
                reason = "" if passed else f"{value:.1f} {opposite} {gate.threshold:g}"
                results.append(GateResult(gate, agent, value, passed, reason))
    return tuple(results)
