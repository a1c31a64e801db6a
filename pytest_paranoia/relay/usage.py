"""What an answer says of its tokens: the three protocols, as a stream of events or as one body.

What is not said is None. All counts are those of ``schema.record.Usage``: the input includes what was read from and
written to the provider's cache, the output includes reasoning.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_paranoia.relay.contract import Protocol
from pytest_paranoia.relay.sse import Splitter, data_of

_USUAL_TIERS = frozenset({None, "", "default", "auto", "standard", "standard_only", "on_demand"})
_FREE_TOOLS = frozenset({"web_fetch_requests"})
_PAID_ITEMS = frozenset({"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"})
_USUAL_PLACES = frozenset({None, "", "global", "not_available"})
_STREAM_ENDS = frozenset({"message_stop", "response.completed", "response.incomplete", "response.failed", "error"})
_TELLING = (b'"usage"', b'"error"', b"message_stop", b"response.completed", b"response.incomplete", b"response.failed")
_RESPONSE_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


@dataclass(frozen=True)
class Tokens:
    """What one answer used. ``long_cache_writes`` is the part of ``cache_writes`` that is kept for an hour.

    ``special`` names what makes the list price wrong: another service tier or place, a tool of the provider that costs,
    a part that another model answered.
    """

    model: str = ""
    input: int | None = None
    cached: int | None = None
    cache_writes: int | None = None
    long_cache_writes: int | None = None
    output: int | None = None
    reasoning: int | None = None
    special: str | None = None


@dataclass(frozen=True)
class StreamError:
    """An error that a provider reported inside an answer that had begun well."""

    kind: str
    message: str


class Meter:
    """Reads the usage of one answer as it passes by. ``streamed`` says whether it is a stream of events.

    ``ended`` tells whether the protocol's own last event was seen; ``malformed`` counts events that are no JSON.
    """

    def __init__(self, protocol: Protocol, *, streamed: bool) -> None:
        self._protocol = protocol
        self._streamed = streamed
        self._splitter = Splitter()
        self._body = bytearray()
        self._usage: dict[str, Any] = {}
        self._facts: dict[str, Any] = {}
        self._final = False
        self.ended = False
        self.malformed = 0
        self.error: StreamError | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the answer."""
        if self._streamed:
            for event in self._splitter.feed(data):
                self._event(event)
        else:
            self._body += data

    def finish(self) -> Tokens:
        """Return what the answer said. It need not be whole."""
        if self._streamed:
            self._event(self._splitter.rest())
        elif self._body:
            body = self._parse(bytes(self._body))
            if body is not None:
                self._whole(body)
            self._body.clear()
        return self._tokens()

    # -- reading ---------------------------------------------------------------------------------------------------

    def _event(self, event: bytes) -> None:
        data = data_of(event)
        if not data:
            return
        if data == b"[DONE]":
            self.ended = True
            return
        # Most events are text deltas; only what can tell something is parsed once the model is known.
        if self._facts.get("model") and not any(mark in data for mark in _TELLING):
            return
        content = self._parse(data)
        if content is None:
            return
        kind = content.get("type")
        if kind in _STREAM_ENDS:
            self.ended = True
        if self._protocol == "anthropic-messages":
            message = content.get("message") if kind == "message_start" else None
            self._note(message if isinstance(message, dict) else {})
            self._merge(content.get("usage") if kind == "message_delta" else None, final=kind == "message_delta")
        elif self._protocol == "openai-responses":
            response = content.get("response")
            self._note(response if isinstance(response, dict) else {}, final=kind in _RESPONSE_ENDS)
        else:
            self._chunk(content)
        self._complain(content)

    def _whole(self, body: dict[str, Any]) -> None:
        self.ended = True
        if self._protocol == "openai-chat":
            self._chunk(body)
        else:
            self._note(body, final=True)
        self._complain(body)

    def _note(self, message: Mapping[str, Any], *, final: bool = False) -> None:
        for name in ("model", "service_tier", "output"):
            if message.get(name):
                self._facts[name] = message[name]
        self._merge(message.get("usage"), final=final)

    def _chunk(self, content: dict[str, Any]) -> None:
        self._note(content, final=True)
        if not self._usage:
            # Some providers put it where only they do.
            choices = content.get("choices")
            first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
            vendor = content.get("x_groq")
            self._merge(first.get("usage") or (vendor.get("usage") if isinstance(vendor, dict) else None), final=True)

    def _merge(self, usage: object, *, final: bool) -> None:
        if isinstance(usage, dict) and usage:
            # A later report is cumulative and may leave out what has not changed.
            self._usage |= {name: value for name, value in usage.items() if value is not None}
            self._final = self._final or final

    def _complain(self, content: Mapping[str, Any]) -> None:
        response = content.get("response")
        error = content.get("error") or (response.get("error") if isinstance(response, dict) else None)
        if isinstance(error, dict):
            kind = error.get("code") or error.get("type") or ""
            self.error = StreamError(str(kind), str(error.get("message", "")))
        elif content.get("type") == "error":
            self.error = StreamError(str(content.get("code", "")), str(content.get("message", "")))

    def _parse(self, data: bytes) -> dict[str, Any] | None:
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            content = None
        if isinstance(content, dict):
            return content
        self.malformed += 1
        return None

    # -- the result ------------------------------------------------------------------------------------------------

    def _tokens(self) -> Tokens:
        usage = self._usage
        model = str(self._facts.get("model") or "")
        if not usage:
            return Tokens(model=model)
        special = _special({**self._facts, **usage})
        if self._protocol == "anthropic-messages":
            return self._anthropic(model, usage, special)
        prefix = "input" if self._protocol == "openai-responses" else "prompt"
        suffix = "output" if self._protocol == "openai-responses" else "completion"
        inside = _mapping(usage.get(f"{prefix}_tokens_details"))
        outside = _mapping(usage.get(f"{suffix}_tokens_details"))
        taken, given = _count(usage.get(f"{prefix}_tokens")), _count(usage.get(f"{suffix}_tokens"))
        reasoning = _count(outside.get("reasoning_tokens"))
        if taken is not None and given is not None and reasoning:
            # Some providers count reasoning beside the output; their total gives it away.
            beside = _count(usage.get("total_tokens")) == taken + given + reasoning
            given += reasoning if beside else 0
        return Tokens(
            model=model,
            input=taken,
            cached=_first(
                inside.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("cached_tokens")
            ),
            cache_writes=_first(inside.get("cache_write_tokens"), inside.get("cache_creation_tokens")),
            output=given,
            reasoning=reasoning,
            special=special,
        )

    def _anthropic(self, model: str, usage: Mapping[str, Any], special: str | None) -> Tokens:
        fresh = _count(usage.get("input_tokens"))
        cached = _count(usage.get("cache_read_input_tokens"))
        written = _count(usage.get("cache_creation_input_tokens"))
        kept = _mapping(usage.get("cache_creation"))
        details = _mapping(usage.get("output_tokens_details"))
        return Tokens(
            model=model,
            input=None if fresh is None else fresh + (cached or 0) + (written or 0),
            cached=cached,
            cache_writes=written,
            long_cache_writes=_count(kept.get("ephemeral_1h_input_tokens")),
            # The first event holds a count of output too, long before there is any.
            output=_count(usage.get("output_tokens")) if self._final else None,
            reasoning=_first(details.get("thinking_tokens"), details.get("reasoning_tokens")),
            special=special,
        )


def _special(facts: Mapping[str, Any]) -> str | None:
    """Return why the list price does not hold for this answer, None where it does."""
    for name, usual in (("service_tier", _USUAL_TIERS), ("speed", _USUAL_TIERS), ("inference_geo", _USUAL_PLACES)):
        value = facts.get(name)
        if not isinstance(value, str | None) or value not in usual:
            return f"{name} {value}"
    for name, value in _mapping(facts.get("server_tool_use")).items():
        if _count(value) and name not in _FREE_TOOLS:
            return f"{name} {value}"
    for part in _entries(facts.get("iterations")):
        if part.get("type") != "message":
            return f"iteration {part.get('type')}"
    for item in _entries(facts.get("output")):
        if item.get("type") in _PAID_ITEMS:
            return str(item["type"])
    return None


def _entries(value: object) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    """Return a count, None for what is none; a provider's nonsense must not become a number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return int(value) if value == int(value) else None


def _first(*values: object) -> int | None:
    return next((found for value in values if (found := _count(value)) is not None), None)
