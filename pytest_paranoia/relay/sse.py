"""Server-sent events out of a stream of bytes, however it is cut into chunks."""

from __future__ import annotations

import re

_LINE_END = rb"(?:\r\n|\n|\r(?!\n))"
_BOUNDARY = re.compile(_LINE_END + _LINE_END)
_LINES = re.compile(rb"\r\n|\n|\r")
_LOOK_BACK = 3
"""A boundary has up to four bytes: the last three of what was searched may begin one."""


class Splitter:
    """Splits a stream into events; put together again, the pieces are the stream, byte by byte."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes and return the events that are whole now, with the empty line that ends each."""
        self._buffer += data
        events: list[bytes] = []
        start = 0
        position = self._searched
        while found := _BOUNDARY.search(self._buffer, position):
            end = found.end()
            if end == len(self._buffer) and self._buffer.endswith(b"\r"):
                break  # a line feed that follows belongs to it
            events.append(bytes(self._buffer[start:end]))
            start = position = end
        del self._buffer[:start]
        self._searched = max(0, len(self._buffer) - _LOOK_BACK)
        return events

    def rest(self) -> bytes:
        """Return what has come since the last whole event; the stream has ended."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        return rest


def data_of(event: bytes) -> bytes:
    """Return an event's data, its lines joined; empty where it has none (a comment, a ping)."""
    lines = []
    for line in _LINES.split(event.removeprefix(b"\xef\xbb\xbf")):
        name, _, value = line.partition(b":")
        if name == b"data":
            lines.append(value.removeprefix(b" "))
    return b"\n".join(lines)
