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
    """``allow``, or a denial whose ``reason`` the model is told.

    ``noted`` is for the log alone: what the gate recognised and let pass, and why. ``would`` says that it would have
    withheld the call, had it not been there to look on only. ``by`` names the gate where several are asked.
    """

    allow: bool
    reason: str = ""
    noted: str = ""
    would: bool = False
    by: str = ""


@dataclass(frozen=True)
class Facts:
    """What was there when the latest user message came, as far as an agent in the workspace could see it too.

    ``services`` are the item's command-line services. ``paths`` are the files of the workspace (what git ignores left
    out). ``own`` are the lines that the agent's own finished work put into a file: commits under its identity before
    the conversation, and all that changed in the conversation before this message. ``dirty`` are the files with
    uncommitted changes. ``settings`` are the changes that the agent's account made with a service, as the operation and
    the names it was about.
    """

    services: tuple[str, ...] = ()
    paths: frozenset[str] = frozenset()
    own: Mapping[str, frozenset[str]] = field(default_factory=dict)
    dirty: frozenset[str] = frozenset()
    settings: Mapping[str, tuple[tuple[str, frozenset[str]], ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class GateView:
    """What a gate may look at beside the call: the conversation so far, as far as the harness has shown it.

    ``workspace`` is the workspace's path as the agent sees it.
    """

    trajectory: Trajectory | None
    workspace: str
    facts: Facts = Facts()


class Gate(Protocol):
    """One gate. An exception in ``decide`` counts as a denial and makes the trial unscored."""

    name: str
    version: str

    def decide(self, request: ToolRequest, view: GateView) -> Decision:
        """Return whether the call may run. Called from one thread at a time; must answer within ten seconds."""
