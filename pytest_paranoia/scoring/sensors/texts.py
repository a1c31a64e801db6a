"""Bounds and quotes: how much of a hostile text is matched, and how a match becomes a verbatim quote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

# Python's regular expressions backtrack: `a.*b` on one line costs the square of its length. Texts are therefore matched
# in chunks of a bounded size, which overlap so that a short match across a border is still found.
CHUNK = 6_000
OVERLAP = 600
MATCHED = 120_000
"""Characters of one text that are matched at most (its head and its tail)."""
COMMAND = 20_000
"""Characters of one command that are parsed at most."""
PROGRAMS = 500
"""Programs of one command that are looked at at most."""
LINE = 2_000
"""Characters of one line of a diff that are matched at most."""
LINES = 20_000
"""Added or removed lines of one file that are matched at most."""
FILE = 2_000_000
"""Characters of one file that are compared at most."""
QUOTE = 300
"""Characters of a quote at most; a longer match is quoted by its head."""

# A lone surrogate cannot be written as UTF-8, so it cannot be part of a record.
_CLEAN = re.compile("[^\ud800-\udfff]+")


@lru_cache(maxsize=1024)
def pattern(source: str) -> re.Pattern[str]:
    """Compile a card's pattern the way docs/writing-pairs.md promises: multi-line, case-sensitive."""
    return re.compile(source, re.MULTILINE)


@lru_cache(maxsize=1024)
def phrase(source: str) -> re.Pattern[str]:
    """Compile a pattern over prose: multi-line and without regard to case, since a sentence may begin with it."""
    return re.compile(source, re.MULTILINE | re.IGNORECASE)


def word_set(text: str) -> frozenset[str]:
    """Return the words of *text*; long sets of program names read better as prose than as a column of literals."""
    return frozenset(text.split())


def chunks(text: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, slice) pieces that cover *text*, or its head and tail where it is longer than ``MATCHED``."""
    if len(text) <= CHUNK:
        yield 0, text
        return
    half = MATCHED // 2
    spans = [(0, len(text))] if len(text) <= MATCHED else [(0, half), (len(text) - half, len(text))]
    for begin, end in spans:
        at = begin
        while at < end:
            stop = min(at + CHUNK, end)
            if stop < end and (line := text.rfind("\n", at + OVERLAP * 2, stop)) > 0:
                stop = line + 1
            yield at, text[at:stop]
            if stop == end:
                break
            at = stop - OVERLAP
            # Begin on a line where there is one, so that `^` means the same in every chunk.
            if (line := text.find("\n", at, stop - 1)) >= 0:
                at = line + 1


def search(compiled: re.Pattern[str], text: str) -> tuple[int, int] | None:
    """Return the span of the first match in *text*, in bounded time; None where nothing matches."""
    for offset, piece in chunks(text):
        if match := compiled.search(piece):
            return offset + match.start(), offset + match.end()
    return None


def is_cut(text: str) -> bool:
    """Return whether *text* is longer than what is matched of it."""
    return len(text) > MATCHED


def quote(text: str, start: int = 0, end: int | None = None) -> str | None:
    """Return a verbatim, non-empty, storable slice of ``text[start:end]``, or None where there is none.

    A zero-width or blank span is widened to its line. Slices keep clear of lone surrogates.
    """
    end = len(text) if end is None else end
    piece = text[start:end]
    if not piece.strip():
        start = text.rfind("\n", 0, start) + 1
        line_end = text.find("\n", end)
        piece = text[start : line_end if line_end >= 0 else len(text)]
    runs = _CLEAN.findall(piece[: QUOTE * 4].strip())
    best = max(runs, key=len, default="").strip()[:QUOTE].strip()
    return best or None


def line_around(text: str, start: int, end: int) -> str | None:
    """Return the quote of the line (or lines) that hold ``text[start:end]``."""
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    if start - begin > QUOTE // 2:
        begin = start
    return quote(text, begin, stop)
