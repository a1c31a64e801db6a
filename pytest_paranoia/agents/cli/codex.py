"""Codex: ``codex exec --json``; every further user message resumes the thread.

Its events on stdout lack call ids, inputs of tools and calls that were denied, so the trajectory is made of the
transcript that it writes beside its configuration, read further with every event. The instruction file and the
workspace's AGENTS.md are its two kinds of memory; settings and hooks of the workspace are left out, as is web search (a
trial has no network).
"""

from __future__ import annotations

import json
from typing import Any

from pytest_paranoia.agents.base import AgentContext
from pytest_paranoia.agents.cli.base import CliHarness, CliSession, Command
from pytest_paranoia.agents.cli.codex_transcript import Transcript
from pytest_paranoia.environments.base import ExecResult
from pytest_paranoia.errors import InfrastructureError

_HOOK_SECONDS = 30
_KEY = "PARANOIA_MODEL_KEY"


class Codex(CliHarness):
    """``codex``."""

    name = "codex"
    protocols = ("openai-responses",)
    efforts = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra")

    def open(self, context: AgentContext) -> CodexSession:
        """Start a conversation."""
        return CodexSession(self, context)


class CodexSession(CliSession):
    """One thread of Codex."""

    def configure(self) -> None:
        """Write configuration and memory."""
        self._thread: str | None = None
        self._failed: str | None = None
        self._completed = False
        self._transcript = Transcript(self.private / "sessions", self.context, self.calls)
        if self.context.instructions is not None:
            self.write("AGENTS.md", self.context.instructions)
        self.write("config.toml", "\n".join(self._settings()) + "\n")

    def _settings(self) -> list[str]:
        choice = self.context.choice
        text = json.dumps  # a JSON string of ASCII is a string of TOML
        lines = [
            'model_provider = "relay"',
            "check_for_update_on_startup = false",
            'web_search = "disabled"',
        ]
        if choice.effort is not None:
            lines.append(f"model_reasoning_effort = {text(choice.effort)}")
        if choice.context is not None:
            # Codex counts what may go in; a model's context also holds the answer.
            lines.append(f"model_context_window = {choice.context - (choice.max_output or 0)}")
        lines += [
            "[history]",
            'persistence = "none"',
            "[analytics]",
            "enabled = false",
            "[feedback]",
            "enabled = false",
            "[features]",
            "apps = false",
            "plugins = false",
            # A refused connection would be tried again for ever.
            "unbounded_connection_retries = false",
            # With a terminal, text could be sent to a running program, which no hook is asked about.
            "unified_exec_tty = false",
            "[model_providers.relay]",
            'name = "relay"',
            f"base_url = {text(self.context.model_url + '/v1')}",
            f"env_key = {text(_KEY)}",
            'wire_api = "responses"',
            "request_max_retries = 1",
            "stream_max_retries = 1",
        ]
        if self.context.gate is not None:
            command = self.context.gate.hook_command("codex")
            lines += ["[[hooks.PreToolUse]]", "[[hooks.PreToolUse.hooks]]", 'type = "command"']
            lines += [f"command = {text(command)}", f"timeout = {_HOOK_SECONDS}"]
        return lines

    def variables(self) -> dict[str, str]:
        """Return where it finds its configuration, and a key: any does."""
        return {"CODEX_HOME": self.inside, _KEY: "none"}

    def command(self, text: str) -> Command:
        """Return the command; the message goes in by stdin, where nothing takes it for an option."""
        argv = [self.program, "exec", *(["resume"] if self.messages else [])]
        argv += ["--json", "--strict-config", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        if self.context.gate is not None:
            argv += ["--dangerously-bypass-hook-trust"]
        argv += ["--model", self.context.choice.model or ""]
        if self.messages:
            if self._thread is None:
                raise InfrastructureError("harness-output", "codex named no thread, so it cannot be resumed")
            argv.append(self._thread)
        self._failed, self._completed = None, False
        self._transcript.begin()
        return Command([*argv, "-"], stdin=text.encode("utf-8", "replace"))

    def event(self, event: dict[str, Any]) -> None:
        """Take one event: what is final of a message is told here, what was done by the transcript."""
        kind = event["type"]
        if kind == "thread.started":
            self._thread = event["thread_id"]
            self.recorder.note(session_id=self._thread)
        elif kind == "turn.completed":
            self._completed = True
        elif kind == "turn.failed":
            self._failed = str(event["error"]["message"])
            self.recorder.keep(kind, event)
        elif kind.startswith("item."):
            if event["item"]["type"] == "error":
                self.recorder.keep("warning", event)
        elif kind != "turn.started":
            self.recorder.keep(kind, event)
        if self._thread is not None and kind != "thread.started":
            self._follow()

    def _follow(self) -> None:
        self._transcript.read(self._thread or "")
        limit = self.context.choice.max_turns
        if limit is not None and self._transcript.turns > limit:
            self.stop("max-turns", f"{limit} turns of the model were not enough")

    def settle(self, result: ExecResult | None) -> None:  # noqa: ARG002
        """Read the rest of the transcript and those of subagents."""
        if self._thread is not None:
            self._transcript.read(self._thread)
            self._transcript.subagents()

    def complete(self) -> bool:
        """Return whether the last event came."""
        return self._completed

    def failure(self, result: ExecResult) -> InfrastructureError | None:  # noqa: ARG002
        """Return what ended the message where Codex says that it failed: its model did."""
        if self._failed is None:
            return None
        return InfrastructureError("model-refused", f"codex: the model gave no answer: {self._failed}")


HARNESS = Codex()
