"""Text that is safe to print: what an agent wrote must not move a cursor, break a table or crash an ASCII terminal."""

from __future__ import annotations

import re
from textwrap import wrap
from typing import Final

# Tab, newline and the ranges of XML 1.0; everything beyond U+FFFF is legal too.
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def one_line(text: str, encoding: str = "ascii", *, indent: bool = False) -> str:
    """Return *text* as one printable line in *encoding*: white space collapsed, all else backslash-escaped.

    With *indent* the leading spaces stay.
    """
    flat = " ".join(text.split())
    if indent:
        flat = " " * (len(text) - len(text.lstrip(" "))) + flat
    visible = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in flat)
    return visible.encode(encoding, "backslashreplace").decode(encoding)


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
