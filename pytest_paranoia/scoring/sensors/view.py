"""A finished run as sensors and judges see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from pytest_paranoia.schema.record import Change, Frozen
from pytest_paranoia.schema.services import ServiceCall
from pytest_paranoia.schema.taxonomy import StepRole
from pytest_paranoia.schema.trajectory import Trajectory
from pytest_paranoia.scoring.sensors import texts
from pytest_paranoia.scoring.sensors.actions import Action, actions_of, step_role
from pytest_paranoia.scoring.sensors.diffs import LineDiff, line_diff
from pytest_paranoia.scoring.sensors.paths import is_residue
from pytest_paranoia.scoring.sensors.pynodes import Node, changed_nodes
from pytest_paranoia.scoring.sensors.simple import Simple, simple_commands

Content = Callable[[str], bytes | None]


@dataclass(frozen=True)
class Message:
    """One message of the agent: its text, where it stands, and the role of the user message it answers."""

    text: str
    source: str
    role: StepRole | None
    step: int


@dataclass(frozen=True)
class RunView:
    """One finished run: what was done, and the trees before and after.

    ``start`` and ``final`` return the content of a regular file of the start and the final tree, by printable path, or
    None. ``before`` is the tree right before the accusation, for self-built scenarios; without it the start tree stands
    in, and ``made`` are the paths in which the two differ. ``workspace`` is the place of the tree as the agent saw it,
    to make absolute paths of tool calls relative.
    ``services`` are the calls of command-line services as they were noted outside the trial.

    Everything derived is computed on first use and kept. ``limits`` collects, in words, what was cut.
    """

    trajectory: Trajectory
    frozen: Frozen
    start: Content
    final: Content
    before: Content | None = None
    made: tuple[str, ...] = ()
    workspace: str = ""
    services: tuple[ServiceCall, ...] = ()
    limits: set[str] = field(default_factory=set, compare=False)

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """Every tool call that ran, subagents' included."""
        return tuple(action for action in actions_of(self.trajectory) if not action.withheld)

    @cached_property
    def withheld(self) -> tuple[Action, ...]:
        """The tool calls that a gate did not let run: attempts, not work."""
        return tuple(action for action in actions_of(self.trajectory) if action.withheld)

    @cached_property
    def commands(self) -> tuple[tuple[Action, tuple[Simple, ...]], ...]:
        """Shell commands with the programs they run."""
        found = []
        for action in self.actions:
            if action.kind == "command":
                if len(action.text) > texts.COMMAND:
                    self.limits.add(
                        f"{action.source}: only the first {texts.COMMAND} characters of the command were read"
                    )
                simples = simple_commands(action.text)
                if len(simples) >= texts.PROGRAMS:
                    self.limits.add(f"{action.source}: only the first {texts.PROGRAMS} programs were looked at")
                found.append((action, simples))
        return tuple(found)

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """Messages of the agent that say something, in order."""
        found, role = [], None
        for step in self.trajectory.steps:
            if step.source == "user":
                role = step_role(step) or role
            elif step.source == "agent" and step.text.strip():
                found.append(Message(step.text, f"step {step.step_id}, message", role, step.step_id))
        return tuple(found)

    @cached_property
    def reply(self) -> str:
        """The agent's last message."""
        return self.trajectory.reply

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Changes of the workspace that are work: without the residue of tools."""
        return tuple(change for change in self.frozen.changes if not is_residue(change.path))

    @cached_property
    def _diffs(self) -> dict[str, LineDiff | None]:
        return {}

    def text(self, content: bytes | None, path: str) -> str | None:
        """Return *content* as text, None where there is none or it is binary. Broken UTF-8 is replaced."""
        if content is None or b"\0" in content[:8_000]:
            return None
        if len(content) > texts.FILE:
            self.limits.add(f"{path}: only the first {texts.FILE} bytes were compared")
            content = content[: texts.FILE]
        return content.decode("utf-8", "replace")

    def diff(self, path: str) -> LineDiff | None:
        """Return the lines *path* gained and lost, None for a file that is no text."""
        if path not in self._diffs:
            start, final = self.start(path), self.final(path)
            old, new = self.text(start, path), self.text(final, path)
            binary = (start is not None and old is None) or (final is not None and new is None)
            diff = None if binary else line_diff(old or "", new or "")
            if diff and max(len(diff.added), len(diff.removed)) > texts.LINES:
                self.limits.add(f"{path}: only the first {texts.LINES} changed lines were matched")
            self._diffs[path] = diff
        return self._diffs[path]

    @cached_property
    def _nodes(self) -> dict[str, tuple[list[Node], list[Node]] | None]:
        return {}

    def nodes(self, path: str) -> tuple[list[Node], list[Node]] | None:
        """Return the syntax nodes of the changed blocks of *path* before and after, None where it is no Python."""
        if path not in self._nodes:
            diff = self.diff(path)
            self._nodes[path] = changed_nodes(diff) if diff is not None else None
        return self._nodes[path]

    def source_text(self, source: str) -> str | None:
        """Return the text that *source* names, so that a quote can be checked against it; None for an unknown source.

        ``step N, call M, command|output|path|text|old`` · ``step N, message`` · ``step N, user`` · ``reply`` ·
        ``diff PATH`` · ``tree PATH`` · ``tmp PATH`` · ``home PATH`` · ``service call N``.
        """
        if source == "reply":
            return self.reply
        kind, _, rest = source.partition(" ")
        if kind == "diff":
            diff = self.diff(rest)
            return None if diff is None else "\n".join(line for _, line in [*diff.removed, *diff.added])
        if kind == "tree":
            known = any(change.path == rest for change in self.frozen.changes)
            content = self.text(self.final(rest), rest)
            return None if not known and content is None else f"{rest}\n{content or ''}"
        if kind == "service":
            return next((call.command for call in self.services if source == f"service call {call.number}"), None)
        if kind in ("tmp", "home"):
            changes = self.frozen.tmp_changes if kind == "tmp" else self.frozen.home_changes
            return rest if any(change.path == rest for change in changes) else None
        return self._trajectory_text(source)

    def _trajectory_text(self, source: str) -> str | None:
        place, _, part = source.rpartition(", ")
        if part == "message":
            return next((message.text for message in self.messages if message.source == source), None)
        if part == "user":
            told = (step for step in self.trajectory.steps if step.source == "user")
            return next((step.text for step in told if f"step {step.step_id}" == place), None)
        found = [action for action in self.actions if action.source == place]
        if not found or part not in ("command", "output", "path", "text", "old"):
            return None
        if part == "output":
            return found[0].output
        if part == "path":
            return "\n".join(action.path or "" for action in found)
        return "\n".join(action.old if part == "old" else action.text for action in found)
