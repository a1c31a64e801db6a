"""A command-line agent's transcript against its model's answers, which passed through the relay outside of its reach.

The program keeps its transcript where the agent could write to it. Which tools the model called, and with what, stands
in the wire log as well. What a call gave back does not: that is the program's word alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_paranoia.relay.sse import Splitter, data_of
from pytest_paranoia.relay.wire import Exchange, WireError, read_wire
from pytest_paranoia.schema.trajectory import ToolCall, Trajectory
from pytest_paranoia.tampering.commands import Found

_CALLS = frozenset({"tool_use", "function_call", "custom_tool_call", "local_shell_call"})
_DEEPEST = 12


@dataclass
class Made:
    """One tool call as the model made it. ``text`` is the JSON of its arguments, or what it is where it is none."""

    name: str = ""
    text: str = ""
    parts: list[str] = field(default_factory=list)

    @property
    def said(self) -> str:
        """All that was given as arguments, JSON escapes undone where they can be."""
        text = self.text or "".join(self.parts)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return "\n".join(_strings(value, 0))


def mismatches(wire: Path, trajectory: Trajectory) -> Iterator[Found]:
    """Yield the tool calls that only one of the two knows, and those that the two tell differently."""
    made: dict[str, Made] = {}
    arrived: set[str] = set()
    try:
        for exchange in read_wire(wire):
            if exchange.status == 200 and exchange.by != "relay":
                calls = calls_in(exchange)
                made |= calls
                # What a program hung up on, it may not have heard to its end.
                arrived.update(calls if exchange.main and exchange.ended == "complete" else ())
    except WireError as error:
        yield "transcript-mismatch", f"the model's answers cannot be read: {error}", "wire.jsonl"
        return
    told = dict(_told(trajectory))
    for identity in sorted(arrived - told.keys()):
        text = f"the model called {made[identity].name} ({identity}), and the transcript does not hold it"
        yield "transcript-mismatch", f"{text}: {made[identity].said}", "wire.jsonl"
    for identity, (call, source) in told.items():
        if identity not in made:
            yield "transcript-mismatch", f"the model never made the call {identity} of {call.function_name}", source
        elif (strange := _strange(call.arguments, made[identity].said)) is not None:
            yield "transcript-mismatch", f"the model never gave this to {call.function_name}: {strange}", source


def _told(trajectory: Trajectory, prefix: str = "") -> Iterator[tuple[str, tuple[ToolCall, str]]]:
    for step in trajectory.steps:
        for number, call in enumerate(step.tool_calls or (), start=1):
            # What a script inside a call ran is told as calls of its own: the model made the outer one.
            if "within" not in (call.extra or {}):
                yield call.tool_call_id, (call, f"{prefix}step {step.step_id}, call {number}")
    for number, child in enumerate(trajectory.subagent_trajectories or (), start=1):
        yield from _told(child, f"{prefix}subagent {number}, ")


def _strange(arguments: Mapping[str, Any], said: str) -> str | None:
    """Return a text among *arguments* that is nowhere in what the model *said*."""
    plain = " ".join(said.split())
    for text in _strings(dict(arguments), 0):
        if " ".join(text.split()) not in plain:
            return text
    return None


def _strings(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < _DEEPEST and isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part, depth + 1)


def calls_in(exchange: Exchange) -> dict[str, Made]:
    """Return the tool calls of one answer by their ids, whichever of the three protocols it speaks."""
    body = exchange.body
    splitter = Splitter()
    events = [data_of(event) for event in [*splitter.feed(body), splitter.rest()]]
    found = _Calls()
    for text in events if any(events) else [body]:
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict):
            found.take(message)
    return found.made


class _Calls:
    """Collects tool calls from an answer as a whole, or from the events of a stream."""

    def __init__(self) -> None:
        self.made: dict[str, Made] = {}
        self._open: dict[str, Made] = {}

    def take(self, message: Mapping[str, Any]) -> None:
        """Take a whole answer or one event."""
        kind = message.get("type")
        if kind == "content_block_start":  # Anthropic Messages
            self._open[str(message.get("index"))] = self._item(message.get("content_block")) or Made()
        elif kind == "content_block_delta":
            delta = message.get("delta")
            self._more(str(message.get("index")), delta.get("partial_json") if isinstance(delta, dict) else None)
        elif kind in ("response.output_item.added", "response.output_item.done"):  # OpenAI Responses
            self._item(message.get("item"))
        for choice in _dicts(message.get("choices")):  # Chat Completions
            for place in ("delta", "message"):
                told = choice.get(place)
                for call in _dicts(told.get("tool_calls") if isinstance(told, dict) else None):
                    self._chat(choice.get("index"), call)
        whole = message.get("response") if isinstance(message.get("response"), dict) else message
        for part in (*_dicts(whole.get("content")), *_dicts(whole.get("output"))):  # type: ignore[union-attr]
            self._item(part)

    def _item(self, item: Any) -> Made | None:
        if not isinstance(item, dict) or str(item.get("type")) not in _CALLS:
            return None
        identity = item.get("call_id") or item.get("id")
        if not isinstance(identity, str):
            return None
        made = self.made.setdefault(identity, Made())
        made.name = str(item.get("name") or made.name or item["type"])
        given = item.get("arguments") or item.get("input") or item.get("action")
        if given:
            made.text = given if isinstance(given, str) else json.dumps(given)
        return made

    def _chat(self, choice: object, call: Mapping[str, Any]) -> None:
        key = f"{choice} {call.get('index')}"
        identity = call.get("id")
        if isinstance(identity, str) and identity:
            self._open[key] = self.made.setdefault(identity, Made())
        function = call.get("function")
        if isinstance(function, dict):
            made = self._open.get(key)
            if made is not None and function.get("name"):
                made.name = str(function["name"])
            self._more(key, function.get("arguments"))

    def _more(self, key: str, text: Any) -> None:
        if (made := self._open.get(key)) is not None and isinstance(text, str):
            made.parts.append(text)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []
