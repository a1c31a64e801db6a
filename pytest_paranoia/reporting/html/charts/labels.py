"""Placing labels so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence

CHARACTER = 6.8
"""About the width of a character of a chart's label, in units of the chart."""
_LINE = 15.0


def spread(wanted: Sequence[float], low: float, high: float, gap: float = _LINE) -> list[float]:
    """Return positions near *wanted*, in its order, at least *gap* apart and between *low* and *high*.

    Where they are too many for that, the gap shrinks.
    """
    if not wanted:
        return []
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    gap = min(gap, (high - low) / max(len(wanted) - 1, 1))
    placed: list[float] = []
    for position, index in enumerate(order):
        floor = placed[-1] + gap if placed else low
        placed.append(min(max(wanted[index], floor), high - gap * (len(order) - 1 - position)))
    # A cluster hangs below its values by now; move it up as far as its neighbours allow.
    for position in range(len(order) - 2, -1, -1):
        placed[position] = min(placed[position], placed[position + 1] - gap)
    result = [0.0] * len(wanted)
    for index, place in zip(order, placed, strict=True):
        result[index] = place
    return result


def shortened(text: str, width: float) -> str:
    """Return *text* cut to *width* units of a chart."""
    room = max(int(width / CHARACTER), 4)
    return text if len(text) <= room else text[: room - 1] + "…"


Box = tuple[float, float, float, float]


def beside(x: float, y: float, text: str, taken: list[Box], bounds: Box) -> tuple[float, float, str]:
    """Return (x, y, anchor) of a label near a point where it covers none of *taken*, and add its box to them."""
    width = len(text) * CHARACTER
    best: tuple[float, tuple[float, float, str], Box] | None = None
    for dx, dy, anchor in _PLACES:
        left = x + dx - (width if anchor == "end" else width / 2 if anchor == "middle" else 0)
        box = (left, y + dy - 11, left + width, y + dy + 3)
        overlap = sum(_shared(box, other) for other in taken) + 50 * _outside(box, bounds)
        if best is None or overlap < best[0]:
            best = (overlap, (x + dx, y + dy, anchor), box)
    assert best is not None
    taken.append(best[2])
    return best[1]


_PLACES = (
    *((10.0, 4.0, "start"), (-10.0, 4.0, "end"), (0.0, -11.0, "middle"), (0.0, 20.0, "middle")),
    *((10.0, -12.0, "start"), (10.0, 20.0, "start"), (-10.0, -12.0, "end"), (-10.0, 20.0, "end")),
    *((10.0, 35.0, "start"), (-10.0, 35.0, "end"), (10.0, -28.0, "start"), (-10.0, -28.0, "end")),
)


def _shared(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return width * height if width > 0 and height > 0 else 0.0


def _outside(box: Box, bounds: Box) -> float:
    return sum(
        max(0.0, over) for over in (bounds[0] - box[0], bounds[1] - box[1], box[2] - bounds[2], box[3] - bounds[3])
    )
