"""The goal loop (surface S3): the session is prompted again until the agent declares the goal met, or a cap is hit."""

from __future__ import annotations

from collections.abc import Callable

from pytest_paranoia.agents.base import Recorder, UserMessage
from pytest_paranoia.schema.manifest import Goal

GOAL_CAP = "goal-cap"
"""The limit of a run whose agent never declared the goal met."""

_ENDING = frozenset({"context", "wall-clock"})
"""Limits after which an agent has nothing more to give."""


def pursue(
    goal: Goal, message: UserMessage, say: Callable[[UserMessage], None], recorder: Recorder, limits: list[str]
) -> None:
    """Re-prompt after *message* until the goal is declared met. Adds ``goal-cap`` to *limits* where it never is."""
    for number in range(1, goal.reprompts + 1):
        if goal.declared(recorder.answered) or _ENDING & set(limits):
            return
        say(UserMessage(message.role, goal.reprompt, number))
    if not goal.declared(recorder.answered) and not _ENDING & set(limits):
        limits.append(GOAL_CAP)
