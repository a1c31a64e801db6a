"""What the relay sends on, and how the answer comes back."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import os
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import pytest
from aiohttp import web
from relay_lab import (
    CHAT,
    KEY,
    MESSAGES,
    RESPONSES,
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
from pytest_paranoia.relay.wire import read_wire
from requirements import require


def test_key_of_the_provider_replaces_the_trials_own(lab: Lab) -> None:
    with Upstream(answer(message())) as upstream:
        trial, other = lab.open(upstream), lab.open(upstream, auth="x-api-key")
        headers = {
            "x-api-key": "dummy-1",
            "Authorization": "Bearer dummy-2",
            "api-key": "dummy-3",
            "Cookie": "session=dummy-4",
            "Proxy-Authorization": "Basic dummy-5",
            "anthropic-beta": "tools-2026",
            "anthropic-version": "2024-01-01",
            "User-Agent": "harness/1.0",
        }
        for path in (MESSAGES, RESPONSES, CHAT):
            assert trial.send(path, {"model": "m"}, headers=headers).status == 200
            assert other.send(path, {"model": "m"}, headers=headers).status == 200
        sent = [{name.lower(): value for name, value in one.headers.items()} for one in upstream.received]
    assert [(one.get("authorization"), one.get("x-api-key")) for one in sent] == [
        (f"Bearer {KEY}", None),
        (None, KEY),
    ] * 3
    for one in sent:
        assert "dummy" not in json.dumps(one)
        assert one["user-agent"] == "harness/1.0"
        assert one["anthropic-beta"] == "tools-2026"
        assert one["anthropic-version"] == "2024-01-01"
        assert one["host"] == f"127.0.0.1:{upstream.port}"
        assert one["accept-encoding"] == "identity"


def test_version_and_headers_of_the_provider_are_added(lab: Lab) -> None:
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream, headers={"X-Title": "benchmark"})
        trial.ask()
    sent = {name.lower(): value for name, value in upstream.received[0].headers.items()}
    assert sent["anthropic-version"] == "2023-06-01"
    assert sent["x-title"] == "benchmark"


def test_no_key_is_sent_where_the_provider_has_none(lab: Lab) -> None:
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream, key_env=None)
        trial.ask()
        trial.ask(CHAT)
    for one in upstream.received:
        assert not {"x-api-key", "authorization"} & {name.lower() for name in one.headers}


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        (f"{MESSAGES}?beta=true", "/v1/messages?beta=true"),
        (f"{MESSAGES}?trace=1&beta=true", "/v1/messages?beta=true"),
        (f"{MESSAGES}?beta=truest&x=1", "/v1/messages"),
        (f"{RESPONSES}?client=codex", "/v1/responses"),
        ("/v1/messages/count_tokens?beta=true", "/v1/messages/count_tokens?beta=true"),
    ],
)
def test_query_strings(lab: Lab, asked: str, sent: str) -> None:
    with Upstream(answer(message())) as upstream:
        lab.open(upstream).send(asked, {"model": "m"})
    assert upstream.received[0].target == sent


def test_base_url_with_a_path_and_a_query_of_its_own(lab: Lab) -> None:
    with Upstream(answer(message())) as upstream:
        trial = lab.open(f"http://127.0.0.1:{upstream.port}/deep/api/v1/?api-version=2026-01-01")
        trial.ask(CHAT)
        trial.send(f"{MESSAGES}?beta=true", {"model": "m"})
    assert [one.target for one in upstream.received] == [
        "/deep/api/v1/chat/completions?api-version=2026-01-01",
        "/deep/api/v1/messages?api-version=2026-01-01&beta=true",
    ]


def test_list_of_models_and_token_counts_pass_but_are_not_metered(lab: Lab) -> None:
    with Upstream(answer({"input_tokens": 12})) as upstream:
        trial = lab.open(upstream)
        assert trial.send("/v1/models?client_version=1").json == {"input_tokens": 12}
        assert trial.send("/v1/messages/count_tokens", {"model": "m"}).json == {"input_tokens": 12}
        metered = trial.relay.close()
    assert [one.target for one in upstream.received] == ["/v1/models", "/v1/messages/count_tokens"]
    assert upstream.received[1].headers["Authorization"] == f"Bearer {KEY}"
    assert all("anthropic-version" in {name.lower() for name in one.headers} for one in upstream.received)
    assert metered.calls == ()
    assert [one.path for one in read_wire(trial.wire)] == ["/v1/models", "/v1/messages/count_tokens"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", MESSAGES),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/models"),
        ("POST", "/v1/messages/batches"),
        ("POST", "/v1/responses/compact"),
        ("PUT", RESPONSES),
        ("GET", "/v1/../v1/files"),
        ("POST", "//v1/messages"),
    ],
)
def test_anything_else_is_not_found_and_not_sent(lab: Lab, method: str, path: str) -> None:
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream)
        reply = trial.send(path, b"{}" if method != "GET" else None, method=method)
        metered = trial.relay.close()
    assert reply.status == 404
    assert path in reply.error
    assert not upstream.received
    assert metered.calls == ()
    (logged,) = read_wire(trial.wire)
    assert (logged.method, logged.status, logged.by) == (method, 404, "relay")


def test_websocket_upgrades_are_refused_at_once(lab: Lab) -> None:
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream)
        started = time.monotonic()
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
        reply = trial.send(RESPONSES, method="GET", headers={**upgrade, "Sec-WebSocket-Key": "eA=="})
        assert time.monotonic() - started < 3.0
        # The same trial then calls in the usual way.
        assert trial.ask(RESPONSES).status == 200
    assert reply.status == 426
    assert len(upstream.received) == 1


def test_streams_are_passed_on_chunk_by_chunk(lab: Lab) -> None:
    """The upstream sends the next event only after the client has seen the one before."""
    seen = asyncio.Event()
    running: list[asyncio.AbstractEventLoop] = []
    count = 20

    async def handler(request: web.Request) -> web.StreamResponse:
        running.append(asyncio.get_running_loop())
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number in range(count):
            await response.write(event({"number": number}))
            await asyncio.wait_for(seen.wait(), 10)
            seen.clear()
        await response.write_eof()
        return response

    with Upstream(handler) as upstream:
        trial = lab.open(upstream)
        connection = trial.connection()
        connection.request("POST", MESSAGES, json.dumps({"model": "m", "stream": True}))
        response = connection.getresponse()
        pieces = []
        for _ in range(count):
            pieces.append(response.read1(1 << 16))
            running[0].call_soon_threadsafe(seen.set)
        assert response.read() == b""
        connection.close()
        trial.relay.close()
    assert pieces == [event({"number": number}) for number in range(count)]
    (logged,) = read_wire(trial.wire)
    assert logged.body == b"".join(pieces)
    assert [size for _, size in logged.chunks] == [len(piece) for piece in pieces]


def test_answers_keep_status_headers_and_bytes(lab: Lab) -> None:
    body = json.dumps(message()).encode() + b"\n  "
    headers = {"x-request-id": "r1", "Set-Cookie": "a=b", "anthropic-ratelimit-tokens-remaining": "7"}
    with Upstream(answer(body, 201, headers)) as upstream:
        reply = lab.open(upstream).ask()
    assert (reply.status, reply.body) == (201, body)
    assert reply.headers["x-request-id"] == "r1"
    assert reply.headers["anthropic-ratelimit-tokens-remaining"] == "7"
    assert reply.headers["content-type"].startswith("application/json")
    assert "set-cookie" not in reply.headers


def test_packed_answers_come_unpacked(lab: Lab) -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        packed = gzip.compress(json.dumps(message(tokens=77)).encode())
        return web.Response(body=packed, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"})

    with Upstream(handler) as upstream:
        trial = lab.open(upstream)
        reply = trial.ask()
        assert "content-encoding" not in reply.headers
        assert reply.json["usage"]["input_tokens"] == 77
        assert trial.relay.close().calls[0].input_tokens == 77


def test_packed_requests_are_unpacked(lab: Lab) -> None:
    body = json.dumps({"model": "m", "messages": ["x" * 5000]}).encode()
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream)
        assert trial.send(MESSAGES, gzip.compress(body), headers={"Content-Encoding": "gzip"}).status == 200
        unknown = trial.send(MESSAGES, b"???", headers={"Content-Encoding": "zstd"})
        trial.relay.close()
    assert upstream.received[0].body == body
    assert "Content-Encoding" not in upstream.received[0].headers
    assert unknown.status == 415
    assert len(upstream.received) == 1


def test_requests_cannot_fill_the_memory(lab: Lab) -> None:
    bomb = gzip.compress(bytes(200 << 20), compresslevel=1)
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream)
        assert trial.send(MESSAGES, bomb, headers={"Content-Encoding": "gzip"}).status == 413
        assert trial.ask().status == 200
    assert len(upstream.received) == 1


def test_large_bodies_both_ways(lab: Lab) -> None:
    text = os.urandom(12 << 20).hex()
    with Upstream(answer({**message(), "content": [{"type": "text", "text": text}]})) as upstream:
        trial = lab.open(upstream)
        reply = trial.send(MESSAGES, {"model": "m", "messages": [{"role": "user", "content": text}]}, timeout=60)
        trial.relay.close()
    assert reply.json["content"][0]["text"] == text
    assert upstream.received[0].json["messages"][0]["content"] == text
    (logged,) = read_wire(trial.wire)
    assert logged.request["messages"][0]["content"] == text


def test_client_that_waits_for_permission_to_send_its_body(lab: Lab) -> None:
    body = json.dumps({"model": "m"}).encode()
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream)
        with socket.create_connection(trial.address, timeout=10) as raw:
            head = f"POST {MESSAGES} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
            raw.sendall(head.encode())
            assert raw.recv(1 << 16) == b"HTTP/1.1 100 Continue\r\n\r\n"
            raw.sendall(body)
            assert raw.recv(1 << 16).startswith(b"HTTP/1.1 200 OK")
    assert "Expect" not in upstream.received[0].headers


def test_bodies_that_are_no_json_are_the_providers_to_refuse(lab: Lab) -> None:
    with Upstream(answer({"error": {"message": "no JSON"}}, 400)) as upstream:
        trial = lab.open(upstream)
        assert trial.send(MESSAGES, b"\xff{not json").status == 400
        trial.relay.close()
    assert upstream.received[0].body == b"\xff{not json"
    (logged,) = read_wire(trial.wire)
    assert logged.request == "\\xff{not json"


def test_connections_are_kept_for_several_calls(lab: Lab) -> None:
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream)
        connection = trial.connection()
        for _ in range(3):
            connection.request("POST", MESSAGES, json.dumps({"model": "m"}))
            assert connection.getresponse().read()
        connection.close()
        assert len(trial.relay.close().calls) == 3


def test_unix_listener_of_a_loop_outside(lab: Lab, tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "model.sock"))
    listener.listen()
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream, listener=listener)
        connection = http.client.HTTPConnection("model")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(tmp_path / "model.sock"))
        connection.request("POST", MESSAGES, json.dumps({"model": "m"}))
        assert connection.getresponse().status == 200
        connection.close()
        trial.relay.close()


def test_provider_over_tls(tmp_path: Path) -> None:
    require("openssl")
    certificate, private = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", private, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, private)
    with Upstream(streaming(*message_events()), tls=context) as upstream:
        with laboratory(tmp_path, SSL_CERT_FILE=str(certificate)) as trusting:
            trial = trusting.open(upstream)
            assert trial.ask(stream=True).body == b"".join(message_events())
            assert trial.relay.close().calls[0].output_tokens == 5
        with laboratory(tmp_path) as strict:
            trial = strict.open(upstream)
            assert trial.ask().status == 502
            overload = trial.relay.close().overload
            assert overload is not None
            assert "certificate" in overload.message.lower()


def test_proxies_of_the_environment(tmp_path: Path) -> None:
    with Upstream(answer(message())) as proxy, Upstream(answer(message())) as direct:
        proxied = {"http_proxy": f"http://127.0.0.1:{proxy.port}", "no_proxy": f"127.0.0.1:{direct.port},example.org"}
        with laboratory(tmp_path, **proxied) as lab:
            assert lab.open("http://models.invalid/v1").ask().status == 200
            assert lab.open(direct).ask().status == 200
    assert [one.target for one in proxy.received] == ["http://models.invalid/v1/messages"]
    assert len(direct.received) == 1


def test_credentials_of_netrc_are_not_taken(tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password something\n")
    with Upstream(answer(message())) as upstream, laboratory(tmp_path, NETRC=str(netrc)) as lab:
        lab.open(upstream, key_env=None).ask()
    assert "Authorization" not in upstream.received[0].headers


def test_redirects_are_not_followed(lab: Lab) -> None:
    with Upstream(answer({}, 307, {"Location": "http://127.0.0.1:9/"})) as upstream:
        assert lab.open(upstream).ask().status == 307


@pytest.mark.parametrize(
    ("provider", "reason", "said"),
    [
        ({"key_env": "RELAY_TEST_UNSET"}, "provider-key", "RELAY_TEST_UNSET"),
        ({"upstream": "ftp://host/v1"}, "relay-route", "ftp://host/v1"),
        ({"upstream": "http://user:word@host/v1"}, "relay-route", "key_env"),
        ({"upstream": "http://[host/v1"}, "relay-route", "base_url"),
        ({"replay": Path("/nonexistent/wire.jsonl")}, "relay-route", "/nonexistent/wire.jsonl"),
    ],
)
def test_routes_that_cannot_be_used(lab: Lab, provider: dict[str, object], reason: str, said: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    with pytest.raises(InfrastructureError, match=said) as caught:
        lab.open(**{"upstream": "http://127.0.0.1:9/v1", "listener": listener, **provider})  # type: ignore[arg-type]
    assert caught.value.reason == reason
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=5)


def test_socket_that_cannot_be_listened_on(lab: Lab) -> None:
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with pytest.raises(InfrastructureError, match="listening socket") as caught:
        lab.open("http://127.0.0.1:9/v1", listener=datagrams)
    assert caught.value.reason == "relay-route"


def test_log_that_cannot_be_written_is_said_before_the_trial(lab: Lab, tmp_path: Path) -> None:
    running = Lab(lab.relay, tmp_path / "missing")
    with pytest.raises(InfrastructureError, match=r"missing/wire-1\.jsonl") as caught:
        running.open("http://127.0.0.1:9/v1")
    assert caught.value.reason == "relay-route"


def test_many_workers_at_the_same_time(lab: Lab) -> None:
    from pytest_paranoia.relay.client import connect

    failures: list[BaseException] = []
    with Upstream(answer(message(tokens=3, output=4))) as upstream:

        def work() -> None:
            try:
                with connect(lab.relay.address) as client:
                    for _ in range(5):
                        trial = lab.open(upstream, client=client)
                        assert trial.ask().status == 200
                        calls = trial.relay.close().calls
                        assert [(call.input_tokens, call.output_tokens) for call in calls] == [(3, 4)]
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not failures
    assert len(upstream.received) == 40
