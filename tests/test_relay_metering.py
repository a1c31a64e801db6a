"""Tokens, cost and time of calls, from what providers say in the three protocols."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from model_script import Tokens as ScriptedTokens
from model_script import say
from model_server import ModelServer
from relay_lab import (
    CHAT,
    MESSAGES,
    QUICK,
    RESPONSES,
    Lab,
    Upstream,
    answer,
    chat_chunk,
    event,
    laboratory,
    message,
    message_events,
    streaming,
)

from pytest_paranoia.relay.asking import UsageFilter
from pytest_paranoia.relay.contract import PATHS
from pytest_paranoia.relay.sse import Splitter, data_of
from pytest_paranoia.relay.usage import Meter, Tokens
from pytest_paranoia.relay.wire import read_wire

SCRIPTED = ScriptedTokens(input=1000, output=50, cached=600, cache_write=100, reasoning=20)


def tools(path: str) -> list[dict[str, Any]]:
    """Tools of a harness that speaks this protocol."""
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    if path == MESSAGES:
        return [{"name": "Bash", "description": "run", "input_schema": schema}]
    name = "exec_command" if path == RESPONSES else "terminal"
    function = {"name": name, "description": "run", "parameters": schema}
    return [{"type": "function", **function}] if path == RESPONSES else [{"type": "function", "function": function}]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_usage_of_each_protocol(lab: Lab, path: str, stream: bool) -> None:
    with ModelServer([say("hello", tokens=SCRIPTED)]) as server:
        trial = lab.open(f"{server.url}/v1", model="scripted-model")
        reply = trial.ask(path, model="scripted-model", stream=stream, tools=tools(path), max_tokens=100)
        (call,) = trial.relay.close().calls
    assert reply.status == 200
    assert b"hello" in reply.body or b"hel" in reply.body
    assert call.protocol == PATHS[path]
    assert call.model == "scripted-model"
    assert (call.input_tokens, call.output_tokens, call.cached_tokens) == (1000, 50, 600)
    if path == MESSAGES:
        assert call.cache_write_tokens == 100
        assert call.reasoning_tokens is None  # that protocol does not tell
    else:
        assert call.reasoning_tokens == 20
    assert call.attempts == 1
    assert call.cost_usd is None  # no table knows this model
    assert call.first_byte is not None
    assert 0 <= call.first_byte <= call.seconds
    (logged,) = read_wire(trial.wire)
    assert logged.main
    assert logged.call == call


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_answer_without_usage_is_unknown_not_zero(lab: Lab, path: str, stream: bool) -> None:
    with ModelServer([say("hello", tokens=None)]) as server:
        trial = lab.open(f"{server.url}/v1")
        trial.ask(path, stream=stream, tools=tools(path), max_tokens=100)
        (call,) = trial.relay.close().calls
    assert call.status == 200
    assert (call.input_tokens, call.cached_tokens, call.cache_write_tokens) == (None, None, None)
    assert (call.output_tokens, call.reasoning_tokens, call.cost_usd) == (None, None, None)


def usage_of(path: str, *contents: object, streamed: bool = True) -> Tokens:
    meter = Meter(PATHS[path], streamed=streamed)
    for content in contents:
        meter.feed(event(content) if streamed else json.dumps(content).encode())
    return meter.finish()


def test_chat_usage_of_various_providers() -> None:
    def used(**usage: Any) -> Tokens:
        return usage_of(CHAT, {"model": "m", "choices": [], "usage": usage}, streamed=False)

    assert used(prompt_tokens=10, completion_tokens=4) == Tokens("m", input=10, output=4)
    deepseek = used(prompt_tokens=10, completion_tokens=4, prompt_cache_hit_tokens=6, prompt_cache_miss_tokens=4)
    assert deepseek == Tokens("m", input=10, cached=6, output=4)
    assert used(prompt_tokens=10, completion_tokens=4, cached_tokens=3) == Tokens("m", input=10, cached=3, output=4)
    beside = {"completion_tokens_details": {"reasoning_tokens": 5}}
    within = used(prompt_tokens=10, completion_tokens=8, total_tokens=18, **beside)
    assert within == Tokens("m", input=10, output=8, reasoning=5)
    apart = used(prompt_tokens=10, completion_tokens=3, total_tokens=18, **beside)
    assert apart == Tokens("m", input=10, output=8, reasoning=5)
    writes = used(
        prompt_tokens=10, completion_tokens=1, prompt_tokens_details={"cached_tokens": 2, "cache_write_tokens": 3}
    )
    assert writes == Tokens("m", input=10, cached=2, cache_writes=3, output=1)


def test_chat_usage_inside_the_last_choice() -> None:
    last = {"model": "m", "choices": [{"index": 0, "delta": {}, "usage": {"prompt_tokens": 7, "completion_tokens": 2}}]}
    assert usage_of(CHAT, {"model": "m", "choices": [{"delta": {"content": "x"}}]}, last) == Tokens(
        "m", input=7, output=2
    )


def test_later_usage_is_cumulative_and_completes_the_first() -> None:
    start = {"type": "message_start", "message": message(tokens=0, output=0)}
    end = {"type": "message_delta", "usage": {"input_tokens": 12, "cache_read_input_tokens": 30, "output_tokens": 9}}
    assert usage_of(MESSAGES, start, end) == Tokens("m", input=42, cached=30, output=9)


def test_usage_before_the_end_tells_the_input_only() -> None:
    start = {"type": "message_start", "message": message(tokens=12, output=1)}
    assert usage_of(MESSAGES, start) == Tokens("m", input=12)


@pytest.mark.parametrize("nonsense", ["many", True, -1, 1.5, math.inf, math.nan, None, [], {}])
def test_nonsense_is_no_number(nonsense: object) -> None:
    body = {"model": "m", "usage": {"input_tokens": nonsense, "output_tokens": 3}}
    assert usage_of(RESPONSES, body, streamed=False) == Tokens("m", output=3)
    body = {"model": "m", "usage": {"input_tokens": 5, "output_tokens": 3, "input_tokens_details": nonsense}}
    assert usage_of(RESPONSES, body, streamed=False) == Tokens("m", input=5, output=3)
    assert usage_of(RESPONSES, {"model": "m", "usage": nonsense}, streamed=False) == Tokens("m")


@pytest.mark.parametrize("stream", [b"null", b"[]", b"7", b"{", b'{"choices": 1}', b'{"choices": [null], "usage": 3}'])
@pytest.mark.parametrize("path", PATHS)
def test_odd_events_are_no_usage(path: str, stream: bytes) -> None:
    meter = Meter(PATHS[path], streamed=True)
    meter.feed(event(stream))
    assert meter.finish() == Tokens()


STREAMS = {
    MESSAGES: message_events("héllo \N{GRINNING FACE}", tokens=31, output=17),
    RESPONSES: [
        event({"type": "response.created", "response": {"model": "m", "usage": None}}),
        event({"type": "response.output_text.delta", "delta": '"usage" \N{GRINNING FACE}'}),
        event(
            {
                "type": "response.completed",
                "response": {"model": "m", "usage": {"input_tokens": 31, "output_tokens": 17}},
            }
        ),
    ],
    CHAT: [
        chat_chunk("a", usage=None),
        chat_chunk('"usage": {"prompt_tokens": 1}', usage=None),
        event({"model": "m", "choices": [], "usage": {"prompt_tokens": 31, "completion_tokens": 17}}),
        event(b"[DONE]"),
    ],
}


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@given(st.sampled_from(sorted(STREAMS)), st.lists(st.integers(0, 10_000)), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_usage_does_not_depend_on_how_the_stream_is_cut(path: str, places: list[int], ending: bytes) -> None:
    data = b"".join(STREAMS[path]).replace(b"\n", ending)
    meter = Meter(PATHS[path], streamed=True)
    for piece in cut(data, places):
        meter.feed(piece)
    assert meter.finish() == Tokens("m", input=31, output=17)
    assert meter.ended
    assert meter.malformed == 0


LINES = st.sampled_from([b"data: 1", b"data: 2", b"event: x", b": ping", b"", b"\xff\xfe", b"data:", b"d\xc3"])


@given(st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"]))), st.lists(st.integers(0, 10_000)))
def test_splitting_loses_nothing_and_does_not_depend_on_the_cuts(
    lines: list[tuple[bytes, bytes]], places: list[int]
) -> None:
    data = b"".join(line + ending for line, ending in lines)
    whole, pieces = Splitter(), Splitter()
    events = [*whole.feed(data), whole.rest()]
    found = [one for piece in cut(data, places) for one in pieces.feed(piece)]
    found.append(pieces.rest())
    assert b"".join(found) == data
    assert [data_of(one) for one in found if data_of(one)] == [data_of(one) for one in events if data_of(one)]


def test_data_of_an_event() -> None:
    assert data_of(b"\xef\xbb\xbfevent: x\r\ndata: a\r\ndata:b\r\ndata\r\n: no\r\ndatax: c\r\n\r\n") == b"a\nb\n"


def test_what_the_list_price_does_not_cover() -> None:
    def special(path: str, body: dict[str, Any]) -> str | None:
        return usage_of(path, {"model": "m", **body}, streamed=False).special

    used = {"input_tokens": 1, "output_tokens": 1}
    usual = {"service_tier": "standard", "inference_geo": "global", "speed": "standard"}
    tools_unused = {"server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 3}}
    assert special(MESSAGES, {"usage": {**used, **usual, **tools_unused, "iterations": [{"type": "message"}]}}) is None
    assert special(RESPONSES, {"usage": used, "service_tier": "default", "output": [{"type": "message"}]}) is None
    assert special(RESPONSES, {"usage": used, "service_tier": "priority"}) == "service_tier priority"
    assert special(CHAT, {"usage": {"prompt_tokens": 1}, "service_tier": "flex"}) == "service_tier flex"
    assert special(MESSAGES, {"usage": {**used, "inference_geo": "us"}}) == "inference_geo us"
    assert special(MESSAGES, {"usage": {**used, "speed": "fast"}}) == "speed fast"
    searched = {"server_tool_use": {"web_search_requests": 2}}
    assert special(MESSAGES, {"usage": {**used, **searched}}) == "web_search_requests 2"
    assert special(MESSAGES, {"usage": {**used, "iterations": [{"type": "compaction"}]}}) == "iteration compaction"
    assert special(RESPONSES, {"usage": used, "output": [{"type": "web_search_call"}]}) == "web_search_call"


# -- asking for usage ----------------------------------------------------------------------------------------------


USAGE_CHUNK = event({"id": "c", "model": "m", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})


def test_chat_clients_that_do_not_ask_for_usage_do_not_see_it(lab: Lab) -> None:
    chunks = [chat_chunk("a", usage=None), chat_chunk("b", usage=None), USAGE_CHUNK, event(b"[DONE]")]
    with Upstream(streaming(*chunks)) as upstream:
        trial = lab.open(upstream)
        hidden = trial.ask(CHAT, stream=True, temperature=0.5)
        explicit = trial.ask(CHAT, stream=True, stream_options={"include_usage": False, "other": 1})
        asked = trial.ask(CHAT, stream=True, stream_options={"include_usage": True})
        whole = trial.ask(CHAT)
        calls = trial.relay.close().calls
    assert hidden.body == explicit.body == b"".join([chunks[0], chunks[1], chunks[3]])
    assert asked.body == whole.body == b"".join(chunks)
    first, second, third, fourth = (one.json for one in upstream.received)
    assert first["stream_options"] == {"include_usage": True}
    assert first["temperature"] == 0.5
    assert second["stream_options"] == {"include_usage": True, "other": 1}
    assert third["stream_options"] == {"include_usage": True}
    assert "stream_options" not in fourth
    assert [(call.input_tokens, call.output_tokens) for call in calls] == [(5, 2)] * 4
    logged = list(read_wire(trial.wire))
    assert "stream_options" not in logged[0].request
    assert USAGE_CHUNK in logged[0].body


def test_provider_that_does_not_know_the_option(lab: Lab) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if "stream_options" in await request.json():
            return web.json_response({"error": {"message": "Unrecognized argument: stream_options"}}, status=400)
        return await streaming(chat_chunk("a"), event(b"[DONE]"))(request)

    with Upstream(handler) as upstream:
        trial = lab.open(upstream)
        assert trial.ask(CHAT, stream=True).body == chat_chunk("a") + event(b"[DONE]")
        assert trial.ask(CHAT, stream=True).status == 200
        metered = trial.relay.close()
    assert ["stream_options" in one.json for one in upstream.received] == [True, False, False]
    assert [call.attempts for call in metered.calls] == [1, 1]
    assert metered.calls[0].input_tokens is None


@given(st.lists(st.integers(0, 10_000)), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_hiding_usage_does_not_depend_on_the_cuts(places: list[int], ending: bytes) -> None:
    chunks = [chat_chunk("a"), USAGE_CHUNK, chat_chunk("b"), event(b"[DONE]"), b"data: {half"]
    data = b"".join(chunks).replace(b"\n", ending)
    hider = UsageFilter()
    shown = b"".join(hider.feed(piece) for piece in cut(data, places)) + hider.finish()
    assert shown == b"".join([chunks[0], *chunks[2:]]).replace(b"\n", ending)


# -- money ---------------------------------------------------------------------------------------------------------


TABLE = """
date = "2026-11-01"

[[models]]
id = "m"
input = 10.0
output = 100.0
cached_input = 1.0
cache_write_5m = 12.5
cache_write_1h = 20.0
source = "a contract"

[[models.above]]
input_tokens = 1000
input = 20.0
output = 150.0
"""


def test_cost_by_the_users_table(tmp_path: Path) -> None:
    table = tmp_path / "mine.toml"
    table.write_text(TABLE)
    usage = {
        "input_tokens": 100,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 250, "ephemeral_1h_input_tokens": 50},
        "output_tokens": 40,
    }
    with (
        Upstream(answer({"model": "m-2026-10-10", "type": "message", "usage": usage})) as upstream,
        laboratory(tmp_path, QUICK.__class__(prices=str(table))) as lab,
    ):
        trial = lab.open(upstream)
        trial.ask()
        metered = trial.relay.close()
        totals = lab.relay.totals()
    cost = (100 * 10 + 200 * 1 + 250 * 12.5 + 50 * 20 + 40 * 100) / 1e6
    (call,) = metered.calls
    assert call.input_tokens == 600
    assert call.cost_usd == pytest.approx(cost)
    assert metered.prices is not None
    assert metered.prices.endswith("mine.toml 2026-11-01")
    assert totals.cost_usd == totals.known_cost_usd == pytest.approx(cost)
    assert totals.requests == 1


def test_one_unknown_price_makes_the_total_unknown(tmp_path: Path) -> None:
    table = tmp_path / "mine.toml"
    table.write_text(TABLE)
    with (
        Upstream(answer(message(tokens=100, output=0))) as upstream,
        laboratory(tmp_path, QUICK.__class__(prices=str(table))) as lab,
    ):
        lab.open(upstream).ask()
        assert lab.relay.totals().cost_usd == pytest.approx(0.001)
        with Upstream(answer(message(model="other"))) as second:
            lab.open(second).ask(model="another")
        totals = lab.relay.totals()
    assert totals.cost_usd is None
    assert totals.known_cost_usd == pytest.approx(0.001)


# -- time ----------------------------------------------------------------------------------------------------------


def test_busy_is_the_time_in_which_a_call_was_open(lab: Lab) -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.4)
        return web.json_response(message())

    with Upstream(handler) as upstream:
        trial = lab.open(upstream)
        threads = [threading.Thread(target=trial.ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        together = trial.relay.metered().busy
        time.sleep(0.3)
        assert trial.relay.metered().busy == together
        trial.ask()
        metered = trial.relay.close()
    assert 0.4 <= together < 1.5  # four calls of 0.4 s, one beside the other
    assert metered.busy >= together + 0.4
    assert metered.calls[-1].started >= together + 0.3
    assert all(call.seconds >= 0.4 for call in metered.calls)


def test_account_can_be_read_while_calls_are_open(lab: Lab) -> None:
    with Upstream(streaming(*message_events(), hang=True)) as upstream:
        trial = lab.open(upstream)
        connection = trial.connection()
        connection.request("POST", MESSAGES, json.dumps({"model": "m", "stream": True}))
        assert connection.getresponse().status == 200
        first = trial.relay.metered()
        time.sleep(0.1)
        assert trial.relay.metered().busy > first.busy
        assert first.calls == ()
        (call,) = trial.relay.close().calls
        connection.close()
    assert (call.input_tokens, call.output_tokens) == (10, 5)
