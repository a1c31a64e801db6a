"""What the command-line agents share: running one program per user message, reading its events, and naming failures.

An adapter is a ``CliHarness`` (what the machine needs) and a ``CliSession`` (one conversation). A session tells which
command to run for a message and reads the lines of its stdout; this module keeps time, collects the log, turns the end
of the program into one of the named errors, and joins tool calls with their results.
"""

from __future__ import annotations

import json
import re
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn

import pytest

from pytest_paranoia.agents import install
from pytest_paranoia.agents.base import AgentChoice, AgentContext, Recorder, UserMessage
from pytest_paranoia.agents.cli.tool_calls import ToolCalls as ToolCalls
from pytest_paranoia.environments.base import ExecResult, Mount
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.relay.contract import Protocol as WireProtocol
from pytest_paranoia.schema.record import AgentInfo

MOUNTED = "/opt/agents"
"""Folder inside that holds the installed programs."""

OUTPUT_BYTES = 256 * 1024**2
"""Most bytes that one program may print: its events repeat what its tools gave, so a command's limit is too low."""

LOG_CHARACTERS = 16 * 1024**2
"""Most characters of a program's output that go into the log for the archive."""

_STDERR_SHOWN = 1500
_LINE_SHOWN = 500
_VERSION = re.compile(r"\d+\.\d+\.\d+[\w.+-]*")

_asserted: set[Path] = set()


@dataclass(frozen=True)
class Command:
    """One program to run: ``argv``, variables beside the environment's own, and what it reads from stdin."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""


class CliHarness(ABC):
    """A kind of command-line agent. ``name`` is also the name it is installed under."""

    name: str
    scripted: bool = False
    calls_from: Literal["inside", "outside"] | None = "inside"
    protocols: tuple[WireProtocol, ...]
    efforts: tuple[str, ...] | None = None
    """Reasoning efforts it knows, None where it does not say. Programs pass over a wrong one without a word."""

    def choose(self, model: str | None) -> AgentChoice:
        """Return the agent of a model, named by the provider's id. Raises ``pytest.UsageError`` without one."""
        if not model or any(character.isspace() for character in model):
            found = f"{model!r} is no model's id" if model else "given without a model"
            raise pytest.UsageError(f"--model: {self.name}: {found}; expected {self.name}:MODEL")
        return AgentChoice(name=f"{self.name}:{model}", harness=self.name, model=model)

    def info(self, choice: AgentChoice) -> AgentInfo:
        """Return what records say of the agent. The version is the installed one; a session asserts it."""
        return choice.info(choice.version or install.default_version(self.name))

    def missing(self, choice: AgentChoice) -> str | None:
        """Return what this machine lacks, or what the program does not know, with the remedy in one line."""
        if choice.effort is not None and self.efforts is not None and choice.effort not in self.efforts:
            return f"{self.name} knows no effort {choice.effort!r}; it knows {', '.join(self.efforts)}"
        if install.find(self.name, choice.version) is not None:
            return None
        version = choice.version or install.default_version(self.name)
        wanted = self.name + (f"@{version}" if choice.version else "")
        return f"{self.name} {version} is not installed: run `paranoia agents install {wanted}`"

    def installed(self, choice: AgentChoice) -> install.Installed:
        """Return the installation of *choice*. Raises InfrastructureError (``harness``)."""
        found = install.find(self.name, choice.version)
        if found is None:
            raise InfrastructureError("harness", self.missing(choice) or f"{self.name} is not installed")
        return found

    def mounts(self, choice: AgentChoice) -> Sequence[Mount]:
        """Return the folder of the program. Raises InfrastructureError (``harness``)."""
        return [Mount(self.installed(choice).tree, f"{MOUNTED}/{self.name}")]

    @abstractmethod
    def open(self, context: AgentContext) -> CliSession:
        """Start a conversation."""


class CliSession:
    """One conversation with a command-line agent: each user message runs its program once, in the same session.

    An adapter gives ``command``, ``event`` (or ``line``), ``failure`` and ``complete``, and may override ``settle`` to
    read what the program's own transcript holds. ``private`` is the host folder of its state and ``inside`` the same
    folder as seen inside; ``program`` is the path inside of what to run.
    """

    version_argv: ClassVar[tuple[str, ...]] = ("--version",)

    def __init__(self, harness: CliHarness, context: AgentContext) -> None:
        if context.private is None:
            raise InfrastructureError("harness", f"{harness.name}: the trial gave no folder for its state")
        self.harness = harness
        self.context = context
        self.recorder: Recorder = context.recorder
        self.private: Path = context.private
        self.inside = context.environment.locate(context.private)
        installed = harness.installed(context.choice)
        self.program = context.environment.locate(installed.program)
        self.calls = ToolCalls(context.recorder)
        self.messages = 0
        self._unreadable: str | None = None
        self._logged = 0
        self.configure()
        self._assert_version(installed)

    # -- what an adapter gives -----------------------------------------------------------------------------------------

    def configure(self) -> None:
        """Write configuration into ``private``, before the first command."""

    def variables(self) -> dict[str, str]:
        """Return the variables of every command of this session."""
        return {}

    def command(self, text: str) -> Command:
        """Return the command for a user message; ``messages`` is how many were sent before."""
        raise NotImplementedError

    def event(self, event: dict[str, Any]) -> None:
        """Take one event that the program printed, as it comes. What is raised here makes the line unreadable."""
        raise NotImplementedError

    def line(self, text: str) -> None:
        """Take one line of stdout: JSON events, unless an adapter's program prints something else."""
        if not text.strip():
            return
        event = json.loads(text)
        if not isinstance(event, dict):
            raise TypeError(f"expected an object, found {type(event).__name__}")
        self.event(event)

    def settle(self, result: ExecResult | None) -> None:
        """Complete the trajectory after the program's end, also a violent one (then *result* may be None)."""

    def failure(self, result: ExecResult) -> InfrastructureError | None:  # noqa: ARG002
        """Return the error that the program's events declare, None where they declare none."""
        return None

    def accepted(self, result: ExecResult) -> bool:  # noqa: ARG002
        """Return whether a status other than 0 ends a message that is a result all the same (a refusal, a limit)."""
        return False

    def complete(self) -> bool:
        """Return whether the events since the last message show its end."""
        return True

    # -- what it gets --------------------------------------------------------------------------------------------------

    def message(self, message: UserMessage) -> None:
        """Let the agent work on *message* until its program ends. Raises InfrastructureError."""
        self._unreadable = None
        command = self.command(message.text)
        lines = _Lines(self._take)
        result: ExecResult | None = None
        try:
            result = self.run(command, lines)
        finally:
            lines.end(whole=not cut_off(result))
            try:
                self.settle(result)
            except (OSError, LookupError, TypeError, ValueError) as error:
                self._note_unreadable(f"what it left of its session ({error!r})")
            self.calls.close()
        self.messages += 1
        self._conclude(result)

    def close(self) -> None:
        """Nothing is held open: each message's program has ended."""

    def run(self, command: Command, lines: _Lines | None = None) -> ExecResult:
        """Run a command within the trial's deadline and log what it prints. Raises InfrastructureError at a limit of
        time that has passed before; later ones are told by the result.
        """
        left = self.context.deadline - time.monotonic()
        if left <= 0:
            self.stop("wall-clock", "the agent's wall clock ran out")
        logs = {"stdout": _Lines(self._log), "stderr": _Lines(lambda text: self._log(f"[stderr] {text}"))}

        def take(stream: Literal["stdout", "stderr"], data: bytes) -> None:
            logs[stream].feed(data)
            if lines is not None and stream == "stdout":
                lines.feed(data)

        try:
            result = self.context.environment.exec(
                list(command.argv),
                env={**self.variables(), **command.env},
                stdin=command.stdin,
                timeout=left,
                output=OUTPUT_BYTES,
                on_output=take,
            )
            if result.session:
                self.context.sessions.add(result.session)
            return result
        finally:
            for log in logs.values():
                log.end(whole=True)

    def stop(self, limit: str, message: str) -> NoReturn:
        """Leave the trial unscored because of a limit of ours. Raises InfrastructureError."""
        self.context.limits.append(limit)
        raise InfrastructureError(limit, f"{self.harness.name}: {message}")

    def write(self, name: str, text: str) -> str:
        """Write a file of the session's state and return its path inside."""
        path = self.private / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return f"{self.inside}/{name}"

    # -- how it ended --------------------------------------------------------------------------------------------------

    def _conclude(self, result: ExecResult) -> None:
        name = f"{self.harness.name} {self.context.agent.version}"
        if result.limit is not None:
            self.stop(result.limit, f"limit {result.limit!r} was hit after {result.seconds:.0f} s")
        if (declared := self.failure(result)) is not None:
            raise declared
        said = self._said(result)
        if result.exit_code < 0:  # whatever it said before: nobody knows what was still to come
            raise InfrastructureError("harness-failed", f"{name} was ended by {_signal(-result.exit_code)}{said}")
        if result.exit_code and not self.accepted(result):
            raise InfrastructureError("harness-failed", f"{name} ended with status {result.exit_code}{said}")
        if self._unreadable is not None:
            raise InfrastructureError("harness-output", f"{name} printed what cannot be read: {self._unreadable}")
        if not self.complete():
            raise InfrastructureError("harness-output", f"{name} ended with status 0, without its last event{said}")

    def _said(self, result: ExecResult) -> str:
        parts = []
        if text := result.stderr.decode("utf-8", "backslashreplace").strip():
            parts.append(f"; stderr ends with: {text[-_STDERR_SHOWN:]}")
        if self._unreadable is not None:
            parts.append(f"; unreadable: {self._unreadable}")
        return "".join(parts)

    def _take(self, text: str) -> None:
        """Read one line. An exception must not get to the environment, which would end with it."""
        try:
            self.line(text)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            self._note_unreadable(f"{text[:_LINE_SHOWN]!r} ({type(error).__name__}: {str(error)[:_LINE_SHOWN]})")
            self.recorder.keep("unreadable", text)

    def _note_unreadable(self, what: str) -> None:
        self._unreadable = self._unreadable or what

    def _log(self, text: str) -> None:
        if self._logged > LOG_CHARACTERS:
            return
        self._logged += len(text)
        self.context.log.append(text)
        if self._logged > LOG_CHARACTERS:
            self.context.log.append("[the rest of the program's output is not in this log]")

    def _assert_version(self, installed: install.Installed) -> None:
        """Ask the program for its version, once in this process: records name it, so it must be true."""
        if installed.tree in _asserted:
            return
        result = self.run(Command([self.program, *self.version_argv]))
        said = result.stdout.decode("utf-8", "backslashreplace").strip()
        found = _VERSION.search(said)
        if result.exit_code or found is None or found.group() != installed.version:
            shown = said[:200] or result.stderr.decode("utf-8", "backslashreplace").strip()[-200:]
            name = f"{self.harness.name}@{installed.version}"
            raise InfrastructureError(
                "harness",
                f"{name} says of itself: {shown!r} (status {result.exit_code}); remove {installed.folder} and run "
                f"`paranoia agents install {name}`",
            )
        _asserted.add(installed.tree)


def cut_off(result: ExecResult | None) -> bool:
    """Return whether a program did not come to its own end: at a limit, by a signal, or with its environment."""
    return result is None or result.limit is not None or result.exit_code < 0


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class _Lines:
    """Cuts a stream of bytes into lines of text."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._rest = bytearray()

    def feed(self, data: bytes) -> None:
        self._rest += data
        if b"\n" not in data:
            return
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        for line in lines:
            self._take(line.decode("utf-8", "backslashreplace"))

    def end(self, *, whole: bool) -> None:
        """Take the last line; what a killed program left of one is no line."""
        rest, self._rest = bytes(self._rest), bytearray()
        if rest and whole:
            self._take(rest.decode("utf-8", "backslashreplace"))
