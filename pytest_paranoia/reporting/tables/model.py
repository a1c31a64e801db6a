"""What a table is: a data frame for machines, and the columns of it that a reader sees."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import pandas as pd

from pytest_paranoia.metrics.hints import FLAT, ONE, Weakness, weakness

Style = Literal["text", "count", "rate", "p", "estimate"]
UNDEFINED: Final = "undef"
_SIGNS: Final[Mapping[Weakness, str]] = {"flat": "*", "one": "**"}
_TOLD: Final[Mapping[Weakness, str]] = {"flat": FLAT, "one": ONE}


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
    """``name`` is the file's name, ``source`` what it is laid out like; ``frame`` may hold more than is shown.

    ``units`` is the column with the number of pairs or scenarios a row rests on, where there is one. An estimate whose
    interval has no width is followed by ``*``, one that rests on one unit by ``**``; ``notes`` explains them.
    """

    name: str
    title: str
    source: str
    columns: tuple[Column, ...]
    frame: pd.DataFrame
    units: str = ""

    def in_order(self, agents: Sequence[str]) -> Table:
        """Return the table with the rows of *agents* in their order, those of others after them."""
        if "agent" not in self.frame:
            return self
        places = {name: place for place, name in enumerate(agents)}
        ranks = [places.get(str(name), len(places)) for name in self.frame["agent"]]
        order = sorted(range(len(ranks)), key=ranks.__getitem__)
        return replace(self, frame=self.frame.iloc[order].reset_index(drop=True))

    def rows(self) -> list[list[str]]:
        """Return the shown cells, row by row."""
        return [[column.cell(row) + self._sign(column, row) for column in self.columns] for row in self._records()]

    def notes(self) -> list[str]:
        """Return what a reader must know of the shown numbers: which of them only look certain."""
        signs = {self._sign(column, row) for row in self._records() for column in self.columns}
        found = [f"{_SIGNS[weak]} {_TOLD[weak]}" for weak in _SIGNS if _SIGNS[weak] in signs]
        if not any(column.style == "estimate" for column in self.columns) and self.units:
            label = self.columns[0]
            lonely = [label.cell(row) for row in self._records() if self._weakness(label, row) == "one"]
            found += [f"{', '.join(dict.fromkeys(lonely))}: {ONE}"] if lonely else []
        return found

    def _records(self) -> list[dict[str, Any]]:
        return [{str(key): cell for key, cell in row.items()} for row in self.frame.to_dict("records")]

    def _sign(self, column: Column, row: Mapping[str, Any]) -> str:
        weak = None if column.style != "estimate" else self._weakness(column, row)
        return "" if weak is None or _missing(row.get(column.key)) else _SIGNS[weak]

    def _weakness(self, column: Column, row: Mapping[str, Any]) -> Weakness | None:
        if row.get("published") is True:
            return None
        keys = (f"{column.key}_lo", f"{column.key}_hi", self.units)
        low, high, units = (None if value is None or _missing(value) else float(value) for value in map(row.get, keys))
        return weakness(low, high, units)


def decimal(value: float) -> str:
    """Return *value* with one decimal; a tiny negative never reads ``-0.0``."""
    return f"{round(value, 1) + 0.0:.1f}"


def _missing(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _p(value: Any) -> str:
    if isinstance(value, str):  # as published: papers print "<.001", which is no number
        return value
    return "<.001" if float(value) < 0.001 else f"{float(value):.3f}".removeprefix("0")
