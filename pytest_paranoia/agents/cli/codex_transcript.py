"""Codex' transcript: the lines of ``sessions/**/rollout-*.jsonl`` become turns, calls and results.

Newer models call one tool, ``exec``, with JavaScript in which they call the others. What that ran is recorded as calls
of the same turn whose ``extra.within`` names the outer call, with exit status and output of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_paranoia.agents.base import AgentContext, UserMessage
from pytest_paranoia.agents.cli import foreign
from pytest_paranoia.agents.cli.base import ToolCalls
from pytest_paranoia.schema.trajectory import ToolCall

_CALLS = {"function_call", "custom_tool_call", "tool_search_call", "local_shell_call"}
_OUTPUTS = {"function_call_output", "custom_tool_call_output", "tool_search_output"}
# What the harness puts into the conversation itself, and counters.
_CONTEXT = {"additional_tools"}
_KNOWN_EVENTS = {
    *("task_started", "task_complete", "token_count", "thread_settings_applied"),
    *("agent_message", "agent_reasoning", "user_message"),  # said again by response items
}
_KNOWN_LINES = {"session_meta", "turn_context", "world_state"}
_NO_STATUS = -1  # of a command that Codex itself ended
_LINE_SHOWN = 500
_THREAD_LENGTH = 36  # of a UUID, which ends a transcript's name
_SAID_AGAIN = {"UserMessage", "AgentMessage", "Reasoning"}
# Tools that run nothing outside of the program, so no hook is asked about them.
_HARMLESS = {
    *("exec", "wait", "update_plan", "request_user_input", "view_image", "tool_search"),
    "write_stdin",  # without a terminal a command's stdin is closed: this only waits for its output
    *("get_goal", "create_goal", "update_goal"),
    *("spawn_agent", "followup_task", "send_message", "send_input", "interrupt_agent", "list_agents", "wait_agent"),
    *("resume_agent", "close_agent"),
}
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_BLOCKED = "Command blocked by PreToolUse hook"
_UNREADABLE = "failed to parse function arguments"


class Transcript:
    """Follows the transcript of one thread; ``turns`` counts the model's turns since ``begin``."""

    def __init__(self, folder: Path, context: AgentContext, calls: ToolCalls) -> None:
        self._folder = folder
        self._context = context
        self._calls = calls
        self._main: _Thread | None = None
        self._children: dict[Path, _Thread] = {}
        self._before = 0

    def begin(self) -> None:
        """Start to count turns anew."""
        self._before = self._main.turns if self._main else 0

    @property
    def turns(self) -> int:
        """Turns of the model since ``begin``, those of subagents left out."""
        return (self._main.turns if self._main else 0) - self._before

    def read(self, thread: str) -> None:
        """Take what was added to the transcript of *thread*."""
        if self._main is None and not self._folder.is_symlink():
            found = sorted(self._folder.rglob(f"rollout-*-{thread}.jsonl"))
            if not found:
                return
            self._main = _Thread(found[0], self._context, self._calls)
        if self._main is not None:
            self._main.read()

    def subagents(self) -> None:
        """Take the transcripts of subagents, each under the call that started it."""
        if self._main is None:
            raise ValueError(f"there is no transcript of the thread below {self._folder.name}")
        if self._folder.is_symlink():
            raise ValueError(f"{self._folder.name} is a link")
        for path in sorted(self._folder.rglob("rollout-*.jsonl")):
            if path == self._main.path:
                continue
            child = self._children.get(path) or self._child(path)
            if child is not None:
                child.read()

    def _child(self, path: Path) -> _Thread | None:
        thread = path.stem[-_THREAD_LENGTH:]
        parents = [one for one in (self._main, *self._children.values()) if one is not None]
        parent = next((one for one in parents if thread in one.started), self._main)
        if parent is None:
            return None
        # Without a call it stands in the trajectory all the same, at no call.
        calls = parent.calls.subagent(parent.started.get(thread, ""), thread, self._context.agent)
        self._children[path] = child = _Thread(path, self._context, calls, subagent=True)
        return child


class _Thread:
    """One transcript, read from where the last reading ended. ``started`` are its subagents: thread to call."""

    def __init__(self, path: Path, context: AgentContext, calls: ToolCalls, *, subagent: bool = False) -> None:
        self.path = path
        self.calls = calls
        self.turns = 0
        self.started: dict[str, str] = {}
        self._context = context
        self._subagent = subagent
        self._inherited = subagent
        self._at = 0
        self._fresh = True
        self._model: str | None = None
        self._facts: dict[str, dict[str, Any]] = {}
        self._scripts: list[str] = []
        self._called: dict[str, str] = {}

    def read(self) -> None:
        """Take the whole lines that were added. Raises ValueError for one that cannot be read, after all others."""
        private = self._context.private
        assert private is not None
        # The folder is open to the agent: a link in the file's place must not lead out of it.
        with foreign.opened(private, self.path.relative_to(private).as_posix()) as stream:
            if stream is None:
                raise ValueError(f"{self.path.name} is gone")
            stream.seek(self._at)
            data = stream.read()
        whole = data.rfind(b"\n") + 1
        self._at += whole
        bad: ValueError | None = None
        for line in filter(bytes.strip, data[:whole].split(b"\n")):
            try:
                self._line(json.loads(line))
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                shown = line[:_LINE_SHOWN].decode("utf-8", "backslashreplace")
                bad = bad or ValueError(f"line of {self.path.name}: {shown!r}: {error!r}")
        if bad is not None:
            raise bad

    def _line(self, line: dict[str, Any]) -> None:
        kind, payload = line["type"], line["payload"]
        if self._inherited:
            # A subagent may begin with a copy of its parent's history; its own work begins with a task of the parent's.
            attribution = payload.get("turn_attribution") if kind == "event_msg" else None
            self._inherited = not (attribution and attribution.get("parent_turn_id"))
        elif kind == "response_item":
            self._item(payload, line.get("timestamp"))
        elif kind == "event_msg":
            self._event(payload)
        elif kind == "token_usage_record":  # one for each answer of the model: what follows is the next one
            self._fresh = True
        elif kind == "turn_context":
            self._model = payload.get("model")
        elif kind not in _KNOWN_LINES:
            self.calls.recorder.keep(kind, payload)

    # -- what the model and the tools said -----------------------------------------------------------------------------

    def _item(self, item: dict[str, Any], timestamp: str | None) -> None:
        kind = item["type"]
        if kind == "message":
            if item["role"] == "assistant":
                self._turn(timestamp, message=_texts(item["content"]))
        elif kind == "reasoning":
            said = [part.get("text", "") for part in (*(item.get("summary") or ()), *(item.get("content") or ()))]
            if text := "\n".join(part for part in said if part):
                self._turn(timestamp, reasoning=text)
        elif kind in _CALLS:
            self._called[item["call_id"]] = timestamp or ""
            self._turn(timestamp, calls=[self._call(item)])
        elif kind in _OUTPUTS:
            self._output(item, timestamp)
        elif kind == "agent_message" and self._subagent:
            self.calls.recorder.user(UserMessage("task", _texts(item["content"])), timestamp)
        elif kind not in _CONTEXT:
            self.calls.recorder.keep(kind, item)

    def _turn(self, timestamp: str | None, **parts: Any) -> None:
        if self._fresh:
            self._fresh = False
            self.turns += 1
        identity = f"turn {self.turns}"
        self.calls.turn(parts.pop("message", ""), timestamp=timestamp, model=self._model, identity=identity, **parts)

    def _call(self, item: dict[str, Any]) -> ToolCall:
        name, call_id = str(item.get("name") or item["type"].removesuffix("_call")), item["call_id"]
        extra: dict[str, Any] = {}
        arguments: dict[str, Any]
        if "input" in item:
            arguments = {"input": item["input"]}
        else:
            given = item.get("arguments", item.get("action"))
            try:
                read = json.loads(given) if isinstance(given, str) else given
            except ValueError:
                read = given
                self._context.malformed_calls += 1
                extra["gate"] = []
            arguments = read if isinstance(read, dict) else {"arguments": read}
        if name in _HARMLESS:
            extra["gate"] = []
        if name == "exec":
            self._scripts.append(call_id)
        return ToolCall(tool_call_id=call_id, function_name=name, arguments=arguments, extra=extra or None)

    def _output(self, item: dict[str, Any], timestamp: str | None) -> None:
        call_id, output = item["call_id"], item.get("output", item.get("tools"))
        text = _texts(output, "") if isinstance(output, (str, list)) else json.dumps(output)
        head = text.partition("Output:\n")[0]
        failed = text.startswith("Script failed")
        said = text.partition("Script error:\n")[2] if failed else text
        denied = said.startswith(_BLOCKED)
        facts = {**self._facts.pop(call_id, {}), "seconds": _between(self._called.get(call_id), timestamp)}
        if "exit_code" not in facts and (found := _EXIT.search(head)):
            facts["exit_code"] = int(found.group(1))
        facts["denied"] = denied or None
        facts["is_error"] = True if denied or failed or said.startswith(_UNREADABLE) else None
        if not self.calls.result(call_id, text, facts):
            # `notify` in a script, and a script that went on, give a call more than one output.
            self.calls.recorder.keep(item["type"], item)

    # -- what was run --------------------------------------------------------------------------------------------------

    def _event(self, event: dict[str, Any]) -> None:
        if event["type"] != "item_completed":
            if event["type"] not in _KNOWN_EVENTS:
                self.calls.recorder.keep(event["type"], event)
            return
        item = event["item"]
        if item["type"] == "CommandExecution":
            self._ran(item, "exec_command", {"cmd": _command(item["command"])}, item.get("aggregated_output"))
        elif item["type"] == "FileChange":
            given = {"input": _patch(item["changes"])}
            self._ran(item, "apply_patch", given, f"{item.get('stdout', '')}{item.get('stderr', '')}")
        elif item["type"] == "SubAgentActivity" and item.get("kind") == "started":
            self.started[item["agent_thread_id"]] = item["id"]
        elif item["type"] not in _SAID_AGAIN:
            self.calls.recorder.keep(item["type"], item)

    def _ran(self, item: dict[str, Any], name: str, arguments: dict[str, Any], output: str | None) -> None:
        """Take how a command or patch ended: facts of a call of the model, or a call made in a script."""
        call_id = item["id"]
        code = item.get("exit_code")
        facts: dict[str, Any] = {"exit_code": code if code != _NO_STATUS else None}
        if isinstance(spent := item.get("duration"), dict):
            facts["seconds"] = round(spent.get("secs", 0) + spent.get("nanos", 0) / 1e9, 3)
        if name == "apply_patch":
            facts["exit_code"] = 0 if item.get("status") == "completed" else 1
        if self.calls.open(call_id):
            self._facts[call_id] = facts
        elif self.calls.known(call_id):  # it went on in the background after its call had returned
            self.calls.amend(call_id, facts)
        else:
            outer = next(filter(self.calls.open, self._scripts), self._scripts[-1] if self._scripts else None)
            call = ToolCall(
                tool_call_id=call_id,
                function_name=name,
                arguments=arguments,
                extra={"within": outer} if outer is not None else None,
            )
            self.calls.turn(calls=[call], model=self._model, identity=f"turn {self.turns}")
            self.calls.result(call_id, output or "", facts)


def _texts(content: list[dict[str, Any]] | str, joint: str = "\n") -> str:
    """Return the text of a message or an output; what is no text is named."""
    if isinstance(content, str):
        return content
    return joint.join(str(part.get("text", part.get("encrypted_content", f"[{part.get('type')}]"))) for part in content)


def _between(start: str | None, end: str | None) -> float | None:
    """Return the seconds between two times of the transcript."""
    if not start or not end:
        return None
    return round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds(), 3)


def _command(argv: Any) -> str:
    """Return the command line that was given to the shell."""
    if not isinstance(argv, list):
        return str(argv)
    if len(argv) == 3 and str(argv[1]).endswith("c"):
        return str(argv[2])
    return " ".join(map(str, argv))


def _patch(changes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return changes of files as the patch that makes them."""
    lines = ["*** Begin Patch"]
    for path, change in changes.items():
        if change.get("type") == "add":
            lines += [f"*** Add File: {path}", *(f"+{line}" for line in str(change.get("content", "")).splitlines())]
        elif change.get("type") == "delete":
            lines.append(f"*** Delete File: {path}")
        else:
            lines.append(f"*** Update File: {path}")
            if target := change.get("move_path"):
                lines.append(f"*** Move to: {target}")
            lines += str(change.get("unified_diff", "")).splitlines()
    return "\n".join([*lines, "*** End Patch"])
