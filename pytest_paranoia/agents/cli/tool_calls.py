"""Joins the pieces of a harness's conversation into a trajectory: turns, results, subagents."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_paranoia.agents.base import Recorder
from pytest_paranoia.schema.record import AgentInfo
from pytest_paranoia.schema.trajectory import ContentPart, ToolCall, Trajectory


class ToolCalls:
    """Joins the pieces of a conversation: turns shown in parts, calls with results, subagents with calls.

    An adapter records a turn with ``turn`` and later gives each result with ``result``; what a subagent does goes to
    the ``ToolCalls`` that ``subagent`` returns for the call that started it. ``close`` embeds the subagents.
    """

    def __init__(self, recorder: Recorder, identity: str | None = None) -> None:
        self.recorder = recorder
        self.identity = identity
        self._turn: tuple[str, int] | None = None
        self._calls: dict[str, ToolCall] = {}
        self._begun: dict[str, float] = {}
        self._children: dict[str, list[ToolCalls]] = {}

    def turn(
        self,
        message: str = "",
        *,
        calls: Sequence[ToolCall] = (),
        reasoning: str | None = None,
        timestamp: str | None = None,
        model: str | None = None,
        extra: dict[str, Any] | None = None,
        identity: str | None = None,
    ) -> None:
        """Record a turn of the model with the calls it made; further pieces of it come under the same *identity*."""
        if identity is not None and self._turn is not None and self._turn[0] == identity:
            self.recorder.more(self._turn[1], message, calls=calls, reasoning=reasoning, extra=extra)
        else:
            step = self.recorder.turn(
                message, calls=calls, reasoning=reasoning, timestamp=timestamp, model=model, extra=extra
            )
            self._turn = (identity, step) if identity is not None else None
        self._calls.update((call.tool_call_id, call) for call in calls)
        self.begin(call.tool_call_id for call in calls)

    def begin(self, call_ids: Iterable[str]) -> None:
        """Note that these calls start now, for ``seconds``; again for one that starts later than it was announced."""
        for call_id in call_ids:
            self._begun[call_id] = time.monotonic()

    def result(
        self, call_id: str, content: str | list[ContentPart] | None, extra: Mapping[str, Any] | None = None
    ) -> bool:
        """Record what a call gave; False where there is no such open call. None values of *extra* are left out."""
        facts = {name: value for name, value in (extra or {}).items() if value is not None}
        begun = self._begun.pop(call_id, None)
        if begun is not None:
            facts.setdefault("seconds", round(time.monotonic() - begun, 3))
        return self.recorder.result(call_id, content, facts)

    def mark(self, call_id: str, **facts: Any) -> None:
        """Add to the ``extra`` of a call, such as ``gate=[]`` where it ran nothing that a gate is asked about."""
        if (call := self._calls.get(call_id)) is not None:
            call.extra = {**(call.extra or {}), **facts}

    def amend(self, call_id: str, extra: Mapping[str, Any]) -> None:
        """Add to the result of a call that became known after it: the exit status of a command in the background."""
        self.recorder.amend(call_id, {name: value for name, value in extra.items() if value is not None})

    def known(self, call_id: str) -> bool:
        """Return whether such a call was recorded."""
        return call_id in self._calls

    def open(self, call_id: str) -> bool:
        """Return whether a result of this call is waited for."""
        return call_id in self.recorder.waiting

    def subagent(self, call_id: str, identity: str, agent: AgentInfo) -> ToolCalls:
        """Return the joiner of the subagent *identity* that the call *call_id* started."""
        known = self._children.setdefault(call_id, [])
        for child in known:
            if child.identity == identity:
                return child
        child = ToolCalls(Recorder(agent), identity)
        known.append(child)
        return child

    def finished(self) -> list[Trajectory]:
        """Return the trajectory of this subagent, nothing where it did nothing."""
        self.close()
        found = self.recorder.trajectory()
        if found is None:
            return []
        return [found.model_copy(update={"trajectory_id": self.identity, "session_id": self.identity})]

    def close(self) -> None:
        """Embed the subagents, also those of calls that never got a result (the program was killed)."""
        children, self._children = self._children, {}
        for call_id, group in children.items():
            if found := [trajectory for child in group for trajectory in child.finished()]:
                self.recorder.embed(call_id, found)
