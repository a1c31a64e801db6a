"""A trajectory as the page shows it: messages, commands with output, edits, each under the locator that quotes use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_paranoia.reporting.html.texts import Pieces, Room
from pytest_paranoia.schema.trajectory import ObservationResult, Step, Trajectory
from pytest_paranoia.scoring.sensors.actions import Action, actions_of, step_role

Quotes = Mapping[str, list[str]]
"""Quotes of the verdict by the source they are from."""


def shown_steps(trajectory: Trajectory, room: Room, quotes: Quotes) -> list[dict[str, Any]]:
    """Return the steps of *trajectory* and, behind them, those of its sub-agents."""
    calls: dict[str, list[Action]] = defaultdict(list)
    for action in actions_of(trajectory):
        calls[action.source].append(action)
    share = max(room.left // 6, 400)
    return list(_walk(trajectory, "", calls, room, share, quotes))


def _walk(
    trajectory: Trajectory, prefix: str, calls: Mapping[str, list[Action]], room: Room, share: int, quotes: Quotes
) -> Iterator[dict[str, Any]]:
    last = max((step.step_id for step in trajectory.steps if step.source == "agent" and step.text.strip()), default=0)
    for step in trajectory.steps:
        place = f"{prefix}step {step.step_id}"
        sources = [f"{place}, message"]
        if not prefix and step.step_id == last:
            sources.append("reply")
        shown: dict[str, Any] = {"at": place, "by": step.source}
        if role := step_role(step):
            shown["role"] = role
        if step.text.strip():
            shown["text"] = room.take(step.text, share, [quote for name in sources for quote in quotes.get(name, ())])
        if len(sources) > 1:
            shown["reply"] = 1
        if step.reasoning_content:
            shown["reasoning"] = room.take(step.reasoning_content, share)
        if step.tool_calls:
            shown["calls"] = list(_calls(step, place, calls, room, share, quotes))
        yield shown
    for number, child in enumerate(trajectory.subagent_trajectories or (), start=1):
        yield from _walk(child, f"{prefix}subagent {number}, ", calls, room, share, quotes)


def _calls(
    step: Step, place: str, calls: Mapping[str, list[Action]], room: Room, share: int, quotes: Quotes
) -> Iterator[dict[str, Any]]:
    extras = _extras(step)
    for number, call in enumerate(step.tool_calls or (), start=1):
        source = f"{place}, call {number}"
        actions = calls.get(source, [])
        shown: dict[str, Any] = {"at": source, "tool": call.function_name, "parts": []}
        for name, text in _parts(actions):
            shown["parts"].append([name, room.take(text, share, quotes.get(f"{source}, {name}", ()))])
        if actions:
            first = actions[0]
            if first.output:
                output: Pieces = room.take(first.output, share, quotes.get(f"{source}, output", ()))
                shown["output"] = output
            if first.exit_code is not None:
                shown["exit"] = first.exit_code
        extra = extras.get(call.tool_call_id, {})
        if isinstance(seconds := extra.get("seconds"), int | float):
            shown["seconds"] = seconds
        if extra.get("limit"):
            shown["limit"] = str(extra["limit"])
        yield shown


def _parts(actions: list[Action]) -> Iterator[tuple[str, str]]:
    """Yield what a call was given, named as in locators. A patch of several files repeats its text: shown once."""
    paths = list(dict.fromkeys(action.path for action in actions if action.path))
    if paths:
        yield "path", "\n".join(paths)
    if old := "\n".join(dict.fromkeys(action.old for action in actions if action.old)):
        yield "old", old
    if text := "\n".join(dict.fromkeys(action.text for action in actions if action.text)):
        yield ("command" if actions[0].kind == "command" else "text"), text


def _extras(step: Step) -> dict[str, dict[str, Any]]:
    results: list[ObservationResult] = list(step.observation.results) if step.observation else []
    return {result.source_call_id: result.extra or {} for result in results if result.source_call_id is not None}
