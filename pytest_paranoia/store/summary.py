"""The aggregate of a run directory: what the terminal shows and ``summary.json`` holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_paranoia.metrics import judging
from pytest_paranoia.metrics.accusations import AccusationMetrics, Scores
from pytest_paranoia.metrics.agents import AgentMetrics, aggregate
from pytest_paranoia.metrics.gates import Gate, GateResult, evaluate
from pytest_paranoia.metrics.paired import Excess, PairedMetrics
from pytest_paranoia.metrics.values import Counts, OverRuns
from pytest_paranoia.schema.record import Record
from pytest_paranoia.store.loading import LoadResult, Problem
from pytest_paranoia.store.manifest import RunManifest

if TYPE_CHECKING:
    from pytest_paranoia.metrics.arms import ArmReport

SUMMARY_SCHEMA = 1


@dataclass(frozen=True)
class RunSummary:
    """All that a report needs.

    ``planned``: trial keys, None where the plan was never written; ``missing``: planned trials without a usable record.
    ``recovered``: (folder name, what was done) of what a killed session had left half-done.
    """

    path: Path
    manifest: RunManifest
    records: tuple[Record, ...]
    problems: tuple[Problem, ...]
    planned: tuple[str, ...] | None
    missing: tuple[str, ...]
    agents: dict[str, AgentMetrics]
    gates: tuple[GateResult, ...]
    recovered: tuple[tuple[str, str], ...] = ()

    @property
    def counts(self) -> Counts:
        """Trials by status, over all agents."""
        return Counts.of(self.records)

    @cached_property
    def arms(self) -> ArmReport | None:
        """The run's arms against its baseline, None in a run without arms, or where only one of them has records."""
        baseline, names = self.manifest.baseline(), list(self.manifest.arms())
        if baseline is None or len({record.arm for record in self.records}) < 2:
            return None
        from pytest_paranoia.metrics.arms import arm_report  # pandas and SciPy, which no other session needs

        return arm_report(self.records, baseline, names)

    @property
    def gates_passed(self) -> bool:
        """False where a gate failed; True without gates."""
        return all(result.passed for result in self.gates)


def summarise(
    path: Path,
    manifest: RunManifest,
    loaded: LoadResult,
    planned: tuple[str, ...] | None,
    gates: Iterable[Gate] = (),
    recovered: tuple[tuple[str, str], ...] = (),
) -> RunSummary:
    """Aggregate what was loaded."""
    present = {record.trial for record in loaded.records}
    found = aggregate(loaded.records)
    order = dict.fromkeys([*manifest.subjects(), *found])  # the order the user gave them in
    agents = {name: found[name] for name in order if name in found}
    return RunSummary(
        path=path,
        manifest=manifest,
        records=loaded.records,
        problems=loaded.problems,
        planned=planned,
        missing=tuple(key for key in planned or () if key not in present),
        agents=agents,
        gates=evaluate(gates, agents),
        recovered=recovered,
    )


def reasons(records: Iterable[Record]) -> dict[str, dict[str, int]]:
    """Return how many trials are invalid and unscored, by reason, the most frequent first."""
    counted: dict[str, dict[str, int]] = {}
    for status in ("invalid", "unscored"):
        by_reason = Counter(record.reason or "" for record in records if record.status == status)
        counted[status] = dict(sorted(by_reason.items(), key=lambda entry: (-entry[1], entry[0])))
    return counted


def as_data(summary: RunSummary) -> dict[str, Any]:
    """Return *summary* as plain data for ``summary.json``; undefined is null."""
    return {
        "schema": SUMMARY_SCHEMA,
        "run": summary.manifest.run,
        "created": summary.manifest.created,
        "counts": _counts(summary.counts)
        | {
            "planned": None if summary.planned is None else len(summary.planned),
            "missing": len(summary.missing),
            "problems": len(summary.problems),
        },
        "reasons": reasons(summary.records),
        "judging": judging.as_data(judging.totals(summary.records)),
        "agents": {name: _agent(metrics) for name, metrics in summary.agents.items()},
        "gates": [
            {
                "name": result.gate.name,
                "metric": result.gate.metric,
                "comparator": result.gate.comparator,
                "threshold": result.gate.threshold,
                "agent": result.agent,
                "value": result.value,
                "passed": result.passed,
                "reason": result.reason,
            }
            for result in summary.gates
        ],
        **({"arms": arms.as_data()} if (arms := summary.arms) is not None else {}),
        "missing": list(summary.missing),
        "problems": [
            {"path": _relative(problem.path, summary.path), "reason": problem.reason, "trial": problem.trial}
            for problem in summary.problems
        ],
    }


def _relative(path: Path, base: Path) -> str:
    return str(path.relative_to(base)) if path.is_relative_to(base) else str(path)


def _counts(counts: Counts) -> dict[str, int | None]:
    return {
        "attempted": counts.attempted,
        "scored": counts.scored,
        "invalid": counts.invalid,
        "unscored": counts.unscored,
    }


def _agent(metrics: AgentMetrics) -> dict[str, Any]:
    return {
        "counts": _counts(metrics.counts),
        "pairs": None if metrics.pairs is None else _pairs(metrics.pairs),
        "scenarios": None if metrics.scenarios is None else _scenarios(metrics.scenarios),
    }


def _pairs(metrics: PairedMetrics) -> dict[str, Any]:
    return {
        "runs": list(metrics.runs),
        "counts": _counts(metrics.counts),
        "tsr": {group: _over_runs(value) for group, value in metrics.tsr.items()},
        "excess": {group: _excess(value) for group, value in metrics.excess.items()},
    }


def _excess(excess: Excess) -> dict[str, Any]:
    return {
        "pairs": excess.pairs,
        "scored_plus": excess.scored_plus,
        "scored_minus": excess.scored_minus,
        "complete": excess.complete,
        "dropped": excess.dropped,
        "vr": _over_runs(excess.vr),
        "rate_minus": _over_runs(excess.rate_minus),
        "er": _over_runs(excess.er),
        "er_pooled": excess.er_pooled,
    }


def _over_runs(value: OverRuns) -> dict[str, Any]:
    return {"mean": value.mean, "by_run": {str(run): one for run, one in value.by_run.items()}}


def _scenarios(metrics: AccusationMetrics) -> dict[str, Any]:
    return {
        "runs": list(metrics.runs),
        "counts": _counts(metrics.counts),
        "scores": _scores(metrics.scores),
        "by_run": {str(run): _scores(one) for run, one in metrics.by_run.items()},
    }


def _scores(scores: Scores) -> dict[str, Any]:
    names: Sequence[str] = ("n", "roh", "ocr", "fcs", "fcr", "erf", "cdc", "cave")
    return {name: getattr(scores, name) for name in names} | {"paths": dict(scores.paths)}
