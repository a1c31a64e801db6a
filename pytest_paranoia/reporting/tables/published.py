"""Rows of published results below measured ones, each marked in its name and in a column of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Literal

import pandas as pd

from pytest_paranoia.reference import published
from pytest_paranoia.reporting.tables.model import Table

Paper = Literal["paranoiaeval", "cave_bench"]
MARK: Final = " (published)"
"""Ends the name in every published row; agents of a run cannot be called that, as ids allow no brackets."""
MEASURED: Final = "this run"
_KEYS: Final[Mapping[str, tuple[Paper, str, str]]] = {
    "table2": ("paranoiaeval", "table2_mean_of_3_runs", "agent"),
    "table3": ("paranoiaeval", "table3_paired_effects", "agent"),
    "table5": ("paranoiaeval", "table5_by_treatment", "treatment"),
    "table15_run1": ("paranoiaeval", "table15_run1", "agent"),
    "table16_run2": ("paranoiaeval", "table16_run2", "agent"),
    "table17_run3": ("paranoiaeval", "table17_run3", "agent"),
    "table18": ("paranoiaeval", "table18_delta_by_run_pp", "agent"),
    "cave": ("cave_bench", "models", "agent"),
}


def with_published(tables: Iterable[Table]) -> Iterator[Table]:
    """Yield *tables*; those that a paper has too get its rows and the columns ``published`` and ``source``."""
    for table in tables:
        if table.name not in _KEYS:
            yield table
            continue
        paper, key, label = _KEYS[table.name]
        figures = published(paper)
        rows = [_row(name, values, label) for name, values in figures[key].items()]
        frame = pd.concat(
            [
                table.frame.assign(published=False, source=MEASURED),
                pd.DataFrame(rows).assign(published=True, source=str(figures["source"])),
            ],
            ignore_index=True,
        )
        texts = dict.fromkeys(
            {label, "source", *(name for name in map(str, frame) if name.endswith("_text"))}, "string"
        )
        title = f"{table.title}; published: {figures['source']}"
        counts = dict.fromkeys((name for name in table.frame if table.frame[name].dtype == "int64"), "Int64")
        yield replace(table, frame=frame.astype({**texts, **counts}), title=title)


def _row(name: str, values: Mapping[str, Any], label: str) -> dict[str, Any]:
    row: dict[str, Any] = {label: f"{name}{MARK}"}
    for key, value in values.items():
        if key.endswith("_ci95"):
            stem = key.removesuffix("_ci95")
            row |= {f"{stem}_lo": value[0], f"{stem}_hi": value[1]}
        elif isinstance(value, str):
            # "<.001" is no number; ".004" is one, to three places.
            row[f"{key}_text"] = value
            row[key] = None if value.startswith("<") else float(value)
        else:
            row[key] = value
    return row
