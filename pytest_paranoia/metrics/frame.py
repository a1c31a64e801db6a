"""Records as one tidy table: a row a trial, a typed column a fact. Everything else in the statistics starts here.

This module and its neighbours that use it (``resampling``, ``effects``, ``scenarios``, ``comparing``, ``agreement``,
``planning``, ``analysis``) need NumPy and pandas. ``pytest_paranoia.metrics`` itself imports none of them, and neither
does a session that collects or runs trials: import them where a table is wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.metrics.hints import Result
from pytest_paranoia.schema.record import Record
from pytest_paranoia.schema.taxonomy import DOMAINS, PATHS, TREATMENTS, VARIANTS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

FACTORS: Final[Mapping[str, str]] = {
    "g": "vector",
    "d": "harm",
    "q": "confrontation",
    "p": "pressure",
    "s": "surface",
}
"""Factor columns and what each is called (CAVE-Bench section 3.2)."""

_CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "kind": ("pair", "scenario"),
    "treatment": TREATMENTS,
    "variant": VARIANTS,
    "domain": DOMAINS,
    "family": ("inherited-resume", "self-built"),
    "status": ("scored", "invalid", "unscored"),
    "kind_of_verdict": ("evidence", "generic", "none"),
    "degree": ("minor", "clear", "none"),
    "path": PATHS,
}
_TEXTS: Final = ("trial", "item", "item_hash", "situation", "repository", "agent", "arm", "reason", *FACTORS)
_FLOATS: Final = ("h", "f", "e", "seconds", "cost")
COLUMNS: Final[tuple[str, ...]] = (
    *("trial", "kind", "item", "item_hash", "repository", "domain", "treatment", "situation", "family", *FACTORS),
    *("agent", "arm", "variant", "run", "status", "reason", "task_done", "v", "kind_of_verdict", "forms", "degree"),
    *("h", "f", "e", "path", "seconds", "cost"),
)
IDENTITY: Final = ("kind", "item", "agent", "variant", "run")


class DuplicateTrials(ParanoiaError, ValueError):
    """Several records are of the same kind, item, agent, variant and run, so that no statistic of them is defined."""


def frame(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row a trial, in the order of *records*; see ``COLUMNS`` and docs/statistics.md for what each means.

    Verdicts, ``h``, ``f``, ``e`` and ``path`` are there for scored trials only (DESIGN.md section 5). Raises
    DuplicateTrials.
    """
    rows: dict[str, list[Any]] = {column: [] for column in COLUMNS}
    for record in records:
        for column, value in _row(record).items():
            rows[column].append(value)
    table = pd.DataFrame({column: _typed(column, values) for column, values in rows.items()})
    _refuse_duplicates(table)
    return table


def scored(trials: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return the scored trials of one kind."""
    return trials[(trials["kind"] == kind) & (trials["status"] == "scored")]


def results(trials: pd.DataFrame) -> Iterator[Result]:
    """Yield the scored trials as ``metrics.hints`` reads them."""
    chosen = trials[trials["status"] == "scored"]
    names = ("kind", "agent", "item", "treatment", "variant")
    texts = [chosen[name].astype(object).where(chosen[name].notna(), None) for name in names]
    done = chosen["task_done"].to_numpy(dtype=np.float64, na_value=0.0)
    v = chosen["v"].to_numpy(dtype=np.float64, na_value=np.nan)
    harms = [chosen[name].to_numpy(dtype=np.float64) for name in ("h", "f", "e")]
    for *labels, run, finished, violated, h, f, e in zip(*texts, chosen["run"], done, v, *harms, strict=True):
        harm = None if np.isnan(h) else (float(h), float(f), float(e))
        kind, agent, item, treatment, variant = labels
        v_found = undefined_as_none(violated)
        yield Result(kind, agent, item, treatment, variant, int(run), float(finished), v_found, harm)


def undefined_as_none(value: float) -> float | None:
    """Return None for NaN: what "undefined" is in JSON and in ``metrics.paired``."""
    return None if np.isnan(value) else float(value)


def _row(record: Record) -> dict[str, Any]:
    valid = record.status == "scored"
    verdict, label = (record.verdict, record.accusation) if valid else (None, None)
    factors = {value[0].lower(): value for value in record.factors or ()}
    timing = record.timing
    return {
        "trial": record.trial,
        "kind": record.kind,
        "item": record.item,
        "item_hash": record.item_hash,
        "repository": record.repository,
        "domain": record.domain,
        "treatment": record.treatment,
        "situation": record.situation,
        "family": record.family,
        **{column: factors.get(column) for column in FACTORS},
        "agent": record.subject,
        "arm": record.arm,
        "variant": record.variant,
        "run": record.run,
        "status": record.status,
        "reason": record.reason,
        "task_done": None if record.oracle is None else record.oracle.passed,
        "v": None if verdict is None else verdict.violation,
        "kind_of_verdict": None if verdict is None else verdict.kind,
        "forms": () if verdict is None else tuple(verdict.forms),
        "degree": None if verdict is None else verdict.degree,
        "h": np.nan if label is None or record.replay is None else record.replay.harm,
        "f": np.nan if label is None else label.false_confession,
        "e": np.nan if label is None else label.recognition_failure,
        "path": record.path,
        "seconds": timing.prepare + timing.agent + timing.freeze + timing.check + timing.judge,
        "cost": np.nan if record.usage.cost_usd is None else record.usage.cost_usd,
    }


def _typed(column: str, values: list[Any]) -> Any:
    if column in _CATEGORIES:
        return pd.Categorical(values, categories=list(_CATEGORIES[column]))
    if column in _TEXTS:
        return pd.array(values, dtype="string")
    if column in _FLOATS:
        return np.asarray(values, dtype=np.float64)
    if column == "run":
        return np.asarray(values, dtype=np.int64)
    if column == "forms":
        return pd.Series(values, dtype="object")
    return pd.array(values, dtype="boolean" if column == "task_done" else "Int8")


def _refuse_duplicates(table: pd.DataFrame) -> None:
    doubled = table.duplicated(list(IDENTITY), keep=False)
    if doubled.any():
        keys = sorted(table.loc[doubled, "trial"].unique())
        shown = ", ".join(keys[:5]) + (f" and {len(keys) - 5} more" if len(keys) > 5 else "")
        raise DuplicateTrials(f"{int(doubled.sum())} records are of the same trials: {shown}. Keep one of each")
