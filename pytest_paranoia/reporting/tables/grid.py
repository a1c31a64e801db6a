"""A table as aligned lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from pytest_paranoia.reporting.tables.model import Column, Table
from pytest_paranoia.reporting.text import clip, one_line, wrapped

_GAP: Final = "  "
_LONGEST_TEXT: Final = 28


def grid(table: Table, width: int = 80, encoding: str = "ascii") -> list[str]:
    """Return *table* in lines of at most *width*: columns that do not fit follow below, beside the first column again.

    A text longer than 28 columns is clipped, and everything is safe to print. The notes of the table follow it.
    """
    texts = [[clip(one_line(cell, encoding), _LONGEST_TEXT) for cell in row] for row in table.rows()]
    heads = [one_line(column.heading, encoding) for column in table.columns]
    widths = [max(map(len, (head, *(row[place] for row in texts)))) for place, head in enumerate(heads)]
    out: list[str] = []
    for block in _even(table.columns, widths, width):
        if out:
            out.append("")
        out += _head(table.columns, block, widths)
        for row in [heads, *texts]:
            cells = [_aligned(table.columns[place], row[place], widths[place]) for place in block]
            out.append(_GAP.join(cells).rstrip())
    for note in table.notes():
        out += wrapped(one_line(note, encoding), width, "  ", "     ")
    return out


def _even(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[list[int]]:
    """Return as few blocks as there must be. A column that would stand alone in the last gets some from before it."""
    found = list(_blocks(columns, widths, width))
    if len(found) == 1:
        return found
    before, last = found[-2:]
    names = len(set(before) & set(last))
    if len(last) > names + 1:
        return found
    used = sum(widths[place] + len(_GAP) for place in last) - len(_GAP)
    while len(before) > len(last) + 1 and (used := used + widths[before[-1]] + len(_GAP)) <= width:
        last.insert(names, before.pop())
    return found


def _blocks(columns: Sequence[Column], widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Spread the columns over blocks; leading text columns name the row and stand in each."""
    labels = next((place for place, column in enumerate(columns) if column.style != "text"), len(columns))
    names = list(range(labels)) or [0]
    if labels == len(columns):
        yield names
        return
    used = sum(widths[place] + len(_GAP) for place in names) - len(_GAP)
    block, room = list(names), used
    for place in range(len(names), len(columns)):
        need = widths[place] + len(_GAP)
        if room + need > width and len(block) > len(names):
            yield block
            block, room = list(names), used
        block.append(place)
        room += need
    yield block


def _head(columns: Sequence[Column], block: Sequence[int], widths: Sequence[int]) -> list[str]:
    if not any(columns[place].group for place in block):
        return []
    cells = []
    for group, members in groupby(block, key=lambda place: columns[place].group):
        span = sum(widths[place] + len(_GAP) for place in members) - len(_GAP)
        cells.append(f"{clip(group, span):^{span}}")
    return [_GAP.join(cells).rstrip()]


def _aligned(column: Column, text: str, width: int) -> str:
    return f"{text:<{width}}" if column.style == "text" else f"{text:>{width}}"
