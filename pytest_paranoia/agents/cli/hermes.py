"""Hermes: ``hermes chat -q``, one process per user message, all in one session.

Hermes prints no events, only its last answer. What it did is read from its session store, a data base in the trial's
private folder that it writes as it goes along, so that a killed run keeps its steps. ``--paranoia-instructions`` go
into ``SOUL.md``, behind Hermes' own text: the one file of its own that it always shows the model.
"""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from collections.abc import Container, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pytest_paranoia.agents.base import AgentContext, UserMessage
from pytest_paranoia.agents.cli import foreign
from pytest_paranoia.agents.cli.base import CliHarness, CliSession, Command, ToolCalls
from pytest_paranoia.environments.base import ExecResult
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.relay.contract import Protocol
from pytest_paranoia.schema.trajectory import ToolCall

_MODES: dict[Protocol, str] = {
    "openai-chat": "chat_completions",
    "openai-responses": "codex_responses",
}
_CONTEXT = 200_000
_SESSION = re.compile(r"^session_id: (\S+)$", re.MULTILINE)
_UNREAD = re.compile(r"Tool '.*' does not exist\.|Error: Invalid JSON arguments|Skipped: other tool call")
_REFUSAL = "The model declined to respond to this request"
# Asked with -q, Hermes would send subagents into the background and end without waiting for them. With -z it does not,
# which keeps no session; so the plugin declares what -z declares.
_PLUGIN = """\
from gateway.session_context import declare_stateless_channel


def register(ctx):
    declare_stateless_channel()
"""
# Tools that answer with an object whose text lies under this key.
_TEXTS = {"terminal": "output", "read_file": "content", "execute_code": "output"}


class HermesHarness(CliHarness):
    """Runs the ``hermes`` that is installed in the machine's cache."""

    name: str = "hermes"
    protocols: tuple[Protocol, ...] = tuple(_MODES)
    efforts = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra")

    def open(self, context: AgentContext) -> HermesSession:
        """Start a conversation."""
        return HermesSession(self, context)


@dataclass(frozen=True)
class _Row:
    """One message of the session store."""

    number: int
    session: str
    role: str
    content: str
    calls: list[dict[str, Any]]
    call_id: str | None
    tool: str | None
    timestamp: float
    finish: str | None
    reasoning: str | None


class HermesSession(CliSession):
    """One conversation with Hermes."""

    _session: str | None = None
    _seen: int = 0
    _ended: bool = False
    _spent: bool = False

    def configure(self) -> None:
        """Write Hermes' settings and instructions."""
        # JSON is YAML.
        self.write("config.yaml", json.dumps(self._settings(), indent=1))
        self.write("plugins/waiting/plugin.yaml", json.dumps({"name": "waiting", "version": "1.0.0"}))
        self.write("plugins/waiting/__init__.py", _PLUGIN)
        if self.context.instructions is not None:
            self.write("SOUL.md", f"{self._soul()}\n\n{self.context.instructions}")

    def _settings(self) -> dict[str, Any]:
        choice = self.context.choice
        protocol = choice.protocol(_MODES)
        agent: dict[str, Any] = {"environment_probe": False, "api_max_retries": 1}
        if choice.effort is not None:
            agent["reasoning_effort"] = choice.effort
        if choice.max_turns is not None:
            agent["max_turns"] = choice.max_turns
        model: dict[str, Any] = {"default": choice.model, "provider": "custom:runtime"}
        if choice.max_output is not None:
            model["max_tokens"] = choice.max_output
        settings: dict[str, Any] = {
            "model": model,
            "custom_providers": [
                {
                    "name": "runtime",
                    "model": choice.model,
                    "base_url": f"{self.context.model_url}/v1",
                    "key_env": "HERMES_RUNTIME_KEY",
                    "api_mode": _MODES[protocol],
                    "context_length": choice.context or _CONTEXT,
                }
            ],
            "agent": agent,
            "memory": {"memory_enabled": False, "user_profile_enabled": False},
            "checkpoints": {"enabled": False},
            "curator": {"enabled": False},
            "plugins": {"enabled": ["waiting"]},
            "auxiliary": {"title_generation": {"enabled": False}},
            "security": {"allow_lazy_installs": False, "tirith_enabled": False},
            # Else it starts `npm install pyright` after an edit, which has no network and outlives the conversation.
            "lsp": {"install_strategy": "manual"},
        }
        if self.context.gate is not None:
            # Hermes starts a hook without a shell.
            command = f"sh -c {shlex.quote(self.context.gate.hook_command('hermes'))}"
            settings["hooks"] = {"pre_tool_call": [{"command": command, "timeout": 30}]}
        return settings

    def _soul(self) -> str:
        """Return the text that Hermes itself writes into SOUL.md at its first start."""
        script = "from hermes_cli.default_soul import DEFAULT_SOUL_MD; print(DEFAULT_SOUL_MD)"
        python = self.program.rsplit("/", 1)[0] + "/python"
        result = self.context.environment.exec([python, "-I", "-c", script], timeout=120)
        if result.exit_code:
            said = result.stderr.decode("utf-8", "backslashreplace").strip()[-300:]
            raise InfrastructureError("harness", f"hermes: its own text for SOUL.md was not found: {said}")
        return result.stdout.decode("utf-8").strip()

    def variables(self) -> dict[str, str]:
        """Keep Hermes' state in the private folder."""
        return {"HERMES_HOME": self.inside, "HERMES_RUNTIME_KEY": "none", "HERMES_DISABLE_LAZY_INSTALLS": "1"}

    def command(self, text: str) -> Command:
        """Return ``hermes chat -q`` with the message."""
        argv = [self.program, "--yolo", "--accept-hooks", "chat", "-Q"]
        if self.context.choice.max_turns is not None:
            argv += ["--max-turns", str(self.context.choice.max_turns)]
        if self._session is not None:
            argv += ["--resume", self._session]
        return Command([*argv, f"--query={text}"])

    def event(self, event: dict[str, Any]) -> None:
        """Hermes prints no events."""
        self.recorder.keep("event", event)

    def line(self, text: str) -> None:
        """Take a line of the answer for people: the session store holds the same, in full."""

    # -- its session store ---------------------------------------------------------------------------------------------

    def settle(self, result: ExecResult | None) -> None:
        """Record what the session store gained."""
        if result is not None and (found := _SESSION.findall(result.stderr.decode("utf-8", "replace"))):
            self._session = found[-1]
        with foreign.database(self.private, "state.db") as database:
            if database is None:
                return
            store = _Store.read(database, self._seen)
        self._seen = max((row.number for row in store.rows), default=self._seen)
        if self._session is None:
            self._session = next((name for name, parent in store.parents.items() if parent is None), None)
        self.recorder.note(session_id=self._session)
        rows = [row for row in store.rows if row.session == self._session]
        self._record(self.calls, rows, store)
        answers = [row for row in rows if row.role == "assistant"]
        self._ended = bool(rows) and rows[-1].role == "assistant" and not rows[-1].calls
        most = self.context.choice.max_turns
        self._spent = most is not None and sum(bool(row.calls) for row in answers) >= most

    def _record(self, calls: ToolCalls, rows: list[_Row], store: _Store) -> None:
        """Record the messages *rows* of one session, and the sessions that its calls started."""
        before = 0.0
        for row in rows:
            if row.role == "assistant":
                self._turn(calls, row, {other.call_id for other in rows if _UNREAD.match(other.content)})
            elif row.role == "tool" and row.call_id is not None:
                for child in store.started_by(row.call_id, rows):
                    self._subagent(calls, row.call_id, child, store)
                text, extra = _result(row)
                extra["seconds"] = round(max(row.timestamp - before, 0.0), 3)
                calls.result(row.call_id, text, {**extra, "denied": True if self._denied(row) else None})
            elif row.role == "user" and calls is not self.calls:
                calls.recorder.user(UserMessage("task", row.content))
            before = row.timestamp

    def _turn(self, calls: ToolCalls, row: _Row, unread: Container[str | None]) -> None:
        made = [_tool_call(call) for call in row.calls]
        for call in made:
            if call.tool_call_id in unread:
                self.context.malformed_calls += 1
                call.extra = {"gate": []}  # it did not get as far as a hook
        calls.turn(
            row.content,
            calls=made,
            reasoning=row.reasoning,
            timestamp=_time(row.timestamp),
            extra={"message_id": row.number, "finish": row.finish},
        )

    def _subagent(self, calls: ToolCalls, call_id: str, session: str, store: _Store) -> None:
        child = calls.subagent(call_id, session, self.context.agent)
        self._record(child, [row for row in store.rows if row.session == session], store)

    def _denied(self, row: _Row) -> bool:
        gate = self.context.gate
        if gate is None:
            return False
        return any(entry.request.call_id == row.call_id and not entry.decision.allow for entry in gate.log)

    # -- how it ended --------------------------------------------------------------------------------------------------

    def failure(self, result: ExecResult) -> InfrastructureError | None:
        """Return the error that Hermes ended with: it says so on either stream and by its exit status."""
        if self._spent:  # Hermes then has the model sum up, and ends as if nothing were missing
            self.stop("max-turns", f"{self.context.choice.max_turns} turns of the model were not enough")
        if result.exit_code <= 0:  # of a signal the caller tells
            return None
        if self.accepted(result):
            # A result of the agent; its session store does not hold the words.
            text = result.stdout.decode("utf-8", "replace").strip()
            self.calls.turn(text, extra={"finish": "refusal"})
            self._ended = True
            return None
        said = (result.stderr + b"\n" + result.stdout).decode("utf-8", "replace").strip()
        return InfrastructureError("model-refused", f"hermes ended with status {result.exit_code}: {said[-1000:]}")

    def accepted(self, result: ExecResult) -> bool:
        """Return whether the model refused to answer."""
        return _REFUSAL.encode() in result.stdout

    def complete(self) -> bool:
        """Return whether the session ends with an answer."""
        return self._ended


@dataclass(frozen=True)
class _Store:
    """What the session store gained: the messages in order, and by session the one it was started by."""

    rows: list[_Row]
    parents: dict[str, str | None]

    @classmethod
    def read(cls, database: sqlite3.Connection, after: int) -> _Store:
        """Read what came after the message number *after*."""
        names = (
            "id, session_id, role, content, tool_calls, tool_call_id, tool_name, timestamp, finish_reason, reasoning"
        )
        rows = []
        for number, session, role, content, calls, *rest in database.execute(
            f"select {names} from messages where id > ? order by id", (after,)
        ):
            rows.append(_Row(number, session, role, content or "", json.loads(calls or "[]"), *rest))
        parents = database.execute("select id, parent_session_id from sessions order by started_at").fetchall()
        return cls(rows, dict(parents))

    def started_by(self, call_id: str, rows: list[_Row]) -> list[str]:
        """Return the sessions that the call *call_id* among *rows* started: those that were given its words."""
        made = next((call for row in rows for call in row.calls if _call_id(call) == call_id), None)
        if made is None or (made.get("function") or {}).get("name") != "delegate_task":
            return []
        arguments = _tool_call(made).arguments
        tasks = [task for task in arguments.get("tasks") or () if isinstance(task, dict)]
        goals = {str(task.get("goal")) for task in [arguments, *tasks] if task.get("goal")}
        mine = [name for name, parent in self.parents.items() if parent == rows[0].session]
        return [name for name in mine if any(goal in self._opening(name) for goal in goals)]

    def _opening(self, session: str) -> str:
        return next((row.content for row in self.rows if row.session == session and row.role == "user"), "")


def _call_id(call: Mapping[str, Any]) -> str:
    return str(call.get("call_id") or call.get("id"))


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    function = call.get("function") or {}
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except ValueError:
        arguments = {"malformed": function.get("arguments")}
    return ToolCall(
        tool_call_id=_call_id(call),
        function_name=str(function.get("name")),
        arguments=arguments if isinstance(arguments, dict) else {"input": arguments},
    )


def _result(row: _Row) -> tuple[str, dict[str, Any]]:
    """Return the text that a tool gave and what else is known of it.

    Tools answer with an object; the text of a command or a file stands in it under a name, the rest goes to ``extra``.
    """
    try:
        given = json.loads(row.content)
    except ValueError:
        return row.content, {}
    if not isinstance(given, dict):
        return row.content, {}
    extra: dict[str, Any] = {"is_error": True if given.get("error") else None}
    if isinstance(code := given.get("exit_code"), int):
        extra["exit_code"] = code
    key = _TEXTS.get(row.tool or "")
    if key is None or not isinstance(given.get(key), str):
        return row.content, extra
    rest = {name: value for name, value in given.items() if name not in (key, "exit_code") and value is not None}
    text = given[key] if not given.get("error") else f"{given[key]}\n{given['error']}".strip()
    return text, {**extra, "answer": rest or None}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


HARNESS = HermesHarness()
