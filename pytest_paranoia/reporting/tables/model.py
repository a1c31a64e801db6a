"""What a table is: a data frame for machines, and the columns of it that a reader sees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import pandas as pd

Style = Literal["text", "count", "rate", "p", "estimate"]
UNDEFINED: Final = "undef"


@dataclass(frozen=True)
class Column:
    """One column as shown. An ``estimate`` shows ``key`` with the interval in ``key_lo`` and ``key_hi``.

    ``group`` stands above neighbouring columns that share it.
    """

    key: str
    heading: str
    style: Style = "rate"
    group: str = ""

    def cell(self, row: Mapping[str, Any]) -> str:
        """Return the cell of *row* as plain text; undefined reads ``undef``, and what does not apply is empty."""
        value = row.get(self.key)
        if self.style == "text":
            return "" if _missing(value) else str(value)
        if self.style == "p":
            value = row.get(f"{self.key}_text", value) if _missing(value) else value
        if _missing(value):  # what a paper does not print is no undefined result
            return "" if row.get("published") is True else UNDEFINED
        if self.style == "p":
            return _p(value)
        assert value is not None
        if self.style == "count":
            return f"{int(value)}"
        shown = decimal(float(value))
        low, high = row.get(f"{self.key}_lo"), row.get(f"{self.key}_hi")
        if self.style != "estimate" or low is None or high is None or _missing(low) or _missing(high):
            return shown
        return f"{shown} [{decimal(float(low))}, {decimal(float(high))}]"


@dataclass(frozen=True)
class Table:
    """``name`` is the file's name, ``source`` what it is laid out like; ``frame`` may hold more than is shown."""

    name: str
    title: str
    source: str
    columns: tuple[Column, ...]
    frame: pd.DataFrame

    def rows(self) -> list[list[str]]:
        """Return the shown cells, row by row."""
        records = self.frame.to_dict("records")
        return [
            [column.cell({str(key): cell for key, cell in row.items()}) for column in self.columns] for row in records
        ]


def decimal(value: float) -> str:
    """Return *value* with one decimal; a tiny negative never reads ``-0.0``."""
    return f"{round(value, 1) + 0.0:.1f}"


def _missing(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _p(value: Any) -> str:
    if isinstance(value, str):  # as published: papers print "<.001", which is no number
        return value
    return "<.001" if float(value) < 0.001 else f"{float(value):.3f}".removeprefix("0")
