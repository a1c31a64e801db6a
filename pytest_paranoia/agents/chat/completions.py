"""The Chat Completions API, as OpenAI and the many servers that follow it speak it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import openai

from pytest_paranoia.agents.chat.conversation import Answer, CallMade, Conversation, Stop, ToolGave, UserSaid, readable
from pytest_paranoia.agents.chat.tools import Tool
from pytest_paranoia.agents.chat.wire import BrokenStream, Late, Wire

_REASONING = ("reasoning_content", "reasoning")
"""Names under which servers stream reasoning; it goes back under the name it came by."""

_STOPS: dict[str, Stop] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content-filter",
    "refusal": "refusal",
}


class Completions(Wire):
    """Asks ``/v1/chat/completions``."""

    def described(self, tool: Tool) -> dict[str, Any]:
        """Return a function as this API names it."""
        about = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
        return {"type": "function", "function": about}

    def structured(self, name: str, schema: Mapping[str, Any]) -> None:
        """Ask for answers by *schema*."""
        form = {"name": name, "strict": True, "schema": dict(schema)}
        self.optional["response_format"] = {"type": "json_schema", "json_schema": form}

    def options(self) -> dict[str, Any]:
        """Return effort, the limit of output and the wish for usage."""
        found: dict[str, Any] = {"stream_options": {"include_usage": True}}
        if self.choice.effort is not None:
            found["reasoning_effort"] = self.choice.effort
        if self.choice.max_output is not None:
            found["max_completion_tokens"] = self.choice.max_output
        return found

    def substitute(self, option: str) -> dict[str, Any]:
        """Older servers know the limit of output by its old name."""
        return {"max_tokens": self.choice.max_output} if option == "max_completion_tokens" else {}

    def stream(self, conversation: Conversation, options: Mapping[str, Any]) -> Answer:
        """Ask once; see ``Wire.stream``."""
        growing = _Growing()
        request: dict[str, Any] = {**options, "stream": True, "timeout": self.left}
        if self.tools:  # an empty list is refused
            request["tools"] = self.tools
        answered: openai.Stream[Any] = self.client.chat.completions.create(  # type: ignore[assignment]
            model=self.choice.model or "",
            messages=_messages(conversation),  # type: ignore[arg-type]
            **request,
        )
        with answered as stream:
            for chunk in stream:
                growing.take(chunk)
                if self.late:
                    raise Late(growing.answer("stop", partial=True))
        if growing.finish is None:
            raise BrokenStream("the stream ended without a finish_reason")
        return growing.answer(_STOPS.get(growing.finish, "stop"))


@dataclass
class _Growing:
    """An answer as its chunks come in."""

    text: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    reasoning_name: str | None = None
    calls: dict[int, list[str]] = field(default_factory=dict)
    finish: str | None = None
    model: str | None = None
    usage: Any = None

    def take(self, chunk: Any) -> None:
        self.model = self.model or chunk.model
        self.usage = chunk.usage or self.usage
        for choice in chunk.choices or ():
            if choice.finish_reason is not None:
                self.finish = choice.finish_reason
            if choice.delta is not None:
                self._delta(choice.delta)

    def _delta(self, delta: Any) -> None:
        if delta.content:
            self.text.append(delta.content)
        if delta.refusal:
            self.refusal.append(delta.refusal)
        for name in _REASONING:
            if isinstance(piece := (delta.model_extra or {}).get(name), str) and piece:
                self.reasoning_name = name
                self.reasoning.append(piece)
                break
        for part in delta.tool_calls or ():
            call = self.calls.setdefault(part.index if part.index is not None else len(self.calls), ["", "", ""])
            call[0] = call[0] or part.id or ""
            if part.function is not None:
                call[1] = call[1] or part.function.name or ""
                call[2] += part.function.arguments or ""

    def answer(self, stop: Stop, *, partial: bool = False) -> Answer:
        calls = tuple(CallMade(*self.calls[index]) for index in sorted(self.calls))
        if stop == "stop" and self.refusal:
            stop = "refusal"
        # Servers differ in whether an answer with calls ends with "stop" or "tool_calls".
        if stop == "stop" and calls:
            stop = "tool-calls"
        return Answer(
            text="".join(self.text) or "".join(self.refusal),
            reasoning="".join(self.reasoning),
            calls=calls,
            stop=stop,
            model=self.model,
            native=self.reasoning_name,
            input_tokens=getattr(self.usage, "prompt_tokens", None),
            output_tokens=getattr(self.usage, "completion_tokens", None),
            partial=partial,
        )


def _messages(conversation: Conversation) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": conversation.system}]
    for at, entry in enumerate(conversation.entries):
        if isinstance(entry, UserSaid):
            messages.append({"role": "user", "content": entry.text})
        elif isinstance(entry, ToolGave):
            messages.append({"role": "tool", "tool_call_id": entry.call_id, "content": entry.shown})
        else:
            # Models that think between tool calls need their thoughts back, those of earlier messages are not wanted.
            messages.append(_assistant(entry, thoughts=at >= conversation.since_user))
    return messages


def _assistant(answer: Answer, *, thoughts: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or (None if answer.calls else "")}
    if thoughts and answer.reasoning and answer.native:
        message[answer.native] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": readable(call.arguments)},
            }
            for call in answer.calls
        ]
    return message
