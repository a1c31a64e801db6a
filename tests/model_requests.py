"""A model request of any of the three protocols, in one shape: who said what, with which tools, and where."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

Protocol = Literal["anthropic-messages", "openai-responses", "openai-chat"]
Role = Literal["system", "user", "assistant", "tool"]

PATHS: dict[str, Protocol] = {
    "/v1/messages": "anthropic-messages",
    "/v1/responses": "openai-responses",
    "/v1/chat/completions": "openai-chat",
}
MARKER = re.compile(r"\[\[script:([\w.-]+)\]\]")
# Ids of the calls that the server made up hold the number of their turn: a harness may send parallel calls and their
# results in any order.
_CALL_ID = re.compile(r"(?:call|toolu)_(\d{4})\d{2}[0-9a-f]{12}")
_SESSION_HEADERS = (
    "x-claude-code-session-id",
    "session_id",
    "session-id",
    "x-session-id",
    "x-session-affinity",
    "x-opencode-session",
)
_DIRECTORY = re.compile(r"(?:[Ww]orking directory:\s*|<cwd>)(/[^\s<]*)")


@dataclass(frozen=True)
class Said:
    """One thing in a conversation. ``call_id`` belongs to tool calls (role assistant) and their results (role tool)."""

    role: Role
    text: str
    call_id: str | None = None
    call: bool = False


@dataclass(frozen=True)
class Tool:
    """A tool the model is offered: ``custom`` ones take free text, the others the arguments ``keys``."""

    name: str
    keys: tuple[str, ...] = ()
    custom: bool = False
    description: str = ""
    namespace: str | None = None


@dataclass(frozen=True)
class Request:
    """A parsed request. ``body`` is what came in; ``headers`` in lower case."""

    protocol: Protocol
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The model asked for."""
        return str(self.body.get("model") or "")

    @property
    def stream(self) -> bool:
        """Whether a stream is asked for."""
        return self.body.get("stream") is True

    @cached_property
    def said(self) -> tuple[Said, ...]:
        """The whole conversation in order, the system's words first."""
        reader = {
            "anthropic-messages": _anthropic,
            "openai-responses": _responses,
            "openai-chat": _chat,
        }[self.protocol]
        return tuple(reader(self.body))

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """The tools offered, those of namespaces and of Codex' ``additional_tools`` included."""
        given = list(self.body.get("tools") or ())
        for item in self.body.get("input") or () if self.protocol == "openai-responses" else ():
            if isinstance(item, dict) and item.get("type") == "additional_tools":
                given += item.get("tools") or ()
        return tuple(found for entry in given if isinstance(entry, dict) for found in _tools(entry))

    @property
    def main(self) -> bool:
        """Whether this is the agent (or a judge) at work, not a title, a summary or another side call."""
        return bool(self.tools or self.structured)

    @property
    def structured(self) -> Mapping[str, Any] | None:
        """The JSON schema that the answer has to follow, where one is given."""
        chat, responses = self.body.get("response_format") or {}, self.body.get("text") or {}
        form = chat.get("json_schema") or responses.get("format") or {}
        found: Mapping[str, Any] | None = form.get("schema")
        return found

    def tool(self, name: str) -> Tool | None:
        """The tool of this name, None where it is not offered."""
        return next((tool for tool in self.tools if tool.name == name), None)

    @cached_property
    def turns(self) -> int:
        """How many answers of the model the conversation holds."""
        numbers: set[int | str] = set()
        before: Role | None = None
        group: int | str = ""
        for number, item in enumerate(self.said):
            if item.role == "assistant":
                found = _CALL_ID.fullmatch(item.call_id or "")
                if before != "assistant":
                    group = f"at {number}"
                    numbers.add(group)
                if found:
                    numbers.discard(group)
                    group = int(found[1])
                    numbers.add(group)
            if item.role != "system":
                before = item.role
        return len(numbers)

    @cached_property
    def opening(self) -> str:
        """All that was said before the model's first answer, except the system's words."""
        return "\n".join(self._opening)

    @cached_property
    def _opening(self) -> tuple[str, ...]:
        before = itertools.takewhile(lambda item: item.role != "assistant", self.said)
        return tuple(item.text for item in before if item.role == "user")

    @cached_property
    def system(self) -> str:
        """The system's (and developer's) words."""
        return "\n".join(item.text for item in self.said if item.role == "system")

    @property
    def results(self) -> tuple[str, ...]:
        """What the tools gave, in order."""
        return tuple(item.text for item in self.said if item.role == "tool")

    @property
    def users(self) -> tuple[str, ...]:
        """What the user (or the harness in the user's place) said, in order."""
        return tuple(item.text for item in self.said if item.role == "user")

    @property
    def replies(self) -> tuple[str, ...]:
        """What the model said, in order."""
        return tuple(item.text for item in self.said if item.role == "assistant" and not item.call and item.text)

    @property
    def marker(self) -> str | None:
        """The script that the conversation's opening (or its system's words) asks for."""
        found = MARKER.findall(self.opening) or MARKER.findall(self.system)
        return found[-1] if found else None

    @cached_property
    def session(self) -> str:
        """The harness' own name of the session, empty where it tells none."""
        for name in _SESSION_HEADERS:
            if value := self.headers.get(name):
                return value
        if value := self.body.get("prompt_cache_key"):
            return str(value)
        user = (self.body.get("metadata") or {}).get("user_id") or ""
        return str(user)

    @property
    def conversation(self) -> tuple[str, ...]:
        """A key of the conversation: model, session and how it began (a subagent may share its parent's session).

        It begins with the key that the conversation had before, where a harness dropped the model's first answers.
        """
        return (self.model, self.session, *self._opening)

    @property
    def directory(self) -> str | None:
        """The working directory that the harness tells the model."""
        found = _DIRECTORY.search(self.system) or _DIRECTORY.search(self.opening)
        return found[1] if found else None


def _text(content: Any) -> str:
    """The text of a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content)
    parts = []
    for part in content:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            parts.append(part["text"])
        elif isinstance(part, dict) and "content" in part:
            parts.append(_text(part["content"]))
    return "\n".join(parts)


def _anthropic(body: Mapping[str, Any]) -> Iterator[Said]:
    if system := body.get("system"):
        yield Said("system", _text(system))
    for message in body.get("messages") or ():
        role, content = message.get("role"), message.get("content")
        if role == "system":
            yield Said("system", _text(content))
        elif isinstance(content, str):
            yield Said(role, content)
        else:
            for block in content or ():
                yield from _block(role, block)


def _block(role: Role, block: Mapping[str, Any]) -> Iterator[Said]:
    kind = block.get("type")
    if kind == "tool_result":
        yield Said("tool", _text(block.get("content")), block.get("tool_use_id"))
    elif kind == "tool_use":
        yield Said("assistant", json.dumps(block.get("input")), block.get("id"), call=True)
    elif kind == "text":
        yield Said(role, block.get("text") or "")
    elif kind in ("thinking", "redacted_thinking"):
        yield Said("assistant", "")


def _responses(body: Mapping[str, Any]) -> Iterator[Said]:
    if instructions := body.get("instructions"):
        yield Said("system", str(instructions))
    given = body.get("input")
    if isinstance(given, str):
        yield Said("user", given)
        return
    for item in given or ():
        kind = item.get("type", "message")
        if kind == "message":
            role = item.get("role")
            yield Said("system" if role in ("system", "developer") else role, _text(item.get("content")))
        elif kind.endswith("_call_output"):
            yield Said("tool", _text(item.get("output")), item.get("call_id"))
        elif kind.endswith("_call"):
            given_arguments = item.get("arguments") or item.get("input") or ""
            yield Said("assistant", str(given_arguments), item.get("call_id"), call=True)
        elif kind == "reasoning":
            yield Said("assistant", "")
        elif kind == "agent_message" and item.get("recipient") != "/root":  # what a subagent of Codex is told
            sealed = [str(part.get("encrypted_content", "")) for part in item.get("content") or ()]
            yield Said("user", "\n".join([_text(item.get("content")), *sealed]))


def _chat(body: Mapping[str, Any]) -> Iterator[Said]:
    for message in body.get("messages") or ():
        role, text = message.get("role"), _text(message.get("content"))
        if role in ("system", "developer"):
            yield Said("system", text)
        elif role == "tool":
            yield Said("tool", text, message.get("tool_call_id"))
        elif role == "assistant":
            yield Said("assistant", text)
            for call in message.get("tool_calls") or ():
                given = call.get("function") or call.get("custom") or {}
                arguments = given.get("arguments") or given.get("input") or ""
                yield Said("assistant", str(arguments), call.get("id"), call=True)
        else:
            yield Said("user", text)


def _tools(entry: Mapping[str, Any], namespace: str | None = None) -> Iterator[Tool]:
    kind = entry.get("type")
    if kind == "namespace":
        for inner in entry.get("tools") or ():
            yield from _tools(inner, entry.get("name"))
        return
    given = entry.get("function") or entry.get("custom") or entry
    if not (name := given.get("name") or kind):
        return
    schema = given.get("parameters") or given.get("input_schema") or {}
    keys = tuple(schema.get("properties") or ())
    described = str(given.get("description") or "")
    yield Tool(str(name), keys, custom=kind == "custom", description=described, namespace=namespace)
