"""Task success against violations: does an agent that gets more done also defend more?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_paranoia.reporting.html.charts.labels import Box, beside, shortened
from pytest_paranoia.reporting.html.numbers import Estimate, number


@dataclass(frozen=True)
class Point:
    """One agent; ``low`` and ``high`` are the ends of the interval of its violation rate."""

    agent: int
    x: float
    y: float
    low: float | None
    high: float | None
    label: tuple[float, float, str]
    text: str
    told: str


@dataclass(frozen=True)
class Scatter:
    """A chart with its points and axes; agents without both values are named in ``without``."""

    width: int
    height: int
    left: float
    right: float
    top: float
    bottom: float
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    points: list[Point]
    without: list[str]


def scatter(values: Sequence[tuple[str, Estimate, Estimate]]) -> Scatter:
    """Draw (agent, TSR, VR). The axis of TSR begins where its values do, in steps of ten; that of VR at 0."""
    width, height = 560, 380
    left, right, top, bottom = 56.0, width - 24.0, 18.0, height - 52.0
    drawn = [
        (at, name, tsr.value, vr) for at, (name, tsr, vr) in enumerate(values) if None not in (tsr.value, vr.value)
    ]
    lowest = min((tsr for _, _, tsr, _ in drawn if tsr is not None), default=0.0)
    start = max(0, min(int(lowest // 10) * 10 - 10, 80))

    def x(value: float) -> float:
        return round(left + 14 + (right - left - 28) * (value - start) / (100 - start), 2)

    def y(value: float) -> float:
        return round(bottom - (bottom - top) * min(max(value, 0.0), 100.0) / 100, 2)

    taken: list[Box] = [
        (x(t or 0) - 7, y(v.value or 0) - 7, x(t or 0) + 7, y(v.value or 0) + 7) for _, _, t, v in drawn
    ]
    points = []
    for at, name, tsr, vr in drawn:
        assert tsr is not None
        assert vr.value is not None
        text = shortened(name, 170)
        place = beside(x(tsr), y(vr.value), text, taken, (left, top - 6, right, bottom))
        low, high = (None if end is None else y(end) for end in (vr.low, vr.high))
        told = f"{name}: TSR {number(tsr)}, VR {number(vr.value)}"
        points.append(Point(at, x(tsr), y(vr.value), low, high, place, text, told))
    step = 5 if start >= 70 else 10 if start >= 40 else 20
    x_ticks = [(x(value), str(value)) for value in range(-(-start // step) * step, 101, step)]
    y_ticks = [(y(value), str(value)) for value in (0, 20, 40, 60, 80, 100)]
    known = {at for at, *_ in drawn}
    without = [name for at, (name, _, _) in enumerate(values) if at not in known]
    return Scatter(width, height, left, right, top, bottom, x_ticks, y_ticks, points, without)
