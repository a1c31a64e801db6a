"""Claude Code: ``claude -p`` with its stream of JSON events; every further user message resumes the session.

What it reads and what it does not: the instruction file is its user memory, the workspace's own CLAUDE.md its project
memory; hooks, settings and permissions of the workspace are left out, as are web tools (a trial has no network),
memory across sessions, and tasks in the background, for which it would wait after its last word without an end. All
calls, those of subagents included, go to the model under test.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from typing import Any

from pytest_paranoia.agents.base import AgentContext, UserMessage
from pytest_paranoia.agents.cli.base import CliHarness, CliSession, Command, ToolCalls
from pytest_paranoia.environments.base import ExecResult
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.schema.trajectory import ContentPart, ToolCall

_SMALLEST_WINDOW = 100_000  # Claude Code takes none below
_HOOK_SECONDS = 30
_EXIT_CODE = re.compile(r"Exit code (-?\d+)")
_NOT_RUN = "<tool_use_error>"
_UNREADABLE_INPUT = "InputValidationError"
_TRAFFIC = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}
_BEHAVIOUR = {
    "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_FALLBACK": "1",
    "CLAUDE_CODE_NO_MODEL_FALLBACK": "1",
    "IS_SANDBOX": "1",
}
# Names under which subagents and side calls would get other models than the one under test.
_ALIASES = (
    "ANTHROPIC_SMALL_FAST_MODEL",
    *(f"ANTHROPIC_DEFAULT_{family}_MODEL" for family in ("FABLE", "HAIKU", "OPUS", "SONNET")),
)


class ClaudeCode(CliHarness):
    """``claude-code``."""

    name = "claude-code"
    protocols = ("anthropic-messages",)
    efforts = ("low", "medium", "high", "xhigh", "max")

    def open(self, context: AgentContext) -> ClaudeCodeSession:
        """Start a conversation."""
        return ClaudeCodeSession(self, context)


class ClaudeCodeSession(CliSession):
    """One session of Claude Code."""

    def configure(self) -> None:
        """Write memory and settings. The session's id is ours, so that it is known however the program ends."""
        self._session = str(uuid.uuid4())
        self._result: dict[str, Any] | None = None
        self._folder = self.write("tmp/.keep", "").rpartition("/")[0]
        if self.context.instructions is not None:
            self.write("config/CLAUDE.md", self.context.instructions)
        settings: dict[str, Any] = {}
        if self.context.gate is not None:
            hook = {"type": "command", "command": self.context.gate.hook_command("claude"), "timeout": _HOOK_SECONDS}
            settings["hooks"] = {"PreToolUse": [{"matcher": "*", "hooks": [hook]}]}
        self._settings = self.write("settings.json", json.dumps(settings))

    def variables(self) -> dict[str, str]:
        """Return what Claude Code is told through its environment. Retries are the relay's: one here, for a stream."""
        choice = self.context.choice
        found = {
            **_TRAFFIC,
            **_BEHAVIOUR,
            **dict.fromkeys(_ALIASES, choice.model or ""),
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": self.context.model_url,
            "CLAUDE_CODE_MAX_RETRIES": "1",
            "CLAUDE_CODE_TMPDIR": self._folder,
            "CLAUDE_CONFIG_DIR": f"{self.inside}/config",
            # Never: a call that hangs is ended by the trial's wall clock, under that name.
            "API_TIMEOUT_MS": str(2**31 - 1),
        }
        if choice.context is not None:
            found["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] = str(choice.context)
            if choice.context >= _SMALLEST_WINDOW:
                found["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = str(choice.context)
        if choice.max_output is not None:
            found["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(choice.max_output)
        return found

    def command(self, text: str) -> Command:
        """Return the command; the message goes in by stdin, where nothing takes it for an option."""
        choice = self.context.choice
        argv = [self.program, "-p", "--output-format", "stream-json", "--verbose", "--forward-subagent-text"]
        argv += ["--dangerously-skip-permissions", "--disallowedTools", "WebFetch,WebSearch"]
        # As a further directory the workspace gives its CLAUDE.md; as a source of settings it would give its hooks too.
        argv += [
            "--setting-sources=user",
            "--settings",
            self._settings,
            "--add-dir",
            self.context.environment.workspace,
        ]
        argv += ["--model", choice.model or ""]
        if choice.effort is not None:
            argv += ["--effort", choice.effort]
        if choice.max_turns is not None:
            argv += ["--max-turns", str(choice.max_turns)]
        argv += ["--resume" if self.messages else "--session-id", self._session]
        self._result = None
        return Command(argv, stdin=text.encode("utf-8", "replace"))

    # -- events --------------------------------------------------------------------------------------------------------

    def event(self, event: dict[str, Any]) -> None:
        """Take one event of the stream."""
        kind = event["type"]
        if kind == "assistant":
            self._assistant(event)
        elif kind == "user":
            self._user(event)
        elif kind == "result":
            self._result = event
            self.recorder.keep("result", event)
        elif kind == "system" and event.get("subtype") == "init":
            self._start(event)
        elif kind != "system" or event.get("subtype") != "thinking_tokens":  # that one only counts while it thinks
            self.recorder.keep(f"system/{event['subtype']}" if kind == "system" else str(kind), event)

    def _start(self, event: dict[str, Any]) -> None:
        version = event["claude_code_version"]
        if version != self.context.agent.version:
            raise ValueError(f"claude_code_version {version!r}, expected {self.context.agent.version!r}")
        self.recorder.note(session_id=event["session_id"], tools=event.get("tools"))

    def _calls_of(self, event: dict[str, Any]) -> ToolCalls:
        """Return where an event belongs: the main conversation, or the subagent of a call."""
        parent = event.get("parent_tool_use_id")
        if parent is None:
            return self.calls
        return self.calls.subagent(parent, str(event.get("agent_id") or parent), self.context.agent)

    def _assistant(self, event: dict[str, Any]) -> None:
        message = event["message"]
        if message.get("model") == "<synthetic>":  # the program's own words about an error, not the model's
            self.recorder.keep("synthetic", event)
            return
        texts: list[str] = []
        thoughts: list[str] = []
        calls: list[ToolCall] = []
        others: list[Any] = []
        for block in message["content"]:
            match block["type"]:
                case "text":
                    texts.append(block["text"])
                case "thinking":
                    thoughts.append(block["thinking"])
                case "tool_use":
                    arguments = block["input"] if isinstance(block["input"], dict) else {"input": block["input"]}
                    calls.append(ToolCall(tool_call_id=block["id"], function_name=block["name"], arguments=arguments))
                case _:
                    others.append(block)
        self._calls_of(event).turn(
            "\n".join(texts),
            calls=calls,
            reasoning="\n".join(thoughts) or None,
            timestamp=event.get("timestamp"),
            model=message.get("model"),
            extra={"blocks": others} if others else None,
            identity=message["id"],
        )

    def _user(self, event: dict[str, Any]) -> None:
        """Take tool results; other words are the program's to the model, or what a subagent was told."""
        content = event["message"]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        results = [block for block in blocks if block["type"] == "tool_result"]
        calls = self._calls_of(event)
        for block in results:
            if not self._tool_result(calls, block, event):
                self.recorder.keep("tool_result", block)
        if rest := [block for block in blocks if block["type"] != "tool_result"]:
            text = "\n".join(block["text"] for block in rest if block["type"] == "text")
            if calls is not self.calls and not len(calls.recorder):
                calls.recorder.user(UserMessage("task", text), event.get("timestamp"))
            else:
                self.recorder.keep("user", {**event, "message": {**event["message"], "content": rest}})

    def _tool_result(self, calls: ToolCalls, block: dict[str, Any], event: dict[str, Any]) -> bool:
        call_id = block["tool_use_id"]
        content = _content(block.get("content"))
        text = content if isinstance(content, str) else "".join(part.text or "" for part in content)
        meta = next((one for one in event.get("tool_result_meta") or () if one.get("id") == call_id), None)
        failed = bool(block.get("is_error"))
        denied = meta is not None and (meta.get("permission_decision") or {}).get("decision") == "reject"
        if failed and meta is None and text.startswith(_NOT_RUN):
            calls.mark(call_id, gate=[])  # refused before any hook was asked
            if text.startswith(_NOT_RUN + _UNREADABLE_INPUT):
                self.context.malformed_calls += 1
        facts = {
            "exit_code": _exit_code(text, failed, event.get("tool_use_result")),
            "is_error": failed or None,
            "denied": denied or None,
        }
        return calls.result(call_id, content, facts)

    # -- the end -------------------------------------------------------------------------------------------------------

    def complete(self) -> bool:
        """Return whether the last event came."""
        return self._result is not None

    def failure(self, result: ExecResult) -> InfrastructureError | None:  # noqa: ARG002
        """Return what the last event declares: a limit of turns, an error of the model's API, another error."""
        last = self._result
        if last is None or not last.get("is_error"):
            return None
        if last.get("subtype") == "error_max_turns":
            self.stop("max-turns", f"{self.context.choice.max_turns} turns of the model were not enough")
        said = last.get("errors") or last.get("result") or last.get("subtype")
        if last.get("terminal_reason") == "api_error" or str(said).startswith("API Error"):
            status = last.get("api_error_status")
            return InfrastructureError(
                "model-refused", f"claude-code: the model answered {status or 'nothing'}: {said}"
            )
        return InfrastructureError("harness-failed", f"claude-code ended with {last.get('subtype')}: {said}")


def _content(content: Any) -> str | list[ContentPart]:
    """Return what a tool gave. Text stays one string; what is no text is named, images without their data."""
    if content is None or isinstance(content, str):
        return content or ""
    parts: list[ContentPart] = []
    for block in content:
        if block["type"] == "text":
            parts.append(ContentPart(type="text", text=block["text"]))
        elif block["type"] == "image":
            source = dict(block["source"])
            data = str(source.pop("data", ""))
            digest = hashlib.sha256(data.encode()).hexdigest()
            parts.append(ContentPart(type="text", text=f"[image {json.dumps(source)}, base64 sha256 {digest}]"))
        else:
            parts.append(ContentPart(type="text", text=json.dumps(block)))
    if len(parts) == 1:
        return parts[0].text or ""
    return parts


def _exit_code(text: str, failed: bool, detail: Any) -> int | None:
    """Return a command's exit status as far as Claude Code tells it: of a failed one in its text, else only that."""
    if failed:
        found = _EXIT_CODE.match(text)
        return int(found.group(1)) if found else None
    if not isinstance(detail, dict) or "stdout" not in detail or detail.get("interrupted"):
        return None
    return None if detail.get("backgroundTaskId") or detail.get("returnCodeInterpretation") else 0


HARNESS = ClaudeCode()
