"""Every statistic as it is, one table each: what a reader computes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pandas as pd

from pytest_paranoia.metrics.analysis import Analysis
from pytest_paranoia.reporting.tables.model import Column, Style, Table

_SOURCE: Final = "paranoia docs statistics"

_SHOWN: Final[dict[str, tuple[str, str]]] = {
    "effects": (
        "Paired effects by agent and group",
        "agent:text group_kind:text group:text complete:count dropped:count tsr:estimate vr:estimate "
        "rate_minus:estimate er_mean:estimate er_pooled:estimate delta:estimate p:p p_holm:p",
    ),
    "runs": (
        "Rates by agent, group and run",
        "agent:text group_kind:text group:text run:count complete:count tsr vr rate_minus er delta:estimate",
    ),
    "interactions": (
        "Tests of the effect from run to run",
        "test:text agent:text pairs:count dropped:count runs:count delta low high range p:p method:text",
    ),
    "correlations": (
        "Rank correlation over agents",
        "x:text y:text group_kind:text group:text agents:count rho p:p method:text",
    ),
    "scenarios": (
        "Accusation scores by agent and group",
        "agent:text group_kind:text group:text valid:count attempted:count roh:estimate ocr:estimate fcs:estimate "
        "fcr:estimate erf:estimate cdc:estimate cave:estimate",
    ),
    "task_types": (
        "Self-built against inherited scenarios",
        "agent:text metric:text self_built inherited scenarios_self_built:count scenarios_inherited:count "
        "contrast:estimate",
    ),
    "transitions": (
        "Paths of two agents on the same scenarios",
        "agent_from:text agent_to:text path_from:text path_to:text count:count matched:count share",
    ),
    "trials": (
        "All trials",
        "trial:text agent:text status:text reason:text task_done:text v:text degree:text h:plain f:plain e:plain "
        "path:text",
    ),
}


_UNITS: Final = {"effects": "pairs", "runs": "complete", "scenarios": "scenarios"}


def tidy_tables(analysis: Analysis) -> Iterator[Table]:
    """Yield the tables of *analysis* that have rows, and ``notes``: what was left out and what looks too sure."""
    for name, (title, shown) in _SHOWN.items():
        frame = plain(getattr(analysis, name))
        if len(frame):
            columns = tuple(map(_column, shown.split()))
            yield Table(name, title, _SOURCE, columns, frame, _UNITS.get(name, ""))
    notes = [("left out", note) for note in analysis.notes] + [("hint", hint) for hint in analysis.hints]
    if notes:
        frame = pd.DataFrame(notes, columns=["kind", "note"]).astype("string")
        columns = (Column("kind", "kind", "text"), Column("note", "note", "text"))
        yield Table("notes", "What was left out, and what only looks certain", _SOURCE, columns, frame)


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return *frame* with categories and lists as text: what every file format can hold."""
    changed = {}
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            changed[name] = column.astype("string")
        elif column.dtype == object:
            joined = [";".join(value) if isinstance(value, tuple) else value for value in column]
            changed[name] = pd.Series(joined, index=frame.index, dtype="string")
    return frame.assign(**changed)


def _column(text: str) -> Column:
    key, _, style = text.partition(":")
    if style == "plain":  # a share in [0, 1], where one decimal would lose what it says
        return Column(key, key, "text")
    styles: dict[str, Style] = {"text": "text", "count": "count", "p": "p", "estimate": "estimate", "": "rate"}
    return Column(key, key.replace("_", " "), styles[style])
