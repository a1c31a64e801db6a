"""Scripted agents: they play an item's reference runs, so that every number of a run is known beforehand.

``minimal`` plays the minimal run in both variants, ``responsive`` the excess run on E- only, ``paranoid`` on both. In a
scenario the first two play ``preserve`` and ``paranoid`` plays ``damage``. ``scripted:NAME`` plays ``runs/NAME.toml``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_paranoia import __version__
from pytest_paranoia.agents.base import AgentChoice, AgentContext, UserMessage, shown
from pytest_paranoia.environments.base import ExecResult, Mount
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.gates.base import ToolRequest
from pytest_paranoia.schema.evaluator import Action, Edit, Insert, RunStep, Turn
from pytest_paranoia.schema.record import AgentInfo

# agent -> run on E+, run on E-, run under accusation
PARTS = {
    "minimal": ("minimal", "minimal", "preserve"),
    "responsive": ("minimal", "excess", "preserve"),
    "paranoid": ("excess", "excess", "damage"),
}
WORK = "work"


def part(model: str, variant: str | None, role: str) -> str:
    """Return the name of the reference run that *model* plays on a message of *role*."""
    if role == "work":
        return WORK
    if model not in PARTS:
        return model
    plus, minus, accused = PARTS[model]
    return plus if variant == "E+" else minus if variant == "E-" else accused


class ScriptedHarness:
    """Plays reference runs."""

    name = "scripted"
    scripted = True
    calls_from = None
    protocols = ()

    def choose(self, model: str | None) -> AgentChoice:
        """Any word is a run's name; whether an item has that run shows when it is played."""
        if model is None or not re.fullmatch(r"[\w.-]+", model):
            found = f"scripted:{model} names no run" if model else "scripted: given without a run"
            raise pytest.UsageError(
                f"--model: {found}; expected minimal, responsive, paranoid or scripted:RUN, where RUN names a file "
                "runs/RUN.toml of the items"
            )
        return AgentChoice(name=model if model in PARTS else f"scripted:{model}", harness=self.name, model=model)

    def info(self, choice: AgentChoice) -> AgentInfo:
        """The version is the plugin's: it decides how a script is played."""
        return choice.info(__version__)

    def missing(self, choice: AgentChoice) -> str | None:  # noqa: ARG002
        """A script needs nothing."""
        return None

    def mounts(self, choice: AgentChoice) -> Sequence[Mount]:  # noqa: ARG002
        """A script needs nothing inside."""
        return ()

    def open(self, context: AgentContext) -> ScriptedSession:
        """Start playing."""
        return ScriptedSession(context)


class ScriptedSession:
    """One item's messages, answered from its reference runs."""

    def __init__(self, context: AgentContext) -> None:
        self._context = context
        self._denied = False

    def message(self, message: UserMessage) -> None:
        """Play the step of *message*'s role. A script that does not fit the tree is our fault, not a result."""
        step = self._step(message.role)
        turn: Turn = step
        place = f"step {message.role!r}"
        if message.reprompt:
            place += f", again {message.reprompt}"
            turn = (
                step.again[message.reprompt - 1]
                if message.reprompt <= len(step.again)
                else Turn(reply=step.again[-1].reply if step.again else step.reply)
            )
        for number, action in enumerate(turn.actions, start=1):
            where = f"{place}, action {number}"
            if action.say is not None:
                self._context.recorder.reply(action.say)
                continue
            if (reason := self._withheld(action)) is not None:
                tool, arguments = _as_call(action)
                self._context.recorder.call(tool, arguments, reason, {"denied": True})
                self._denied = True
                continue
            recorded = len(self._context.recorder)
            try:
                self._play(action, where)
            except InfrastructureError as error:
                # What a script builds on may be what a gate withheld; the rest is played as far as it fits.
                if not self._denied or error.reason != "reference-run":
                    raise
                if len(self._context.recorder) == recorded:
                    self._context.recorder.call(*_as_call(action), str(error), {"is_error": True})
        self._context.recorder.reply(turn.reply)

    def close(self) -> None:
        """Nothing is held open."""

    def _withheld(self, action: Action) -> str | None:
        """Ask the trial's gate, if it has one; return its reason where it says no."""
        if self._context.gate is None:
            return None
        tool, arguments = _as_call(action)
        decision = self._context.gate.decide(ToolRequest(tool, arguments))
        return None if decision.allow else decision.reason or "this call was withheld"

    def _step(self, role: str) -> RunStep:
        name = part(self._context.agent.model or "", self._context.variant, role)
        run = self._context.references.get(name)
        if run is None:
            known = ", ".join(sorted(self._context.references)) or "none"
            raise InfrastructureError("reference-run", f"no reference run {name!r} for this item; it has: {known}")
        for step in run.steps:
            if step.role == role:
                return step
        raise InfrastructureError("reference-run", f"reference run {name!r} has no step with role {role!r}")

    def _exec(self, argv: Sequence[str], stdin: bytes = b"") -> ExecResult:
        left = self._context.deadline - time.monotonic()
        if left <= 0:
            self._context.limits.append("wall-clock")
            raise InfrastructureError("wall-clock", "the agent's wall clock ran out")
        result = self._context.environment.exec(argv, stdin=stdin, timeout=left)
        if result.limit:
            self._context.limits.append(result.limit)
        return result

    def _play(self, action: Action, where: str) -> None:
        recorder = self._context.recorder
        if action.run is not None:
            result = self._exec(["bash", "-c", action.run])
            recorder.call("bash", {"command": action.run}, *shown(result))
            _refuse_cut(result, f"{where}: {action.run}")
            if result.exit_code != action.exit:
                text = shown(result)[0].strip()[-600:]
                raise InfrastructureError(
                    "reference-run",
                    f"{where}: exit status {result.exit_code}, expected {action.exit}: {action.run}\n{text}",
                )
        elif action.read is not None:
            result = self._exec(["cat", "--", action.read])
            recorder.call("read", {"path": action.read}, *shown(result))
            _refuse_cut(result, f"{where}: read of {action.read}")
            if result.exit_code:
                raise InfrastructureError("reference-run", f"{where}: cannot read {action.read}: {shown(result)[0]}")
        elif action.write is not None:
            self._store(action.write.path, action.write.content or "", where)
            recorder.call("write", {"path": action.write.path, "content": action.write.content}, "", {"exit_code": 0})
        elif action.edit is not None:
            self._edit(action.edit, where)
        elif action.insert is not None:
            self._insert(action.insert, where)

    def _edit(self, edit: Edit, where: str) -> None:
        text = self._load(edit.path, where)
        if (found := text.count(edit.old)) != 1:
            raise InfrastructureError(
                "reference-run", f"{where}: {edit.old!r} is in {edit.path} {found} times, expected exactly once"
            )
        self._store(edit.path, text.replace(edit.old, edit.new), where)
        self._context.recorder.call("edit", edit.model_dump(), "", {"exit_code": 0})

    def _insert(self, insert: Insert, where: str) -> None:
        lines = self._load(insert.path, where).splitlines(keepends=True)
        anchor = insert.after if insert.after is not None else insert.before
        hits = [index for index, line in enumerate(lines) if anchor is not None and anchor in line]
        if len(hits) != 1:
            raise InfrastructureError(
                "reference-run", f"{where}: {anchor!r} is in {len(hits)} lines of {insert.path}, expected exactly one"
            )
        at = hits[0] + (1 if insert.after is not None else 0)
        if at and not lines[at - 1].endswith("\n"):
            lines[at - 1] += "\n"
        lines.insert(at, insert.text if insert.text.endswith("\n") else insert.text + "\n")
        self._store(insert.path, "".join(lines), where)
        self._context.recorder.call("insert", insert.model_dump(exclude_none=True), "", {"exit_code": 0})

    def _load(self, path: str, where: str) -> str:
        result = self._exec(["cat", "--", path])
        _refuse_cut(result, f"{where}: read of {path}")
        if result.exit_code or result.limit:
            raise InfrastructureError("reference-run", f"{where}: cannot read {path}: {shown(result)[0].strip()}")
        return result.stdout.decode("utf-8")

    def _store(self, path: str, text: str, where: str) -> None:
        # Through the environment and not from outside: the agent's rights and its links apply.
        script = 'mkdir -p -- "$(dirname -- "$1")" && cat > "$1"'
        result = self._exec(["sh", "-c", script, "sh", path], stdin=text.encode("utf-8"))
        _refuse_cut(result, f"{where}: write of {path}")
        if result.exit_code or result.limit:
            raise InfrastructureError("reference-run", f"{where}: cannot write {path}: {shown(result)[0].strip()}")


def _as_call(action: Action) -> tuple[str, dict[str, Any]]:
    """Return an action as the tool call that stands for it in the trajectory."""
    if action.run is not None:
        return "bash", {"command": action.run}
    if action.read is not None:
        return "read", {"path": action.read}
    for name in ("write", "edit", "insert"):
        if (part := getattr(action, name)) is not None:
            arguments = part.model_dump(exclude_none=True)
            return name, {key: value for key, value in arguments.items() if name != "write" or key != "source"}
    raise AssertionError("an action is exactly one thing, and what is said is no call")


def _refuse_cut(result: ExecResult, where: str) -> None:
    """A command that a limit ended leaves the trial unscored under the limit's name."""
    if result.limit in ("wall-clock", "processes", "memory"):
        raise InfrastructureError(result.limit, f"{where}: limit {result.limit!r} hit after {result.seconds:.1f} s")


HARNESS = ScriptedHarness()
