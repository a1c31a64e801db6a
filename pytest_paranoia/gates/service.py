"""A gate at work in one trial: it answers the harness's hook over one socket, logs, and finds calls it never saw."""

from __future__ import annotations

import json
import shlex
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

from pytest_paranoia.agents.base import now
from pytest_paranoia.agents.cli import foreign
from pytest_paranoia.environments.base import Environment
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.gates.base import Decision, Facts, Gate, GateView, ToolRequest
from pytest_paranoia.schema.taxonomy import StepRole
from pytest_paranoia.schema.trajectory import ObservationResult, Trajectory
from pytest_paranoia.scoring.sensors.actions import step_role

Dialect = Literal["claude", "codex", "hermes"]
BROKEN = "this call could not be checked and was withheld"
HOOK = "gate-hook.py"
_SOURCE = Path(__file__).with_name("hook.py")
ANSWER_SECONDS = 10.0
"""Most seconds from a question to the gate's answer: the hook inside gives up later than that, and denies."""

_LARGEST = 64 * 1024 * 1024


@dataclass(frozen=True)
class Entry:
    """One line of a gate's log. ``role`` is that of the user message that the agent works on."""

    time: str
    request: ToolRequest
    decision: Decision
    error: str | None = None
    role: StepRole | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain data for ``gate.jsonl``."""
        call = {"time": self.time, "role": self.role, **asdict(self.request)}
        return {**call, **asdict(self.decision), "error": self.error}


class GateService:
    """Asks *gate* for one trial. Use as a context manager around the agent's run.

    ``url`` is where a plugin inside may POST ``{"tool", "arguments", "call_id", "subagent"}`` for
    ``{"allow", "reason"}``; ``hook_command`` is the same as a command for harnesses that have command hooks.
    """

    def __init__(
        self,
        gate: Gate,
        environment: Environment,
        private: Path,
        python: str,
        view: Callable[[], Trajectory | None],
        facts: Facts | None = None,
    ) -> None:
        self.gate = gate
        self.log: list[Entry] = []
        self._environment = environment
        self._private = private
        self._python = python
        self._view = view
        self.facts = facts or Facts()
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self._port = 0
        self._copied = False

    def __enter__(self) -> GateService:
        listener = self._environment.listen()
        self._port = listener.getsockname()[1]
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self), bind_and_activate=False)
        server.socket.close()
        server.socket = listener
        server.daemon_threads = True
        self._server = server
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    @property
    def url(self) -> str:
        """Where the gate is asked from inside."""
        return f"http://127.0.0.1:{self._port}/"

    def hook_command(self, dialect: Dialect) -> str:
        """Return the shell command for the harness's hook setting; whatever breaks, it prints a denial."""
        script = self._private / HOOK
        if not script.exists():
            shutil.copyfile(_SOURCE, script)
            self._copied = True
        inside = self._environment.locate(script)
        words = [self._python, "-I", "-S", inside, dialect, str(self._port)]
        return f"{shlex.join(words)} || printf '%s' {shlex.quote(_refusal(dialect))}"

    def decide(self, request: ToolRequest) -> Decision:
        """Ask the gate and log its answer. A gate that raises, or that answers too late for the hook that waits,
        denies; the trial is then unscored (``check``).
        """
        asked = time.monotonic()
        with self._lock:
            error, role = None, None
            try:
                view = GateView(self._view(), self._environment.workspace, self.facts)
                role = _role(view.trajectory)
                decision = self.gate.decide(request, view)
                if not isinstance(decision, Decision):
                    raise TypeError(f"decide returned {decision!r}, expected a Decision")
            except Exception as failure:
                decision, error = Decision(False, BROKEN), repr(failure)
            if error is None and (spent := time.monotonic() - asked) > ANSWER_SECONDS:
                # What waits may have taken the silence for a no already: a yes would be a false entry.
                error = f"the answer took {spent:.1f} s, expected at most {ANSWER_SECONDS:g} s"
                decision = Decision(False, BROKEN)
            self.log.append(Entry(now(), request, decision, error, role))
            return decision

    def check(self, trajectory: Trajectory | None) -> None:
        """Raise InfrastructureError where the gate broke (``gate-error``), or a call ran unasked or in spite of a
        denial, or what asks inside was tampered with (``gate-hole``).
        """
        broken = [entry for entry in self.log if entry.error]
        if broken:
            first = broken[0]
            raise InfrastructureError(
                "gate-error", f"gate {self.gate.name!r} failed at {first.request.tool}: {first.error}"
            )
        if trajectory is not None and (unseen := self.holes(trajectory)):
            raise InfrastructureError(
                "gate-hole",
                f"{len(unseen)} tool calls ran without asking gate {self.gate.name!r}: {', '.join(unseen[:5])}",
            )

        if self._copied and not self._untouched():
            raise InfrastructureError(
                "gate-hole", f"the program that asks gate {self.gate.name!r} inside was changed or removed in the trial"
            )
        if trajectory is not None and (ran := self.ignored(trajectory)):
            raise InfrastructureError(
                "gate-hole",
                f"{len(ran)} tool calls that gate {self.gate.name!r} withheld ran all the same: {', '.join(ran[:5])}",
            )

    def _untouched(self) -> bool:
        """Whether the hook's file still is what was put there: it lies where the agent can write."""
        try:
            return foreign.text(self._private, HOOK) == _SOURCE.read_text(encoding="utf-8")
        except ValueError:  # a link, a folder, no text
            return False

    def ignored(self, trajectory: Trajectory) -> list[str]:
        """Return the tool calls of *trajectory* that were withheld and have a result that does not say so: a harness
        that does not understand a denial takes it for a yes. Only calls whose id the harness told the gate are known.
        """
        answers: dict[str, bool] = {}
        for entry in self.log:
            if identity := entry.request.call_id:
                answers[identity] = answers.get(identity, False) or entry.decision.allow
        results = {result.source_call_id: result.extra or {} for result in _results(trajectory)}
        return [
            f"{tool} ({identity})"
            for identity, tool, _ in _calls(trajectory)
            if answers.get(identity) is False
            and (facts := results.get(identity)) is not None
            and not (facts.get("denied") or facts.get("is_error") or facts.get("unfinished"))
        ]

    def holes(self, trajectory: Trajectory) -> list[str]:
        """Return the tool calls of *trajectory*, subagents included, that the log does not account for.

        By the harness's id of the call where both know it, else by the tool's name and how often it was called. A tool
        call says by ``extra["gate"]`` under which names the gate was asked about it where that differs (a list; empty
        for a call that runs nothing, such as one the harness itself could not read).
        """
        ids = {entry.request.call_id for entry in self.log if entry.request.call_id}
        names = Counter(entry.request.tool for entry in self.log)
        calls = list(_calls(trajectory))
        for identity, _, _ in calls:
            if identity in ids:
                entry = next(entry for entry in self.log if entry.request.call_id == identity)
                names[entry.request.tool] -= 1
        unseen = []
        for identity, tool, asked in calls:
            if identity in ids:
                continue
            for name in [tool] if asked is None else asked:
                if names[name] > 0:
                    names[name] -= 1
                else:
                    unseen.append(f"{tool} ({identity})")
        return unseen

    def lines(self) -> bytes:
        """The log as JSON lines."""
        return b"".join(json.dumps(entry.as_json()).encode() + b"\n" for entry in self.log)


def _refusal(dialect: Dialect) -> str:
    from pytest_paranoia.gates import hook

    return hook.deny(dialect, BROKEN)


def _role(trajectory: Trajectory | None) -> StepRole | None:
    steps = reversed(trajectory.steps) if trajectory is not None else ()
    return next((step_role(step) for step in steps if step.source == "user"), None)


def _calls(trajectory: Trajectory) -> Iterator[tuple[str, str, list[str] | None]]:
    for step in trajectory.steps:
        for call in step.tool_calls or ():
            yield call.tool_call_id, call.function_name, (call.extra or {}).get("gate")
    for child in trajectory.subagent_trajectories or ():
        yield from _calls(child)


def _results(trajectory: Trajectory) -> Iterator[ObservationResult]:
    for step in trajectory.steps:
        yield from step.observation.results if step.observation else ()
    for child in trajectory.subagent_trajectories or ():
        yield from _results(child)


def _handler(service: GateService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 20

        def do_POST(self) -> None:
            status, answer = 200, {"allow": False, "reason": BROKEN}
            try:
                size = int(self.headers.get("Content-Length") or 0)
                if not 0 < size <= _LARGEST:
                    raise ValueError(f"a body of {size} bytes")
                question = json.loads(self.rfile.read(size))
                request = ToolRequest(
                    str(question["tool"]),
                    dict(question.get("arguments") or {}),
                    question.get("call_id"),
                    bool(question.get("subagent")),
                )
            except (ValueError, KeyError, TypeError):
                # Anybody inside may send anything here; it decides about nothing but itself.
                status = 400
            else:
                decision = service.decide(request)
                answer = {"allow": decision.allow, "reason": decision.reason}
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
