"""The live line of a terminal: how far the session is, what it found and cost so far, and how long it will take.

It stands below what pytest prints, and is taken away before anything else is written. Nothing of it is ever shown
where the output is no terminal that a person looks at: in a log of CI it would be noise.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TextIO

import pytest

from pytest_paranoia.reporting.junit import PREFIX
from pytest_paranoia.reporting.text import clip
from pytest_paranoia.schema.taxonomy import PATHS

_ESCAPE: Final = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]")
_DAMAGED: Final = frozenset(PATHS[3:])
_PAUSE: Final = 1.0
Key = Callable[[str], str | None]


class Progress:
    """What is known of a session's trials so far. Times are seconds of a clock that only goes forward."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun: float | None = None
        self.planned: set[str] = set()
        self.running: set[str] = set()
        self.done: set[str] = set()
        self.violations = 0
        self.damaged = 0
        self.cost: float | None = None

    def start(self, key: str) -> None:
        """A trial has begun."""
        if self._begun is None:
            self._begun = self._clock()
        self.running.add(key)

    def found(self, properties: dict[str, str]) -> None:
        """A trial has its record; *properties* are those of its report, without their prefix."""
        self.violations += properties.get("verdict") == "VIOLATION"
        self.damaged += properties.get("path") in _DAMAGED
        for name in ("cost", "judge_cost"):  # --paranoia-max-cost is about both
            if (cost := properties.get(name)) is not None:
                self.cost = (self.cost or 0.0) + float(cost)

    def end(self, key: str) -> None:
        """A trial is over."""
        self.running.discard(key)
        self.done.add(key)

    def text(self) -> str:
        """The line, without the sums that are not known."""
        return ", ".join(self._parts())

    def _parts(self) -> Iterator[str]:
        total = len(self.planned | self.done | self.running)
        yield f"paranoia: {len(self.done)}/{total} done"
        yield f"{len(self.running)} running"
        yield f"{self.violations} violation{'' if self.violations == 1 else 's'}"
        if self.damaged:
            yield f"{self.damaged} damaged"
        if self.cost is not None:
            yield f"${self.cost:,.2f}"
        if self._begun is not None and self.done and (left := total - len(self.done)):
            yield f"about {_duration((self._clock() - self._begun) / len(self.done) * left)} left"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Watched:
    """The terminal's file: takes the live line away before a write, and knows in which column the cursor then is."""

    def __init__(self, file: TextIO, lock: threading.RLock, erase: Callable[[], None]) -> None:
        self._file = file
        self._lock = lock
        self._erase = erase
        self._line = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        """Write *text* where the live line was not."""
        with self._lock:
            self._erase()
            written = self._file.write(text)
            self._file.flush()  # or the live line, which goes another way, would come first
            self._line = (self._line + text).rpartition("\n")[2].rpartition("\r")[2]
            return written

    @property
    def column(self) -> int:
        """Columns that the current line takes so far."""
        return len(_ESCAPE.sub("", self._line))


class LiveLine:
    """Hooks of the controlling process that keep the line up to date."""

    def __init__(self, key: Key, progress: Progress | None = None) -> None:
        self._key = key
        self._progress = Progress() if progress is None else progress
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._watched: Watched | None = None
        self._writer: Any = None
        self._output = -1
        self._shown = False

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Take hold of the terminal, where there is one."""
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or not suits(session.config, reporter):
            return
        self._writer = reporter._tw
        # While a trial runs in this process, pytest captures what is written to the terminal's own descriptor.
        self._output = os.dup(self._writer._file.fileno())
        self._watched = self._writer._file = Watched(self._writer._file, self._lock, self._erase)
        threading.Thread(target=self._tick, name="paranoia-live", daemon=True).start()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note the trials (without xdist)."""
        self._plan([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Note the trials (with xdist: every worker collects the same)."""
        self._plan(ids)

    def _plan(self, nodeids: list[str]) -> None:
        with self._lock:
            self._progress.planned.update(key for key in map(self._key, nodeids) if key)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A trial begins, here or in a worker."""
        if key := self._key(nodeid):
            with self._lock:
                self._progress.start(key)
                self._draw()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a trial is over; that of a crashed worker is called ``???`` and the last one."""
        if (key := self._key(report.nodeid)) is None:
            return
        with self._lock:
            if report.when == "call" or report.failed:
                self._progress.found({name.removeprefix(PREFIX): str(value) for name, value in report.user_properties})
            if report.when in ("teardown", "???"):
                self._progress.end(key)
            self._draw()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Iterator[None]:
        """Take the line away for good before anything is summed up."""
        self._release()
        return (yield)

    def pytest_unconfigure(self) -> None:
        """The same, for a session that never came to its end."""
        self._release()

    def _release(self) -> None:
        with self._lock:
            self._over.set()
            if self._watched is None:
                return
            self._erase()
            self._writer._file = self._watched._file
            self._watched = None
            os.close(self._output)

    def _tick(self) -> None:
        while not self._over.wait(_PAUSE):
            with self._lock:
                if self._progress.running:
                    self._draw()

    def _erase(self) -> None:
        if self._shown:
            self._put("\x1b[J")
            self._shown = False

    def _draw(self) -> None:
        """Write the line below the cursor and bring the cursor back. Also where that scrolls: it moves relatively."""
        if self._watched is None:
            return
        width = self._writer.fullwidth
        column = self._watched.column % width  # a longer line goes on in the next row
        if self._watched.column and not column:
            return  # the cursor waits behind the last column, where nothing can bring it back to
        line = clip(self._progress.text(), max(width - 1, 20))
        self._put(f"\x1b[J\n\r{line}\x1b[1A\r" + (f"\x1b[{column}C" if column else ""))
        self._shown = True

    def _put(self, text: str) -> None:
        try:
            os.write(self._output, text.encode("ascii", "backslashreplace"))
        except OSError:  # the terminal is gone; pytest notices by itself
            self._over.set()


def suits(config: pytest.Config, reporter: Any) -> bool:
    """Say whether somebody watches: a terminal that can move its cursor, no CI, and nothing that asks for quiet."""
    watched = bool(reporter.isatty) and os.environ.get("TERM", "dumb") != "dumb"
    quiet = reporter.verbosity < 0 or any(os.environ.get(name) for name in ("CI", "BUILD_NUMBER"))
    # With -s and without workers, what a trial prints goes straight to the terminal and knows nothing of the line.
    mixed = config.getoption("capture") == "no" and not config.getoption("numprocesses", None)
    looks = any(config.getoption(name, False) for name in ("collectonly", "setupplan", "paranoia_validate", "usepdb"))
    return watched and not (quiet or mixed or looks)
