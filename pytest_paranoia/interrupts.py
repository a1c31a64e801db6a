"""Ctrl-C more than once: what has begun to wind down goes on, so that nothing stays behind and the summary is true."""

from __future__ import annotations

import atexit
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_QUIET_SECONDS = 5.0


class Interrupts:
    """From the first Ctrl-C of a session on, decides what a further one does.

    Without it a second one ends the session wherever it happens to be: inside pytest's own report of the first one,
    for example, with a traceback, no summary and the exit status of a crash.
    """

    def __init__(self) -> None:
        self._until = 0.0
        self._breakable = False

    def begin(self) -> None:
        """Take over, at the first Ctrl-C. Does nothing outside the main thread, which gets no signals."""
        if threading.current_thread() is threading.main_thread() and not self._until:
            signal.signal(signal.SIGINT, self._again)
            # While the interpreter ends it gives up handlers, and a Ctrl-C would replace the exit status.
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        self._until = time.monotonic() + _QUIET_SECONDS

    @contextmanager
    def breakable(self) -> Iterator[None]:
        """A wait that one further Ctrl-C may cut short."""
        self._breakable = True
        try:
            yield
        finally:
            self._breakable = False
            if self._until:
                self._until = time.monotonic() + _QUIET_SECONDS

    def _again(self, number: int, frame: FrameType | None) -> None:
        # Where pytest was called by a program that lives on, that program must not have lost its Ctrl-C for long.
        if self._breakable or time.monotonic() > self._until:
            self._breakable = False
            signal.default_int_handler(number, frame)
