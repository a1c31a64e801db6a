"""Caps of a trial and of a run, limits of a provider over all trials, and answers that stop the run."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from model_errors import error_body
from relay_lab import (
    CHAT,
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
    streaming,
)

from pytest_paranoia.relay import answers
from pytest_paranoia.relay.client import connect
from pytest_paranoia.relay.contract import PATHS, Caps, Protocol, Refusal
from pytest_paranoia.relay.fairness import ProviderQueue
from pytest_paranoia.relay.trial import CONNECTIONS
from pytest_paranoia.relay.wire import read_wire

TABLE = '\ndate = "2026-11-01"\n[[models]]\nid = "m"\ninput = 1000.0\noutput = 1000.0\nsource = "a contract"\n'
"""A token costs a thousandth of a dollar."""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with laboratory(tmp_path, priced(tmp_path)) as running:
        yield running


def priced(folder: Path, **settings: Any) -> Any:
    table = folder / "table.toml"
    table.write_text(TABLE)
    return replace(QUICK, prices=str(table), **settings)


# -- caps ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("caps", "name", "allowed"),
    [
        (Caps(requests=2), "requests", 2),
        (Caps(tokens=20), "tokens", 2),  # each answer has 10 + 5
        (Caps(cost=0.03), "cost", 2),  # each costs 0.015
        (Caps(cost=0.0), "cost", 0),
        (Caps(requests=0), "requests", 0),
    ],
)
@pytest.mark.parametrize("path", PATHS)
def test_capped_trial(lab: Lab, path: str, caps: Caps, name: str, allowed: int) -> None:
    usage = {"input_tokens": 10, "output_tokens": 5, "prompt_tokens": 10, "completion_tokens": 5}
    with Upstream(answer({"model": "m", "usage": usage})) as upstream:
        trial = lab.open(upstream, caps=caps)
        replies = [trial.ask(path) for _ in range(allowed + 2)]
        metered = trial.relay.close()
        assert lab.open(upstream).ask(path).status == 200  # other trials go on
    assert [reply.status for reply in replies] == [200] * allowed + [400] * 2
    assert len(upstream.received) == allowed + 1
    assert metered.capped == name
    assert len(metered.calls) == allowed
    assert f"cap-{name}" in replies[-1].error
    body = replies[-1].json
    assert body["error"]["type"] == "invalid_request_error"
    assert (body.get("type") == "error") == (path == MESSAGES)
    assert [one.by for one in read_wire(trial.wire)] == ["provider"] * allowed + ["relay"] * 2


def test_cost_cap_with_an_unknown_price_is_refused_at_the_first_call(lab: Lab) -> None:
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream, caps=Caps(cost=5.0))
        reply = trial.ask(model="unheard-of")
        assert trial.relay.close().capped == "cost"
    assert reply.status == 400
    assert "the price of 'unheard-of' is unknown" in reply.error
    assert not upstream.received


def test_first_cap_is_the_one_that_is_named(lab: Lab) -> None:
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream, caps=Caps(requests=1, tokens=1))
        for _ in range(2):
            trial.ask()
        assert trial.relay.close().capped == "requests"


def test_run_cost_over_all_trials_and_workers(tmp_path: Path) -> None:
    with (
        Upstream(answer(message())) as upstream,
        laboratory(tmp_path, priced(tmp_path, max_cost=0.04)) as lab,
        connect(lab.relay.address) as worker,
    ):
        first, second = lab.open(upstream), lab.open(upstream, client=worker)
        replies = [trial.ask() for trial in (first, second, first, second, first)]
        totals = worker.totals()
        ended = [first.relay.close(), second.relay.close()]
    assert [reply.status for reply in replies] == [200, 200, 200, 400, 400]
    assert "cap-run-cost" in replies[-1].error
    assert [metered.capped for metered in ended] == ["run-cost", "run-cost"]
    assert totals.capped == "run-cost"
    assert totals.cost_usd == pytest.approx(0.045)
    assert len(upstream.received) == 3


def test_run_cost_with_an_unknown_price(tmp_path: Path) -> None:
    with (
        Upstream(answer(message())) as upstream,
        laboratory(tmp_path, replace(QUICK, max_cost=1.0)) as lab,
    ):
        trial = lab.open(upstream)
        assert "the price of 'm' is unknown" in trial.ask().error
        assert trial.relay.close().capped == "run-cost"
        assert lab.relay.totals().capped == "run-cost"
    assert not upstream.received


# -- limits of a provider ------------------------------------------------------------------------------------------


def test_concurrency_holds_over_all_trials(lab: Lab) -> None:
    open_now, most = 0, 0

    async def handler(_: web.Request) -> web.StreamResponse:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0.05)
        open_now -= 1
        return web.json_response(message())

    with Upstream(handler) as upstream:
        trials = [lab.open(upstream, concurrency=3) for _ in range(4)]
        with ThreadPoolExecutor(16) as pool:
            replies = list(pool.map(lambda number: trials[number % 4].ask(), range(16)))
        metered = [trial.relay.close() for trial in trials]
    assert [reply.status for reply in replies] == [200] * 16
    assert most == 3
    assert all(one.overload is None and one.retries == 0 for one in metered)


def test_requests_per_minute_hold_over_all_trials() -> None:
    window, starts = 0.5, []

    async def scenario() -> None:
        queue = ProviderQueue(None, 4, window)

        async def call(trial: int) -> None:
            async with queue.turn(trial):
                starts.append(time.monotonic())

        await asyncio.gather(*(call(number % 3) for number in range(12)))

    asyncio.run(scenario())
    assert len(starts) == 12
    # In no window more than four, and no longer than it takes.
    assert all(late - early >= window * 0.99 for early, late in zip(starts, starts[4:], strict=False))
    assert starts[-1] - starts[0] < 4 * window


def test_trials_take_turns() -> None:
    order: list[str] = []

    async def scenario() -> None:
        queue = ProviderQueue(1, None)

        async def call(trial: str) -> None:
            async with queue.turn(trial):
                order.append(trial)
                await asyncio.sleep(0)

        async with queue.turn("first"):
            waiting = [asyncio.create_task(call("greedy")) for _ in range(4)]
            await asyncio.sleep(0)
            waiting += [asyncio.create_task(call("modest")), asyncio.create_task(call("other"))]
            await asyncio.sleep(0)
        await asyncio.gather(*waiting)

    asyncio.run(scenario())
    assert order == ["greedy", "modest", "other", "greedy", "greedy", "greedy"]


def test_callers_that_give_up_free_their_place() -> None:
    async def scenario() -> None:
        queue = ProviderQueue(1, None)
        entered: list[str] = []

        async def call(name: str) -> None:
            async with queue.turn(name):
                entered.append(name)

        async with queue.turn("first"):
            early, admitted, last = (asyncio.create_task(call(name)) for name in ("early", "admitted", "last"))
            await asyncio.sleep(0)
            early.cancel()
            await asyncio.sleep(0)
        # Admitted by the end of the block, cancelled before it could run.
        admitted.cancel()
        await asyncio.wait_for(last, 5)
        assert entered == ["last"]
        async with asyncio.timeout(5), queue.turn("again"):
            pass

    asyncio.run(scenario())


def test_provider_that_asks_for_a_pause_gets_one() -> None:
    async def scenario() -> float:
        queue = ProviderQueue(None, None)
        queue.hold(0.3)
        started = time.monotonic()
        await asyncio.gather(*(enter(queue) for _ in range(3)))
        return time.monotonic() - started

    async def enter(queue: ProviderQueue) -> None:
        async with queue.turn("t"):
            pass

    assert 0.29 <= asyncio.run(scenario()) < 2.0


# -- answers that stop the run -------------------------------------------------------------------------------------


REFUSALS = [
    (401, None, "key"),
    (402, None, "quota"),
    (404, None, "model"),
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("status", "code", "kind"), REFUSALS)
def test_refusal_stops_the_whole_run(lab: Lab, path: str, status: int, code: str | None, kind: str) -> None:
    body = error_body(PATHS[path], status, code, "m")
    with Upstream(answer(body, status)) as upstream:
        first, second = lab.open(upstream), lab.open(upstream)
        given = first.ask(path)
        metered = first.relay.metered()
        later = [first.ask(path), second.ask(path), second.ask(CHAT)]
        other = second.relay.close()
        totals = lab.relay.totals()
    assert (given.status, given.json) == (status, body)
    assert metered.refusal is not None
    assert (metered.refusal.kind, metered.refusal.status) == (kind, status)
    assert metered.refusal.message == body["error"]["message"]
    assert [reply.status for reply in later] == [status] * 3
    assert all(body["error"]["message"] in reply.error for reply in later)
    assert len(upstream.received) == 1
    assert all(reply.headers["x-should-retry"] == "false" for reply in (given, *later))
    assert totals.refusal == metered.refusal == other.refusal
    assert other.calls == ()


@pytest.mark.parametrize(
    ("protocol", "status", "code", "kind"),
    [
        ("anthropic-messages", 400, "credit", "quota"),
        ("anthropic-messages", 403, None, "key"),
        ("openai-chat", 403, None, "key"),
        ("openai-responses", 429, "quota", "quota"),
        ("openai-chat", 429, "quota", "quota"),
        ("anthropic-messages", 400, None, None),
        ("openai-chat", 400, "context", None),
        ("anthropic-messages", 429, None, None),
        ("openai-responses", 429, None, None),
        ("anthropic-messages", 529, None, None),
        ("openai-chat", 500, None, None),
        ("anthropic-messages", 413, None, None),
    ],
)
def test_kinds_of_errors(protocol: Protocol, status: int, code: str | None, kind: str | None) -> None:
    body = json.dumps(error_body(protocol, status, code, "m")).encode()
    found = answers.refusal(status, body, "m", "m")
    assert (found.kind if found else None) == kind


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "qwen/qwen9 is not a valid model ID", "model"),
        (400, "Model Not Exist", "model"),
        (422, "unknown model: x", "model"),
        (400, "The model `x` does not exist", "model"),
        (400, "Unsupported parameter: 'temperature' is not supported with this model.", None),
        (400, "This model does not support image input.", None),
        (400, "tool_use ids were not found in the model's previous message", None),
        (403, "Your input was flagged by moderation", None),
        (404, "<html>404 page not found</html>", "model"),
        (403, "Forbidden", "key"),
        (429, "Too many requests", None),
    ],
)
def test_messages_of_various_providers(status: int, message: str, kind: str | None) -> None:
    body = json.dumps({"error": {"message": message}}).encode()
    found = answers.refusal(status, body, "m", "m")
    assert (found.kind if found else None) == kind


def test_unknown_side_model_stops_nothing(lab: Lab) -> None:
    """A title asks a small model that the provider may not have; that tells nothing of the model under test."""
    with Upstream(in_turn(answer(error_body("anthropic-messages", 404, None, "tiny"), 404), answer(message()))) as up:
        trial = lab.open(up, model="m[1m]")
        assert trial.ask(model="tiny").status == 404
        assert trial.ask(model="m").status == 200
        metered = trial.relay.close()
        assert lab.relay.totals().refusal is None
    assert metered.refusal is None
    assert [call.status for call in metered.calls] == [404, 200]


def test_refusal_inside_a_stream(lab: Lab) -> None:
    error = {"code": "insufficient_quota", "message": "You exceeded your current quota."}
    failed = {"type": "response.failed", "response": {"model": "m", "error": error, "usage": None}}
    with Upstream(
        streaming(event({"type": "response.created", "response": {"model": "m"}}), event(failed))
    ) as upstream:
        trial = lab.open(upstream)
        assert trial.ask(RESPONSES, stream=True).status == 200
        assert trial.ask(RESPONSES, stream=True).status == 402
        refusal = trial.relay.close().refusal
    said = f"the agent's call of 'm' at {upstream.url}/responses"
    assert refusal == Refusal("quota", 402, "You exceeded your current quota.", said)


def test_calls_that_wait_are_not_sent_after_a_refusal(lab: Lab) -> None:
    """One waits for its turn, one to be repeated; both get the refusal, and the provider no more calls."""
    refuse = threading.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        if asked["model"] == "busy":
            return web.json_response({"error": {"message": "busy"}}, status=503, headers={"Retry-After": "0.25"})
        while not refuse.is_set():
            await asyncio.sleep(0.01)
        return web.json_response(error_body("anthropic-messages", 401, None, "m"), status=401)

    with Upstream(handler) as upstream:
        trials = [lab.open(upstream, concurrency=1) for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            repeated = pool.submit(trials[0].ask, model="busy")
            while not upstream.received:
                time.sleep(0.01)
            refused = pool.submit(trials[1].ask)
            while len(upstream.received) < 2:
                time.sleep(0.01)
            waiting = pool.submit(trials[2].ask)
            time.sleep(0.1)
            refuse.set()
            replies = [future.result(20) for future in (refused, waiting, repeated)]
        metered = [trial.relay.close() for trial in trials]
    assert [reply.status for reply in replies] == [401, 401, 401]
    assert len(upstream.received) == 2
    assert all(one.refusal is not None for one in metered)
    assert [[(call.status, call.attempts) for call in one.calls] for one in metered] == [[(401, 1)], [(401, 1)], []]


def test_waiting_calls_do_not_pass_the_runs_cost(tmp_path: Path) -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.05)
        return web.json_response(message())

    with Upstream(handler) as upstream, laboratory(tmp_path, priced(tmp_path, max_cost=0.02)) as lab:
        trial = lab.open(upstream, concurrency=1)
        with ThreadPoolExecutor(6) as pool:
            replies = list(pool.map(lambda _: trial.ask(), range(6)))
        metered = trial.relay.close()
    assert sorted(reply.status for reply in replies) == [200, 200, 400, 400, 400, 400]
    assert len(upstream.received) == 2
    assert metered.capped == "run-cost"


def test_refusals_and_other_trials_at_the_same_moment(lab: Lab) -> None:
    """Calls that are on their way when the refusal comes end as they end; none is sent afterwards."""
    release = threading.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        if (await request.json()).get("slow"):
            while not release.is_set():
                await asyncio.sleep(0.01)
            return web.json_response(message())
        return web.json_response(error_body("anthropic-messages", 401, None, "m"), status=401)

    with Upstream(handler) as upstream:
        slow, refused = lab.open(upstream), lab.open(upstream)
        with ThreadPoolExecutor(1) as pool:
            pending = pool.submit(slow.ask, slow=True)
            while not upstream.received:
                time.sleep(0.01)
            assert refused.ask().status == 401
            release.set()
            assert pending.result(20).status == 200
        assert slow.ask().status == 401
        assert slow.relay.close().calls[0].input_tokens == 10
    assert len(upstream.received) == 2


# -- connections ---------------------------------------------------------------------------------------------------


def test_idle_connections_of_one_trial_leave_room_for_all(lab: Lab) -> None:
    """An agent's program can open thousands. Each takes a descriptor of the relay, which serves all trials."""
    answered = threading.Event()

    async def slowly(_: web.Request) -> web.StreamResponse:
        await asyncio.to_thread(answered.wait, 20)
        return web.json_response(message())

    half = f"POST {MESSAGES} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n".encode()
    with Upstream(slowly) as slow, Upstream(answer(message())) as upstream, ExitStack() as stack:
        trial, other = lab.open(slow), lab.open(upstream)
        pool = stack.enter_context(ThreadPoolExecutor(1))
        working = pool.submit(trial.ask)
        assert wait_for(lambda: len(slow.received) == 1)
        idle = []
        for _ in range(CONNECTIONS + 100):
            idle.append(stack.enter_context(socket.create_connection(trial.address, 20)))
            idle[-1].sendall(half)
        assert wait_for(lambda: sum(map(is_closed, idle)) >= 100)
        assert sum(map(is_closed, idle)) <= 101 + 1
        assert not is_closed(idle[-1])  # the newest live
        assert other.ask().status == 200
        answered.set()
        assert working.result().status == 200  # it did not idle
        assert trial.ask().status == 200


def is_closed(connection: socket.socket) -> bool:
    """Whether the other side has closed a connection on which it never sends anything."""
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    latest = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < latest:
        time.sleep(0.02)
    return holds
