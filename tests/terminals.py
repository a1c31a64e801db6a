"""A session in a pseudo-terminal, and what a person would see on its screen."""

from __future__ import annotations

import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path

_TOKEN = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[([0-9;?]*)([A-Za-z])|[\r\n\b]|[^\x1b\r\n\b]+|\x1b")


class Screen:
    """As much of a terminal as pytest and the live line use; rows that scroll away are kept."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows: list[list[str]] = [[]]
        self.row = self.column = 0

    def feed(self, text: str) -> None:
        for match in _TOKEN.finditer(text):
            token, command = match[0], match[2]
            if command:
                self._control(command, int(match[1] or 0) if (match[1] or "0").isdigit() else 0)
            elif token == "\r":
                self.column = 0
            elif token == "\n":
                self._down()
            elif not token.startswith("\x1b"):
                for character in token:
                    self._put(character)

    def _control(self, command: str, number: int) -> None:
        if command == "A":
            self.row = max(self.row - max(number, 1), 0)
        elif command == "C":
            self.column = min(self.column + max(number, 1), self.columns - 1)
        elif command in "JK":
            assert number == 0, "only from the cursor to the end is used"
            del self.rows[self.row][self.column :]
            if command == "J":
                del self.rows[self.row + 1 :]

    def _down(self) -> None:
        self.row += 1
        while len(self.rows) <= self.row:
            self.rows.append([])

    def _put(self, character: str) -> None:
        if self.column >= self.columns:
            self.column = 0
            self._down()
        line = self.rows[self.row]
        line.extend(" " * (self.column - len(line)))
        line[self.column : self.column + 1] = [character]
        self.column += 1

    @property
    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self.rows]


def watch(command: Sequence[str], folder: Path, env: Mapping[str, str], columns: int = 80) -> tuple[str, Screen, int]:
    """Run *command* in a terminal of its own; return the raw output, the final screen and the exit status."""
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(command, cwd=folder, env=dict(env), stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    chunks: list[bytes] = []
    deadline = time.monotonic() + 180
    try:
        while time.monotonic() < deadline:
            if not select.select([master], [], [], 1.0)[0]:
                continue
            try:
                chunk = os.read(master, 65536)
            except OSError:  # EIO: the other side is closed
                break
            if not chunk:
                break
            chunks.append(chunk)
        else:
            process.kill()
        code = process.wait(10)
    finally:
        os.close(master)
    text = b"".join(chunks).decode("utf-8", "replace")
    screen = Screen(columns)
    screen.feed(text)
    return text, screen, code
