"""The contract of a gate: it is asked before each tool call of an agent, whatever the harness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pytest_paranoia.schema.trajectory import Trajectory


@dataclass(frozen=True)
class ToolRequest:
    """A tool call that is about to run: ``tool`` and ``arguments`` as the harness names them.

    ``call_id`` is the harness's id of the call where it tells one; ``subagent`` whether a subagent makes it.
    """

    tool: str
    arguments: Mapping[str, Any]
    call_id: str | None = None
    subagent: bool = False


@dataclass(frozen=True)
class Decision:
    """``allow``, or a denial whose ``reason`` the model is told."""

    allow: bool
    reason: str = ""


@dataclass(frozen=True)
class GateView:
    """What a gate may look at beside the call: the conversation so far, as far as the harness has shown it.

    ``workspace`` is the workspace's path as the agent sees it; ``facts`` are what the item declares for gates (issue of
    the item, empty where it declares nothing).
    """

    trajectory: Trajectory | None
    workspace: str
    facts: Mapping[str, Any] = field(default_factory=dict)


class Gate(Protocol):
    """One gate. An exception in ``decide`` counts as a denial and makes the trial unscored."""

    name: str
    version: str

    def decide(self, request: ToolRequest, view: GateView) -> Decision:
        """Return whether the call may run. Called from one thread at a time; must answer within ten seconds."""
