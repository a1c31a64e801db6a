"""Writes a trial's wire log away from the event loop."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from pytest_paranoia.relay.asking import said
from pytest_paranoia.relay.parts import Encoder
from pytest_paranoia.relay.redaction import Redactor
from pytest_paranoia.relay.wire import Exchange, exchange_line, header_line, request_line


class WireLog:
    """One file. *executor* has one thread, so lines are written in the order in which they were handed over.

    A line that cannot be written (a full disk) does not disturb the trial's calls; ``close`` tells of the first one.
    """

    def __init__(self, path: Path, redactor: Redactor, executor: Executor, **header: object) -> None:
        self._redactor = redactor
        self._executor = executor
        self._encoder = Encoder()
        self._error: str | None = None
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self._write(header_line(**header))
        except BaseException:
            os.close(self._file)
            raise

    def asked(self, number: int, body: bytes) -> None:
        """Hand over what call *number* asks: it is large, and need not be kept until the answer has ended."""
        self._executor.submit(self._add, number, lambda: request_line(number, said(body), self._encoder))

    def ended(self, exchange: Exchange) -> None:
        """Hand over the rest of a call, when it has ended."""
        self._executor.submit(self._add, exchange.number, lambda: exchange_line(exchange))

    def _add(self, number: int, line: Callable[[], dict[str, Any]]) -> None:
        if self._error is not None:
            return  # half a line may be there, and later lines refer to the one that is missing
        try:
            self._write(line())
        except Exception as error:  # the thread's end would lose all later lines unseen
            self._error = f"{self._path}: call {number} could not be logged: {error}"

    def _write(self, line: dict[str, Any]) -> None:
        data = self._redactor.clean(json.dumps(line, separators=(",", ":")).encode()) + b"\n"
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]

    async def close(self) -> str | None:
        """Wait for the lines that were handed over and close the file; return what could not be written, None if all
        was.
        """
        await asyncio.get_running_loop().run_in_executor(self._executor, os.close, self._file)
        return self._error
