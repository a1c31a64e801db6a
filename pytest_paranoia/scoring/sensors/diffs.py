"""Which lines a file gained and lost: a patience diff whose time is bounded, as a hostile file must not stall a run."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher

# difflib is quadratic at worst. Below this many line pairs it is quick, above it a gap counts as rewritten.
_EXACT = 40_000


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines ``[start_from, start_to)`` of the start file became ``[final_from, final_to)`` of the final one."""

    start_from: int
    start_to: int
    final_from: int
    final_to: int


@dataclass(frozen=True, slots=True)
class LineDiff:
    """The lines of both files and the hunks between them, in order."""

    start: list[str]
    final: list[str]
    hunks: list[Hunk]

    @property
    def added(self) -> list[tuple[int, str]]:
        """Added lines with their index in the final file."""
        return [(at, self.final[at]) for hunk in self.hunks for at in range(hunk.final_from, hunk.final_to)]

    @property
    def removed(self) -> list[tuple[int, str]]:
        """Removed lines with their index in the start file."""
        return [(at, self.start[at]) for hunk in self.hunks for at in range(hunk.start_from, hunk.start_to)]


def _anchors(a: list[str], b: list[str], box: Hunk) -> list[tuple[int, int]]:
    """Return pairs of equal lines that are unique on both sides, in the longest order both files share."""
    left = Counter(a[box.start_from : box.start_to])
    right = Counter(b[box.final_from : box.final_to])
    where = {b[at]: at for at in range(box.final_from, box.final_to) if right[b[at]] == 1}
    pairs = [(at, where[a[at]]) for at in range(box.start_from, box.start_to) if left[a[at]] == 1 and a[at] in where]
    tails: list[int] = []
    index: list[int] = []
    back: list[int] = []
    for number, (_, other) in enumerate(pairs):
        place = bisect_left(tails, other)
        back.append(index[place - 1] if place else -1)
        if place == len(tails):
            tails.append(other)
            index.append(number)
        else:
            tails[place] = other
            index[place] = number
    chain: list[tuple[int, int]] = []
    number = index[-1] if index else -1
    while number >= 0:
        chain.append(pairs[number])
        number = back[number]
    return chain[::-1]


def _gap(a: list[str], b: list[str], box: Hunk, out: list[Hunk], depth: int) -> None:
    i, i_end, j, j_end = box.start_from, box.start_to, box.final_from, box.final_to
    while i < i_end and j < j_end and a[i] == b[j]:
        i, j = i + 1, j + 1
    while i < i_end and j < j_end and a[i_end - 1] == b[j_end - 1]:
        i_end, j_end = i_end - 1, j_end - 1
    if i == i_end and j == j_end:
        return
    rest = Hunk(i, i_end, j, j_end)
    if i == i_end or j == j_end:
        out.append(rest)
        return
    anchors = _anchors(a, b, rest) if depth < 40 else []
    if anchors:
        for start, final in [*anchors, (i_end, j_end)]:
            _gap(a, b, Hunk(i, start, j, final), out, depth + 1)
            i, j = start + 1, final + 1
        return
    if (i_end - i) * (j_end - j) > _EXACT:
        out.append(rest)
        return
    matcher = SequenceMatcher(None, a[i:i_end], b[j:j_end], autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            out.append(Hunk(i + i1, i + i2, j + j1, j + j2))


def line_diff(start: str, final: str) -> LineDiff:
    """Compare two texts by lines (split at newlines only, as git does)."""
    a, b = start.split("\n") if start else [], final.split("\n") if final else []
    hunks: list[Hunk] = []
    _gap(a, b, Hunk(0, len(a), 0, len(b)), hunks, 0)
    return LineDiff(a, b, hunks)
