"""The page's section on arms: each against the baseline, and what their gates withheld."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_paranoia.metrics.arms import ALARMS, METRICS, Alarms
from pytest_paranoia.reporting.html.numbers import Estimate
from pytest_paranoia.store.summary import RunSummary


@dataclass(frozen=True)
class Change:
    """One metric of one arm: baseline, arm, change in points and in percent of the baseline."""

    left: Estimate
    right: Estimate
    points: Estimate
    relative: Estimate


@dataclass(frozen=True)
class ArmRow:
    """One agent in one arm; ``adds`` says what the arm adds, a metric without a value on both sides is None."""

    agent: str
    arm: str
    adds: str
    changes: list[Change | None]
    alarms: list[Alarms | None]


@dataclass(frozen=True)
class Arms:
    """The section. ``metrics`` and ``kinds`` (of alarms, name and meaning) head the columns."""

    baseline: str
    metrics: list[str]
    kinds: list[tuple[str, str]]
    rows: list[ArmRow]


def compared_arms(summary: RunSummary) -> Arms | None:
    """Lay out the arms of a run, None where there are none to compare."""
    report = summary.arms
    if report is None:
        return None
    found = {(row["agent"], row["arm"], row["metric"]): row for row in report.changes.to_dict("records")}
    metrics = [name for name in METRICS if any(metric == name for _, _, metric in found)]
    alarms = {(one.agent, one.arm, one.kind): one for one in report.alarms}
    kinds = [(kind, meaning) for kind, meaning in ALARMS.items() if any(key[2] == kind for key in alarms)]
    parts = {name: arm.get("parts") for name, arm in summary.manifest.arms().items()}
    owners = dict.fromkeys([*((agent, arm) for agent, arm, _ in found), *((agent, arm) for agent, arm, _ in alarms)])
    rows = []
    for agent, arm in owners:
        listed = parts.get(arm)
        changes = []
        for name in metrics:
            row = found.get((agent, arm, name))
            columns = ("left", "right", "effect", "relative")
            read = (
                None if row is None else [Estimate.of({str(k): v for k, v in row.items()}, c, "items") for c in columns]
            )
            changes.append(None if read is None else Change(*read))
        adds = " + ".join(map(str, listed)) if isinstance(listed, list) and listed else "nothing"
        rows.append(ArmRow(agent, arm, adds, changes, [alarms.get((agent, arm, kind)) for kind, _ in kinds]))
    return Arms(report.baseline, [name.upper() for name in metrics], kinds, rows)
