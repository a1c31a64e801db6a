"""One trial at the relay: its listener, the calls that come in there, its account and its wire log."""

from __future__ import annotations

import asyncio
import logging
import socket
import traceback
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web
from yarl import URL

from pytest_paranoia.relay import asking
from pytest_paranoia.relay.account import Account
from pytest_paranoia.relay.admin import Refused
from pytest_paranoia.relay.contract import Metered, Route
from pytest_paranoia.relay.forward import Passage, Source, TrialState
from pytest_paranoia.relay.redaction import Redactor, of_provider
from pytest_paranoia.relay.replaying import Recording
from pytest_paranoia.relay.run import Run
from pytest_paranoia.relay.upstream import Upstream
from pytest_paranoia.relay.wire import WireError
from pytest_paranoia.relay.wirelog import WireLog

# A client's broken HTTP or early end, of which aiohttp speaks, is no fault of ours; those are noted in ``_handle``.
_SILENT = logging.getLogger(f"{__name__}.http")
_SILENT.disabled = True
_LONGEST_HEADER = 1 << 16
_CLOSE_SECONDS = 5.0
_LARGEST_BODY = 128 << 20
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


CONNECTIONS = 128
"""Connections of one trial that are kept open: each takes a descriptor of the relay, which serves all trials."""
_BACKLOG = 64


class _Server(web.Server):
    """Closes the connection that has idled longest where there are too many, and the newest where none idles."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.busy: set[object] = set()
        self._closed: set[object] = set()

    def connection_made(self, handler: Any, transport: asyncio.Transport) -> None:
        """Take note of a new connection; aiohttp calls this."""
        super().connection_made(handler, transport)
        # A closed one is kept among the connections until its task has ended.
        self._closed.intersection_update(self.connections)
        open_ones = [one for one in self.connections if one not in self._closed]
        if len(open_ones) <= CONNECTIONS:
            return
        # One that has sent half a request idles too.
        idle = next((one for one in open_ones if one not in self.busy), handler)
        self._closed.add(idle)
        if idle is handler:
            transport.abort()
        else:
            idle.force_close()

    def connection_lost(self, handler: Any, exc: BaseException | None = None) -> None:
        """Take note of a connection's end; aiohttp calls this."""
        super().connection_lost(handler, exc)
        self._closed.add(handler)


class Trial:
    """An open trial. ``close`` may be called again."""

    def __init__(self, state: TrialState, listener: socket.socket) -> None:
        self._state = state
        self._listener = listener
        self._server = _Server(
            self._handle,
            handler_cancellation=True,
            access_log=None,
            logger=_SILENT,
            auto_decompress=False,
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
            keepalive_timeout=3600.0,
            lingering_time=0.0,
        )
        self._accepting: asyncio.Server | None = None
        self._open: set[asyncio.Task[object]] = set()
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, run: Run, route: Route, listener: socket.socket) -> Trial:
        """Start to serve *listener*, which the trial then owns. Raises Refused where the route cannot be used."""
        secrets, key = _secrets(run, route)
        redactor = Redactor(secrets)
        try:
            source: Source
            if route.replay is None:
                source = Upstream(run, route, key)
            else:
                source = await asyncio.to_thread(Recording.load, Path(route.replay))
            log = WireLog(
                Path(route.wire),
                redactor,
                run.writer,
                trial=route.trial,
                model=route.model,
                provider=route.provider.name,
                base_url=route.provider.base_url.partition("?")[0],  # some take their key in the query
                replayed=route.replay is not None,
                opened=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            )
        except (OSError, WireError) as error:
            raise Refused("relay-route", str(error)) from error
        account = Account(route.caps, run.prices.date)
        trial = cls(TrialState(run, route, account, log, redactor, source, route.replay is not None), listener)
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        try:
            trial._accepting = await loop.create_server(trial._server, sock=listener, backlog=_BACKLOG)
        except (OSError, ValueError) as error:
            await log.close()
            raise Refused("relay-route", f"the listening socket cannot be used: {error}") from error
        return trial

    def metered(self) -> Metered:
        """Return the account."""
        return self._state.account.metered()

    async def close(self) -> None:
        """Close the listener, end the open calls, finish the log. Raises Refused where the log is not whole."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._state.closing = True
        if self._accepting is not None:
            self._accepting.close()
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open, timeout=_CLOSE_SECONDS)
        await self._server.shutdown(0.0)
        problem = await self._state.log.close()
        if self._state.fault is not None:
            raise Refused("relay-fault", f"the model relay made a mistake: {self._state.fault}")
        if problem is not None:
            raise Refused("wire-log", problem)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        self._server.busy.add(request.protocol)
        try:
            return await self._answer(request)
        except (ConnectionError, web.HTTPException):
            raise
        except Exception as error:
            self._state.fault = self._state.fault or f"{type(error).__name__}: {error}"
            traceback.print_exc()
            raise
        finally:
            self._open.discard(task)
            self._server.busy.discard(request.protocol)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        method, path = request.method, request.path
        if request.headers.get("Upgrade", "").lower() == "websocket":
            # Without the head start of a refusal, a client that prefers WebSockets would lose seconds.
            return await self._reject(request, 426, "WebSockets are not served here", "upgrade-required")
        if not asking.known(method, path):
            return await self._reject(request, 404, f"{method} {path} is not served here", "not-found")
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(_CONTINUE)
        try:
            body = _unpacked(await _body(request), request.headers.get("Content-Encoding", ""))
        except web.RequestPayloadError:
            raise ConnectionError("the request broke off") from None
        except OverflowError:
            return await self._reject(request, 413, f"requests may have {_LARGEST_BODY >> 20} MiB", "too-large")
        except ValueError as error:
            return await self._reject(request, 415, str(error), "content-encoding")
        asked = asking.read(method, path, request.query_string, body)
        return await Passage(self._state, request, asked).serve()

    async def _reject(self, request: web.BaseRequest, status: int, message: str, code: str) -> web.StreamResponse:
        asked = asking.read(request.method, request.path, "", b"")
        return await Passage(self._state, request, asked).reject(status, message, code)


async def _body(request: web.BaseRequest) -> bytes:
    """Read the request's body. Raises OverflowError where it is too large: the trial must not fill our memory."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > _LARGEST_BODY:
            raise OverflowError
    return b"".join(chunks)


def _unpacked(body: bytes, encoding: str) -> bytes:
    """Return a request's body as it was before it was packed.

    Raises ValueError for what cannot be unpacked here, OverflowError where it is too large.
    """
    kind = encoding.strip().lower()
    if kind in ("", "identity"):
        return body
    if kind not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"requests packed with {kind!r} cannot be read here, only gzip and deflate")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        unpacked = unpacker.decompress(body, _LARGEST_BODY)
    except zlib.error as error:
        raise ValueError(f"the request is said to be {kind} but is not: {error}") from error
    if unpacker.unconsumed_tail:
        raise OverflowError
    return unpacked


def _secrets(run: Run, route: Route) -> tuple[list[str], str | None]:
    """Return what must not get out, and the key. Raises Refused."""
    provider = route.provider
    try:
        base = URL(provider.base_url)
    except ValueError as error:
        raise Refused("relay-route", f"{provider.name}: base_url is {provider.base_url!r}: {error}") from error
    if base.scheme not in ("http", "https") or not base.host:
        raise Refused("relay-route", f"{provider.name}: base_url is {provider.base_url!r}, expected https://HOST/v1")
    secrets = of_provider(provider)
    if base.user or base.password:
        raise Refused("relay-route", f"{provider.name}: base_url holds a user or password; name the key by key_env")
    if provider.key_env is None or route.replay is not None:
        return secrets, None
    key = run.environ.get(provider.key_env, "").strip()
    if not key:
        raise Refused("provider-key", f"{provider.name}: the variable {provider.key_env} that holds its key is not set")
    return [key, *secrets], key
