"""LaTeX of a table: booktabs rules, one file to ``\\input``; a long one breaks over pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from pytest_paranoia.reporting.tables.model import Column, Table
from pytest_paranoia.reporting.text import one_line

_LONG: Final = 40
_PARAGRAPH: Final = 60
_SIZES: Final = ((100, ""), (120, r"\footnotesize"), (150, r"\scriptsize"))
_SPECIAL: Final = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",  # \textquotedbl is unknown to the default encoding
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}
# What T1 has: the first two blocks of Latin letters without a few.
_LETTERS: Final = re.compile("[\u00c0-\u0125\u0128-\u0137\u0139-\u013e\u0141-\u0148\u014a-\u0165\u0168-\u017e]")
_NUMBER: Final = re.compile(r"-(?=\d)")


def latex(table: Table) -> str:
    """Return *table* as LaTeX; needs the packages booktabs and longtable, and an engine that reads UTF-8."""
    rows = table.rows()
    kind = "longtable" if len(rows) > _LONG else "tabular"
    widths = [
        max(len(text) for text in column) for column in zip(*([c.heading for c in table.columns], *rows), strict=True)
    ]
    align = "".join(_alignment(column, width) for column, width in zip(table.columns, widths, strict=True))
    size = _size(sum(min(width, _PARAGRAPH) + 2 for width in widths))
    lines = [
        f"% {one_line(table.name)}: {one_line(table.title)}. Source: {one_line(table.source)}.",
        r"% \usepackage[T1]{fontenc} \usepackage{booktabs,longtable,textcomp}",
        *([rf"\begingroup{size}\setlength{{\tabcolsep}}{{3pt}}"] if size else []),
        rf"\begin{{{kind}}}{{{align}}}",
        r"\toprule",
        *_heads(table),
        r"\midrule",
        *([r"\endhead"] if kind == "longtable" else []),
        *(f"{' & '.join(map(_cell, row))} \\\\" for row in rows),
        r"\bottomrule",
        *_notes(table),
        rf"\end{{{kind}}}",
        *([r"\endgroup"] if size else []),
    ]
    return "\n".join(lines) + "\n"


def _alignment(column: Column, width: int) -> str:
    if column.style != "text":
        return "r"
    return "l" if width <= _PARAGRAPH else r"p{0.6\linewidth}"


def _size(width: int) -> str:
    """The size at which a table of about *width* characters fits a page set sideways; "" for the page's own."""
    return next((size for most, size in _SIZES if width <= most), r"\tiny")


def _notes(table: Table) -> Iterator[str]:
    """What only looks certain, below the rule and no wider than the text."""
    for note in table.notes():
        text = rf"\footnotesize {_cell(note)}"
        yield rf"\multicolumn{{{len(table.columns)}}}{{p{{0.9\linewidth}}}}{{{text}}} \\"


def escaped(text: str) -> str:
    """Return *text* as one line in which nothing is a command.

    Letters that pdfLaTeX has no font for, and that would end its run, it gets as their code; other engines the letter.
    """
    return "".join(_SPECIAL.get(char) or _known(char) for char in one_line(text, "utf-8"))


def _known(char: str) -> str:
    if char.isascii() or char == "\N{MINUS SIGN}" or _LETTERS.fullmatch(char):
        return char
    code = char.encode("unicode_escape").decode("ascii").replace("\\", r"\textbackslash{}")
    return rf"{{\ifdefined\Uchar {char}\else {code}\fi}}"


def _cell(text: str) -> str:
    # After "\\" a "[" is an optional argument, and a hyphen before a digit is a minus.
    shown = _NUMBER.sub("\N{MINUS SIGN}", text) if text[:1] in "-0123456789" else text
    return escaped(shown).replace("\N{MINUS SIGN}", "$-$").replace("[", "{[}").replace("]", "{]}")


def _heads(table: Table) -> Iterator[str]:
    if any(column.group for column in table.columns):
        cells: list[str] = []
        rules: list[str] = []
        place = 1
        for group, members in groupby(table.columns, key=lambda column: column.group):
            span = len(list(members))
            cells.append(rf"\multicolumn{{{span}}}{{c}}{{{escaped(group)}}}" if group else " & " * (span - 1))
            if group:
                rules.append(rf"\cmidrule(lr){{{place}-{place + span - 1}}}")
            place += span
        yield f"{' & '.join(cells)} \\\\"
        yield " ".join(rules)
    yield f"{' & '.join(_cell(column.heading) for column in table.columns)} \\\\"
