"""The blocks of a Python file that changed: top-level statements, or single members of a long class."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from pytest_paranoia.scoring.sensors.diffs import Hunk, LineDiff

# A line that begins a statement. A line inside a multi-line string may look like one: see _in_string.
_BEGINS = re.compile(
    r"(?:async def|def|class|import|from|if|for|while|with|try)\b|@"
    r"|(?!(?:else|elif|except|finally)\b)[A-Za-z_][\w.]*\s*[=:\[(]"
)
_SHORT = 120
"""Lines of a file, or of a block, that are not worth dividing."""
_MEMBER = "    "


@dataclass(frozen=True, slots=True)
class Block:
    """Lines ``[start_low, start_high)`` that became ``[final_low, final_high)``, cut where statements begin."""

    start_low: int
    start_high: int
    final_low: int
    final_high: int
    hunks: tuple[Hunk, ...]
    inside_class: bool = False

    @property
    def longest(self) -> int:
        """Lines of the longer side."""
        return max(self.start_high - self.start_low, self.final_high - self.final_low)


def _borders(lines: list[str], low: int, high: int, indent: str, odd: list[bool]) -> tuple[int, int] | None:
    """Return the first and the last line in ``(low, high)`` at which a statement begins, None where there is none.

    The line before a border must belong to the same stretch, as a decorator there would make it none.
    """
    found = [
        at
        for at in range(low + 1, high)
        if lines[at].startswith(indent)
        and _BEGINS.match(lines[at], len(indent))
        and not lines[at - 1].startswith(indent + "@")
        and not odd[at]
    ]
    return (found[0], found[-1]) if found else None


def _in_string(lines: list[str]) -> list[bool]:
    """Return for every line whether it may begin inside a multi-line string: after an odd number of its quotes."""
    odd, double, single = [], 0, 0
    for line in lines:
        odd.append(bool((double | single) & 1))
        double += line.count('"""')
        single += line.count("'''")
    return odd


def _divide(lines: list[str], whole: Block, indent: str, odd: list[bool]) -> Iterator[Block]:
    """Cut *whole* between its hunks, at statements of the given depth.

    Lines between two hunks are the same in both files, so a border there is one in both; the distance between the
    files' line numbers is constant in such a stretch.
    """
    hunks = whole.hunks
    first = _borders(lines, whole.final_low, hunks[0].final_from, indent, odd)
    low = (whole.start_low, whole.final_low)
    if first is not None:
        low = (first[1] - hunks[0].final_from + hunks[0].start_from, first[1])
    taken = [hunks[0]]
    for previous, following in pairwise(hunks):
        border = _borders(lines, previous.final_to, following.final_from, indent, odd)
        if border is not None:
            shift = following.start_from - following.final_from
            yield replace(
                whole,
                start_low=low[0],
                final_low=low[1],
                start_high=border[0] + shift,
                final_high=border[0],
                hunks=tuple(taken),
            )
            low, taken = (border[1] + shift, border[1]), []
        taken.append(following)
    end = (whole.start_high, whole.final_high)
    last = _borders(lines, hunks[-1].final_to, whole.final_high, indent, odd)
    if last is not None:
        end = (last[0] - hunks[-1].final_to + hunks[-1].start_to, last[0])
    yield Block(low[0], end[0], low[1], end[1], tuple(taken), whole.inside_class)


def _body(lines: list[str], block: Block) -> Block | None:
    """Return the body of the one class that *block* is, None where it is none or its head changed."""
    heads = [at for at in range(block.final_low, block.final_high) if lines[at][:1] not in ("", " ", "#", ")", "@")]
    first = block.hunks[0]
    if len(heads) != 1 or not lines[heads[0]].startswith("class ") or heads[0] + 1 >= first.final_from:
        return None
    below = heads[0] + 1
    return replace(block, start_low=below - first.final_from + first.start_from, final_low=below, inside_class=True)


def changed_blocks(diff: LineDiff) -> list[Block]:
    """Return the changed blocks of a Python file, in order; the whole file where it is short or cannot be divided."""
    if not diff.hunks:
        return []
    whole = Block(0, len(diff.start), 0, len(diff.final), tuple(diff.hunks))
    if whole.longest <= _SHORT:
        return [whole]
    odd = _in_string(diff.final)
    # An odd quote at the end means that the count cannot be trusted (a quote in a comment, say).
    if odd and sum(line.count('"""') for line in diff.final) % 2:
        return [whole]
    blocks: list[Block] = []
    for block in _divide(diff.final, whole, "", odd):
        body = _body(diff.final, block) if block.longest > _SHORT else None
        blocks.extend(_divide(diff.final, body, _MEMBER, odd) if body is not None else [block])
    return blocks
