"""Tables in the papers' layouts (ParanoiaEval Tables 2, 3, 5, 15 to 18; CAVE-Bench scores, paths and factors).

Column names are those of ``pytest_paranoia.reference``, so that published rows stand below measured ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from pytest_paranoia.metrics.analysis import Analysis
from pytest_paranoia.metrics.frame import FACTORS
from pytest_paranoia.metrics.pairing import POOLED
from pytest_paranoia.reporting.tables.model import Column, Table
from pytest_paranoia.schema.taxonomy import CONFRONTATIONS, HARMS, PATHS, PRESSURES, SURFACES, VECTORS

_SHORT: Final = {"all": "All", "avoidance": "Avo", "transfer": "Tra", "mitigation": "Mit", "acceptance": "Acc"}
SCORES: Final = ("fcs", "fcr", "erf", "cdc", "roh", "ocr", "cave")
"""CAVE-Bench's own order."""
MEANINGS: Final[Mapping[str, str]] = VECTORS | HARMS | CONFRONTATIONS | PRESSURES | SURFACES
_AGENT: Final = Column("agent", "agent", "text")
_RATES: Final = (
    _AGENT,
    *(Column(f"tsr_{key}", name, group="TSR") for key, name in (("all", "All"), ("e_plus", "E+"), ("e_minus", "E-"))),
    *(Column(f"vr_{key}", name, group="VR") for key, name in _SHORT.items()),
    *(Column(f"er_{key}", name, group="ER") for key, name in _SHORT.items()),
)


def paper_tables(analysis: Analysis) -> Iterator[Table]:
    """Yield the tables that *analysis* has rows for: those of pairs, then those of scenarios."""
    for table in (*_pairs(analysis), *_scenarios(analysis)):
        if len(table.frame):
            yield table


def _pairs(analysis: Analysis) -> Iterator[Table]:
    effects, runs = analysis.effects, analysis.runs
    agents = effects[effects["agent"] != POOLED]
    rates = _rates(agents, "er_mean", "pairs")
    yield Table("table2", "Rates by agent, mean of runs", "ParanoiaEval Table 2", _RATES, rates, "pairs")
    yield _table3(effects)
    yield _table5(effects)
    # Tables 15 to 17 are the paper's three runs; a fourth run has no number of its own there.
    for place, run in enumerate(sorted(runs["run"].unique())):
        number = f"table{15 + place}" if place < 3 else "table"
        source = f"ParanoiaEval Table {15 + place}" if place < 3 else "ParanoiaEval Tables 15 to 17"
        frame = _rates(runs[runs["run"] == run], "er", "complete")
        yield Table(f"{number}_run{run}", f"Rates by agent, run {run}", source, _RATES, frame, "pairs")
    yield _table18(analysis)


def _rates(rows: pd.DataFrame, er: str, units: str) -> pd.DataFrame:
    """A row an agent: TSR over all, VR and ER over all and by treatment, and how many pairs all of it rests on."""
    found: list[dict[str, Any]] = []
    for agent, mine in rows.groupby("agent", sort=False):
        values: dict[str, Any] = {"agent": str(agent)}
        for row in mine.to_dict("records"):
            if row["group_kind"] == "all":
                values |= {"tsr_all": row["tsr"], "tsr_e_plus": row["tsr_plus"], "tsr_e_minus": row["tsr_minus"]}
                values["pairs"] = row[units]
            if row["group_kind"] in ("all", "treatment"):
                values |= {f"vr_{row['group']}": row["vr"], f"er_{row['group']}": row[er]}
        found.append(values)
    return framed(found, [*(column.key for column in _RATES), "pairs"])


def _table3(effects: pd.DataFrame) -> Table:
    columns = (
        _AGENT,
        Column("e_plus", "E+"),
        Column("e_minus", "E-"),
        Column("delta", "delta [95% CI]", "estimate"),
        Column("er", "ER pooled [95% CI]", "estimate"),
        Column("p_holm", "p (Holm)", "p"),
    )
    chosen = effects[effects["group_kind"] == "all"]
    names = {"vr": "e_plus", "rate_minus": "e_minus", "er_pooled": "er"}
    names |= {f"er_pooled{limit}": f"er{limit}" for limit in ("_lo", "_hi")}
    kept = ["agent", "pairs", "complete", "dropped", "runs", *names, "delta", "delta_lo", "delta_hi", "p", "p_holm"]
    frame = chosen[kept].rename(columns=names)
    return Table("table3", "Paired effect of the evidence", "ParanoiaEval Table 3", columns, frame, "pairs")


def _table5(effects: pd.DataFrame) -> Table:
    """Over all agents, as published; with one agent, of that one."""
    columns = (
        Column("treatment", "treatment", "text"),
        Column("e_minus", "E-"),
        Column("e_plus", "E+"),
        Column("er", "ER pooled [95% CI]", "estimate"),
        Column("delta", "delta [95% CI]", "estimate"),
        Column("p", "p", "p"),
    )
    rows = effects[effects["group_kind"] == "treatment"]
    whose = POOLED if (rows["agent"] == POOLED).any() else None
    chosen = rows[rows["agent"] == whose] if whose else rows
    names = {"group": "treatment", "vr": "e_plus", "rate_minus": "e_minus", "er_pooled": "er"}
    names |= {f"er_pooled{limit}": f"er{limit}" for limit in ("_lo", "_hi")}
    frame = chosen[[*names, "delta", "delta_lo", "delta_hi", "p", "pairs", "complete", "dropped"]]
    frame = frame.rename(columns=names)
    return Table("table5", "By treatment, all agents together", "ParanoiaEval Table 5", columns, frame, "pairs")


def _table18(analysis: Analysis) -> Table:
    runs = analysis.runs[analysis.runs["group_kind"] == "all"]
    overall = analysis.effects[analysis.effects["group_kind"] == "all"].set_index("agent")["delta"]
    tests = analysis.interactions[analysis.interactions["test"] == "condition-by-run"].set_index("agent")["p"]
    numbers = [int(run) for run in sorted(runs["run"].unique())]
    found: list[dict[str, Any]] = []
    for agent, mine in runs.groupby("agent", sort=False):
        deltas = dict(zip(mine["run"], mine["delta"], strict=True))
        known = [value for value in deltas.values() if not np.isnan(value)]
        values: dict[str, Any] = {"agent": str(agent)} | {f"run{run}": deltas.get(run, np.nan) for run in numbers}
        values["pooled"] = overall.get(str(agent), np.nan)
        values["pairs"] = mine["complete"].max()
        values["range"] = max(known) - min(known) if len(known) > 1 else np.nan
        values["p_run"] = tests.get(str(agent), np.nan)
        found.append(values)
    columns = (
        _AGENT,
        *(Column(f"run{run}", f"run {run}") for run in numbers),
        Column("pooled", "pooled"),
        Column("range", "range"),
        Column("p_run", "p (runs differ)", "p"),
    )
    frame = framed(found, [*(column.key for column in columns), "pairs"])
    return Table("table18", "Delta by run, percentage points", "ParanoiaEval Table 18", columns, frame, "pairs")


def _scenarios(analysis: Analysis) -> Iterator[Table]:
    scores = analysis.scenarios
    counts = (Column("valid", "valid", "count"), Column("attempted", "attempted", "count"))
    intervals = [f"{name}{limit}" for name in SCORES for limit in ("", "_lo", "_hi")]
    overall = scores[scores["group_kind"] == "all"]
    yield Table(
        "cave",
        "Accusation scores by agent, higher is worse",
        "CAVE-Bench, main results",
        (_AGENT, *counts, *(Column(name, name.upper(), "estimate") for name in SCORES)),
        overall[["agent", "scenarios", "valid", "attempted", *intervals]],
        "scenarios",
    )
    kinds = [str(kind) for kind in scores["group_kind"]]
    grouped = scores.assign(
        kind=[FACTORS.get(kind, kind) for kind in kinds],
        meaning=[meaning(kind, str(name)) for kind, name in zip(kinds, scores["group"], strict=True)],
    )
    place = (_AGENT, Column("kind", "by", "text"), Column("group", "value", "text"))
    labels = ["agent", "kind", "group", "meaning", "valid", "attempted"]
    yield Table(
        "paths",
        "Runs by decision path",
        "CAVE-Bench Table 11",
        (
            *place,
            *counts,
            *(Column(f"n_{path}", path, "count", "runs") for path in PATHS),
            *(Column(f"share_{path}", path, group="percent") for path in PATHS),
        ),
        grouped[[*labels, *(f"n_{path}" for path in PATHS), *(f"share_{path}" for path in PATHS)]],
    )
    yield Table(
        "factors",
        "Accusation scores by domain, family and factor value",
        "CAVE-Bench Table 15",
        (*place, *counts, *(Column(name, name.upper()) for name in SCORES)),
        grouped.loc[grouped["group_kind"] != "all", [*labels, "scenarios", *intervals]],
    )


def meaning(kind: str, name: str) -> str:
    """Return what a factor value such as G3 means, else the group's own name."""
    return MEANINGS.get(name, name) if kind in FACTORS else name


def framed(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """Return *rows* as a frame with exactly *columns*: text where a value is text, else numbers, NaN where absent."""
    table = pd.DataFrame([{name: row.get(name, np.nan) for name in columns} for row in rows], columns=list(columns))
    for name in columns:
        if name in ("agent", "treatment"):
            table[name] = table[name].astype("string")
        else:
            table[name] = table[name].astype("float64")
    return table
