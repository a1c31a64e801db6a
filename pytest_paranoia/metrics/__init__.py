"""Metrics of both papers as pure functions of records. No pandas here: a session imports this on its way to a summary.

Every rate is a percentage (0 to 100; ER can be negative). None means undefined and is never shown as 0.
"""

from pytest_paranoia.metrics.accusations import AccusationMetrics, Scores
from pytest_paranoia.metrics.agents import AgentMetrics, aggregate
from pytest_paranoia.metrics.gates import Gate, GateResult
from pytest_paranoia.metrics.paired import Excess, PairedMetrics
from pytest_paranoia.metrics.values import OverRuns

__all__ = [
    "AccusationMetrics",
    "AgentMetrics",
    "Excess",
    "Gate",
    "GateResult",
    "OverRuns",
    "PairedMetrics",
    "Scores",
    "aggregate",
]
