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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_paranoia.environments.base import EnvironmentProvider
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.schema.record import Change, EventResult, OracleResult, ReplayResult
from pytest_paranoia.scoring import driver
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


def _run(
    kind: Kind, module: Path, subject: Subject, provider: EnvironmentProvider, seconds: float
) -> tuple[dict[str, Any], list[EventResult]]:
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
            return _Host(kind, subject, room, ours, seconds).serve()
        except _Gone:
            said = (scratch / "driver.err").read_text(encoding="utf-8", errors="replace").strip()[-800:]
            raise InfrastructureError(
                f"{kind}-no-result", f"{module.name} ended without a result (exit status {process.wait()}) {said}"
            ) from None
        finally:
            process.kill()
            process.wait()
            room.close()
            subject.log.extend(f"not laid: {line}" for line in room.missing)
            subject.forged.extend(room.forged)


class _Gone(Exception):
    """The driver closed its socket without a closing message."""


class _Host:
    """Answers the driver until it closes with done, failed or error.

    Two clocks: an oracle that thinks too long is at fault itself. Code under test that hangs in one probe after the
    other is not answered for any more; the oracle goes on, with failures, or any agent could keep itself unscored.
    """

    def __init__(self, kind: Kind, subject: Subject, room: CleanRoom, channel: socket.socket, seconds: float) -> None:
        self._kind = kind
        self._subject = subject
        self._room = room
        self._channel = channel
        self._seconds = seconds
        self._thinking = self._probing = seconds
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

    def serve(self) -> tuple[dict[str, Any], list[EventResult]]:
        self._send(
            {
                "changes": {name_of(change): change.kind for change in visible(self._subject.frozen.frozen.changes)},
                "commands": list(self._subject.commands),
                "reply": self._subject.reply,
            }
        )
        events: list[EventResult] = []
        while True:
            message = self._next()
            operation = message.get("op")
            if operation == "event":
                name, detail = _sayable(message["name"]), _sayable(message["detail"])
                events.append(EventResult(name=name, ok=message["ok"], detail=detail))
            elif operation in ("done", "failed", "absent"):
                return message, events
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
            if self._probing <= 0:
                return {"failed": f"the code under test has used up its {self._seconds:g} s"}
            started = time.monotonic()
            try:
                return {
                    "value": ask(message, max(0.1, min(float(message["timeout"]), PROBE_SECONDS_MAX, self._probing)))
                }
            except NoAnswer as error:
                return {"failed": str(error)}
            finally:
                self._probing -= time.monotonic() - started

        return operation

    def _next(self) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            started = time.monotonic()
            ready = self._thinking > 0 and select.select([self._channel], [], [], self._thinking)[0]
            self._thinking -= time.monotonic() - started
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
