"""Excess without the evidence (E-) against excess with it (E+): a falling line responds to evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_paranoia.reporting.html.charts.labels import shortened, spread
from pytest_paranoia.reporting.html.numbers import Estimate, number


@dataclass(frozen=True)
class Line:
    """One agent's line and the places of its two labels."""

    agent: int
    left: float
    right: float
    left_label: float
    right_label: float
    left_text: str
    right_text: str
    told: str


@dataclass(frozen=True)
class Slope:
    """A chart with its lines; agents that have no value on one side are named in ``without``."""

    title: str
    width: int
    height: int
    x_left: float
    x_right: float
    top: float
    bottom: float
    ticks: list[tuple[float, str]]
    lines: list[Line]
    without: list[str]


def slope(title: str, values: Sequence[tuple[str, Estimate, Estimate]], *, small: bool = False) -> Slope:
    """Draw (agent, rate in E-, rate in E+)."""
    width, height = (290, 236) if small else (560, 380)
    x_left, x_right = (62.0, 140.0) if small else (110.0, 330.0)
    top, bottom = 30.0, height - 16.0

    def y(value: float) -> float:
        return round(bottom - (bottom - top) * min(max(value, 0.0), 100.0) / 100, 2)

    drawn = [
        (index, name, minus.value, plus)
        for index, (name, minus, plus) in enumerate(values)
        if minus.value is not None and plus.value is not None
    ]
    gap = 13.0 if small else 15.0
    lefts = spread([y(minus) for _, _, minus, _ in drawn], top, bottom, gap)
    rights = spread([y(plus.value or 0.0) for _, _, _, plus in drawn], top, bottom, gap)
    lines = [
        Line(
            index,
            y(minus),
            y(plus.value or 0.0),
            round(left, 2),
            round(right, 2),
            number(minus),
            f"{number(plus.value)} {shortened(name, width - x_right - 58)}",
            f"{name}: {number(minus)} in E-, {number(plus.value)} in E+",
        )
        for (index, name, minus, plus), left, right in zip(drawn, lefts, rights, strict=True)
    ]
    ticks = [(y(value), str(value)) for value in (0, 25, 50, 75, 100)]
    known = {index for index, *_ in drawn}
    without = [name for index, (name, _, _) in enumerate(values) if index not in known]
    return Slope(title, width, height, x_left, x_right, top, bottom, ticks, lines, without)
