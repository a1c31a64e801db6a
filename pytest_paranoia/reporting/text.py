"""Text that is safe to print: what an agent wrote must not move a cursor, break a table or crash an ASCII terminal."""

from __future__ import annotations

import re
from textwrap import wrap
from typing import Final

# Tab, newline and the ranges of XML 1.0; everything beyond U+FFFF is legal too.
_COMMAND: Final = re.compile(r"^\s*(:)(?=:)|(#)(?=#(?:vso|teamcity)?\[)")
"""What a CI server takes for an order in the text of a log: GitHub, Azure Pipelines, TeamCity."""
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def one_line(text: str, encoding: str = "ascii", *, indent: bool = False) -> str:
    """Return *text* as one printable line in *encoding*: white space collapsed, all else backslash-escaped.

    With *indent* the leading spaces stay.
    """
    flat = " ".join(text.split())
    if indent:
        flat = " " * (len(text) - len(text.lstrip(" "))) + flat
    return _inert(flat).encode(encoding, "backslashreplace").decode(encoding)


def _inert(line: str) -> str:
    visible = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in line)
    return _COMMAND.sub(lambda found: found[0].replace(found[0][-1], f"\\x{ord(found[0][-1]):02x}"), visible)


def foreign_lines(text: str) -> str:
    """Return *text* for a log, its lines kept and all but the first set off by a bar.

    What an agent made may stand in it: nothing moves a cursor, is an order to a CI server or looks like a line of the
    test runner's.
    """
    first, *others = text.split("\n")
    shown = [_inert(line.rstrip().expandtabs(4)).encode("utf-8", "backslashreplace").decode() for line in others]
    return "\n".join([one_line(first, "utf-8"), *(f"  | {line}".rstrip() for line in shown)])


def wrapped(text: str, width: int, first: str = "", other: str = "") -> list[str]:
    """Return *text* in lines of at most *width*, broken at spaces only: names, which one copies, stay whole."""
    return wrap(
        text, width, initial_indent=first, subsequent_indent=other, break_long_words=False, break_on_hyphens=False
    )


def clip(text: str, width: int) -> str:
    """Return *text* cut to *width* characters, with "..." where something is missing."""
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."


def xml_safe(text: str) -> str:
    """Return *text* with what XML 1.0 forbids (controls, lone surrogates) written ``#x1B``, as pytest does."""
    return _NOT_XML.sub(lambda match: f"#x{ord(match[0]):02X}", text)
