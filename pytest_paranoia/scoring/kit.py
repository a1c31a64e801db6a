"""What oracles and replays are written with. Standard library only: it runs in a bare interpreter.

An oracle defines ``check(ws: Workspace) -> None`` and asserts; a replay defines ``replay(ws: Workspace)`` and yields
:class:`Event`. Both run outside the sandbox, after the agent is gone. Code of the agent runs only inside a clean
sandbox, through :meth:`Workspace.python`, :meth:`Workspace.tests` and :meth:`Workspace.run`.

An interpreter starts for every check: dataclasses and socket would take as long to import as it takes to start.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, NamedTuple, TypeVar

Fixed = TypeVar("Fixed")


SAID: Mapping[str, type | UnionType] = {"by": str, "id": str, "text": str, "thread": str | None, "tags": list | None}
"""What the services feed and chat print of a post, an answer or a message."""


class ProbeFailed(AssertionError):
    """The code under test raised, hung or gave nothing back: the task is not done."""


class Event(NamedTuple):
    """One fixed downstream event of a replay; ``ok`` is False where the final state makes it fail."""

    name: str
    ok: bool
    detail: str = ""


def consumed(events: Mapping[str, Fixed], consumer: Callable[[Fixed], str | None]) -> Iterator[Event]:
    """Give each of the fixed *events*, by name, to the *consumer*, and yield what became of it.

    The consumer returns None where all went well, else what went wrong. Where the state gives no answer (ProbeFailed),
    that event has failed and the next one is still to come.
    """
    for name, event in events.items():
        try:
            wrong = consumer(event)
        except ProbeFailed as failure:
            wrong = str(failure) or repr(failure)
        yield Event(name, ok=wrong is None, detail=wrong or "")


class Command(NamedTuple):
    """A shell command the agent ran: its text, what it printed (stdout and stderr), its exit status."""

    text: str
    output: str
    exit: int | None


class Completed(NamedTuple):
    """How a command in the clean sandbox ended."""

    returncode: int
    stdout: str
    stderr: str


class TestResult(NamedTuple):
    """Outcomes of upstream tests by node id: ``passed``, ``failed``, ``error`` or ``skipped``."""

    outcomes: dict[str, str]
    output: str

    @property
    def passed(self) -> list[str]:
        """Node ids that passed."""
        return [name for name, outcome in self.outcomes.items() if outcome == "passed"]

    @property
    def failed(self) -> list[str]:
        """Node ids that failed or could not run."""
        return [name for name, outcome in self.outcomes.items() if outcome in ("failed", "error")]

    def require(self, passed_at_least: int, failed: Sequence[str] = ()) -> None:
        """Assert that enough tests passed and that exactly the tests *failed* did not.

        A name in *failed* matches a node id that ends with it.
        """
        unexpected = [name for name in self.failed if not any(name.endswith(known) for known in failed)]
        assert not unexpected, f"{len(unexpected)} tests failed, first: {unexpected[0]}\n{self.output[-2000:]}"
        absent = [known for known in failed if not any(name.endswith(known) for name in self.failed)]
        assert not absent, f"expected to fail but did not: {absent}"
        assert len(self.passed) >= passed_at_least, (
            f"{len(self.passed)} tests passed, expected at least {passed_at_least}\n{self.output[-2000:]}"
        )


class Workspace:
    """The frozen result of a run, and a clean sandbox that holds it.

    ``changes`` maps changed paths to "added", "modified", "deleted" or "mode" (ignored files and folders apart);
    ``commands`` and ``reply`` are what the agent ran and its last message.
    """

    def __init__(self, channel: int) -> None:
        self._incoming = os.fdopen(channel, "rb")
        self._outgoing = os.fdopen(os.dup(channel), "wb")
        opening = self._receive()
        self.changes: dict[str, str] = opening["changes"]
        self.commands = [Command(**command) for command in opening["commands"]]
        self.reply: str = opening["reply"]

    def _receive(self) -> dict[str, Any]:
        line = self._incoming.readline()
        if not line:
            raise SystemExit("the host is gone")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def send(self, message: dict[str, Any]) -> None:
        """Send one message to the host (used by the driver)."""
        self._outgoing.write(json.dumps(message, allow_nan=False).encode() + b"\n")
        self._outgoing.flush()

    def _ask(self, **message: Any) -> Any:
        self.send(message)
        answer = self._receive()
        if "failed" in answer:
            raise ProbeFailed(answer["failed"])
        return answer["value"]

    def exists(self, path: str) -> bool:
        """Whether *path* is in the final tree (links are not followed)."""
        return bool(self._ask(op="exists", path=path))

    def read(self, path: str) -> str:
        """Return a file of the final tree as text. Fails the check where it is no readable file."""
        return base64.b64decode(self._ask(op="read", path=path)).decode("utf-8", "replace")

    def base(self, path: str) -> str | None:
        """Return a file of the start tree as text, None where there was none."""
        data = self._ask(op="base", path=path)
        return None if data is None else base64.b64decode(data).decode("utf-8", "replace")

    def files(self, glob: str = "**") -> list[str]:
        """Return the files and links of the final tree that match *glob* (``**`` crosses folders), sorted."""
        found: list[str] = self._ask(op="files", glob=glob)
        return found

    def python(self, source: str, *args: Any, timeout: float = 20.0) -> Any:
        """Run a snippet in the clean sandbox against the repository and return the JSON value it gives to ``emit``.

        ``args`` is the list of *args* there. The repository's own packages are importable and nothing else of the
        workspace shadows the standard library. The value counts if ``emit`` was called once and the snippet then
        came to its end. Compare it here, not in the snippet: there the code under test could take part.
        """
        return self._ask(op="python", source=source, args=list(args), timeout=timeout)

    def tests(
        self, *targets: str, deselect: Sequence[str] = (), own: Sequence[str] = (), timeout: float = 60.0
    ) -> TestResult:
        """Run upstream's own tests as they are at the pinned revision; the agent's edits to tests do not count.

        Tests below *own* (paths) are the final tree's: those the task asks for. A second run in which some of the
        tests were made to fail shows that failures are told; *timeout* is for each of the two.
        """
        asked: dict[str, Any] = {"targets": list(targets), "deselect": list(deselect), "own": list(own)}
        return TestResult(**self._ask(op="tests", **asked, timeout=timeout))

    def run(self, argv: Sequence[str], *, stdin: str | None = None, timeout: float = 20.0) -> Completed:
        """Run a command in the clean sandbox, in the workspace, as the agent left it.

        The agent's code and configuration decide what it prints and its exit status. Commands see what earlier
        commands and snippets did, until ``reset`` or ``tests``.
        """
        return Completed(**self._ask(op="run", argv=list(argv), stdin=stdin, timeout=timeout))

    def printed(self, argv: Sequence[str]) -> Any:
        """Run a command that prints JSON and return the value; None where it fails, hangs or prints anything else.

        What a service prints comes from its state, which the agent may have edited by hand: it may have any shape.
        """
        try:
            done = self.run(argv)
            return json.loads(done.stdout) if done.returncode == 0 else None
        except (ProbeFailed, ValueError, RecursionError):
            return None

    def rows(self, argv: Sequence[str], shape: Mapping[str, type | UnionType]) -> list[dict[str, Any]]:
        """Run a command that prints a list of JSON objects and return those that have the *shape*, key by key.

        A key that is absent counts, and is given back, as None. Empty where ``printed`` gives no list.
        """
        value = self.printed(argv)
        found = (
            [{**dict.fromkeys(shape), **row} for row in value if isinstance(row, dict)]
            if isinstance(value, list)
            else []
        )
        return [row for row in found if all(isinstance(row[key], kind) for key, kind in shape.items())]

    def reset(self) -> None:
        """End every process in the clean sandbox and restore its workspace to the final tree, HOME and TMP too."""
        self._ask(op="reset")
