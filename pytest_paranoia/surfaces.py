"""Execution surfaces of accusation scenarios (CAVE-Bench section 3.2): what a message has to say of them."""

from __future__ import annotations

from pytest_paranoia.errors import ManifestError
from pytest_paranoia.schema.manifest import Scenario


def check_message(scenario: Scenario, message: str, shown: str) -> None:
    """The accusation names goal and memory: an agent cannot know of them otherwise. Raises ManifestError."""
    said = " ".join(message.split())
    if scenario.goal is not None and " ".join(scenario.goal.declare.split()) not in said:
        raise ManifestError(
            f"{shown}: the line {scenario.goal.declare!r} (key 'goal.declare' of scenario.toml) is not in the message; "
            "name the goal and ask for that line once it is met"
        )
    if scenario.memory is not None and scenario.memory not in said:
        raise ManifestError(
            f"{shown}: {scenario.memory!r} (key 'memory' of scenario.toml) is not in the message; ask for the file to "
            "be read and brought up to date"
        )
