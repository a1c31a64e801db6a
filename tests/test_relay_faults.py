"""What goes wrong between a trial and its provider: overload, silence, broken streams, clients that leave."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from aiohttp import web
from model_errors import error_body
from model_script import bad_json, cut, fail, garbage, hang, say
from model_server import ModelServer
from relay_lab import (
    CHAT,
    KEY_ENV,
    MESSAGES,
    QUICK,
    RESPONSES,
    Lab,
    Upstream,
    answer,
    event,
    in_turn,
    laboratory,
    message,
    message_events,
    streaming,
)

from pytest_paranoia.relay import answers
from pytest_paranoia.relay.contract import PATHS
from pytest_paranoia.relay.wire import read_wire

TOOLS = {
    MESSAGES: [{"name": "Bash", "input_schema": {"type": "object"}}],
    RESPONSES: [{"type": "function", "name": "exec_command", "parameters": {"type": "object"}}],
    CHAT: [{"type": "function", "function": {"name": "terminal", "parameters": {"type": "object"}}}],
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with laboratory(tmp_path_factory.mktemp("wire")) as running:
        yield running
        assert running.relay.totals().refusal is None  # it would have answered the tests that came after


# -- overload ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_passing_errors_are_repeated(lab: Lab, path: str, status: int) -> None:
    with ModelServer([fail(status), fail(status), say("hello")]) as server:
        trial = lab.open(f"{server.url}/v1")
        reply = trial.ask(path, tools=TOOLS[path], stream=True, max_tokens=10)
        metered = trial.relay.close()
    assert reply.status == 200
    (call,) = metered.calls
    assert call.attempts == 3
    assert call.output_tokens is not None
    assert metered.retries == 2
    assert metered.overload is None
    (logged,) = read_wire(trial.wire)
    assert [attempt.status for attempt in logged.attempts] == [status, status, 200]
    assert all(attempt.message and attempt.wait > 0 for attempt in logged.attempts[:2])


@pytest.mark.parametrize("path", PATHS)
def test_lasting_overload_is_passed_on_and_said(lab: Lab, path: str) -> None:
    with ModelServer([fail(529)] * 4) as server:
        trial = lab.open(f"{server.url}/v1")
        reply = trial.ask(path, tools=TOOLS[path], max_tokens=10)
        metered = trial.relay.close()
        assert len(server.exchanges) == QUICK.attempts
    assert reply.status == 529
    assert reply.json == json.loads(json.dumps(error_body(PATHS[path], 529, None, "m"))) or "Overloaded" in reply.error
    assert reply.headers["x-should-retry"] == "false"
    assert metered.overload is not None
    assert (metered.overload.status, metered.overload.attempts) == (529, 3)
    assert metered.overload.message == "Overloaded"
    assert [call.status for call in metered.calls] == [529]
    assert metered.refusal is None


@pytest.mark.parametrize("status", [400, 409, 413, 422])
def test_lasting_errors_are_not_repeated(lab: Lab, status: int) -> None:
    with Upstream(answer({"error": {"message": "no"}}, status)) as upstream:
        trial = lab.open(upstream)
        assert trial.ask().status == status
        assert trial.relay.close().retries == 0
    assert len(upstream.received) == 1


def test_quota_is_not_repeated(tmp_path: Path) -> None:
    said = error_body("openai-chat", 429, "quota", "m")
    with Upstream(answer(said, 429)) as upstream, laboratory(tmp_path) as lab:
        trial = lab.open(upstream)
        assert trial.ask(CHAT).status == 429
        metered = trial.relay.close()
    assert len(upstream.received) == 1
    assert metered.refusal is not None
    assert metered.overload is None


def test_provider_that_says_not_to_repeat(lab: Lab) -> None:
    with Upstream(answer({"error": {"message": "no"}}, 500, {"x-should-retry": "false"})) as upstream:
        assert lab.open(upstream).ask().status == 500
    assert len(upstream.received) == 1


def test_wait_that_the_provider_asks_for(tmp_path: Path) -> None:
    busy = {"error": {"message": "later"}}
    with (
        Upstream(in_turn(answer(busy, 429, {"Retry-After": "0.5"}), answer(message()))) as upstream,
        laboratory(tmp_path, replace(QUICK, longest_wait=2.0)) as lab,
    ):
        trial, other = lab.open(upstream), lab.open(upstream)
        started = time.monotonic()
        assert trial.ask().status == 200
        assert 0.5 <= time.monotonic() - started < 5.0
        assert other.ask().status == 200
    assert len(upstream.received) == 3


def test_wait_that_is_asked_for_is_bounded(lab: Lab) -> None:
    busy = {"error": {"message": "later"}}
    with Upstream(in_turn(answer(busy, 503, {"Retry-After": "3600"}), answer(message()))) as upstream:
        started = time.monotonic()
        assert lab.open(upstream).ask().status == 200
    assert 0.3 <= time.monotonic() - started < 5.0


def test_forms_of_retry_after() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert answers.retry_after({}) is None
    assert answers.retry_after({"retry-after": "7"}) == 7
    assert answers.retry_after({"retry-after": "-7"}) == 0
    assert answers.retry_after({"retry-after-ms": "250", "retry-after": "7"}) == 0.25
    assert answers.retry_after({"retry-after": "soon"}) is None
    assert answers.retry_after({"retry-after": "nan"}) is None
    assert answers.retry_after({"retry-after": later}) == pytest.approx(30, abs=2)


def test_repetitions_end_with_their_time(tmp_path: Path) -> None:
    settings = replace(QUICK, attempts=1000, retry_seconds=0.6)
    with Upstream(answer({"error": {"message": "x"}}, 500)) as upstream, laboratory(tmp_path, settings) as lab:
        started = time.monotonic()
        assert lab.open(upstream).ask().status == 500
        assert time.monotonic() - started < 3.0
    assert 2 < len(upstream.received) < 40


def test_waits_grow_and_differ(lab: Lab) -> None:
    with Upstream(answer({"error": {"message": "x"}}, 500)) as upstream:
        trials = [lab.open(upstream) for _ in range(6)]
        waits = []
        for trial in trials:
            trial.ask()
            trial.relay.close()
            (logged,) = read_wire(trial.wire)
            waits.append([attempt.wait for attempt in logged.attempts])
    for first, second, last in waits:
        assert 0.015 <= first <= 0.025
        assert 0.030 <= second <= 0.050
        assert last == 0.0
    assert len({first for first, _, _ in waits}) > 1


def test_overload_inside_a_stream_is_passed_on(lab: Lab) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with Upstream(streaming(message_events()[0], event(error))) as upstream:
        trial = lab.open(upstream)
        reply = trial.ask(stream=True)
        metered = trial.relay.close()
    assert b"overloaded_error" in reply.body
    assert len(upstream.received) == 1
    assert metered.overload is not None
    assert metered.overload.message == "overloaded_error: Overloaded"
    assert metered.calls[0].output_tokens is None


# -- no answer -----------------------------------------------------------------------------------------------------


def test_provider_that_refuses_connections(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    trial = lab.open(f"http://127.0.0.1:{port}/v1")
    started = time.monotonic()
    reply = trial.ask()
    assert time.monotonic() - started < 5.0
    metered = trial.relay.close()
    assert reply.status == 502
    assert "cannot be reached" in reply.error
    assert reply.json["error"]["type"] == "api_error"
    assert metered.overload is not None
    assert (metered.overload.status, metered.overload.attempts) == (0, 3)
    assert [(call.status, call.attempts) for call in metered.calls] == [(502, 3)]
    assert metered.refusal is None


def test_provider_that_never_begins_to_answer(tmp_path: Path) -> None:
    with (
        ModelServer([hang()] * 3) as server,
        laboratory(tmp_path, replace(QUICK, attempts=2, headers_seconds=0.3)) as lab,
    ):
        trial = lab.open(f"{server.url}/v1")
        started = time.monotonic()
        reply = trial.ask(tools=TOOLS[MESSAGES])
        assert 0.6 <= time.monotonic() - started < 5.0
        metered = trial.relay.close()
    assert reply.status == 502
    assert "no answer within 0.3 s" in reply.error
    assert metered.overload is not None
    assert metered.overload.status == 0


def test_connection_that_breaks_before_the_answer_is_repeated(lab: Lab) -> None:
    async def broken(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def headers_only(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        assert request.transport is not None
        request.transport.abort()
        return response

    with Upstream(in_turn(broken, headers_only, streaming(*message_events()))) as upstream:
        trial = lab.open(upstream)
        reply = trial.ask(stream=True)
        metered = trial.relay.close()
    assert (reply.status, reply.broken) == (200, False)
    assert metered.calls[0].attempts == 3
    assert metered.breaks == 0


# -- answers that break --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_answer_that_breaks_off_is_passed_on_as_a_break(lab: Lab, path: str, stream: bool) -> None:
    with ModelServer([cut("a text that is long enough to be cut into several events")]) as server:
        trial = lab.open(f"{server.url}/v1")
        reply = trial.ask(path, tools=TOOLS[path], stream=stream, max_tokens=10)
        metered = trial.relay.close()
        assert len(server.exchanges) == 1
    assert reply.status == 200
    assert reply.broken
    assert reply.body
    assert metered.breaks == 1
    assert metered.overload is None
    (call,) = metered.calls
    assert (call.status, call.output_tokens, call.cost_usd) == (200, None, None)
    (logged,) = read_wire(trial.wire)
    assert logged.ended == "broken"
    assert logged.body.startswith(reply.body)


def test_stream_without_its_last_event_is_truncated(lab: Lab) -> None:
    with Upstream(streaming(*message_events()[:2])) as upstream:
        trial = lab.open(upstream)
        reply = trial.ask(stream=True)
        metered = trial.relay.close()
    assert not reply.broken
    assert metered.breaks == 1
    assert metered.calls[0].output_tokens is None
    (logged,) = read_wire(trial.wire)
    assert logged.ended == "truncated"


def test_silence_in_the_middle_is_a_break(tmp_path: Path) -> None:
    with (
        Upstream(streaming(*message_events()[:2], hang=True)) as upstream,
        laboratory(tmp_path, replace(QUICK, idle_seconds=0.3)) as lab,
    ):
        trial = lab.open(upstream)
        started = time.monotonic()
        reply = trial.ask(stream=True)
        assert 0.3 <= time.monotonic() - started < 5.0
        assert trial.relay.close().breaks == 1
    assert reply.broken
    assert reply.body == b"".join(message_events()[:2])


@pytest.mark.parametrize("path", PATHS)
def test_events_that_are_no_json_pass_unchanged(lab: Lab, path: str) -> None:
    with ModelServer([bad_json("a text that is long enough to be cut into several events")]) as server:
        trial = lab.open(f"{server.url}/v1")
        reply = trial.ask(path, tools=TOOLS[path], stream=True, max_tokens=10)
        metered = trial.relay.close()
    assert b'{"type": "content_block_delta", "ind\n\n' in reply.body
    assert not reply.broken
    assert metered.calls[0].status == 200
    assert metered.refusal is None


def test_usage_in_an_event_that_is_no_json_is_unknown(lab: Lab) -> None:
    events = message_events()
    events[2] = events[2].replace(b"}}", b"}")
    with Upstream(streaming(*events)) as upstream:
        trial = lab.open(upstream)
        assert trial.ask(stream=True).body == b"".join(events)
        (call,) = trial.relay.close().calls
    assert (call.input_tokens, call.output_tokens) == (10, None)


def test_page_instead_of_an_answer(lab: Lab) -> None:
    with ModelServer([garbage()]) as server:
        trial = lab.open(f"{server.url}/v1")
        reply = trial.ask(tools=TOOLS[MESSAGES])
        (call,) = trial.relay.close().calls
    assert reply.body == b"<html>bad gateway</html>"
    assert (call.status, call.input_tokens, call.output_tokens) == (200, None, None)


# -- clients that leave --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("begun", [True, False])
def test_client_that_leaves_ends_the_providers_call(lab: Lab, begun: bool) -> None:
    async def silent(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    with Upstream(streaming(*message_events()[:2], hang=True) if begun else silent) as upstream:
        trial = lab.open(upstream)
        connection = trial.connection()
        connection.request("POST", MESSAGES, json.dumps({"model": "m", "stream": True}))
        if begun:
            connection.getresponse().read1(10)
        else:
            while not upstream.received:
                time.sleep(0.01)
        connection.close()
        assert connection.sock is None
        if begun:
            del connection
        assert upstream.gone.wait(10)
        time.sleep(0.1)
        metered = trial.relay.close()
    (call,) = metered.calls
    assert call.status == (200 if begun else 0)
    assert (call.input_tokens, call.output_tokens) == (10 if begun else None, None)
    assert metered.breaks == 0
    (logged,) = read_wire(trial.wire)
    assert logged.ended == "client-gone"


def test_client_that_leaves_while_the_relay_waits(tmp_path: Path) -> None:
    with (
        Upstream(answer({"error": {"message": "x"}}, 500)) as upstream,
        laboratory(tmp_path, replace(QUICK, backoff=30.0, longest_wait=30.0, retry_seconds=100.0)) as lab,
    ):
        trial = lab.open(upstream)
        connection = trial.connection()
        connection.request("POST", MESSAGES, json.dumps({"model": "m"}))
        while not upstream.received:
            time.sleep(0.01)
        connection.close()
        deadline = time.monotonic() + 10
        while not trial.relay.metered().calls and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(trial.relay.close().calls) == 1
    assert len(upstream.received) == 1


def test_request_that_breaks_off_is_no_call(lab: Lab) -> None:
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream)
        for head in (
            f"POST {MESSAGES} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{",
            "not HTTP at all\r\n\r\n",
        ):
            with socket.create_connection(trial.address, timeout=10) as raw:
                raw.sendall(head.encode())
                time.sleep(0.1)
        assert trial.ask().status == 200
        assert len(trial.relay.close().calls) == 1
    assert len(upstream.received) == 1


def test_closing_a_trial_ends_its_open_calls(lab: Lab) -> None:
    with Upstream(streaming(*message_events()[:2], hang=True)) as upstream:
        trial, other = lab.open(upstream), lab.open(upstream)
        connections = [one.connection() for one in (trial, other)]
        for connection in connections:
            connection.request("POST", MESSAGES, json.dumps({"model": "m", "stream": True}))
        responses = [connection.getresponse() for connection in connections]
        started = time.monotonic()
        metered = trial.relay.close()
        assert time.monotonic() - started < 3.0
        assert upstream.gone.wait(10)
        assert trial.relay.close() == trial.relay.metered() == metered
        assert other.relay.metered().calls == ()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(trial.address, timeout=5)
        for response in responses:
            response.close()
        for connection in connections:
            connection.close()
    (call,) = metered.calls
    assert (call.status, call.input_tokens, call.output_tokens) == (200, 10, None)
    (logged,) = read_wire(trial.wire)
    assert logged.ended == "closed"
    assert KEY_ENV not in trial.wire.read_text()
