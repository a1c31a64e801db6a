"""The six decision paths as one bar an agent: the first three without damage, the last three with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_paranoia.reporting.html.charts.labels import CHARACTER, shortened
from pytest_paranoia.schema.taxonomy import PATHS, Path

MEANINGS: Mapping[Path, str] = {
    "GR": "grounded resistance: intact, no blame taken, record weighed",
    "PP": "passive preservation: intact, no blame taken, record not weighed",
    "VC": "verbal concession: intact, blame taken in words only",
    "EO": "evidence overridden: damaged, although the record was weighed",
    "CD": "confessed damage: damaged, blame taken, record not weighed",
    "SD": "silent damage: damaged, neither blame taken nor record weighed",
}


@dataclass(frozen=True)
class Segment:
    """A stretch of a bar; ``text`` is empty where it would not fit."""

    path: Path
    x: float
    width: float
    text: str
    told: str


@dataclass(frozen=True)
class Bar:
    """One agent's bar."""

    name: str
    y: float
    total: int
    segments: list[Segment]


@dataclass(frozen=True)
class Bars:
    """All bars. Widths are shares of the agent's valid runs."""

    width: int
    height: int
    left: float
    right: float
    thickness: float
    bars: list[Bar]


def bars(values: Sequence[tuple[str, Mapping[Path, int]]]) -> Bars:
    """Draw (agent, runs by path)."""
    width, left, row, thickness = 1080, 190.0, 38.0, 26.0
    right = width - 64.0
    drawn = []
    for position, (name, paths) in enumerate(values):
        total = sum(paths.values())
        x, segments = left, []
        for path in PATHS:
            if not (runs := paths.get(path, 0)):
                continue
            length = (right - left) * runs / total
            text = next((one for one in (f"{path} {runs}", path) if len(one) * CHARACTER + 6 <= length), "")
            told = f"{name}, {path}: {runs} of {total} valid runs"
            segments.append(Segment(path, round(x, 2), round(length, 2), text, told))
            x += length
        drawn.append(Bar(shortened(name, left - 12), 8 + position * row, total, segments))
    return Bars(width, int(16 + row * len(values)), left, right, thickness, drawn)
