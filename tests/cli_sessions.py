"""Command-line agents in a real sandbox, with their model on a scripted server: what the tests of all of them share."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from model_script import Script
from model_server import ModelServer

from pytest_paranoia.agents.base import AgentChoice, AgentContext, AgentSession, Harness, Recorder, UserMessage
from pytest_paranoia.environments import bubblewrap
from pytest_paranoia.environments.base import EnvironmentSpec, Limits, Mount
from pytest_paranoia.environments.local import LocalEnvironment
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.gates.base import Decision, Gate, GateView, ToolRequest
from pytest_paranoia.gates.service import GateService
from pytest_paranoia.schema.taxonomy import StepRole
from pytest_paranoia.schema.trajectory import ObservationResult, Step, ToolCall, Trajectory
from requirements import require

PRIVATE = "/var/lib/agent"


class Forwarder:
    """Passes connections that come in at *listener* on to a port of this machine, as the relay would."""

    def __init__(self, listener: socket.socket, port: int) -> None:
        self._listener = listener
        self._port = port
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                inside, _ = self._listener.accept()
                try:
                    outside = socket.create_connection(("127.0.0.1", self._port))
                except OSError:
                    inside.close()
                    continue
                threading.Thread(target=self._carry, args=(inside, outside), daemon=True).start()

    def _carry(self, inside: socket.socket, outside: socket.socket) -> None:
        with inside, outside:
            back = threading.Thread(target=self._pass, args=(outside, inside), daemon=True)
            back.start()
            self._pass(inside, outside)
            back.join()

    @staticmethod
    def _pass(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class Veto:
    """A gate that denies the calls whose arguments hold a word; ``seen`` is what it was asked."""

    name = "veto"
    version = "1"

    def __init__(self, word: str = "forbidden", *, broken: bool = False) -> None:
        self.word = word
        self.broken = broken
        self.seen: list[ToolRequest] = []

    def decide(self, request: ToolRequest, view: GateView) -> Decision:
        assert view.workspace == "/workspace"
        self.seen.append(request)
        if self.broken:
            raise RuntimeError("the gate is broken")
        return Decision(self.word not in str(request.arguments), f"no {self.word} here")


@dataclass
class Run:
    """One conversation under way: ``say`` a message, then look at ``trajectory``."""

    harness: Harness
    context: AgentContext
    environment: LocalEnvironment
    server: ModelServer
    scratch: Path
    workspace: Path
    gate: GateService | None = None
    _session: AgentSession | None = None

    def say(self, text: str, role: StepRole = "task") -> Trajectory:
        """Send one user message and return the trajectory so far."""
        message = UserMessage(role, text)
        self.context.recorder.user(message)
        if self._session is None:
            self._session = self.harness.open(self.context)
        self._session.message(message)
        return self.trajectory

    def stop(self) -> None:
        """End the conversation."""
        if self._session is not None:
            self._session.close()

    @property
    def trajectory(self) -> Trajectory:
        """What is recorded; also as the record keeps it."""
        found = self.context.recorder.trajectory()
        assert found is not None
        return Trajectory.model_validate_json(found.model_dump_json(exclude_none=True))

    def left_behind(self) -> list[str]:
        """What lies in HOME and TMP, as a record's ``home_changes`` and ``tmp_changes`` would show it."""
        found = []
        for name in ("home", "tmp"):
            folder = self.scratch / name
            found += [f"{name}/{path.relative_to(folder)}" for path in folder.rglob("*")]
        return sorted(name for name in found if name != "home/.gitconfig")


@dataclass
class Bench:
    """Makes conversations with one harness."""

    harness: Harness
    folder: Path
    running: list[Any] = field(default_factory=list)

    def start(
        self,
        script: Script | dict[str, Script] | Any,
        *,
        model: str = "scripted-model",
        seconds: float = 120.0,
        gate: Gate | None = None,
        instructions: str | None = None,
        files: dict[str, str] | None = None,
        **choice: Any,
    ) -> Run:
        """Bring up server, sandbox and context; *choice* are fields of AgentChoice. ``say`` opens the session."""
        base = self.folder / str(len(self.running))
        workspace, scratch, private = base / "workspace", base / "scratch", base / "agent"
        for one in (workspace, scratch, private):
            one.mkdir(parents=True)
        for name, text in (files or {}).items():
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_text(text)
        chosen = AgentChoice(name="under-test", harness=self.harness.name, model=model, **choice)
        server = ModelServer(script)
        self.running.append(server)
        server.__enter__()
        spec = EnvironmentSpec(
            workspace,
            scratch,
            mounts=self.harness.mounts(chosen),
            writable=[Mount(private, PRIVATE)],
            limits=Limits(wall_clock=seconds),
        )
        environment = LocalEnvironment(spec, isolated=True)
        environment.start()
        self.running.append(environment)
        listener = environment.listen()
        self.running.append(listener)
        Forwarder(listener, server.port)
        inside = f"http://127.0.0.1:{listener.getsockname()[1]}"
        info = self.harness.info(chosen)
        context = AgentContext(
            agent=info,
            variant=None,
            environment=environment,
            recorder=Recorder(info),
            deadline=time.monotonic() + seconds,
            choice=chosen,
            model_url=server.url if self.harness.calls_from == "outside" else inside,
            private=private,
            python=bubblewrap.interpreter(),
            instructions=instructions,
        )
        run = Run(self.harness, context, environment, server, scratch, workspace)
        self.running.append(run)
        if gate is not None:
            run.gate = context.gate = GateService(
                gate, environment, private, context.python, context.recorder.trajectory
            )
            run.gate.__enter__()
        return run

    def close(self) -> None:
        """End everything."""
        for one in reversed(self.running):
            if isinstance(one, LocalEnvironment):
                one.stop()
            elif isinstance(one, socket.socket):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()
            else:
                one.stop()


@contextmanager
def bench(harness: Harness, folder: Path) -> Iterator[Bench]:
    """A bench that ends what it started; skips where the machine lacks the sandbox or the program."""
    require("bubblewrap")
    require(harness.name)
    made = Bench(harness, folder)
    try:
        yield made
    finally:
        made.close()


def calls(trajectory: Trajectory) -> list[tuple[ToolCall, ObservationResult | None]]:
    """The tool calls of the main agent with what they gave."""
    found: list[tuple[ToolCall, ObservationResult | None]] = []
    for step in trajectory.steps:
        results = {one.source_call_id: one for one in step.observation.results} if step.observation else {}
        found += [(call, results.get(call.tool_call_id)) for call in step.tool_calls or ()]
    return found


def agent_steps(trajectory: Trajectory) -> list[Step]:
    """The steps of the agent."""
    return [step for step in trajectory.steps if step.source == "agent"]


def refused(run: Run, text: str = "Do it.") -> InfrastructureError:
    """Say *text* and return the error that it must end with."""
    with pytest.raises(InfrastructureError) as caught:
        run.say(text)
    return caught.value
