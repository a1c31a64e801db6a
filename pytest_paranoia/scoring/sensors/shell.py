"""Split a shell command into its simple commands, without running it and without ever losing one.

This is no shell: it knows quotes, substitutions, comments, heredocs, loops and operators well enough to say which
programs a command names. Where the text is no valid shell, an unclosed quote is taken as an ordinary character, so
that what follows is still seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pytest_paranoia.scoring.sensors.texts import COMMAND, PROGRAMS

_SPECIAL = re.compile(r"""[\\'"`$();|&\n#<]""")
_HEREDOC = re.compile(r"""<<(-?)[ \t]*(?:'([^'\n]+)'|"([^"\n]+)"|\\?([\w.-]+))""")
_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """One simple command: ``text`` is a verbatim slice of what was split, ``before`` the operator in front of it."""

    text: str
    before: str
    heredoc: str = ""
    inner: bool = False
    """True for the contents of a command substitution, which the text of another piece holds too."""


def _close_double(text: str, at: int) -> int:
    """Return the index after the quote that closes the double quote opened before *at*, or -1."""
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
        elif char == '"':
            return at + 1
        elif char == "$" and text.startswith("(", at + 1):
            close = _close_paren(text, at + 2)
            at = close if close > 0 else at + 2
        else:
            at += 1
    return -1


_PAREN = re.compile(r"""[\\'"()]""")


def _close_paren(text: str, at: int, depth: int = 0) -> int:
    """Return the index after the parenthesis that closes the one opened before *at*, or -1."""
    if depth > _DEPTH * 4:
        return -1
    while match := _PAREN.search(text, at):
        at, char = match.start(), match.group()
        if char == "\\":
            at += 2
        elif char == "'":
            close = text.find("'", at + 1)
            at = close + 1 if close > 0 else at + 1
        elif char == '"':
            close = text.find('"', at + 1)
            at = close + 1 if close > 0 else at + 1
        elif char == "(":
            close = _close_paren(text, at + 1, depth + 1)
            if close < 0:
                return -1
            at = close
        else:
            return at + 1
    return -1


class _Splitter:
    def __init__(self, text: str, depth: int) -> None:
        self.text, self.depth = text, depth
        self.pieces: list[Piece] = []
        self.begin = 0
        self.before = ""
        self.inner: list[str] = []
        self.pending: list[tuple[str, bool, int]] = []
        """Heredocs whose body starts on the next line: delimiter, tabs stripped, index of the piece they feed."""

    def end_piece(self, end: int, operator: str, next_begin: int) -> None:
        raw = self.text[self.begin : end]
        if raw.strip():
            self.pieces.append(Piece(raw.strip(), self.before))
        for source in self.inner:
            self.pieces.extend(
                Piece(piece.text, piece.before, piece.heredoc, True) for piece in _split(source, self.depth + 1)
            )
        self.inner = []
        self.begin, self.before = next_begin, operator

    def bodies(self, at: int) -> int:
        """Take the bodies of pending heredocs that start at *at*; return where the script goes on."""
        for delimiter, tabs, index in self.pending:
            end, after = len(self.text), len(self.text)
            line = at
            while line < len(self.text):
                stop = self.text.find("\n", line)
                stop = len(self.text) if stop < 0 else stop
                candidate = self.text[line:stop]
                if (candidate.lstrip("\t") if tabs else candidate) == delimiter:
                    end, after = line, min(stop + 1, len(self.text))
                    break
                line = stop + 1
            if index < len(self.pieces):
                old = self.pieces[index]
                self.pieces[index] = Piece(old.text, old.before, old.heredoc + self.text[at:end], old.inner)
            at = after
        self.pending = []
        return at

    def run(self) -> list[Piece]:
        text, at = self.text, 0
        while match := _SPECIAL.search(text, at):
            at, char = match.start(), match.group()
            if char == "\\":
                at += 2
            elif char == "'":
                close = text.find("'", at + 1)
                at = close + 1 if close > 0 else at + 1
            elif char == '"':
                at = self.double(at)
            elif char == "`":
                close = text.find("`", at + 1)
                if close > 0:
                    self.inner.append(text[at + 1 : close])
                at = close + 1 if close > 0 else at + 1
            elif char == "$":
                at = self.dollar(at)
            elif char == "#":
                at = self.comment(at)
            elif char == "<":
                at = self.less(at)
            else:
                at = self.operator(at, char)
        self.end_piece(len(text), "", len(text))
        return self.pieces

    def double(self, at: int) -> int:
        close = _close_double(self.text, at + 1)
        if close < 0:
            return at + 1
        for match in re.finditer(r"\$\((?!\()", self.text[at:close]):
            opened = at + match.end()
            if (end := _close_paren(self.text, opened)) > 0 and end <= close:
                self.inner.append(self.text[opened : end - 1])
        return close

    def dollar(self, at: int) -> int:
        if self.text.startswith("$(", at):
            close = _close_paren(self.text, at + 2)
            if close > 0:
                if not self.text.startswith("((", at + 1):
                    self.inner.append(self.text[at + 2 : close - 1])
                return close
        return at + 1

    def comment(self, at: int) -> int:
        if at > self.begin and not self.text[at - 1].isspace():
            return at + 1
        line = self.text.find("\n", at)
        line = len(self.text) if line < 0 else line
        if at > self.begin:
            # Words stand before the comment: they end here, and the operator is that of the line end.
            self.end_piece(at, self.before if not self.text[self.begin : at].strip() else ";", line)
        else:
            self.begin = line
        return line

    def less(self, at: int) -> int:
        if self.text.startswith("<<<", at):
            return at + 3
        if heredoc := _HEREDOC.match(self.text, at):
            delimiter = heredoc.group(2) or heredoc.group(3) or heredoc.group(4)
            self.pending.append((delimiter, bool(heredoc.group(1)), len(self.pieces)))
            return heredoc.end()
        if self.text.startswith("<(", at) and (close := _close_paren(self.text, at + 2)) > 0:
            self.inner.append(self.text[at + 2 : close - 1])
            return close
        return at + 1

    def operator(self, at: int, char: str) -> int:
        text = self.text
        if char == "&" and (text[at - 1 : at] in ("<", ">") or text[at + 1 : at + 2] == ">"):
            return at + 1  # a redirection: 2>&1, &>log
        if char == "|" and text[at - 1 : at] == ">":
            return at + 1  # >| overwrites
        if char == "(" and text[at - 1 : at] == "=" and (close := _close_paren(text, at + 1)) > 0:
            return close  # an array
        two = text[at : at + 2]
        operator = two if two in ("&&", "||", "|&", ";;") else char
        after = at + len(operator)
        self.end_piece(at, operator, after)
        if char == "\n" and self.pending:
            after = self.begin = self.bodies(after)
        return after


def _split(text: str, depth: int = 0) -> list[Piece]:
    if depth > _DEPTH:
        return [Piece(text.strip(), "")] if text.strip() else []
    return _Splitter(text, depth).run()


@lru_cache(maxsize=2048)
def split(command: str) -> tuple[Piece, ...]:
    """Return the simple commands of *command* in order, those of substitutions after the command that holds them.

    At most ``texts.COMMAND`` characters and ``texts.PROGRAMS`` simple commands are read.
    """
    return tuple(_split(command[:COMMAND])[:PROGRAMS])


_TOKEN = re.compile(
    r"""(?P<redirect>\d*(?:&>>?|>>|>\||>&|<<<|<<-?|<&|<>|>|<))"""
    r"""|(?P<word>(?:[^\s'"\\<>$`]+|\\.|'[^']*'|"(?:[^"\\]|\\.)*"|\$\([^()]*(?:\([^()]*\)[^()]*)*\)|`[^`]*`|['"\\$`])+)""",
    re.DOTALL,
)
_QUOTED = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""", re.DOTALL)
_ESCAPED = re.compile(r'\\([\\"$`])')


def _unquote(match: re.Match[str]) -> str:
    single, double, escaped = match.groups()
    if single is not None:
        return str(single)
    if double is not None:
        return _ESCAPED.sub(r"\1", double.replace("\\\n", ""))
    return "" if escaped == "\n" else str(escaped)


def words(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the words of one simple command, unquoted, and its redirections as (operator, target)."""
    found: list[str] = []
    redirects: list[tuple[str, str]] = []
    operator: str | None = None
    for match in _TOKEN.finditer(text):
        if redirect := match.group("redirect"):
            operator = redirect.lstrip("0123456789")
            continue
        raw = match.group("word")
        word = raw if raw.isalnum() else _QUOTED.sub(_unquote, raw)
        if operator is not None:
            redirects.append((operator, word))
            operator = None
        elif word or raw in ("''", '""'):
            found.append(word)
    return found, redirects
