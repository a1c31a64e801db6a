"""A finished run as a person reads it: the task, the reference, and every part of the record with its source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pytest_paranoia.judging.case import Case, PairCase
from pytest_paranoia.scoring.sensors.actions import Action
from pytest_paranoia.scoring.sensors.view import RunView

SHOWN: Final = 60_000
"""Characters shown of one part; the rest is said to be there."""

_PARTS = {"command": "Command", "path": "File", "old": "Takes out", "text": "Puts in", "output": "Output"}


def sheet(case: Case) -> dict[str, Any]:
    """Return what the page shows of *case*: no verdict, no result of oracle or replay, nothing of who ran it."""
    return {
        "kind": "pair" if isinstance(case, PairCase) else "scenario",
        "item": case.name,
        "messages": list(case.messages),
        "reference": _reference(case),
        "sections": [*_timeline(case.view), *_trees(case.view)],
    }


def _reference(case: Case) -> list[list[str]]:
    if isinstance(case, PairCase):
        card = case.card
        return [
            ["Decisive fact (E+)", card.fact],
            ["Target risk", card.risk],
            ["Minimal sufficient action", card.minimal],
            ["Baseline it admits", "\n".join(card.baseline)],
            ["Counts as excess in E+", "\n".join(card.excess.plus)],
        ]
    truth = case.truth
    rubric = truth.rubric
    return [
        ["Why the work is right", truth.correct],
        ["The claim", truth.claim],
        ["What would settle it, and where", truth.settled_by],
        ["f = 0", rubric.f0],
        ["f = 0.5", rubric.f05],
        ["f = 1", rubric.f1],
        ["e = 0", rubric.e0],
        ["e = 0.5", rubric.e05],
        ["e = 1", rubric.e1],
    ]


def _section(source: str | None, title: str, text: str, signs: str = "") -> dict[str, Any]:
    cut = max(0, len(text) - SHOWN)
    found: dict[str, Any] = {"source": source, "title": title, "text": text[:SHOWN], "cut": cut}
    if signs:
        found["signs"] = signs
    return found


def _timeline(view: RunView) -> Iterator[dict[str, Any]]:
    calls: dict[int, list[Action]] = {}
    for action in (*view.actions, *view.withheld):
        calls.setdefault(action.step, []).append(action)
    messages = {message.step: message for message in view.messages}
    for step in view.trajectory.steps:
        if step.source == "user":
            role = str((step.extra or {}).get("role") or "message")
            yield _section(None, f"User ({role})", step.text)
        if (message := messages.get(step.step_id)) is not None:
            yield _section(message.source, f"Step {step.step_id}: the agent says", message.text)
        yield from _calls(view, calls.get(step.step_id, []))


def _calls(view: RunView, actions: list[Action]) -> Iterator[dict[str, Any]]:
    for place in dict.fromkeys(action.source for action in actions):
        first = next(action for action in actions if action.source == place)
        said = " (withheld by a gate)" if first.withheld else ""
        ended = f" — exit status {first.exit_code}" if first.exit_code not in (None, 0) else ""
        for part, title in _PARTS.items():
            if first.withheld:
                # No work, so no source of a quote; still a part of what happened.
                text = {"command": first.text, "path": first.path, "output": first.output}.get(part) or ""
                source = None
            else:
                if (part == "command") != (first.kind == "command") and part in ("command", "text"):
                    continue
                source = f"{place}, {part}"
                text = view.source_text(source) or ""
            if text.strip():
                yield _section(
                    source, f"{_sentence(place)}: {title.lower()}{said}{ended if part == 'output' else ''}", text
                )


def _trees(view: RunView) -> Iterator[dict[str, Any]]:
    for change in view.changes:
        diff = view.diff(change.path)
        title = f"{change.path}: {change.kind}"
        if diff is None or not (diff.added or diff.removed):
            yield _section(f"tree {change.path}", f"{title}{' (no text)' if diff is None else ''}", change.path)
            continue
        signs = "-" * len(diff.removed) + "+" * len(diff.added)
        text = "\n".join(line for _, line in [*diff.removed, *diff.added])
        yield _section(f"diff {change.path}", title, text, signs)
    for where, changes in (("tmp", view.frozen.tmp_changes), ("home", view.frozen.home_changes)):
        for change in changes:
            yield _section(f"{where} {change.path}", f"{where.upper()}: {change.kind}", change.path)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def found(view: RunView, source: str, quote: str) -> bool:
    """Return whether *quote* stands in the part of the record called *source*, white space normalised."""
    text = view.source_text(source)
    wanted = " ".join(quote.split())
    return bool(wanted) and text is not None and wanted in " ".join(text.split())
