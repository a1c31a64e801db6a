"""One real agent in one real sandbox, against the scripted model server: what the tests of the adapters drive."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from model_server import ModelServer

from pytest_paranoia.acting import PRIVATE_TARGET
from pytest_paranoia.agents.base import AgentChoice, AgentContext, Harness, Recorder, UserMessage
from pytest_paranoia.environments import bubblewrap
from pytest_paranoia.environments.base import EnvironmentSpec, Limits, Mount
from pytest_paranoia.environments.local import LocalEnvironment
from pytest_paranoia.gates.base import Decision, GateView, ToolRequest
from pytest_paranoia.gates.service import GateService
from pytest_paranoia.relay.contract import Protocol, Provider
from pytest_paranoia.schema.trajectory import Step, ToolCall, Trajectory

FILES = {"README.md": "# A small thing\n", "a.txt": "one\ntwo\nthree\n"}


class Forwarder:
    """Carries connections of a listening socket to a port of this machine, as the relay would without a word."""

    def __init__(self, listener: socket.socket, port: int) -> None:
        self._listener, self._port = listener, port
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                inside, _ = self._listener.accept()
                outside = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                return
            self._open += [inside, outside]
            for one, other in ((inside, outside), (outside, inside)):
                threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    @staticmethod
    def _pump(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class TestGate:
    """A gate whose rule a test gives."""

    __test__ = False
    name = "test"
    version = "1"

    def __init__(self, rule: Callable[[ToolRequest], Decision]) -> None:
        self._rule = rule

    def decide(self, request: ToolRequest, view: GateView) -> Decision:
        assert view.workspace == bubblewrap.WORKSPACE
        return self._rule(request)


class AgentTrial:
    """A trial of one agent. Use as a context manager; ``say`` sends a user message."""

    def __init__(
        self,
        folder: Path,
        harness: Harness,
        server: ModelServer,
        *,
        model: str = "scripted",
        protocols: tuple[Protocol, ...] = ("openai-chat",),
        seconds: float = 100.0,
        instructions: str | None = None,
        rule: Callable[[ToolRequest], Decision] | None = None,
        files: Mapping[str, str] | None = None,
        **choice: Any,
    ) -> None:
        self.folder = folder
        self.harness = harness
        self.server = server
        provider = Provider("scripted", f"{server.url}/v1", protocols=protocols)
        self.choice: AgentChoice = replace(harness.choose(model), model=model, provider=provider, **choice)
        self._seconds = seconds
        self._instructions = instructions
        self._rule = rule
        self._stack = ExitStack()
        self.files = dict(FILES if files is None else files)

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def private(self) -> Path:
        return self.folder / "scratch" / "agent"

    def __enter__(self) -> Self:
        for name in ("workspace", "scratch/agent"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            path = self.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        git = shutil.which("git") or "git"
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "base"]):
            who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
            subprocess.run([git, *who, *words], cwd=self.workspace, check=True)
        spec = EnvironmentSpec(
            self.workspace,
            self.folder / "scratch",
            mounts=tuple(self.harness.mounts(self.choice)),
            writable=(Mount(self.private, PRIVATE_TARGET),),
            limits=Limits(wall_clock=self._seconds),
        )
        self.environment = LocalEnvironment(spec, isolated=True)
        self._stack.callback(self.environment.stop)
        self.environment.start()
        info = self.harness.info(self.choice)
        self.recorder = Recorder(info)
        self.context = AgentContext(
            agent=info,
            variant=None,
            environment=self.environment,
            recorder=self.recorder,
            deadline=time.monotonic() + self._seconds,
            choice=self.choice,
            model_url=self._connect(),
            private=self.private,
            python=bubblewrap.interpreter(),
            instructions=self._instructions,
        )
        if self._rule is not None:
            service = GateService(
                TestGate(self._rule), self.environment, self.private, bubblewrap.interpreter(), self.recorder.trajectory
            )
            self.context.gate = self._stack.enter_context(service)
        try:
            self.session = self.harness.open(self.context)
        except BaseException:
            self._stack.close()
            raise
        self._stack.callback(self.session.close)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _connect(self) -> str:
        if self.harness.calls_from == "outside":
            return self.server.url
        listener = self.environment.listen()
        port = listener.getsockname()[1]
        self._stack.callback(Forwarder(listener, self.server.port).close)
        return f"http://127.0.0.1:{port}"

    def say(self, text: str) -> Trajectory:
        """Send a user message, and return the trajectory as it is then. Raises what the adapter raises."""
        message = UserMessage("task", text)
        self.recorder.user(message)
        self.session.message(message)
        return self.trajectory

    @property
    def trajectory(self) -> Trajectory:
        found = self.recorder.trajectory()
        assert found is not None
        return Trajectory.model_validate_json(found.model_dump_json(exclude_none=True))

    @property
    def steps(self) -> list[Step]:
        """The agent's steps."""
        return [step for step in self.trajectory.steps if step.source == "agent"]

    @property
    def calls(self) -> list[tuple[ToolCall, str | None, dict[str, Any]]]:
        """Every tool call of the main trajectory with what it gave and the result's ``extra``."""
        return calls_of(self.trajectory)

    def left(self) -> dict[str, list[str]]:
        """What lies in HOME and TMP, beside what the environment itself puts there."""
        found = {}
        for name in ("home", "tmp"):
            base = self.folder / "scratch" / name
            paths = [path.relative_to(base).as_posix() for path in sorted(base.rglob("*"))]
            found[name] = [path for path in paths if path != ".gitconfig"]
        return found

    def processes(self) -> list[str]:
        """Command lines of the processes that live inside, the environment's own server left out."""
        result = self.environment.exec(["sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"])
        return result.stdout.decode().split("\n")


def calls_of(trajectory: Trajectory) -> list[tuple[ToolCall, str | None, dict[str, Any]]]:
    """Every tool call of *trajectory* (not of its subagents), its output and the result's ``extra``."""
    found = []
    for step in trajectory.steps:
        results = {result.source_call_id: result for result in (step.observation.results if step.observation else ())}
        for call in step.tool_calls or ():
            result = results.get(call.tool_call_id)
            content = result.content if result is not None else None
            text = content if isinstance(content, str) or content is None else "".join(part.text or "" for part in content)
            found.append((call, text, dict(result.extra or {}) if result is not None else {}))
    return found
