"""How the three protocols put a turn on the wire: as one JSON body, or as the events of a stream."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from model_requests import Request
from model_script import Tokens, Turn

Event = tuple[str | None, Any]
"""The event's name (None where the protocol has none) and its data."""

_PIECE = 24


@dataclass(frozen=True)
class WireCall:
    """A call in the harness' own words; ``arguments`` is the text on the wire."""

    call_id: str
    name: str
    arguments: str
    custom: bool = False

    @property
    def parsed(self) -> Any:
        """The arguments as JSON; what cannot be read stands under ``malformed``."""
        try:
            return json.loads(self.arguments)
        except ValueError:
            return {"malformed": self.arguments}


@dataclass(frozen=True)
class Answer:
    """A turn, ready for the wire."""

    request: Request
    turn: Turn
    calls: tuple[WireCall, ...]

    @property
    def stop(self) -> str:
        """Why the turn ends, in Anthropic's words."""
        return self.turn.stop or ("tool_use" if self.calls else "end_turn")


def body(answer: Answer) -> dict[str, Any]:
    """The answer as one JSON body."""
    makers: dict[str, Callable[[Answer], dict[str, Any]]] = {
        "anthropic-messages": _message,
        "openai-responses": _response,
        "openai-chat": _completion,
    }
    return makers[answer.request.protocol](answer)


def events(answer: Answer) -> list[Event]:
    """The answer as the events of a stream."""
    makers: dict[str, Callable[[Answer], Iterator[Event]]] = {
        "anthropic-messages": _message_events,
        "openai-responses": _response_events,
        "openai-chat": _completion_events,
    }
    return list(makers[answer.request.protocol](answer))


def encoded(event: Event) -> bytes:
    """One event as server-sent text."""
    name, data = event
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def _pieces(text: str) -> list[str]:
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)] or [""]


def _identity(prefix: str) -> str:
    return prefix + secrets.token_hex(12)


# -- Anthropic Messages --------------------------------------------------------------------------------------------


def _message_usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": tokens.input - tokens.cached - tokens.cache_write,
        "cache_creation_input_tokens": tokens.cache_write,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": tokens.output,
    }


def _blocks(answer: Answer) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if answer.turn.thinking:
        blocks.append({"type": "thinking", "thinking": answer.turn.thinking, "signature": "c2lnbmVk"})
    if answer.turn.text or not (answer.calls or answer.turn.thinking):
        blocks.append({"type": "text", "text": answer.turn.text})
    return [*blocks, *(_tool_use(call) for call in answer.calls)]


def _tool_use(call: WireCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.call_id, "name": call.name, "input": call.parsed}


def _message(answer: Answer) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": _identity("msg_"),
        "type": "message",
        "role": "assistant",
        "model": answer.turn.model or answer.request.model,
        "content": _blocks(answer),
        "stop_reason": answer.stop,
        "stop_sequence": None,
    }
    if answer.turn.tokens is not None:
        found["usage"] = _message_usage(answer.turn.tokens)
    return found


def _message_events(answer: Answer) -> Iterator[Event]:
    message = _message(answer)
    tokens = answer.turn.tokens
    start = {**message, "content": [], "stop_reason": None}
    if tokens is not None:
        start["usage"] = {**_message_usage(tokens), "output_tokens": 1}
    yield "message_start", {"type": "message_start", "message": start}
    yield "ping", {"type": "ping"}
    raw = {call.call_id: call.arguments for call in answer.calls}
    for index, block in enumerate(message["content"]):
        kind = block["type"]
        empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}[kind]
        yield (
            "content_block_start",
            {"type": "content_block_start", "index": index, "content_block": {**block, **empty}},
        )
        deltas: list[dict[str, Any]]
        if kind == "text":
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        elif kind == "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        else:
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(raw[block["id"]])]
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    end: dict[str, Any] = {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
    }
    if tokens is not None:
        end["usage"] = {"output_tokens": tokens.output}
    yield "message_delta", end
    yield "message_stop", {"type": "message_stop"}


# -- OpenAI Responses ----------------------------------------------------------------------------------------------


def _response_usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output,
    }


def _items(answer: Answer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.turn.thinking:
        summary = [{"type": "summary_text", "text": answer.turn.thinking}]
        sealed = {"encrypted_content": "c2VhbGVk"} if _wants_sealed(answer.request) else {}
        items.append({"id": _identity("rs_"), "type": "reasoning", "summary": summary, **sealed})
    if answer.turn.text or not (answer.calls or answer.turn.thinking):
        refused = answer.stop == "refusal"
        part: dict[str, Any] = (
            {"type": "refusal", "refusal": answer.turn.text}
            if refused
            else {"type": "output_text", "text": answer.turn.text, "annotations": [], "logprobs": []}
        )
        message = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
        items.append({"id": _identity("msg_"), **message})
    for call in answer.calls:
        if call.custom:
            item = {"id": _identity("ctc_"), "type": "custom_tool_call", "input": call.arguments}
        else:
            item = {"id": _identity("fc_"), "type": "function_call", "arguments": call.arguments}
            if (offered := answer.request.tool(call.name)) and offered.namespace is not None:
                item["namespace"] = offered.namespace
        items.append({**item, "status": "completed", "call_id": call.call_id, "name": call.name})
    return items


def _wants_sealed(request: Request) -> bool:
    return "reasoning.encrypted_content" in (request.body.get("include") or ())


def _response(answer: Answer) -> dict[str, Any]:
    reason = {"max_tokens": "max_output_tokens", "content_filter": "content_filter"}.get(answer.stop)
    return {
        "id": _identity("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "metadata": {},
        "model": answer.turn.model or answer.request.model,
        "output": _items(answer),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": _response_usage(answer.turn.tokens) if answer.turn.tokens is not None else None,
    }


def _response_events(answer: Answer) -> Iterator[Event]:
    whole = _response(answer)
    number = -1

    def event(kind: str, **fields: Any) -> Event:
        nonlocal number
        number += 1
        return kind, {"type": kind, "sequence_number": number, **fields}

    begun = {**whole, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for index, item in enumerate(whole["output"]):
        at = {"item_id": item["id"], "output_index": index}
        kind = item["type"]
        hollow: dict[str, Any] = {
            "reasoning": {"summary": []},
            "message": {"content": [], "status": "in_progress"},
            "function_call": {"arguments": "", "status": "in_progress"},
            "custom_tool_call": {"input": "", "status": "in_progress"},
        }[kind]
        yield event("response.output_item.added", output_index=index, item={**item, **hollow})
        if kind == "reasoning":
            part = item["summary"][0]
            at["summary_index"] = 0
            yield event("response.reasoning_summary_part.added", **at, part={**part, "text": ""})
            for piece in _pieces(part["text"]):
                yield event("response.reasoning_summary_text.delta", **at, delta=piece)
            yield event("response.reasoning_summary_text.done", **at, text=part["text"])
            yield event("response.reasoning_summary_part.done", **at, part=part)
        elif kind == "message":
            part = item["content"][0]
            key, name = ("refusal", "refusal") if part["type"] == "refusal" else ("text", "output_text")
            at["content_index"] = 0
            extra = {"logprobs": []} if key == "text" else {}
            yield event("response.content_part.added", **at, part={**part, key: ""})
            for piece in _pieces(part[key]):
                yield event(f"response.{name}.delta", **at, delta=piece, **extra)
            yield event(f"response.{name}.done", **at, **{key: part[key]}, **extra)
            yield event("response.content_part.done", **at, part=part)
        else:
            key, name = (
                ("input", "custom_tool_call_input") if "input" in item else ("arguments", "function_call_arguments")
            )
            for piece in _pieces(item[key]):
                yield event(f"response.{name}.delta", **at, delta=piece)
            done = {"name": item["name"]} if key == "arguments" else {}
            yield event(f"response.{name}.done", **at, **{key: item[key]}, **done)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.incomplete" if whole["status"] == "incomplete" else "response.completed", response=whole)


# -- OpenAI Chat Completions ---------------------------------------------------------------------------------------

_FINISH = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
    "content_filter": "content_filter",
}


def _completion_usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    }


def _head(answer: Answer, kind: str) -> dict[str, Any]:
    return {
        "id": _identity("chatcmpl-"),
        "object": kind,
        "created": int(time.time()),
        "model": answer.turn.model or answer.request.model,
    }


def _completion(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.turn.text or None}
    if answer.turn.thinking:
        message["reasoning_content"] = answer.turn.thinking
    if answer.calls:
        message["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in answer.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _FINISH.get(answer.stop, answer.stop)}
    found = {**_head(answer, "chat.completion"), "choices": [choice]}
    if answer.turn.tokens is not None:
        found["usage"] = _completion_usage(answer.turn.tokens)
    return found


def _completion_events(answer: Answer) -> Iterator[Event]:
    head = _head(answer, "chat.completion.chunk")
    wants_usage = bool((answer.request.body.get("stream_options") or {}).get("include_usage"))
    tokens = answer.turn.tokens if wants_usage else None

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return None, {**head, "choices": [choice], **({"usage": None} if wants_usage else {})}

    yield chunk({"role": "assistant", "content": ""})
    if answer.turn.thinking:
        for piece in _pieces(answer.turn.thinking):
            yield chunk({"reasoning_content": piece})
    if answer.turn.text:
        for piece in _pieces(answer.turn.text):
            yield chunk({"content": piece})
    for index, call in enumerate(answer.calls):
        begun = {"index": index, "id": call.call_id, "type": "function"}
        yield chunk({"tool_calls": [{**begun, "function": {"name": call.name, "arguments": ""}}]})
        for piece in _pieces(call.arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _FINISH.get(answer.stop, answer.stop))
    if tokens is not None:
        yield None, {**head, "choices": [], "usage": _completion_usage(tokens)}
    yield None, "[DONE]"
