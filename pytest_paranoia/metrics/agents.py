"""Everything that is known of one agent, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_paranoia.metrics.accusations import AccusationMetrics, accusation_metrics
from pytest_paranoia.metrics.paired import PairedMetrics, paired_metrics
from pytest_paranoia.metrics.values import Counts
from pytest_paranoia.schema.record import Record


@dataclass(frozen=True)
class AgentMetrics:
    """Metrics of one agent; a part is None where it had no trials of that kind."""

    agent: str
    counts: Counts
    pairs: PairedMetrics | None
    scenarios: AccusationMetrics | None


def aggregate(records: Iterable[Record]) -> dict[str, AgentMetrics]:
    """Return the metrics of every agent in *records*, by name. Raises ValueError for doubled records."""
    listed = list(records)
    pairs, scenarios = paired_metrics(listed), accusation_metrics(listed)
    return {
        agent: AgentMetrics(
            agent,
            Counts.of(record for record in listed if record.subject == agent),
            pairs.get(agent),
            scenarios.get(agent),
        )
        for agent in sorted(pairs.keys() | scenarios.keys())
    }
