"""For tests of the relay: an upstream that does exactly what a test says, a running relay, and plain HTTP clients."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from pytest_paranoia.relay.client import Relay, RelayClient, RelayTrial
from pytest_paranoia.relay.contract import Caps, Protocol, Provider, Route
from pytest_paranoia.relay.settings import Settings

KEY = "sk-relay-test-4f9a/77+Qz=key"
KEY_ENV = "RELAY_TEST_KEY"
MESSAGES, RESPONSES, CHAT = "/v1/messages", "/v1/responses", "/v1/chat/completions"
QUICK = Settings(attempts=3, retry_seconds=20.0, backoff=0.02, longest_wait=0.3, headers_seconds=5.0, idle_seconds=5.0)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Received:
    """A request that reached the upstream."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Upstream:
    """A server on loopback in a thread of its own; ``handler`` answers, ``received`` is what came in."""

    handler: Handler
    tls: ssl.SSLContext | None = None
    received: list[Received] = field(default_factory=list)
    gone: threading.Event = field(default_factory=threading.Event)
    """Set when a client went away before its answer was complete."""

    port: int = 0
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _start(self) -> None:
        app = web.Application(client_max_size=1 << 28)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self.tls, backlog=1024).start()
        self.port = self._runner.addresses[0][1]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.received.append(Received(request.method, request.raw_path, dict(request.headers), body))
        try:
            return await self.handler(request)
        except (asyncio.CancelledError, ConnectionError):
            self.gone.set()
            raise


def answer(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Handler:
    """A handler that always gives this JSON (or, of bytes, this body)."""

    async def handler(_: web.Request) -> web.StreamResponse:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return web.Response(status=status, body=body, headers=headers, content_type="application/json")

    return handler


def in_turn(*handlers: Handler) -> Handler:
    """A handler that uses one of these after the other, and the last one from then on."""
    left = list(handlers)

    async def handler(request: web.Request) -> web.StreamResponse:
        return await (left.pop(0) if len(left) > 1 else left[0])(request)

    return handler


def streaming(*chunks: bytes, pause: float = 0.0, broken: bool = False, hang: bool = False) -> Handler:
    """A handler that streams these pieces of events; at the end the connection may break, or nothing more come."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(pause)
        if hang:
            await asyncio.Event().wait()
        if broken:
            await asyncio.sleep(0.05)
            assert request.transport is not None
            request.transport.abort()
        else:
            await response.write_eof()
        return response

    return handler


def event(content: object) -> bytes:
    """One server-sent event."""
    return b"data: " + (content if isinstance(content, bytes) else json.dumps(content).encode()) + b"\n\n"


def message(tokens: int = 10, output: int = 5, model: str = "m") -> dict[str, Any]:
    """A whole answer in the protocol of Anthropic."""
    usage = {"input_tokens": tokens, "output_tokens": output}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}


def message_events(text: str = "hello", tokens: int = 10, output: int = 5) -> list[bytes]:
    """The same as a stream."""
    start = {"type": "message_start", "message": {**message(tokens, 1), "content": []}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": output}}
    return [event(start), event(delta), event(end), event({"type": "message_stop"})]


def chat_chunk(text: str, **more: Any) -> bytes:
    """One chunk of a chat stream."""
    choices = [{"index": 0, "delta": {"content": text}, "finish_reason": None}]
    return event({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": choices, **more})


@dataclass
class Lab:
    """A relay, and trials that go through it."""

    relay: Relay
    folder: Path
    count: int = 0

    def open(
        self,
        upstream: Upstream | str,
        *,
        client: RelayClient | None = None,
        listener: socket.socket | None = None,
        model: str = "m",
        name: str = "test",
        key_env: str | None = KEY_ENV,
        caps: Caps | None = None,
        replay: Path | None = None,
        **provider: Any,
    ) -> LabTrial:
        self.count += 1
        wire = self.folder / f"wire-{self.count}.jsonl"
        protocols: tuple[Protocol, ...] = ("anthropic-messages", "openai-responses", "openai-chat")
        url = upstream if isinstance(upstream, str) else upstream.url
        route = Route(
            trial=f"trial-{self.count}",
            provider=Provider(name, url, key_env, protocols, **provider),
            model=model,
            wire=str(wire),
            caps=caps or Caps(),
            replay=None if replay is None else str(replay),
        )
        listener = listener or socket.create_server(("127.0.0.1", 0), backlog=1024)
        address = listener.getsockname()
        return LabTrial((client or self.relay).open(route, listener), address, wire)


@dataclass
class LabTrial:
    """One trial at the relay, with the address its clients use and its wire log."""

    relay: RelayTrial
    address: Any
    wire: Path

    def connection(self, timeout: float = 20.0) -> http.client.HTTPConnection:
        host, port = self.address
        return http.client.HTTPConnection(host, port, timeout=timeout)

    def send(
        self,
        path: str,
        content: object = None,
        *,
        method: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 20.0,
    ) -> Reply:
        """Make one call and read the whole answer."""
        connection = self.connection(timeout)
        body = content if isinstance(content, bytes) or content is None else json.dumps(content).encode()
        connection.request(
            method or ("GET" if body is None else "POST"),
            path,
            body,
            {"Content-Type": "application/json", "x-api-key": "a-dummy", "Authorization": "Bearer a-dummy"}
            | dict(headers or {}),
        )
        response = connection.getresponse()
        data, broken = b"", False
        try:
            while piece := response.read1(1 << 16):
                data += piece
        except (http.client.IncompleteRead, ConnectionError):
            broken = True
        connection.close()
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, data, broken)

    def ask(self, path: str = MESSAGES, *, timeout: float = 20.0, **fields: Any) -> Reply:
        """Make a small model call."""
        said: dict[str, Any] = {"input" if path == RESPONSES else "messages": [{"role": "user", "content": "hi"}]}
        return self.send(path, {"model": "m", **said, **fields}, timeout=timeout)


@dataclass(frozen=True)
class Reply:
    """An answer as a trial's client got it; ``broken`` where its end was missing."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    broken: bool = False

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"]["message"])


@contextmanager
def laboratory(folder: Path, settings: Settings = QUICK, **environ: str) -> Iterator[Lab]:
    """Run a relay that knows the test's key; what it complained of fails the test."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    with Relay.start(settings, environ={**kept, KEY_ENV: KEY, **environ}) as relay:
        yield Lab(relay, folder)
        assert relay.said() == ""
