"""LaTeX of a table: booktabs rules, one file to ``\\input``; a long one breaks over pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from pytest_paranoia.reporting.tables.model import Table
from pytest_paranoia.reporting.text import one_line

_LONG: Final = 40
_SPECIAL: Final = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}
_NUMBER: Final = re.compile(r"-(?=\d)")


def latex(table: Table) -> str:
    """Return *table* as LaTeX; needs the packages booktabs and longtable, and an engine that reads UTF-8."""
    rows = table.rows()
    kind = "longtable" if len(rows) > _LONG else "tabular"
    align = "".join("l" if column.style == "text" else "r" for column in table.columns)
    lines = [
        f"% {one_line(table.name)}: {one_line(table.title)}. Source: {one_line(table.source)}.",
        r"% \usepackage{booktabs,longtable,textcomp}",
        rf"\begin{{{kind}}}{{{align}}}",
        r"\toprule",
        *_heads(table),
        r"\midrule",
        *([r"\endhead"] if kind == "longtable" else []),
        *(f"{' & '.join(map(_cell, row))} \\\\" for row in rows),
        r"\bottomrule",
        rf"\end{{{kind}}}",
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Return *text* as one line in which nothing is a command."""
    return "".join(_SPECIAL.get(char, char) for char in one_line(text, "utf-8"))


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
