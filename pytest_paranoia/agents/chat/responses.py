"""The Responses API. Nothing is stored at the provider: each request holds the whole conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import openai

from pytest_paranoia.agents.chat.conversation import Answer, CallMade, Conversation, Stop, ToolGave, UserSaid, readable
from pytest_paranoia.agents.chat.tools import Tool
from pytest_paranoia.agents.chat.wire import BrokenStream, Late, Wire
from pytest_paranoia.errors import InfrastructureError

_SEALED = "reasoning.encrypted_content"


class Responses(Wire):
    """Asks ``/v1/responses``."""

    def described(self, tool: Tool) -> dict[str, Any]:
        """Return a function as this API names it."""
        about = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
        return {"type": "function", **about, "strict": False}

    def structured(self, name: str, schema: Mapping[str, Any]) -> None:
        """Ask for answers by *schema*."""
        form = {"type": "json_schema", "name": name, "strict": True, "schema": dict(schema)}
        self.optional["text"] = {"format": form}

    def options(self) -> dict[str, Any]:
        """Return effort, the limit of output, and the wish for sealed reasoning that can be sent back."""
        found: dict[str, Any] = {"include": [_SEALED], "reasoning": {"summary": "auto"}}
        if self.choice.effort is not None:
            found["reasoning"] = {"summary": "auto", "effort": self.choice.effort}
        if self.choice.max_output is not None:
            found["max_output_tokens"] = self.choice.max_output
        return found

    def substitute(self, option: str) -> dict[str, Any]:
        """Where summaries are not to be had the effort still is."""
        if option == "reasoning" and self.choice.effort is not None and not self._bare:
            self._bare = True
            return {"reasoning": {"effort": self.choice.effort}}
        return {}

    _bare = False

    def stream(self, conversation: Conversation, options: Mapping[str, Any]) -> Answer:
        """Ask once; see ``Wire.stream``."""
        growing = _Growing()
        request: dict[str, Any] = {**options, "stream": True, "timeout": self.left}
        if self.tools:  # an empty list is refused
            request["tools"] = self.tools
        answered: openai.Stream[Any] = self.client.responses.create(  # type: ignore[assignment]
            model=self.choice.model or "",
            instructions=conversation.system,
            input=_input(conversation),  # type: ignore[arg-type]
            store=False,
            **request,
        )
        with answered as stream:
            for event in stream:
                growing.take(event)
                if self.late:
                    raise Late(growing.partial())
        return growing.answer()


@dataclass
class _Growing:
    """An answer as its events come in."""

    text: list[str] = field(default_factory=list)
    items: list[Any] = field(default_factory=list)
    final: Any = None

    def take(self, event: Any) -> None:
        kind = event.type
        if kind == "response.output_text.delta":
            self.text.append(event.delta)
        elif kind == "response.output_item.done":
            self.items.append(event.item)
        elif kind in ("response.completed", "response.incomplete"):
            self.final = event.response
        elif kind == "response.failed":
            error = event.response.error
            raise InfrastructureError(
                "model-refused", f"chat: the response failed: {getattr(error, 'message', None) or 'no message'}"
            )
        elif kind == "error":
            raise BrokenStream(f"error in the stream: {event.message}")

    def partial(self) -> Answer:
        return Answer(text="".join(self.text), partial=True)

    def answer(self) -> Answer:
        if self.final is None:
            raise BrokenStream("the stream ended without response.completed")
        items = [item.model_dump(mode="json", exclude_none=True) for item in self.final.output or self.items]
        texts: list[str] = []
        refusals: list[str] = []
        thoughts: list[str] = []
        calls: list[CallMade] = []
        for item in items:
            if item["type"] == "message":
                for part in item.get("content") or ():
                    (refusals if part["type"] == "refusal" else texts).append(
                        part.get("text") or part.get("refusal") or ""
                    )
            elif item["type"] == "reasoning":
                parts = item.get("summary") or item.get("content") or ()
                thoughts += [part["text"] for part in parts if part.get("text")]
            elif item["type"] == "function_call":
                calls.append(CallMade(item["call_id"], item["name"], item.get("arguments") or ""))
        usage = self.final.usage
        return Answer(
            text="\n".join(text for text in (texts or refusals) if text),
            reasoning="\n".join(thoughts),
            calls=tuple(calls),
            stop=self._stop(bool(calls), bool(refusals)),
            model=self.final.model,
            native=items,
            input_tokens=getattr(usage, "input_tokens", None),
            output_tokens=getattr(usage, "output_tokens", None),
        )

    def _stop(self, calls: bool, refused: bool) -> Stop:
        if self.final.status == "incomplete":
            details = self.final.incomplete_details
            return "content-filter" if details is not None and details.reason == "content_filter" else "length"
        if refused and not calls:
            return "refusal"
        return "tool-calls" if calls else "stop"


def _input(conversation: Conversation) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for entry in conversation.entries:
        if isinstance(entry, UserSaid):
            items.append({"type": "message", "role": "user", "content": entry.text})
        elif isinstance(entry, ToolGave):
            items.append({"type": "function_call_output", "call_id": entry.call_id, "output": entry.shown})
        else:
            items += _own(entry)
    return items


def _own(answer: Answer) -> list[dict[str, Any]]:
    """Return the items of an answer: calls under the ids they have with us, reasoning where it is sealed."""
    calls = iter(answer.calls)
    items = []
    for item in answer.native or ():
        if item["type"] == "function_call":
            call = next(calls)
            items.append({**item, "call_id": call.call_id, "arguments": readable(call.arguments)})
        elif item["type"] != "reasoning" or item.get("encrypted_content"):
            items.append(item)
    return items
