"""Sessions as live processes: started like a user's, watched, interrupted and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

_T = TypeVar("_T")
PATIENCE = 180.0
"""Seconds: a machine with twenty jobs for each processor takes a minute to start a session's workers."""


def eventually(look: Callable[[], _T], what: str, seconds: float = PATIENCE) -> _T:
    """Return the first true answer of *look*."""
    deadline = time.monotonic() + seconds
    while not (answer := look()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.02)
    return answer


def gone(look: Callable[[], object], what: str, seconds: float) -> None:
    """Wait until *look* finds nothing."""
    deadline = time.monotonic() + seconds
    while found := look():
        assert time.monotonic() < deadline, f"{what}: after {seconds:g} s there still is {found}"
        time.sleep(0.02)


def processes(text: str) -> list[int]:
    """Ids of the live processes, wherever they were started, whose command line holds *text*."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if text.encode() in (entry / "cmdline").read_bytes() and "\nState:\tZ" not in _status(entry):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def _status(entry: Path) -> str:
    return (entry / "status").read_text()


def parent(pid: int) -> int:
    """The process id of the parent of *pid*."""
    lines = _status(Path("/proc", str(pid))).splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))


def child_above(pid: int, ancestor: int) -> int:
    """The child of *ancestor* that *pid* descends from."""
    while (above := parent(pid)) != ancestor:
        pid = above
    return pid


@dataclass
class Place:
    """Where sessions run: their working folder, their folder for temporary files, and items with an optional hold.

    While the file ``hold`` exists, the reference runs that look for it wait. It lies in the prepared Python
    environment, the one folder of the host that a trial can see and that is no part of any item's hash.
    """

    folder: Path
    items: Path
    cache: Path
    hold: Path
    tmp: Path = field(init=False)
    sessions: list[LiveSession] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tmp = self.folder / "tmp"
        self.tmp.mkdir(parents=True)

    @property
    def reports(self) -> Path:
        return self.folder / "reports"

    @property
    def environment(self) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        return env | {"TMPDIR": str(self.tmp), "PARANOIA_CACHE": str(self.cache), "PYTHONUNBUFFERED": "1"}

    def command(self, *arguments: str) -> list[str]:
        plain = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--paranoia"]
        return [*plain, f"--paranoia-items={self.items}", *arguments]

    def finished(self, argv: Sequence[str], seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, such as a program that starts ``command`` below it."""
        return subprocess.run(
            argv, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=seconds, check=False
        )

    def start(self, *arguments: str) -> LiveSession:
        """Start a session and return at once."""
        path = self.folder / f"output-{len(self.sessions)}.txt"
        with path.open("wb") as output:
            process = subprocess.Popen(
                self.command(*arguments),
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A process group of its own: what a terminal sends Ctrl-C to.
                start_new_session=True,
            )
        session = LiveSession(process, path)
        self.sessions.append(session)
        return session

    def run(self, *arguments: str) -> LiveSession:
        """Run a session to its end."""
        session = self.start(*arguments)
        session.wait()
        return session

    def held(self) -> list[int]:
        """Processes of trials that wait for the hold to go."""
        return processes(self.hold.name)

    def leftovers(self) -> dict[int, str]:
        """Processes of sandboxes, trials and checks, by what each has in its command line."""
        pids = {pid for text in (str(self.tmp), str(self.items), self.hold.name) for pid in processes(text)}
        shown = {}
        for pid in pids:
            with suppress(OSError):
                shown[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[-200:]
        return shown

    def clear(self) -> None:
        """End whatever a failed test left."""
        self.hold.unlink(missing_ok=True)
        for session in self.sessions:
            if session.process.poll() is None:
                session.signal(signal.SIGKILL)
                session.process.wait()

    def scratch(self) -> list[str]:
        return sorted(path.name for path in (*self.tmp.glob("paranoia-*"), *self.tmp.glob("tmp*")))

    def records(self, run: str) -> dict[str, dict[str, Any]]:
        found = {}
        for path in (self.reports / run).glob("trials/*/record.json"):
            record = json.loads(path.read_text())
            found[record["trial"]] = record
        return found

    def tables(self, run: str) -> dict[str, Any]:
        """What the summary says of a run, apart from its name and time."""
        summary: dict[str, Any] = json.loads((self.reports / run / "summary.json").read_text())
        return {name: value for name, value in summary.items() if name not in ("run", "created")}


@dataclass
class LiveSession:
    """A started session."""

    process: subprocess.Popen[bytes]
    output: Path

    @property
    def text(self) -> str:
        return self.output.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole process group, as a terminal does."""
        os.killpg(self.process.pid, number)

    def wait(self, seconds: float = 2 * PATIENCE) -> int:
        """Return the exit status. What hangs is killed, and the test fails with what was said until then."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self.process.wait()
            raise AssertionError(f"the session did not end within {seconds:g} s:\n{self.text}") from None
