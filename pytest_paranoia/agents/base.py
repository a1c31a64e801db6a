"""The contract of an agent: it gets user messages one by one in an environment, and leaves a trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from pytest_paranoia.environments.base import Environment, ExecResult
from pytest_paranoia.schema.evaluator import ReferenceRun
from pytest_paranoia.schema.record import AgentInfo, Usage
from pytest_paranoia.schema.taxonomy import StepRole
from pytest_paranoia.schema.trajectory import Agent, Observation, ObservationResult, Step, ToolCall, Trajectory


@dataclass(frozen=True)
class AgentChoice:
    """An agent named on the command line. ``name`` is what ids, tables and records show (a word without spaces)."""

    name: str
    harness: str
    model: str | None = None


@dataclass(frozen=True)
class UserMessage:
    """One user message of an item."""

    role: StepRole
    text: str


def now() -> str:
    """The current time in ISO 8601, UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Recorder:
    """Builds the trajectory of a run step by step. User steps carry their role in ``extra``."""

    def __init__(self, agent: AgentInfo) -> None:
        self._agent = Agent(name=agent.harness, version=agent.version, model_name=agent.model)
        self._steps: list[Step] = []
        self._calls = 0

    def user(self, message: UserMessage) -> None:
        """Add a user message."""
        self._add(source="user", message=message.text, extra={"role": message.role})

    def reply(self, text: str) -> None:
        """Add a message of the agent without tool calls."""
        self._add(source="agent", message=text)

    def call(self, function: str, arguments: dict[str, Any], content: str, extra: dict[str, Any]) -> None:
        """Add a step of one tool call and what it gave."""
        self._calls += 1
        identity = f"call_{self._calls}"
        self._add(
            source="agent",
            message="",
            tool_calls=[ToolCall(tool_call_id=identity, function_name=function, arguments=arguments)],
            observation=Observation(results=[ObservationResult(source_call_id=identity, content=content, extra=extra)]),
        )

    def _add(self, **fields: Any) -> None:
        self._steps.append(Step(step_id=len(self._steps) + 1, timestamp=now(), **fields))

    def trajectory(self) -> Trajectory | None:
        """Return what was recorded so far, None while there is nothing."""
        return Trajectory(agent=self._agent, steps=list(self._steps)) if self._steps else None


def shown(result: ExecResult) -> tuple[str, dict[str, Any]]:
    """Return the observation text of a command and its ``extra``: stdout, stderr, and what was cut, said so."""
    text = (result.stdout + result.stderr).decode("utf-8", "backslashreplace")
    if result.dropped:
        text += f"\n[{result.dropped} more bytes of output were dropped]"
    extra: dict[str, Any] = {"exit_code": result.exit_code, "seconds": round(result.seconds, 3)}
    if result.limit:
        extra["limit"] = result.limit
    return text, extra


@dataclass
class AgentContext:
    """What a harness gets for one run. ``deadline`` is a ``time.monotonic`` value.

    ``references`` are the item's reference runs by name, for the scripted harness alone: every other harness gets an
    empty mapping, so that no evaluator file comes near a real agent.
    """

    agent: AgentInfo
    variant: str | None
    environment: Environment
    recorder: Recorder
    deadline: float
    references: Mapping[str, ReferenceRun] = field(default_factory=dict)
    limits: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


class AgentSession(Protocol):
    """One conversation: the same session over all user messages of an item."""

    def message(self, message: UserMessage) -> None:
        """Let the agent work on *message* until it is done. The recorder has the user step already."""

    def close(self) -> None:
        """End the conversation."""


class Harness(Protocol):
    """A kind of agent. ``scripted`` harnesses run commands known beforehand and may run without isolation."""

    name: str
    scripted: bool

    def choose(self, model: str | None) -> AgentChoice:
        """Return the agent of *model*. Raises ``pytest.UsageError`` for one that cannot be."""

    def info(self, choice: AgentChoice) -> AgentInfo:
        """Return what records say of the agent; may ask the tool for its version."""

    def open(self, context: AgentContext) -> AgentSession:
        """Start a conversation."""
