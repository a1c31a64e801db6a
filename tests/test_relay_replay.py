"""Recorded answers served again: offline, in the right order, streamed."""

from __future__ import annotations

import json
import lzma
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from relay_lab import (
    CHAT,
    MESSAGES,
    RESPONSES,
    Lab,
    LabTrial,
    Upstream,
    answer,
    chat_chunk,
    event,
    in_turn,
    laboratory,
    message,
    message_events,
    streaming,
)

from pytest_paranoia.relay.contract import PATHS
from pytest_paranoia.relay.wire import read_wire

NOWHERE = "http://127.0.0.1:9/v1"
TOOLS: dict[str, Any] = {"tools": [{"name": "Bash"}]}


def archived(trial: LabTrial) -> Path:
    trial.relay.close()
    path = trial.wire.with_suffix(".jsonl.xz")
    path.write_bytes(lzma.compress(trial.wire.read_bytes()))
    return path


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": "assistant" if number % 2 else "user", "content": text} for number, text in enumerate(texts)]


def numbered(number: int) -> dict[str, Any]:
    return {**message(), "content": [{"type": "text", "text": f"answer {number}"}]}


def text_of(reply: Any) -> str:
    text: str = reply.json["content"][0]["text"]
    return text


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_answers_come_back_without_a_provider(lab: Lab, path: str, stream: bool) -> None:
    chunks = [
        chat_chunk("a"),
        event({"model": "m", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}),
    ]
    chunks = message_events() if path == MESSAGES else [*chunks, event(b"[DONE]")]
    with Upstream(streaming(*chunks, pause=0.6) if stream else answer(message())) as upstream:
        trial = lab.open(upstream)
        first = trial.ask(path, stream=stream)
        before = trial.relay.metered().calls
        recording = archived(trial)
    again = lab.open(NOWHERE, key_env="NOT_SET", replay=recording)
    started = time.monotonic()
    second = again.ask(path, stream=stream)
    if stream:
        assert time.monotonic() - started < 1.5  # not at the recorded pace
    assert (second.status, second.body) == (first.status, first.body)
    assert second.headers["content-type"] == first.headers["content-type"]
    metered = again.relay.close()
    assert [(one.input_tokens, one.output_tokens) for one in metered.calls] == [
        (one.input_tokens, one.output_tokens) for one in before
    ]
    assert metered.unrecorded == 0
    (logged,) = read_wire(again.wire)
    assert logged.by == "recording"


def test_order_of_main_and_side_calls(lab: Lab) -> None:
    with Upstream(in_turn(*(answer(numbered(number)) for number in range(5)))) as upstream:
        trial = lab.open(upstream)
        trial.ask(**TOOLS)  # 0
        trial.ask(messages=said("a title, please"))  # 1
        trial.ask(**TOOLS, messages=said("hi", "yes", "go on"))  # 2
        trial.ask(RESPONSES, **TOOLS)  # 3
        trial.ask(messages=said("a summary, please"))  # 4
        recording = archived(trial)
    again = lab.open(NOWHERE, replay=recording)
    # The title comes earlier this time, and what is asked differs in what depends on the day.
    assert text_of(again.ask(messages=said("a title, please"))) == "answer 1"
    assert text_of(again.ask(RESPONSES, **TOOLS)) == "answer 3"
    assert text_of(again.ask(**TOOLS, messages=said("it is Tuesday"))) == "answer 0"
    assert text_of(again.ask(messages=said("another summary"))) == "answer 4"
    assert text_of(again.ask(**TOOLS, messages=said("it is Tuesday", "yes", "go on"))) == "answer 2"
    assert again.relay.close().unrecorded == 0


def test_parallel_conversations_are_told_apart_by_their_beginning(lab: Lab) -> None:
    with Upstream(in_turn(*(answer(numbered(number)) for number in range(4)))) as upstream:
        trial = lab.open(upstream)
        for texts in (("left",), ("right",), ("left", "x", "0.13 s"), ("right", "x", "0.25 s")):
            trial.ask(**TOOLS, messages=said(*texts))
        recording = archived(trial)
    again = lab.open(NOWHERE, replay=recording)
    order = [("right",), ("right", "x", "0.99 s"), ("left",), ("left", "x", "0.99 s")]
    found = [text_of(again.ask(**TOOLS, messages=said(*texts))) for texts in order]
    assert found == ["answer 1", "answer 3", "answer 0", "answer 2"]


def test_request_without_a_recorded_answer(lab: Lab) -> None:
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream)
        trial.ask(**TOOLS)
        recording = archived(trial)
    again = lab.open(NOWHERE, replay=recording)
    assert again.ask(**TOOLS).status == 200
    missing = [again.ask(**TOOLS), again.ask(CHAT, **TOOLS), again.ask()]
    metered = again.relay.close()
    assert [reply.status for reply in missing] == [400, 400, 400]
    assert "the recording has no answer to call 2 of this trial: POST /v1/messages with tools" in missing[0].error
    assert "of which it holds 1" in missing[0].error
    assert "of which it holds 0" in missing[1].error
    assert "without tools" in missing[2].error
    assert missing[0].json["type"] == "error"
    assert metered.unrecorded == 3
    assert [call.status for call in metered.calls] == [200, 400, 400, 400]


def test_recorded_errors_and_breaks_are_served_too(lab: Lab, tmp_path: Path) -> None:
    with (
        Upstream(
            in_turn(
                answer({"error": {"message": "too long"}}, 400),
                streaming(*message_events()[:2], broken=True),
                answer({"error": {"message": "no such key"}}, 401),
            )
        ) as upstream,
        laboratory(tmp_path) as recorded,
    ):
        trial = recorded.open(upstream)
        first = [trial.ask(stream=True, **TOOLS) for _ in range(3)]
        recording = archived(trial)
    again = lab.open(NOWHERE, replay=recording)
    second = [again.ask(stream=True, **TOOLS) for _ in range(2)]
    assert [(one.status, one.body, one.broken) for one in second] == [
        (one.status, one.body, one.broken) for one in first[:2]
    ]
    assert second[1].broken
    # A recorded refusal is the trial's, but stops no run: others may go on.
    assert again.ask(stream=True, **TOOLS).status == 401
    metered = again.relay.close()
    assert metered.refusal is not None
    assert metered.breaks == 1
    assert lab.relay.totals().refusal is None


def test_what_the_relay_itself_answered_is_not_recorded(lab: Lab) -> None:
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream)
        trial.send("/v1/embeddings", {})
        trial.ask(**TOOLS)
        recording = archived(trial)
    again = lab.open(NOWHERE, replay=recording)
    assert again.ask(**TOOLS).status == 200
    assert again.send("/v1/embeddings", {}).status == 404


def test_list_of_models_may_be_asked_for_again(lab: Lab) -> None:
    with Upstream(answer({"data": []})) as upstream:
        trial = lab.open(upstream)
        trial.send("/v1/models")
        recording = archived(trial)
    again = lab.open(NOWHERE, replay=recording)
    assert [again.send("/v1/models").json for _ in range(3)] == [{"data": []}] * 3


def test_replays_cost_nothing(lab: Lab) -> None:
    with Upstream(answer(message(model="claude-opus-5"))) as upstream:
        trial = lab.open(upstream, name="anthropic", model="claude-opus-5")
        trial.ask(model="claude-opus-5")
        cost = trial.relay.metered().calls[0].cost_usd
        recording = archived(trial)
    assert cost == pytest.approx((10 * 5 + 5 * 25) / 1e6)
    before = lab.relay.totals().known_cost_usd
    again = lab.open(NOWHERE, name="anthropic", model="claude-opus-5", replay=recording)
    again.ask(model="claude-opus-5")
    assert again.relay.close().calls[0].cost_usd == cost
    assert lab.relay.totals().known_cost_usd == before


def test_replay_of_a_replay(lab: Lab) -> None:
    with Upstream(streaming(*message_events())) as upstream:
        trial = lab.open(upstream)
        first = trial.ask(stream=True)
        recording = archived(trial)
    for _ in range(2):
        again = lab.open(NOWHERE, replay=recording)
        assert again.ask(stream=True).body == first.body
        recording = archived(again)


def test_hidden_usage_stays_hidden_in_a_replay(lab: Lab) -> None:
    usage = event({"model": "m", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})

    async def handler(request: web.Request) -> web.StreamResponse:
        return await streaming(chat_chunk("a"), usage, event(b"[DONE]"))(request)

    with Upstream(handler) as upstream:
        trial = lab.open(upstream)
        first = trial.ask(CHAT, stream=True)
        recording = archived(trial)
    again = lab.open(NOWHERE, replay=recording)
    assert again.ask(CHAT, stream=True).body == first.body == chat_chunk("a") + event(b"[DONE]")
    assert json.loads(json.dumps(again.relay.close().calls[0].input_tokens)) == 5
