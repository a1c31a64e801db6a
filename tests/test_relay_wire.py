"""The wire log: what is in it, that nothing is lost, how it grows, and that no key is in it."""

from __future__ import annotations

import base64
import json
import lzma
import os
import re
import resource
import socket
import tracemalloc
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from relay_lab import (
    CHAT,
    KEY,
    MESSAGES,
    Lab,
    Upstream,
    answer,
    event,
    laboratory,
    message,
    message_events,
    streaming,
)

from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.relay.contract import Provider, Route
from pytest_paranoia.relay.parts import Decoder, Encoder
from pytest_paranoia.relay.redaction import MASK, Redactor
from pytest_paranoia.relay.wire import Exchange, WireError, exchange_line, facts, read_wire, request_line


def test_log_of_a_call(lab: Lab) -> None:
    request = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "grüße \ud83d"}], "n": 1.0}
    with Upstream(streaming(*message_events("tschüß"), pause=0.02)) as upstream:
        trial = lab.open(upstream)
        reply = trial.send(f"{MESSAGES}?beta=true", request, headers={"X-Stainless-Lang": "js"})
        (call,) = trial.relay.close().calls
    (one,) = read_wire(trial.wire)
    assert (one.number, one.method, one.path, one.query) == (1, "POST", MESSAGES, "beta=true")
    assert (one.protocol, one.main, one.by, one.ended) == ("anthropic-messages", False, "provider", "complete")
    assert one.request == request
    assert ("X-Stainless-Lang", "js") in one.request_headers
    assert one.status == 200
    assert ("Content-Type", "text/event-stream") in one.headers
    assert one.body == reply.body
    assert "tschüß" in json.dumps(one.text, ensure_ascii=False) or "tsch\\u00fc\\u00df" in one.text
    assert sum(size for _, size in one.chunks) == len(one.body)
    times = [seconds for seconds, _ in one.chunks]
    assert times == sorted(times)
    assert times[-1] - times[0] >= 0.05
    assert one.first_byte == pytest.approx(times[0], abs=0.01)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", one.started)
    assert one.call == call
    head = facts(trial.wire)
    assert (head["trial"], head["model"], head["provider"]) == ("trial-1", "m", "test")
    assert trial.wire.stat().st_mode & 0o777 == 0o600


def test_packed_log_reads_the_same(lab: Lab, tmp_path: Path) -> None:
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream)
        for _ in range(3):
            trial.ask()
        trial.relay.close()
    packed = tmp_path / "wire.jsonl.xz"
    packed.write_bytes(lzma.compress(trial.wire.read_bytes()))
    assert list(read_wire(packed)) == list(read_wire(trial.wire))
    assert facts(packed) == facts(trial.wire)
    assert len(list(read_wire(packed))) == 3


def test_log_of_a_trial_that_was_begun_again_is_appended_to(lab: Lab) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "a long text " * 20}]}
    with Upstream(answer(message())) as upstream:
        first = lab.open(upstream)
        first.send(MESSAGES, request)
        first.relay.close()
        lab.count -= 1
        second = lab.open(upstream)
        assert second.wire == first.wire
        second.send(MESSAGES, request)
        second.relay.close()
    assert [(one.number, one.request) for one in read_wire(first.wire)] == [(1, request)] * 2


def test_answers_that_are_no_text(lab: Lab) -> None:
    body = bytes(range(256))
    with Upstream(answer(body)) as upstream:
        trial = lab.open(upstream)
        trial.ask()
        trial.relay.close()
    (one,) = read_wire(trial.wire)
    assert one.body == body


# -- repetition ----------------------------------------------------------------------------------------------------


def conversation(turns: int, marked: bool) -> list[dict[str, Any]]:
    """The requests of a conversation; *marked* moves a cache marker along, as Claude Code does."""
    system = [{"type": "text", "text": "You are an agent. " * 300}]
    tools = [{"name": f"tool{n}", "input_schema": {"type": "object", "description": "x" * 500}} for n in range(20)]
    said: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "fix it " * 50}]}]
    requests = []
    for turn in range(turns):
        messages = json.loads(json.dumps(said))
        if marked:
            messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        requests.append({"model": "m", "system": system, "tools": tools, "messages": messages, "max_tokens": 100})
        output = f"output {turn} " * 40
        said = [
            *said,
            {"role": "assistant", "content": [{"type": "tool_use", "id": f"t{turn}", "name": "Bash", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{turn}", "content": output}]},
        ]
    return requests


def written(requests: list[dict[str, Any]]) -> list[str]:
    encoder = Encoder()
    return [json.dumps(request_line(number, request, encoder)) for number, request in enumerate(requests)]


@pytest.mark.parametrize("marked", [False, True])
def test_log_grows_with_what_is_new(marked: bool) -> None:
    requests = conversation(200, marked)
    sizes = [len(line) for line in written(requests)]
    assert sum(len(json.dumps(request)) for request in requests) > 10_000_000
    assert sum(sizes) < 500_000
    # The last turn costs what an early one does.
    assert sizes[-1] < 1.5 * sizes[2]


def test_interleaved_conversations_do_not_spoil_each_other() -> None:
    first, second = conversation(60, True), json.loads(json.dumps(conversation(60, True)).replace("fix it", "look"))
    mixed = [request for pair in zip(first, second, strict=True) for request in pair]
    assert sum(map(len, written(mixed))) < 2.2 * sum(map(len, written(first)))


def test_conversation_comes_back_whole(tmp_path: Path) -> None:
    requests = [*conversation(30, True), *conversation(3, False)]
    path = tmp_path / "wire.jsonl"
    ends = [json.dumps(exchange_line(Exchange(n, "", 0.0, "POST", MESSAGES))) for n in range(len(requests))]
    path.write_text("\n".join(['{"wire": 1}', *written(requests), *reversed(ends)]) + "\n")
    found = list(read_wire(path))
    assert [one.number for one in found] == list(reversed(range(len(requests))))
    assert [one.request for one in reversed(found)] == requests


def test_call_whose_end_is_missing_is_left_out(tmp_path: Path) -> None:
    """The relay itself was killed: the earlier calls are still there."""
    first, second = written(conversation(2, False))
    end = json.dumps(exchange_line(Exchange(0, "", 0.0, "POST", MESSAGES)))
    path = tmp_path / "wire.jsonl"
    path.write_text("\n".join(['{"wire": 1}', first, end, second]) + "\n")
    assert [one.number for one in read_wire(path)] == [0]


KEYS = st.one_of(st.text(max_size=8), st.sampled_from(["~", "~more", "~plain", "~x", "$ref", "role"]))
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(max_size=8),
        st.text(min_size=40, max_size=80),
        st.sampled_from(["a text of forty-eight characters that is repeated", "\ud800" * 60]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=7), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=25,
)


@given(st.lists(JSON, max_size=5))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@example([{"~": 0}, {"~more": [0, 1, []]}, {"~plain": [["a", 1]]}, {"~": 0, "b": 1}])
@example([[1, 1, 1, 1, 2], [1, 1, 1, 1, 3], [1, 1, 1, 1, 2], [1.0, True, 1, 0, False]])
def test_any_values_come_back_as_they_were(values: list[Any]) -> None:
    encoder, decoder = Encoder(), Decoder()
    for value in [*values, *values]:
        encoded, new = json.loads(json.dumps(encoder.encode(value)))
        restored = decoder.decode(encoded, new)
        assert json.dumps(restored) == json.dumps(value)  # 1, 1.0 and True are equal, and the order of keys counts


def test_repeated_value_costs_a_reference() -> None:
    encoder = Encoder()
    value = {"text": "x" * 1000, "list": [{"n": number} for number in range(100)]}
    encoder.encode(value)
    encoded, new = encoder.encode(json.loads(json.dumps(value)))
    assert new == []
    assert len(json.dumps(encoded)) < 60


def test_encoder_keeps_no_text() -> None:
    """It lives as long as the trial: what was written must not stay in memory."""
    encoder = Encoder()
    tracemalloc.start()
    try:
        encoder.encode({"messages": [{"content": "x" * 100_000 + str(number)} for number in range(50)]})
        assert tracemalloc.get_traced_memory()[0] < 200_000
    finally:
        tracemalloc.stop()


def test_values_nested_beyond_reason_are_kept() -> None:
    value: Any = "core"
    for _ in range(700):
        value = [value]
    line = request_line(1, value, Encoder())
    assert "core" in json.dumps(line["request"])


# -- damage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", None),
        ('{"wire": 2}\n', r":1: found a wire log of version 2, expected 1"),
        ('{"number": 1}\n', r":1: .*the header is missing"),
        ('{"wire": 1}\nnot json\n', r":2: found no line of a wire log"),
        ('{"wire": 1}\n[]\n', r":2: found no line"),
        ('{"wire": 1}\n{"number": 1}\n', r":2: found no line"),
        ('{"wire": 1}\n{"asked": 1, "request": {"~": 5}, "parts": []}\n', r":2: found no line"),
    ],
)
def test_damaged_logs(tmp_path: Path, text: str, said: str | None) -> None:
    path = tmp_path / "wire.jsonl"
    path.write_text(text)
    if said is None:
        assert list(read_wire(path)) == []
        return
    with pytest.raises(WireError, match=said):
        list(read_wire(path))


def test_missing_and_broken_archives(tmp_path: Path) -> None:
    with pytest.raises(WireError, match="cannot be read"):
        list(read_wire(tmp_path / "none.jsonl"))
    half = tmp_path / "half.jsonl.xz"
    half.write_bytes(lzma.compress(b'{"wire": 1}\n' * 1000)[:-20])
    with pytest.raises(WireError, match="cannot be read"):
        list(read_wire(half))
    with pytest.raises(WireError, match="cannot be read"):
        facts(half.with_name("none.xz"))


def test_log_that_cannot_be_begun_is_said_before_the_trial(lab: Lab) -> None:
    route = Route("t", Provider("p", "http://127.0.0.1:9/v1"), "m", "/dev/full")
    with pytest.raises(InfrastructureError, match="No space left") as caught:
        lab.relay.open(route, socket.create_server(("127.0.0.1", 0)))
    assert caught.value.reason == "relay-route"


def test_log_that_cannot_be_written_to_its_end_is_said(tmp_path: Path) -> None:
    with Upstream(answer(message())) as upstream, laboratory(tmp_path) as lab:
        trial = lab.open(upstream)
        resource.prlimit(lab.relay.pid, resource.RLIMIT_FSIZE, (4000, 4000))
        statuses = [trial.ask(messages=[f"{number} {'x' * 1500}"]).status for number in range(4)]
        with pytest.raises(
            InfrastructureError, match=r"wire-1\.jsonl: call [1-4] could not be logged: .*too large"
        ) as caught:
            trial.relay.close()
        metered = trial.relay.metered()
    assert caught.value.reason == "wire-log"
    assert statuses == [200] * 4  # the trial itself is not disturbed
    assert len(metered.calls) == 4


# -- the key -------------------------------------------------------------------------------------------------------


def forms(key: str) -> list[bytes]:
    """The key as it may be found: plain, escaped, packed, and inside other text that is packed."""
    raw = key.encode()
    escaped = json.dumps(key)[1:-1].replace("/", "\\/").encode()
    found = [raw, escaped, quote(key, safe="").encode(), quote(key).encode(), raw.hex().encode()]
    found.append(raw.hex().upper().encode())
    packers = (base64.b64encode, base64.urlsafe_b64encode)
    return [*found, *(pack(before + raw + b";") for before in (b"", b"u:", b":", b"abc:") for pack in packers)]


def leaks(data: bytes, key: str = KEY) -> list[bytes]:
    """Which forms of the key are in *data*; of packed ones their stable middle."""
    plain = [form for form in forms(key)[:6] if form in data]
    middles = [form[4:-4] for form in forms(key)[6:] if form[4:-4] in data]
    return [*plain, *middles]


def test_key_that_a_provider_echoes_reaches_neither_trial_nor_log(lab: Lab) -> None:
    echoes = b" | ".join(forms(KEY))

    async def handler(request: web.Request) -> web.StreamResponse:
        assert KEY in (request.headers.get("x-api-key", ""), request.headers.get("Authorization", "")[7:])
        kind = (await request.json())["kind"]
        headers = {"X-Echo": KEY, "X-Basic": "Basic " + base64.b64encode(b"u:" + KEY.encode()).decode()}
        if kind == "stream":
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **headers})
            await response.prepare(request)
            for byte in event({"echo": echoes.decode()}) + b"data: " + echoes:
                await response.write(bytes([byte]))
            await response.write_eof()
            return response
        status = 400 if kind == "error" else 200
        content = {"error": {"message": echoes.decode(), "echo": KEY}}
        return web.json_response(content, status=status, headers=headers)

    with Upstream(handler) as upstream:
        trial = lab.open(upstream)
        replies = [trial.ask(path, kind=kind) for kind in ("stream", "error", "whole") for path in (MESSAGES, CHAT)]
        metered = trial.relay.close()
    for reply in replies:
        assert not leaks(reply.body)
        assert not leaks(json.dumps(dict(reply.headers)).encode())
        assert MASK in reply.body
    assert not leaks(trial.wire.read_bytes())
    assert not leaks(repr(metered).encode())
    assert [one.body for one in read_wire(trial.wire)] == [reply.body for reply in replies]


def test_key_in_a_refusal_is_masked(tmp_path: Path) -> None:
    with (
        Upstream(answer({"error": {"message": f"wrong key {KEY}"}}, 401)) as upstream,
        laboratory(tmp_path) as lab,
    ):
        trial = lab.open(upstream)
        assert trial.ask().error == trial.ask().error.removesuffix(" [refused-key]")
        totals = lab.relay.totals()
        metered = trial.relay.close()
    for refusal in (totals.refusal, metered.refusal):
        assert refusal is not None
        assert refusal.message == "wrong key [redacted]"


def test_secret_header_of_a_provider_is_masked_too(lab: Lab) -> None:
    with Upstream(answer({"echo": "Bearer a-second-secret"})) as upstream:
        trial = lab.open(upstream, key_env=None, headers={"Authorization": "Bearer a-second-secret"})
        reply = trial.ask()
        trial.relay.close()
    assert upstream.received[0].headers["Authorization"] == "Bearer a-second-secret"
    assert b"a-second-secret" not in reply.body + trial.wire.read_bytes()


def test_key_is_in_no_argument_list_and_in_no_other_process(lab: Lab) -> None:
    """Only the relay's own variables hold it: of the processes that the test started, no other."""
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream)
        trial.ask()
        holding = []
        for process in Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            try:
                assert KEY.encode() not in (process / "cmdline").read_bytes()
                if KEY.encode() in (process / "environ").read_bytes():
                    holding.append(int(process.name))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
        trial.relay.close()
    assert lab.relay.pid in holding
    # Other workers of the same test session have relays of their own.
    assert all(b"pytest_paranoia.relay" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in holding if alive(pid))
    assert os.getpid() not in holding


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@given(st.lists(st.integers(0, 10_000)), st.binary(max_size=30), st.binary(max_size=30))
def test_masking_does_not_depend_on_how_a_stream_is_cut(places: list[int], before: bytes, after: bytes) -> None:
    data = before + KEY.encode() + b"|" + KEY.encode()[:20] + b"\n" + after + KEY.encode().hex().encode() + before
    redactor = Redactor([KEY])
    stream = redactor.stream()
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    pieces = [stream.feed(data[start:end]) for start, end in zip(edges, edges[1:], strict=False)]  # noqa: RUF007
    assert b"".join(pieces) + stream.finish() == redactor.clean(data)
    assert KEY.encode() not in redactor.clean(data)


@given(st.binary(max_size=50))
def test_nothing_is_held_back_but_the_beginning_of_a_key(data: bytes) -> None:
    redactor = Redactor([KEY])
    stream = redactor.stream()
    shown = stream.feed(data)
    held = len(data) - len(shown)
    assert held == redactor.begun(data)
    assert shown + stream.finish() == data
    assert Redactor([KEY]).stream().feed(data + b"\n\n") == data + b"\n\n"


def test_placeholders_are_no_secrets() -> None:
    assert Redactor(["EMPTY", "none", ""]).clean(b"an EMPTY text, none left") == b"an EMPTY text, none left"
