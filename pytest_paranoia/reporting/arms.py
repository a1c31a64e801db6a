"""Arms against the baseline as lines for a terminal and as properties of a JUnit suite."""

from __future__ import annotations

from pytest_paranoia.metrics.arms import ALARMS, HIGHER_IS_BETTER, PURPOSE, Alarms, ArmReport
from pytest_paranoia.metrics.frame import undefined_as_none
from pytest_paranoia.reporting.tables.grid import grid
from pytest_paranoia.reporting.tables.model import Column, Table, decimal
from pytest_paranoia.reporting.text import one_line, wrapped

_COLUMNS = (
    Column("agent", "agent", "text"),
    Column("arm", "arm", "text"),
    Column("metric", "metric", "text"),
    Column("items", "items", "count"),
    Column("left", "baseline"),
    Column("right", "arm"),
    Column("effect", "points [95% CI]", "estimate"),
    Column("relative", "change in % [95% CI]", "estimate"),
    Column("p_holm", "p (Holm)", "p"),
)


def table(report: ArmReport) -> Table:
    """Return the changes as a table."""
    shown = report.changes.assign(metric=report.changes["metric"].str.upper())
    title = f"Arms against {report.baseline}, on the same items"
    return Table("arms", title, "paranoia docs interventions", _COLUMNS, shown, "items")


def lines(report: ArmReport, encoding: str, width: int) -> list[str]:
    """Return the section of *report*, without its title."""
    out = grid(table(report), width, encoding) if len(report.changes) else ["no item is scored in two arms"]
    found = [sentence(one) for one in report.alarms]
    if found:
        out += ["withheld by gates, of runs:"]
    for text in found:
        out += wrapped(one_line(text, encoding), width, "  ", "    ")
    for note in report.notes:
        out += wrapped(one_line(f"left out: {note}", encoding), width, "  ", "    ")
    return out


def title(report: ArmReport) -> str:
    """Return the section's title."""
    better = ", ".join(sorted(name.upper() for name in HIGHER_IS_BETTER))
    return f"arms against {report.baseline}, on the same items (percent; lower is better, {better}: higher)"


def sentence(one: Alarms) -> str:
    """Return an alarm count in words."""
    rate = "undefined" if one.rate is None else f"{decimal(one.rate)} %"
    would = f"; would have stopped {one.would}" if one.would else ""
    meant = "the gate's purpose" if one.kind in PURPOSE else "a stop is a false alarm"
    kind = f"{ALARMS[one.kind]} ({meant})"
    return f"{one.agent}, {one.arm}, {kind}: {one.stopped} of {one.runs} stopped ({rate}){would}"


def properties(report: ArmReport) -> dict[str, str]:
    """Return JUnit properties: of each agent, arm and metric the change in points and percent, and the stopped runs."""
    found: dict[str, str] = {}
    for row in report.changes.to_dict("records"):
        place = f"{row['agent']}+{row['arm']}.{row['metric']}"
        for name in ("effect", "relative"):
            for limit in ("", "_lo", "_hi"):
                if (value := undefined_as_none(float(row[name + limit]))) is not None:
                    found[f"{place}.{'change' if name == 'effect' else name}{limit}"] = f"{value:.4g}"
    for one in report.alarms:
        found[f"{one.agent}+{one.arm}.stopped.{one.kind}"] = f"{one.stopped}/{one.runs}"
        if one.would:
            found[f"{one.agent}+{one.arm}.would-stop.{one.kind}"] = f"{one.would}/{one.runs}"
    return found
