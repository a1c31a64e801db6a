"""OpenCode: ``opencode run --format json``, one process per user message, all in one session.

The text of a message goes in through stdin: as an argument OpenCode would put quotes around it. Its own temporary files
go to the trial's private folder, while a plugin gives the commands that the model runs the trial's own variables back.
The plugin also asks the gate, and ends a message that OpenCode itself would never end: it repeats a refused call for
ever, and its limit of steps is a request to the model. The workspace's OpenCode settings and instruction files are not
loaded; the model may read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_paranoia.agents.base import AgentContext, UserMessage
from pytest_paranoia.agents.cli import foreign
from pytest_paranoia.agents.cli.base import CliHarness, CliSession, Command, ToolCalls, cut_off
from pytest_paranoia.environments.base import ExecResult
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.relay.contract import Protocol
from pytest_paranoia.schema.trajectory import ToolCall

_PACKAGES: dict[Protocol, str] = {
    "anthropic-messages": "@ai-sdk/anthropic",
    "openai-responses": "@ai-sdk/openai",
    "openai-chat": "@ai-sdk/openai-compatible",
}
"""What OpenCode brings along to speak each protocol, in the order of preference."""

_CONTEXT, _OUTPUT = 200_000, 32_000
_STATE = ("data", "config", "state", "cache")
# With these in place OpenCode does not try to fetch its plugin library from a registry at every start.
_DEPENDENCIES = {"dependencies": {"@opencode-ai/plugin": "*"}}

_PLUGIN = Path(__file__).with_name("opencode_plugin.js")
_ATTEMPTS = 2
"""Retries of one model call after which a message ends. OpenCode's own number has no end, and the relay has retried."""
_DATABASE = "data/opencode/opencode.db"
_ENDED = "ended.json"
"""What the plugin leaves where it ended a message."""
_FILTERED = "ContentFilterError"
"""The error after an answer that the provider (or the model) refused: a result of the agent, not ours."""
_INVALID = "invalid"
"""The tool that OpenCode puts in the place of a call that it cannot read."""


class OpenCodeHarness(CliHarness):
    """Runs the ``opencode`` that is installed in the machine's cache."""

    name: str = "opencode"
    protocols: tuple[Protocol, ...] = tuple(_PACKAGES)

    def open(self, context: AgentContext) -> OpenCodeSession:
        """Start a conversation."""
        return OpenCodeSession(self, context)


@dataclass
class _Answer:
    """One answer of the model as its parts came in."""

    identity: str
    model: str | None = None
    started: float | None = None
    parts: list[dict[str, Any]] = field(default_factory=list)


class OpenCodeSession(CliSession):
    """One conversation with OpenCode."""

    _session: str | None = None
    _answer: _Answer | None = None
    _error: dict[str, Any] | None = None
    _mended: bool = False
    _ended: str | None = None
    _settling: bool = False
    _variables: dict[str, str]

    def __init__(self, harness: CliHarness, context: AgentContext) -> None:
        self._tasks: list[dict[str, Any]] = []
        self._stopped: dict[str, Any] = {}
        super().__init__(harness, context)

    def configure(self) -> None:
        """Write OpenCode's settings, instructions and the plugin."""
        temporary = self.private / "tmp"
        temporary.mkdir(exist_ok=True)
        outer = self._outer_variables()
        self._variables = {
            **{f"XDG_{name.upper()}_HOME": f"{self.inside}/{name}" for name in _STATE},
            "OPENCODE_CONFIG": f"{self.inside}/opencode.json",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
            "OPENCODE_DISABLE_CLAUDE_CODE": "1",
            "npm_config_fetch_retries": "0",
            "npm_config_cache": f"{self.inside}/npm",
            "SHELL": "/bin/bash",
            "TMPDIR": f"{self.inside}/tmp",
        }
        told = {
            "gate": self.context.gate.url if self.context.gate else None,
            "restored": {name: outer[name] for name in ("SHELL", "TMPDIR") if name in outer},
            "attempts": _ATTEMPTS,
            "turns": self.context.choice.max_turns,
            "ended": f"{self.inside}/{_ENDED}",
        }
        plugin = f"const settings = {json.dumps(told)};\n{_PLUGIN.read_text(encoding='utf-8')}"
        settings = self._settings(self.write("session.js", plugin))
        self.write("opencode.json", json.dumps(settings, indent=1))
        (self.private / "config/opencode/node_modules").mkdir(parents=True, exist_ok=True)
        self.write("config/opencode/package.json", json.dumps(_DEPENDENCIES))
        self.write("config/opencode/package-lock.json", json.dumps({"packages": {"": _DEPENDENCIES}}))
        if self.context.instructions is not None:
            self.write("config/opencode/AGENTS.md", self.context.instructions)

    def _outer_variables(self) -> dict[str, str]:
        """Return the variables that commands of this trial have."""
        listed = self.context.environment.exec(["env", "-0"], timeout=60).stdout.decode("utf-8", "replace")
        return dict(line.split("=", 1) for line in listed.split("\0") if "=" in line)

    def _settings(self, plugin: str) -> dict[str, Any]:
        choice = self.context.choice
        protocol = choice.protocol(_PACKAGES)
        limit = {"context": choice.context or _CONTEXT, "output": choice.max_output or _OUTPUT}
        model: dict[str, Any] = {"name": choice.model, "tool_call": True, "limit": limit}
        if choice.effort is not None:
            model |= {"reasoning": True, "options": _effort(protocol, choice.effort)}
        options = {"baseURL": f"{self.context.model_url}/v1", "apiKey": "none", "timeout": False}
        provider = {"npm": _PACKAGES[protocol], "name": "Provider", "options": options}
        settings: dict[str, Any] = {
            "autoupdate": False,
            "share": "disabled",
            "snapshot": False,
            "provider": {"provider": {**provider, "models": {choice.model: model}}},
            "model": f"provider/{choice.model}",
            "small_model": f"provider/{choice.model}",
            "plugin": [f"file://{plugin}"],
        }
        if choice.max_turns is not None:
            settings["agent"] = {"build": {"steps": choice.max_turns}}
        return settings

    def variables(self) -> dict[str, str]:
        """Keep OpenCode's state in the private folder and OpenCode off the network."""
        return self._variables

    def command(self, text: str) -> Command:
        """Return ``opencode run`` with the message on its stdin."""
        self._error, self._mended, self._ended = None, False, None
        argv = [self.program, "run", "--format", "json", "--auto", "--thinking"]
        argv += ["--title", "Task"] if self._session is None else ["--session", self._session]
        return Command(argv, stdin=text.encode("utf-8"))

    # -- its events ----------------------------------------------------------------------------------------------------

    def event(self, event: dict[str, Any]) -> None:
        """Take one event: parts are gathered until their answer is complete, so that parallel calls stay together."""
        kind, part = event["type"], event.get("part") or {}
        if self._session is None and event.get("sessionID"):
            self._session = str(event["sessionID"])
            self.recorder.note(session_id=self._session)
        if kind == "error":
            self._error = event.get("error") or event
            self.recorder.keep("error", event)
        elif kind == "step_start":
            # It goes on: the error was one that OpenCode itself knows how to mend (by a summary, for a full context).
            self._mended = self._mended or self._error is not None
            self._error = None
            self._flush()
            self._answer = _Answer(part["messageID"], self.context.choice.model, float(event["timestamp"]))
        elif kind in ("text", "reasoning", "tool_use"):
            if self._answer is not None and self._answer.identity == part["messageID"]:
                self._answer.parts.append(part)
            else:  # OpenCode's own words to the model
                self.recorder.keep(str(kind), event)
        elif kind == "step_finish":
            self._ended = str(part.get("reason"))
            if self._answer is not None:
                self._answer.parts.append(part)
            self._flush()
        else:
            self.recorder.keep(str(kind), event)

    def _flush(self) -> None:
        """Record the answer that is complete."""
        answer, self._answer = self._answer, None
        if answer is not None:
            self._record(self.calls, answer)

    def _record(self, calls: ToolCalls, answer: _Answer) -> None:
        texts = [part["text"] for part in answer.parts if part["type"] == "text" and part["text"]]
        thoughts = [part["text"] for part in answer.parts if part["type"] == "reasoning" and part["text"]]
        # Events come as calls end; the ids of parts tell the order in which the model made them.
        tools = sorted((part for part in answer.parts if part["type"] == "tool"), key=lambda part: str(part["id"]))
        known = ("text", "reasoning", "tool", "step-start", "step-finish")
        extra: dict[str, Any] = {"message_id": answer.identity}
        for part in answer.parts:
            if part["type"] == "step-finish":
                extra |= {"finish": part.get("reason"), "tokens": part.get("tokens")}
            elif part["type"] not in known:
                extra.setdefault("parts", []).append(part)
        if not (texts or thoughts or tools):
            calls.recorder.keep("empty-answer", {"parts": answer.parts, **extra})
            return
        self.context.malformed_calls += sum(part["tool"] == _INVALID for part in tools)
        calls.turn(
            "\n".join(texts),
            calls=[_tool_call(part) for part in tools],
            reasoning="\n".join(thoughts) or None,
            timestamp=_time(answer.started),
            model=answer.model,
            extra=extra,
        )
        for part in tools:
            self._result(calls, part)

    def _result(self, calls: ToolCalls, part: dict[str, Any]) -> None:
        state = part.get("state") or {}
        if state.get("status") not in ("completed", "error"):
            return
        metadata = state.get("metadata") or {}
        failed = state["status"] == "error"
        content = state.get("error") if failed else state.get("output")
        if child := metadata.get("sessionId") if part["tool"] == "task" else None:
            if not self._settling:
                self._tasks.append(part)
                return
            self._subagent(calls, part["callID"], str(child))
        extra = {
            "exit_code": metadata.get("exit") if isinstance(metadata.get("exit"), int) else None,
            "is_error": True if failed else None,
            "denied": True if failed and self._denied(part["callID"]) else None,
            "seconds": _seconds(state.get("time")),
        }
        calls.result(part["callID"], content if isinstance(content, str) else json.dumps(content), extra)

    def _denied(self, call_id: str) -> bool:
        gate = self.context.gate
        if gate is None:
            return False
        return any(entry.request.call_id == call_id and not entry.decision.allow for entry in gate.log)

    # -- its data base -------------------------------------------------------------------------------------------------

    def settle(self, result: ExecResult | None) -> None:
        """Record the answer that a kill cut off, with the calls whose results never came."""
        self._settling = True
        try:
            self._finish(result)
        finally:
            self._settling = False

    def _finish(self, result: ExecResult | None) -> None:
        if (said := foreign.text(self.private, _ENDED)) is not None:
            self._stopped = dict(json.loads(said))
        # Subagents stand in the data base alone, and that must not be read while OpenCode writes to it.
        tasks, self._tasks = self._tasks, []
        for part in tasks:
            self._result(self.calls, part)
        cut, self._answer = self._answer, None
        if not cut_off(result):
            if cut is not None:
                self._record(self.calls, cut)
            return
        stored = self._stored(self._session) if self._session else []
        last = stored[-1] if stored else None
        if last is not None and last.parts and (cut is None or cut.identity == last.identity):
            seen = {(step.extra or {}).get("message_id") for step in self._steps()}
            if last.identity not in seen:
                self._record(self.calls, last)
                return
        if cut is not None:
            self._record(self.calls, cut)

    def _steps(self) -> list[Any]:
        found = self.recorder.trajectory()
        return list(found.steps) if found is not None else []

    def _subagent(self, calls: ToolCalls, call_id: str, session: str) -> None:
        """Embed a child session, and its children."""
        child = calls.subagent(call_id, session, self.context.agent)
        if child.recorder.trajectory() is not None:
            return
        for answer in self._stored(session, prompts=child):
            self._record(child, answer)

    def _stored(self, session: str, prompts: ToolCalls | None = None) -> list[_Answer]:
        """Return the answers of *session* from OpenCode's data base; its user messages go to *prompts* as steps."""
        answers = []
        for identity, info, parts in self._rows(session):
            if info.get("role") == "user":
                text = "\n".join(part["text"] for part in parts if part["type"] == "text")
                if prompts is not None and text:
                    prompts.recorder.user(UserMessage("task", text))
                continue
            created = (info.get("time") or {}).get("created")
            answers.append(_Answer(identity, info.get("modelID"), created, parts))
        return answers

    def _rows(self, session: str) -> Iterator[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
        with foreign.database(self.private, _DATABASE) as database:
            if database is None:
                return
            parts: dict[str, list[dict[str, Any]]] = {}
            query = "select message_id, id, data from part where session_id = ? order by id"
            for message, identity, data in database.execute(query, (session,)):
                parts.setdefault(message, []).append({"id": identity, **json.loads(data)})
            query = "select id, data from message where session_id = ? order by id"
            for identity, data in database.execute(query, (session,)).fetchall():
                yield identity, json.loads(data), parts.get(identity, [])

    # -- how it ended --------------------------------------------------------------------------------------------------

    def failure(self, result: ExecResult) -> InfrastructureError | None:  # noqa: ARG002 -- its events tell all
        """Return the error that ended the message."""
        if self._stopped.get("reason") == "max-turns":
            self.stop("max-turns", f"{self.context.choice.max_turns} turns of the model were not enough")
        if self._stopped:
            said = self._stopped.get("message")
            return InfrastructureError("model-refused", f"opencode gave up after {_ATTEMPTS} retries: {said}")
        if self._error is None or self._error.get("name") == _FILTERED:
            return None
        name = str(self._error.get("name") or "error")
        data = self._error.get("data")
        details: Mapping[str, Any] = data if isinstance(data, dict) else {}
        said = str(details.get("message") or self._error.get("message") or self._error)[:1000]
        status = f" (status {details['statusCode']})" if details.get("statusCode") else ""
        reason = "model-refused" if name in ("APIError", "ProviderAuthError") else "harness-failed"
        return InfrastructureError(reason, f"opencode ended with {name}{status}: {said}")

    def accepted(self, result: ExecResult) -> bool:  # noqa: ARG002
        """Return whether the message ended by the limit of turns, a refusal, or well in spite of an earlier error."""
        if self._error is not None:
            return bool(self._stopped) or self._error.get("name") == _FILTERED
        return bool(self._stopped) or (self._mended and self.complete())

    def complete(self) -> bool:
        """Return whether the last answer asked for nothing more."""
        return bool(self._stopped) or (self._ended is not None and self._ended != "tool-calls")


def _effort(protocol: Protocol, effort: str) -> dict[str, Any]:
    """Return the model's options for a reasoning effort."""
    if protocol == "anthropic-messages":
        return {"effort": effort, "thinking": {"type": "adaptive"}}
    return {"reasoningEffort": effort}


def _tool_call(part: dict[str, Any]) -> ToolCall:
    given = (part.get("state") or {}).get("input")
    arguments = given if isinstance(given, dict) else {"input": given}
    extra: dict[str, Any] | None = {"gate": []} if part["tool"] == _INVALID else None
    return ToolCall(tool_call_id=part["callID"], function_name=part["tool"], arguments=arguments, extra=extra)


def _seconds(time: Any) -> float | None:
    if not isinstance(time, dict) or "start" not in time or "end" not in time:
        return None
    return round((float(time["end"]) - float(time["start"])) / 1000, 3)


def _time(milliseconds: float | None) -> str | None:
    if milliseconds is None:
        return None
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


HARNESS = OpenCodeHarness()
