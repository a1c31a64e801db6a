"""``summary.json`` with what a session's end has no time for: intervals, tests and hints, by the same schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pandas as pd

from pytest_paranoia.metrics.analysis import Analysis
from pytest_paranoia.metrics.effects import ESTIMATED
from pytest_paranoia.metrics.hints import weakness
from pytest_paranoia.metrics.pairing import POOLED
from pytest_paranoia.metrics.resampling import CONFIDENCE
from pytest_paranoia.metrics.scenarios import METRICS
from pytest_paranoia.store.files import printable
from pytest_paranoia.store.summary import RunSummary, as_data

_PAIR_COUNTS: Final = ("pairs", "complete", "dropped", "runs")
_SCENARIO_COUNTS: Final = ("scenarios", "valid", "attempted", "runs")
Row = Mapping[str, Any]


def with_intervals(summary: RunSummary, analysis: Analysis) -> bytes:
    """Return ``summary.json`` of *summary* with the key ``statistics`` from *analysis*, which is of its records."""
    data = as_data(summary) | {"statistics": statistics(analysis)}
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1)
    return f"{printable(text)}\n".encode()


def statistics(analysis: Analysis) -> dict[str, Any]:
    """Return *analysis* as plain data: by agent, kind of group and group; undefined is null."""
    pairs, scenarios = _grouped(analysis.effects, _pair), _grouped(analysis.scenarios, _scenario)
    both = {name: {"pairs": pairs.get(name), "scenarios": scenarios.get(name)} for name in sorted({*pairs, *scenarios})}
    return {
        "confidence": round(100 * CONFIDENCE),
        "resamples": analysis.resamples,
        "seed": analysis.seed,
        "agents": {name: found for name, found in both.items() if name != POOLED},
        "pooled": both.get(POOLED),
        "interactions": [{key: _plain(value) for key, value in row.items()} for row in _rows(analysis.interactions)],
        "notes": list(analysis.notes),
        "hints": list(analysis.hints),
    }


def _grouped(table: pd.DataFrame, read: Any) -> dict[str, dict[str, dict[str, Any]]]:
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in _rows(table):
        found.setdefault(row["agent"], {}).setdefault(row["group_kind"], {})[row["group"]] = read(row)
    return found


def _pair(row: Row) -> dict[str, Any]:
    shown: dict[str, Any] = {name: int(row[name]) for name in _PAIR_COUNTS}
    shown |= {name: _estimate(row, name, "pairs") for name in ESTIMATED}
    return shown | {name: _plain(row[name]) for name in ("p", "p_method", "p_holm")}


def _scenario(row: Row) -> dict[str, Any]:
    shown: dict[str, Any] = {name: int(row[name]) for name in _SCENARIO_COUNTS}
    return shown | {name: _estimate(row, name, "scenarios") for name in METRICS}


def _estimate(row: Row, name: str, units: str) -> dict[str, Any]:
    keys = {"value": name, "low": f"{name}_lo", "high": f"{name}_hi"}
    keys |= {"bca_low": f"{name}_bca_lo", "bca_high": f"{name}_bca_hi"}
    found = {key: _plain(row[column]) for key, column in keys.items()}
    weak = None if found["value"] is None else weakness(found["low"], found["high"], float(row[units]))
    return found | {"weak": weak}


def _rows(table: pd.DataFrame) -> Iterable[dict[str, Any]]:
    return ({str(key): value for key, value in row.items()} for row in table.to_dict("records"))


def _plain(value: Any) -> Any:
    if pd.isna(value):
        return None
    return value.item() if hasattr(value, "item") else value
