"""What the variants of a pair differ in, laid out for two columns; once for each content of an item."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pytest_paranoia.reporting.html.safe import dumped
from pytest_paranoia.reporting.html.texts import clipped
from pytest_paranoia.schema.record import Record
from pytest_paranoia.schema.variants import DifferingFile, FileSide, PairVariants
from pytest_paranoia.store.directory import RunDirectory
from pytest_paranoia.store.files import StoreError

Line = list[str | None] | int
"""A line as [text in E+, text in E-], None where that variant has none; a number is how many equal ones are omitted."""
NO_NEWLINE: Final = "(no newline at the end of the file)"
_INSTRUCTION: Final = 20_000
_LINES: Final = 400
_LONGEST: Final = 2_000
_CONTEXT: Final = 3
_CAREFUL: Final = 1_000
"""Lines up to which the comparison is exact; beyond that the shortcut of difflib keeps it quick."""


def evidences(run: RunDirectory, records: Sequence[Record]) -> tuple[list[str], list[int]]:
    """Return the evidence of every pair as JSON texts, and for each record which one is its own (-1: none)."""
    texts: list[str] = []
    places: dict[tuple[str, str], int] = {}
    found: list[int] = []
    for record in records:
        key = (record.item, record.item_hash)
        if record.kind == "pair" and key not in places:
            if (shown := _evidence(run, *key)) is None:
                places[key] = -1
            else:
                places[key] = len(texts)
                texts.append(dumped(shown))
        found.append(places[key] if record.kind == "pair" else -1)
    return texts, found


def _evidence(run: RunDirectory, item: str, item_hash: str) -> dict[str, Any] | None:
    try:
        variants = run.variants(item, item_hash)
    except StoreError as error:
        return {"problem": str(error)}
    return None if variants is None else shown(variants)


def shown(variants: PairVariants) -> dict[str, Any]:
    """Return *variants* as the page's script reads it."""
    return {
        "carrier": variants.carrier,
        "instructions": [clipped(text, _INSTRUCTION) for text in (variants.plus, variants.minus)],
        "files": [_file(one) for one in variants.files],
    }


def _file(file: DifferingFile) -> dict[str, Any]:
    sides = (file.plus, file.minus)
    found: dict[str, Any] = {"path": file.path, "there": [side is not None for side in sides]}
    if any(side is not None and side.text is None for side in sides):
        sizes = [None if side is None else side.size for side in sides]
        return found | {"sizes": sizes, "lines": []}
    lines = list(_lines(*map(_split, sides)))
    return found | {"lines": lines[:_LINES], "more": max(len(lines) - _LINES, 0)}


def _split(side: FileSide | None) -> list[str]:
    if side is None or not side.text:
        return []
    lines = side.text.split("\n")
    return lines[:-1] if not lines[-1] else [*lines, NO_NEWLINE]


def _lines(plus: list[str], minus: list[str]) -> Iterator[Line]:
    matcher = difflib.SequenceMatcher(None, plus, minus, autojunk=max(len(plus), len(minus)) > _CAREFUL)
    end = 0
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        if (gap := group[0][1] - end) > 0:
            yield gap
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                for text in plus[i1:i2]:
                    yield [text[:_LONGEST], text[:_LONGEST]]
                continue
            left, right = plus[i1:i2], minus[j1:j2]
            for at in range(max(len(left), len(right))):
                yield [side[at][:_LONGEST] if at < len(side) else None for side in (left, right)]
        end = group[-1][2]
    if len(plus) > end > 0:
        yield len(plus) - end
