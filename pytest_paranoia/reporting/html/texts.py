"""Long texts for the page: whole where there is room, else beginning, end and every quoted place, the gaps counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Pieces = list[str | int]
"""Stretches of a text in order; a number is how many characters are left out there."""

_FLOOR = 160
_CONTEXT = 200


@dataclass
class Room:
    """How many characters a trial may still take. Nothing is left out entirely: a little of each text stays."""

    left: int

    def take(self, text: str, share: int, quotes: Iterable[str] = ()) -> Pieces:
        """Return *text* in pieces, about *share* characters of it or what is left, with *quotes* whole."""
        pieces = clipped(text, max(min(share, self.left), _FLOOR), quotes)
        self.left -= sum(len(piece) for piece in pieces if isinstance(piece, str))
        return pieces


def clipped(text: str, limit: int, quotes: Iterable[str] = ()) -> Pieces:
    """Return *text* in pieces: two thirds of *limit* from its beginning, one third from its end, and *quotes*."""
    if len(text) <= limit:
        return [text] if text else []
    head = limit * 2 // 3
    spans = [(0, head), (len(text) - (limit - head), len(text))]
    for quote in quotes:
        at = text.find(quote)
        if at >= 0:
            spans.append((max(at - _CONTEXT, 0), min(at + len(quote) + _CONTEXT, len(text))))
    pieces: Pieces = []
    end = 0
    for start, stop in _merged(spans):
        if start > end:
            pieces.append(start - end)
        pieces.append(text[start:stop])
        end = stop
    return pieces


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged
