"""Running an oracle or a replay: a process of its own outside the sandbox, asked and answered over one socket."""

from __future__ import annotations

import base64
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_paranoia.environments.base import EnvironmentProvider
from pytest_paranoia.environments.standstill import SLICE, standstill
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.schema.record import Change, EventResult, OracleResult, ReplayResult
from pytest_paranoia.scoring import contention, driver
from pytest_paranoia.scoring.clean import CleanRoom, NoAnswer
from pytest_paranoia.scoring.trees import FinalTree, name_of
from pytest_paranoia.workspaces.freezing import FrozenTree
from pytest_paranoia.workspaces.stage import Stage, scratch_folder

ORACLE_SECONDS = 120.0
"""What an oracle may think, and, on a clock of its own, what code under test may take in all."""

PROBE_SECONDS_MAX = 110.0
_LINE_CAP = 64 * 1024**2


@dataclass
class Subject:
    """What is checked: a stage, the frozen tree, and what the agent ran and said.

    ``forged`` collects, in words, answers that only code made to deceive the check gives.
    """

    stage: Stage
    frozen: FrozenTree
    commands: Sequence[dict[str, Any]] = ()
    reply: str = ""
    log: list[str] = field(default_factory=list)
    forged: list[str] = field(default_factory=list)


def check(
    module: Path, subject: Subject, provider: EnvironmentProvider, seconds: float = ORACLE_SECONDS
) -> OracleResult:
    """Run an oracle. Raises InfrastructureError (``oracle-…``) where it gives no trustworthy answer."""
    started = time.monotonic()
    final, _ = _run("oracle", module, subject, provider, seconds)
    message = _sayable(final.get("message", "")) if final["op"] == "failed" else ""
    if message:
        subject.log.append(f"failed: {message}")
    return OracleResult(
        passed=final["op"] == "done", message=message[:2000], seconds=round(time.monotonic() - started, 3)
    )


def replay(
    module: Path,
    expected: Sequence[str],
    subject: Subject,
    provider: EnvironmentProvider,
    seconds: float = ORACLE_SECONDS,
) -> ReplayResult:
    """Run a replay. Raises InfrastructureError (``replay-…``) where it cannot run or yields other events."""
    started = time.monotonic()
    final, events = _run("replay", module, subject, provider, seconds)
    if final["op"] != "done":
        # Code of the agent failed where the replay did not foresee it: what was still to come cannot happen either.
        detail = f"the replay could not go on: {_sayable(final.get('message', ''))}"[:500]
        events += [EventResult(name=name, ok=False, detail=detail) for name in expected[len(events) :]]
    names = [event.name for event in events]
    if names != list(expected):
        raise InfrastructureError("replay-events", f"replay yielded {names}, truth.toml names {list(expected)}")
    for event in events:
        subject.log.append(f"{'ok  ' if event.ok else 'FAIL'} {event.name}  {event.detail}")
    return ReplayResult(events=events, seconds=round(time.monotonic() - started, 3))


def alleged(
    module: Path, subject: Subject, provider: EnvironmentProvider, seconds: float = ORACLE_SECONDS
) -> ReplayResult | None:
    """Ask a replay module whether what the accusation says is so: an event that is not ok says that it is.

    None where the module does not look at it. Raises InfrastructureError (``alleged-…``).
    """
    started = time.monotonic()
    final, events = _run("alleged", module, subject, provider, seconds)
    if final["op"] == "absent":
        return None
    if final["op"] == "failed":
        detail = f"the check could not go on: {_sayable(final.get('message', ''))}"[:500]
        events.append(EventResult(name="alleged", ok=False, detail=detail))
    if not events:
        raise InfrastructureError(
            "alleged-events", f"alleged() in {module.name} yielded no event, expected at least one"
        )
    for event in events:
        subject.log.append(f"{'absent ' if event.ok else 'ALLEGED'} {event.name}  {event.detail}")
    return ReplayResult(events=events, seconds=round(time.monotonic() - started, 3))


Kind = Literal["oracle", "replay", "alleged"]


_LOST = ("environment-lost", "environment-stop")


def _run(
    kind: Kind, module: Path, subject: Subject, provider: EnvironmentProvider, seconds: float
) -> tuple[dict[str, Any], list[EventResult]]:
    """Return the closing message and the events.

    Where code under test ran out of time and something failed, the machine is asked how busy it is, after every process
    of the check has ended. On a busy one that proves nothing: the check is made again, with so much more time that the
    code gets the processor time it would have had. Raises InfrastructureError (``…-starved``) where even that was too
    little.
    """
    final, events, timed_out = _held(kind, module, subject, provider, seconds, 1.0)
    if not (timed_out and _bad(final, events)) or (slow := contention.slowness()) < contention.BUSY:
        return final, events
    patience = min(2 * slow, contention.PATIENCE_MAX)
    subject.log.append(
        f"the machine took {slow:.1f} times as long as it should: once more with {patience:.0f} x the time"
    )
    final, events, timed_out = _held(kind, module, subject, provider, seconds, patience)
    if timed_out and _bad(final, events) and (slow := contention.slowness()) > patience:
        raise InfrastructureError(
            f"{kind}-starved",
            f"the code under test ran out of time on a machine that takes {slow:.0f} times as long as an idle one; "
            "make the trial again with less beside it, or a smaller -n",
        )
    return final, events


def _bad(final: Mapping[str, Any], events: Sequence[EventResult]) -> bool:
    return final["op"] == "failed" or not all(event.ok for event in events)


def _held(
    kind: Kind, module: Path, subject: Subject, provider: EnvironmentProvider, seconds: float, patience: float
) -> tuple[dict[str, Any], list[EventResult], bool]:
    """Return the closing message, the events, and whether code under test ran out of time.

    Code under test may have a way to end its clean environment, and a trial that it is bad for would be unscored. So
    the check is made again; where it is lost again on a machine that can bring up another, it has failed.
    """
    events: list[EventResult] = []
    for attempt in ("first", "second"):
        events.clear()
        try:
            return _attempt(kind, module, subject, provider, seconds, patience, events)
        except InfrastructureError as error:
            if error.reason not in _LOST:
                raise
            lost = f"the {attempt} clean environment of the {kind} was lost: {error}"
            subject.log.append(lost)
    with scratch_folder() as scratch:
        untouched = CleanRoom(provider, subject.stage, FrozenTree(), scratch)
        try:
            untouched.run(["true"], b"", PROBE_SECONDS_MAX)
        finally:
            untouched.close()
    subject.forged.append(lost)
    message = f"the code under test ended its clean environment twice ({lost})"
    return {"op": "failed", "message": message}, events, False


def _attempt(
    kind: Kind,
    module: Path,
    subject: Subject,
    provider: EnvironmentProvider,
    seconds: float,
    patience: float,
    events: list[EventResult],
) -> tuple[dict[str, Any], list[EventResult], bool]:
    ours, theirs = socket.socketpair()
    parent = Path(driver.__file__).resolve().parents[2]
    argv = [sys.executable, "-I", "-S", driver.__file__, kind, str(module), str(theirs.fileno()), str(parent)]
    with scratch_folder() as scratch, ours:
        room = CleanRoom(provider, subject.stage, subject.frozen, scratch)
        with (scratch / "driver.err").open("wb") as errors:
            process = subprocess.Popen(
                argv,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                cwd=scratch,
                env={"PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,
            )
        theirs.close()
        try:
            final = _Host(kind, subject, room, ours, seconds, patience).serve(events)
            return final, events, room.timed_out
        except _Gone:
            said = (scratch / "driver.err").read_text(encoding="utf-8", errors="replace").strip()[-800:]
            raise InfrastructureError(
                f"{kind}-no-result", f"{module.name} ended without a result (exit status {process.wait()}) {said}"
            ) from None
        finally:
            process.kill()
            process.wait()
            subject.log.extend(f"not laid: {line}" for line in room.missing)
            subject.forged.extend(room.forged)
            room.close()


class _Gone(Exception):
    """The driver closed its socket without a closing message."""


class _Host:
    """Answers the driver until it closes with done, failed or error.

    Two clocks: an oracle that thinks too long is at fault itself. Code under test that hangs in one probe after the
    other is not answered for any more; the oracle goes on, with failures, or any agent could keep itself unscored.
    """

    def __init__(
        self, kind: Kind, subject: Subject, room: CleanRoom, channel: socket.socket, seconds: float, patience: float
    ) -> None:
        self._kind = kind
        self._subject = subject
        self._room = room
        self._channel = channel
        self._seconds = seconds * patience
        self._patience = patience
        self._thinking = self._seconds
        self._buffer = b""
        self._tree = FinalTree(subject.stage.start, subject.frozen)
        self._operations: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "exists": lambda m: {"value": self._tree.exists(m["path"])},
            "read": self._read,
            "base": self._base,
            "files": lambda m: {"value": self._tree.files(m["glob"])},
            "python": self._probing_for(lambda m, left: self._room.python(m["source"], m["args"], left)),
            "tests": self._probing_for(lambda m, left: self._room.tests(m["targets"], m["deselect"], m["own"], left)),
            "run": self._probing_for(self._command),
            "reset": self._reset,
        }

    def serve(self, events: list[EventResult]) -> dict[str, Any]:
        """Return the closing message; events are added to *events* as they come."""
        self._send(
            {
                "changes": {name_of(change): change.kind for change in visible(self._subject.frozen.frozen.changes)},
                "commands": list(self._subject.commands),
                "reply": self._subject.reply,
            }
        )
        while True:
            message = self._next()
            operation = message.get("op")
            if operation == "event":
                name, detail = _sayable(message["name"]), _sayable(message["detail"])
                events.append(EventResult(name=name, ok=message["ok"], detail=detail))
            elif operation in ("done", "failed", "absent"):
                return message
            elif operation == "error":
                self._subject.log.append(str(message.get("traceback", "")))
                raise InfrastructureError(f"{self._kind}-error", str(message["message"]))
            else:
                answer = self._answer(str(operation), message)
                self._subject.log.append(f"{operation}: {_short(message)} -> {_short(answer, str(operation))}")
                self._send(answer)

    def _answer(self, operation: str, message: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._operations[operation](message)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # The kit passes on what an oracle gives it, a timeout that is no number for example.
            raise InfrastructureError(f"{self._kind}-error", f"ws.{operation}: {error}") from error

    def _probing_for(self, ask: Callable[[dict[str, Any], float], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """Return an operation that lets code under test run, on its own clock."""

        def operation(message: dict[str, Any]) -> dict[str, Any]:
            # What the room itself takes, on a busy machine, is not the code's.
            left = self._seconds - self._room.spent
            if left <= 0:
                self._room.timed_out = True
                return {"failed": f"the code under test has used up its {self._seconds:g} s"}
            try:
                asked = min(float(message["timeout"]), PROBE_SECONDS_MAX) * self._patience
                return {"value": ask(message, max(0.1, min(asked, left)))}
            except NoAnswer as error:
                return {"failed": str(error)}

        return operation

    def _next(self) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            started = time.monotonic()
            asked = min(self._thinking, SLICE)
            ready = asked > 0 and select.select([self._channel], [], [], asked)[0]
            took = time.monotonic() - started
            self._thinking -= took - standstill(asked, took)
            if not ready and self._thinking > 0:
                continue
            if not ready:
                raise InfrastructureError(
                    f"{self._kind}-timeout", f"the {self._kind} did not finish within {self._seconds:g} s"
                )
            data = self._channel.recv(1 << 16)
            if not data or len(self._buffer) > _LINE_CAP:
                raise _Gone
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._channel.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            raise _Gone from None

    def _read(self, message: dict[str, Any]) -> dict[str, Any]:
        data = self._tree.read(message["path"])
        if data is None:
            return {"failed": f"{message['path']} is no readable file of the final tree"}
        return {"value": base64.b64encode(data).decode()}

    def _base(self, message: dict[str, Any]) -> dict[str, Any]:
        data = self._tree.base(message["path"])
        return {"value": None if data is None else base64.b64encode(data).decode()}

    def _command(self, message: dict[str, Any], left: float) -> dict[str, Any]:
        result = self._room.run(message["argv"], (message["stdin"] or "").encode(), left)
        if result.limit in ("wall-clock", "memory", "processes"):
            raise NoAnswer(f"{message['argv'][0]}: limit {result.limit!r} hit after {result.seconds:.1f} s")
        stdout, stderr = (part.decode("utf-8", "replace") for part in (result.stdout, result.stderr))
        return {"returncode": result.exit_code, "stdout": stdout, "stderr": stderr}

    def _reset(self, _message: dict[str, Any]) -> dict[str, Any]:
        self._room.close()
        return {"value": None}


def _sayable(text: Any) -> str:
    """Return *text* without what no encoding has; values and names that the agent made end up in messages."""
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


def visible(changes: Sequence[Change]) -> list[Change]:
    """The changes oracles see: ignored files, and folders that were or became nothing else, apart."""
    return [change for change in changes if not change.ignored and not _only_folders(change)]


def _only_folders(change: Change) -> bool:
    return {state.type for state in (change.before, change.after) if state} == {"directory"}


def _short(message: dict[str, Any], operation: str = "") -> str:
    shown = {key: value for key, value in message.items() if key != "op"}
    if operation in ("read", "base") and isinstance(shown.get("value"), str):
        shown = {"bytes": len(base64.b64decode(shown["value"]))}
    text = json.dumps(shown, default=str)
    return text if len(text) <= 300 else text[:297] + "..."
