"""The contract of an agent: it gets user messages one by one in an environment, and leaves a trajectory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pytest_paranoia.environments.base import Environment, ExecResult, Mount
from pytest_paranoia.relay.contract import Protocol as WireProtocol
from pytest_paranoia.relay.contract import Provider
from pytest_paranoia.schema.evaluator import ReferenceRun
from pytest_paranoia.schema.record import AgentInfo
from pytest_paranoia.schema.taxonomy import StepRole
from pytest_paranoia.schema.trajectory import (
    Agent,
    ContentPart,
    Observation,
    ObservationResult,
    Step,
    ToolCall,
    Trajectory,
)

if TYPE_CHECKING:
    from pytest_paranoia.gates.service import GateService


@dataclass(frozen=True)
class AgentChoice:
    """An agent named on the command line. ``name`` is what ids, tables and records show (a word without spaces).

    ``model`` is the provider's id of the model (for ``scripted`` the name of a run). ``effort`` is the reasoning effort
    in the harness's own words, ``context`` the model's context in tokens, ``max_output`` the most tokens of an answer,
    ``max_turns`` the most model turns of one user message. ``replay`` is an earlier run whose recorded answers are
    served. ``version`` is the harness's, None for the default one.
    """

    name: str
    harness: str
    model: str | None = None
    provider: Provider | None = None
    effort: str | None = None
    context: int | None = None
    max_output: int | None = None
    max_turns: int | None = None
    replay: Path | None = None
    version: str | None = None

    def info(self, version: str) -> AgentInfo:
        """What records say of the agent, run by *version* of its harness."""
        return AgentInfo(
            name=self.name,
            harness=self.harness,
            model=self.model,
            version=version,
            provider=self.provider.name if self.provider else None,
            effort=self.effort,
            context=self.context,
        )

    def protocol(self, spoken: Iterable[WireProtocol]) -> WireProtocol:
        """The first of *spoken*, which stand in the order of preference, that the provider serves; else openai-chat."""
        offered = self.provider.protocols if self.provider else ()
        return next((name for name in spoken if name in offered), "openai-chat")

    def settings(self) -> dict[str, str | int]:
        """What else decides how the agent runs and is not in ``AgentInfo``; what is not set is left out."""
        found = {
            "max_output": self.max_output,
            "max_turns": self.max_turns,
            "replay": self.replay.name if self.replay else None,
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class UserMessage:
    """One user message of an item. ``reprompt`` counts those of a goal loop that follow it; 0 is the message itself."""

    role: StepRole
    text: str
    reprompt: int = 0


def now() -> str:
    """The current time in ISO 8601, UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Recorder:
    """Builds the trajectory of a run step by step. User steps carry their role in ``extra``."""

    def __init__(self, agent: AgentInfo) -> None:
        self._agent = Agent(name=agent.harness, version=agent.version, model_name=agent.model)
        self._steps: list[Step] = []
        self._calls = 0
        self._open: dict[str, Step] = {}
        self._results: dict[str, ObservationResult] = {}
        self._subagents: list[Trajectory] = []
        self._events: list[dict[str, Any]] = []
        self._facts: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._steps)

    def user(self, message: UserMessage, timestamp: str | None = None) -> None:
        """Add a user message."""
        extra: dict[str, Any] = {"role": message.role}
        if message.reprompt:
            extra["reprompt"] = message.reprompt
        self._add(source="user", message=message.text, timestamp=timestamp, extra=extra)

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

    def turn(
        self,
        message: str = "",
        *,
        calls: Sequence[ToolCall] = (),
        reasoning: str | None = None,
        timestamp: str | None = None,
        model: str | None = None,
        extra: dict[str, Any] | None = None,
    ) -> int:
        """Add a turn of the model with the tool calls it made (results come by ``result``) and return its step id."""
        self._add(
            source="agent",
            message=message,
            timestamp=timestamp,
            reasoning_content=reasoning or None,
            tool_calls=list(calls) or None,
            model_name=model,
            extra=extra,
        )
        for call in calls:
            self._open[call.tool_call_id] = self._steps[-1]
        return len(self._steps)

    def more(
        self,
        step_id: int,
        message: str = "",
        *,
        calls: Sequence[ToolCall] = (),
        reasoning: str | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        """Add to the turn *step_id*, for harnesses that show one turn of the model in pieces. Lists in *extra* grow."""
        step = self._steps[step_id - 1]
        known = step.extra or {}
        grown = {
            name: [*known[name], *value] if isinstance(value, list) and isinstance(known.get(name), list) else value
            for name, value in (extra or {}).items()
        }
        step.message = "\n".join(part for part in (step.text, message) if part)
        step.reasoning_content = "\n".join(part for part in (step.reasoning_content, reasoning) if part) or None
        step.tool_calls = [*(step.tool_calls or ()), *calls] or None
        step.extra = {**known, **grown} or None
        for call in calls:
            self._open[call.tool_call_id] = step

    def result(
        self,
        call_id: str,
        content: str | list[ContentPart] | None,
        extra: dict[str, Any] | None = None,
        subagents: Sequence[Trajectory] = (),
    ) -> bool:
        """Add what the tool call *call_id* of an earlier turn gave; return False where there is no such open call.

        ``extra`` of our adapters: ``exit_code``, ``seconds``, ``is_error``, ``denied``. *subagents* are embedded.
        """
        step = self._open.pop(call_id, None)
        if step is None:
            return False
        references = [{"trajectory_id": child.trajectory_id} for child in subagents] or None
        result = ObservationResult(
            source_call_id=call_id, content=content, extra=extra or None, subagent_trajectory_ref=references
        )
        step.observation = Observation(results=[*(step.observation.results if step.observation else ()), result])
        self._results[call_id] = result
        self._subagents += subagents
        return True

    def embed(self, call_id: str, subagents: Sequence[Trajectory]) -> None:
        """Embed *subagents* that the tool call *call_id* started, whether it has its result or will never get one."""
        result = self._results.get(call_id)
        if result is None:
            if not self.result(call_id, None, {"unfinished": True}, subagents):
                self._subagents += subagents
            return
        references = [{"trajectory_id": child.trajectory_id} for child in subagents]
        result.subagent_trajectory_ref = [*(result.subagent_trajectory_ref or ()), *references] or None
        self._subagents += subagents

    def amend(self, call_id: str, extra: dict[str, Any]) -> None:
        """Add to the ``extra`` of a result that is there already; without one this does nothing."""
        if (result := self._results.get(call_id)) is not None:
            result.extra = {**(result.extra or {}), **extra}

    def keep(self, kind: str, event: Any) -> None:
        """Keep an event of the harness that has no place in a step: under ``extra`` of the trajectory, in order."""
        self._events.append({"kind": kind, "after_step": len(self._steps), "event": event})

    def note(self, **facts: Any) -> None:
        """Add to the trajectory's ``extra`` (session ids, versions, what the harness said of itself)."""
        self._facts.update(facts)

    @property
    def at_work(self) -> tuple[StepRole | None, int]:
        """The role of the last user message, and the last step there is."""
        roles = ((step.extra or {}).get("role") for step in reversed(self._steps) if step.source == "user")
        return next(roles, None), len(self._steps)

    @property
    def answered(self) -> str:
        """What the agent has said since the last user message, one message after the other."""
        said: list[str] = []
        for step in reversed(self._steps):
            if step.source == "user":
                break
            if step.source == "agent":
                said.append(step.text)
        return "\n".join(reversed(said))

    @property
    def waiting(self) -> tuple[str, ...]:
        """Ids of the tool calls that have no result yet."""
        return tuple(self._open)

    def _add(self, **fields: Any) -> None:
        fields["timestamp"] = fields.get("timestamp") or now()
        self._steps.append(Step(step_id=len(self._steps) + 1, **fields))

    def trajectory(self) -> Trajectory | None:
        """Return what was recorded so far, None while there is nothing."""
        if not self._steps:
            return None
        extra = {**self._facts, **({"events": list(self._events)} if self._events else {})}
        return Trajectory(
            agent=self._agent,
            steps=list(self._steps),
            extra=extra or None,
            subagent_trajectories=list(self._subagents) or None,
        )


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

    ``choice`` is the agent as asked for. ``model_url`` is where model calls go, without the API's version: a harness
    adds ``/v1`` (``http://127.0.0.1:PORT`` as seen from where ``calls_from`` says); any key will do there. ``private``
    is a host folder of the harness's own, writable inside at ``environment.locate(private)``; it is not part of what
    the agent left. ``python`` is an interpreter inside, for the harness's helpers. ``instructions`` is the text of
    instruction file and rules. ``gate`` is asked before each tool call (see ``gates.service``). ``log`` collects what
    the harness's program printed, for the archive. ``malformed_calls`` counts tool calls of the model that could not be
    read. ``sessions`` are the sessions of processes (``ExecResult.session``) that hold a harness's own program and its
    helpers, and no command of the model: those are started in sessions of their own.
    """

    agent: AgentInfo
    variant: str | None
    environment: Environment
    recorder: Recorder
    deadline: float
    choice: AgentChoice
    model_url: str = ""
    private: Path | None = None
    python: str = ""
    instructions: str | None = None
    gate: GateService | None = None
    log: list[str] = field(default_factory=list)
    malformed_calls: int = 0
    references: Mapping[str, ReferenceRun] = field(default_factory=dict)
    limits: list[str] = field(default_factory=list)
    sessions: set[int] = field(default_factory=set)


class AgentSession(Protocol):
    """One conversation: the same session over all user messages of an item."""

    def message(self, message: UserMessage) -> None:
        """Let the agent work on *message* until it is done. The recorder has the user step already."""

    def close(self) -> None:
        """End the conversation."""


class Harness(Protocol):
    """A kind of agent. ``scripted`` harnesses run commands known beforehand and may run without isolation.

    ``calls_from`` says where its model calls come from: ``inside`` the environment (a program there), ``outside`` (its
    loop runs in the test process), or None where it calls no model. ``protocols`` are those it can speak.
    """

    name: str
    scripted: bool
    calls_from: Literal["inside", "outside"] | None
    protocols: tuple[WireProtocol, ...]

    def choose(self, model: str | None) -> AgentChoice:
        """Return the agent of *model*. Raises ``pytest.UsageError`` for one that cannot be."""

    def info(self, choice: AgentChoice) -> AgentInfo:
        """Return what records say of the agent; may ask the tool for its version."""

    def missing(self, choice: AgentChoice) -> str | None:
        """Return what this machine lacks to run the agent (beside the provider's key), with the remedy in one line."""

    def mounts(self, choice: AgentChoice) -> Sequence[Mount]:
        """Return the host folders the harness needs inside, read-only. Raises InfrastructureError (``harness``)."""

    def open(self, context: AgentContext) -> AgentSession:
        """Start a conversation."""
