"""A scripted model server on loopback: the double of a provider, for all three protocols, streaming and not.

    with ModelServer([shell("ls"), say("Done.")]) as server:
        ...  # point a client at server.url + "/v1"
    assert server.main[0].request.users == ("What is here?",)

Instead of one script it takes a mapping from names to scripts (picked by a marker ``[[script:NAME]]`` in the
conversation's opening, else by the model's id, else ``default``), or a callable from the first request of a
conversation to its script. Only *main* requests (those that offer tools) consume turns; others are titles and summaries
and get ``side``. The words of scripts are those of ``model_script``.

    python tests/model_server.py [--port N] FOLDER...

serves the reference runs of the items in FOLDER (``model_references``); without one those of this repository.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from aiohttp import web
from model_dialects import Dialect, dialect, spoken
from model_errors import error_body
from model_requests import PATHS, Request
from model_script import Conversation, Script, Turn, say
from model_wire import Answer, Event, WireCall, body, encoded, events

Picker = Callable[[Request], Script]
OVER = "The script is over."
_STOP_SECONDS = 10.0
_MAX_BODY = 256 * 1024**2


@dataclass
class Exchange:
    """One request and what it got. ``place`` is the position in the script; ``over``: there was nothing left in it."""

    number: int
    path: str
    request: Request
    started: float
    turn: Turn | None = None
    dialect: Dialect | None = None
    script: str = ""
    place: int | None = None
    over: bool = False
    broken: bool = False
    """The client was gone before the answer was out."""
    calls: tuple[WireCall, ...] = ()
    seconds: float = 0.0


@dataclass
class _Talks:
    """The conversations by key."""

    scripts: Script | Mapping[str, Script] | Picker
    known: dict[tuple[str, ...], Conversation] = field(default_factory=dict)

    def of(self, request: Request) -> Conversation:
        key = request.conversation
        for length in range(len(key), 1, -1):
            if found := self.known.get(key[:length]):
                return found
        self.known[key] = self._pick(request)
        return self.known[key]

    def _pick(self, request: Request) -> Conversation:
        if callable(self.scripts):
            return Conversation(self.scripts(request))
        if not isinstance(self.scripts, Mapping):
            return Conversation(self.scripts)
        for name in (request.marker, request.model, "default"):
            if name is not None and name in self.scripts:
                return Conversation(self.scripts[name], name)
        raise LookupError(f"no script for marker {request.marker!r}, model {request.model!r}, and no default")


class ModelServer:
    """See the module's text. ``directory`` is the workspace where the harness does not tell it itself.

    ``faults`` are the server's own: a request that could not be answered as scripted. Leaving the context raises them.
    """

    def __init__(
        self,
        scripts: Script | Mapping[str, Script] | Picker,
        *,
        side: str = "A scripted title",
        directory: str = "/workspace",
        models: Sequence[str] = ("scripted",),
        port: int = 0,
    ) -> None:
        self._talks = _Talks(scripts)
        self._side = side
        self._directory = directory
        self._models = models
        self._port = port
        self._lock = threading.Lock()
        self.exchanges: list[Exchange] = []
        self.other: list[tuple[str, str]] = []
        self.faults: list[str] = []
        self.port = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    # -- what a test looks at ------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where the server is, without the API's version."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def main(self) -> list[Exchange]:
        """The requests of agents at work."""
        return [exchange for exchange in self.exchanges if exchange.request.main]

    @property
    def sides(self) -> list[Exchange]:
        """The other model requests: titles, summaries."""
        return [exchange for exchange in self.exchanges if not exchange.request.main]

    @property
    def last(self) -> Request:
        """The last main request."""
        return self.main[-1].request

    @property
    def over(self) -> bool:
        """Whether somebody asked for more than the script holds."""
        return any(exchange.over for exchange in self.exchanges)

    def forget(self, text: str) -> None:
        """Forget the conversations whose opening holds *text*: the next one like them gets a script anew."""
        with self._lock:
            for key in [key for key in self._talks.known if any(text in part for part in key)]:
                del self._talks.known[key]

    # -- running -------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(ready)), name="model-server", daemon=True
        )
        self._thread.start()
        if not ready.wait(_STOP_SECONDS) or not self.port:
            raise RuntimeError(f"the model server did not start: {self.faults}")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop()
        if kind is None and self.faults:
            faults, self.faults = self.faults, []
            raise AssertionError("the model server could not follow its script:\n" + "\n".join(faults))

    def stop(self) -> None:
        """End the server and the connections it has."""
        if self._loop is not None and self._stop is not None and self._thread is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_STOP_SECONDS)

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=_MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
        try:
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", self._port, backlog=512)
            await site.start()
            self.port = runner.addresses[0][1]
            ready.set()
            await self._stop.wait()
        except OSError as error:
            self.faults.append(repr(error))
        finally:
            ready.set()
            await runner.cleanup()

    # -- answering -----------------------------------------------------------------------------------------------

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        path = http.path
        if http.headers.get("upgrade", "").lower() == "websocket":
            self.other.append(("WEBSOCKET", path))
            return web.Response(status=426, text="no web sockets here")
        if http.method == "POST" and path in PATHS:
            try:
                return await self._answer(http)
            except (ValueError, LookupError, AssertionError) as error:
                # A request that does not fit the script: an error no client repeats, and the test's failure.
                self.faults.append(f"{path}: {error}")
                return web.json_response({"error": {"message": f"script: {error}", "type": "script"}}, status=400)
        self.other.append((http.method, path))
        if http.method == "GET" and path == "/v1/models":
            listed = [{"id": name, "object": "model", "created": 0, "owned_by": "scripted"} for name in self._models]
            return web.json_response({"object": "list", "data": listed})
        if http.method == "POST" and path == "/v1/messages/count_tokens":
            return web.json_response({"input_tokens": len(await http.read()) // 4})
        return web.json_response({"error": {"message": f"no such path: {path}", "type": "not_found_error"}}, status=404)

    async def _answer(self, http: web.Request) -> web.StreamResponse:
        started = time.monotonic()
        headers = {name.lower(): value for name, value in http.headers.items()}
        request = Request(PATHS[http.path], json.loads(await http.read()), headers)
        with self._lock:
            exchange = Exchange(len(self.exchanges), http.path, request, started)
            self.exchanges.append(exchange)
            turn = self._turn(request, exchange)
        exchange.turn = turn
        try:
            return await self._deliver(http, exchange, turn)
        except (ConnectionError, asyncio.CancelledError):
            exchange.broken = True
            raise
        finally:
            exchange.seconds = time.monotonic() - started

    def _turn(self, request: Request, exchange: Exchange) -> Turn:
        if not request.main:
            return say(self._side)
        exchange.dialect = dialect(request)
        talk = self._talks.of(request)
        exchange.script = talk.name
        exchange.place, turn = talk.next(request)
        exchange.over = turn is None
        turn = turn or say(OVER)
        prefix = "toolu_" if request.protocol == "anthropic-messages" else "call_"
        calls = []
        for number, call in enumerate(turn.calls):
            words = spoken(call, request, self._directory)
            if call.kind != "raw" and request.tool(words.name) is None:
                raise ValueError(f"the harness offers no tool {words.name!r}: {[tool.name for tool in request.tools]}")
            identity = f"{prefix}{request.turns:04d}{number:02d}{secrets.token_hex(6)}"
            calls.append(WireCall(identity, words.name, words.text if call.raw is None else call.raw, words.custom))
        exchange.calls = tuple(calls)
        return turn

    async def _deliver(self, http: web.Request, exchange: Exchange, turn: Turn) -> web.StreamResponse:
        request = exchange.request
        if turn.delay:
            await asyncio.sleep(turn.delay)
        if turn.hang == "head":
            await asyncio.Event().wait()
        if turn.status != 200:
            extra = {"retry-after": f"{turn.retry_after:g}"} if turn.retry_after is not None else {}
            if turn.body is not None:
                return web.Response(status=turn.status, text=turn.body, headers=extra)
            said = error_body(request.protocol, turn.status, turn.code, request.model)
            return web.json_response(said, status=turn.status, headers=extra)
        if turn.body is not None:
            return web.Response(text=turn.body, content_type="text/html")
        answer = Answer(request, turn, exchange.calls)
        if request.stream:
            return await self._stream(http, turn, events(answer))
        return await self._whole(http, turn, json.dumps(body(answer), ensure_ascii=False))

    async def _stream(self, http: web.Request, turn: Turn, found: list[Event]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream", "cache-control": "no-cache"})
        await response.prepare(http)
        middle = len(found) // 2
        for number, event in enumerate(found):
            if number == middle:
                if turn.hang == "stream":
                    await asyncio.Event().wait()
                if turn.cut:
                    return self._break(http, response)
                if turn.bad_json:
                    await response.write(encoded((event[0], '{"type": "content_block_delta", "ind')))
                    continue
            if turn.pace:
                await asyncio.sleep(turn.pace)
            await response.write(encoded(event))
        await response.write_eof()
        return response

    async def _whole(self, http: web.Request, turn: Turn, text: str) -> web.StreamResponse:
        data = text.encode()
        if turn.hang == "stream" or turn.cut:
            response = web.StreamResponse(headers={"content-type": "application/json"})
            response.content_length = len(data)
            await response.prepare(http)
            await response.write(data[: len(data) // 2])
            if turn.hang:
                await asyncio.Event().wait()
            return self._break(http, response)
        if turn.bad_json:
            data = data[: len(data) // 2]
        return web.Response(body=data, content_type="application/json")

    @staticmethod
    def _break(http: web.Request, response: web.StreamResponse) -> web.StreamResponse:
        """Close the connection in the middle of the answer."""
        if http.transport is not None:
            http.transport.abort()
        return response


def main() -> None:
    """Serve reference runs until interrupted."""
    from model_references import ReferenceScripts

    from pytest_paranoia.corpus import content_root

    parser = argparse.ArgumentParser(description="Serve the reference runs of items as a model.")
    parser.add_argument("folders", nargs="*", type=Path, help="folders with tasks/ and oracles/")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    with ModelServer(ReferenceScripts(*(options.folders or [content_root()])), port=options.port) as server:
        print(f"{server.url}/v1", flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
