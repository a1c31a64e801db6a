"""One call to the provider: its address, its headers with the key, repetitions, and the answer as chunks."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from urllib.request import getproxies, proxy_bypass

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from pytest_paranoia.relay import answers
from pytest_paranoia.relay.asking import Asked
from pytest_paranoia.relay.contract import Protocol, Route
from pytest_paranoia.relay.redaction import SECRET_HEADERS
from pytest_paranoia.relay.run import Run
from pytest_paranoia.relay.wire import Attempt

HOP_HEADERS = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect"}
)
_NOT_SENT = SECRET_HEADERS | HOP_HEADERS | {"host", "content-length", "content-encoding", "accept-encoding"}
_NOT_PASSED = SECRET_HEADERS | HOP_HEADERS | {"content-length", "content-encoding", "alt-svc"}
_ANTHROPIC_VERSION = "2023-06-01"
_LARGEST_ERROR = 1 << 20
_JITTER = 0.25


@dataclass
class Incoming:
    """An answer whose first bytes are there. ``chunks`` raises ``aiohttp.ClientError`` or ``TimeoutError`` where it
    breaks.
    """

    status: int
    headers: list[tuple[str, str]]
    first: bytes
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True)
class Outgoing:
    """What is sent. ``plain_body`` is the body as the trial sent it, where ``body`` differs from it; ``asked`` the
    request.
    """

    method: str
    path: str
    query: str
    protocol: Protocol | None
    headers: tuple[tuple[str, str], ...]
    body: bytes
    plain_body: bytes | None = None
    asked: Asked | None = None


@dataclass(frozen=True)
class Tried:
    """What one try gave. ``body`` is the whole of an error, of a good answer the first bytes."""

    response: aiohttp.ClientResponse | None = None
    status: int = answers.UNREACHED
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    problem: str = ""

    def passing(self) -> bool:
        """Whether another try may do better."""
        return self.response is None or (
            self.status in answers.RETRIED
            and answers.refusal(self.status, self.body, "", "") is None
            and self.headers.get("x-should-retry") != "false"
        )


class Unreached(Exception):
    """No answer came from the provider, whatever was tried."""


def sendable(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the headers of a trial's request that go on: none that holds a key or belongs to its connection alone."""
    return tuple((name, value) for name, value in headers if name.lower() not in _NOT_SENT)


class Upstream:
    """The way to one route's provider."""

    def __init__(self, run: Run, route: Route, key: str | None) -> None:
        self._run = run
        self._provider = route.provider
        self._key = key
        self._base = URL(route.provider.base_url)
        self._proxy = _proxy(self._base)
        self._queue = run.queue(route.provider)

    def _url(self, path: str, query: str) -> URL:
        """Return the address of *path*; a query of the base URL (a version) stays."""
        url = self._base.with_path(self._base.path.rstrip("/") + path.removeprefix("/v1"))
        return url.with_query(self._base.query).update_query(query) if self._base.query or query else url

    def _headers(self, outgoing: Outgoing) -> CIMultiDict[str]:
        headers: CIMultiDict[str] = CIMultiDict(outgoing.headers)
        # What is packed cannot be metered, nor passed on as it comes.
        headers["Accept-Encoding"] = "identity"
        speaks = (outgoing.protocol,) if outgoing.protocol else self._provider.protocols  # the list of models has none
        if "anthropic-messages" in speaks:
            headers.setdefault("anthropic-version", _ANTHROPIC_VERSION)
        if self._key is not None and self._provider.auth == "x-api-key":
            headers["x-api-key"] = self._key
        elif self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        for name, value in self._provider.headers.items():
            headers[name] = value
        return headers

    @asynccontextmanager
    async def call(
        self, outgoing: Outgoing, trial: object, attempts: list[Attempt], check: Callable[[], None]
    ) -> AsyncIterator[Incoming]:
        """Give the answer, and release it when the block ends; each try at it is added to *attempts*. Raises Unreached.

        Repeats what the provider refuses for the moment: nothing of the answer was passed on yet. *check* is called
        before each try, after all waiting, and may raise.
        """
        settings = self._run.settings
        started = time.monotonic()
        while True:
            async with self._queue.turn(trial):
                check()
                begun = time.monotonic()
                tried = await self._try(outgoing)
                seconds = time.monotonic() - begun
                if tried.response is not None and tried.status < 400:
                    attempts.append(Attempt(tried.status, round(seconds, 4)))
                    del outgoing  # it may be large, and the answer may take long
                    try:
                        yield Incoming(tried.status, _passed(tried.headers), tried.body, _rest(tried.response))
                    finally:
                        tried.response.close()
                    return
            if tried.status == 400 and outgoing.plain_body is not None and b"stream_options" in tried.body:
                self._run.plain_usage.add(self._provider.base_url)
                outgoing = replace(outgoing, body=outgoing.plain_body, plain_body=None)
                continue
            asked = answers.retry_after(tried.headers)
            wait = self._wait(len(attempts), asked)
            again = (
                tried.passing()
                and len(attempts) + 1 < settings.attempts
                and time.monotonic() - started + wait < settings.retry_seconds
            )
            attempts.append(Attempt(tried.status, round(seconds, 4), tried.problem, round(wait, 4) if again else 0.0))
            if not again:
                if tried.response is None:
                    raise Unreached(tried.problem)
                yield Incoming(tried.status, _passed(tried.headers), tried.body, _nothing())
                return
            if asked is not None and tried.status == 429:
                self._queue.hold(wait)
            await asyncio.sleep(wait)

    async def _try(self, outgoing: Outgoing) -> Tried:
        """Send the request once; an error's body is read whole."""
        try:
            response, first = await self._begin(outgoing)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Tried(problem=_unreached(error, self._run.settings.headers_seconds))
        if response.status < 400:
            return Tried(response, response.status, response.headers, first)
        try:
            body = first + await _error_body(response)
        finally:
            response.close()
        return Tried(response, response.status, response.headers, body, answers.message_of(body))

    async def _begin(self, outgoing: Outgoing) -> tuple[aiohttp.ClientResponse, bytes]:
        """Send the request and wait for the first bytes of the answer's body (none, where it has none)."""
        async with asyncio.timeout(self._run.settings.headers_seconds):
            response = await self._run.session.request(
                outgoing.method,
                self._url(outgoing.path, outgoing.query),
                data=outgoing.body or None,
                headers=self._headers(outgoing),
                allow_redirects=False,
                proxy=self._proxy,
                timeout=aiohttp.ClientTimeout(
                    total=None,
                    sock_connect=self._run.settings.connect_seconds,
                    sock_read=self._run.settings.idle_seconds,
                ),
            )
            try:
                return response, await response.content.readany()
            except BaseException:
                response.close()
                raise

    def _wait(self, repeated: int, asked: float | None) -> float:
        """Return how long to wait before the next try: what the provider asks for, else twice as long each time."""
        settings = self._run.settings
        wait = settings.backoff * 2.0**repeated if asked is None else asked
        # Trials that were refused together must not come back together; never earlier than asked.
        spread = random.uniform(-_JITTER, _JITTER) if asked is None else random.uniform(0.0, _JITTER)
        return min(wait, settings.longest_wait) * (1.0 + spread)


async def _rest(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async for chunk in response.content.iter_any():
        yield chunk


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


async def _error_body(response: aiohttp.ClientResponse) -> bytes:
    """Return an error's body as far as it comes: that it breaks off does not make it another error."""
    body = b""
    with suppress(aiohttp.ClientError, TimeoutError, OSError):
        while len(body) < _LARGEST_ERROR and (chunk := await response.content.readany()):
            body += chunk
    return body


def _passed(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers.items() if name.lower() not in _NOT_PASSED]


def _unreached(error: Exception, headers_seconds: float) -> str:
    if isinstance(error, aiohttp.ClientError | OSError) and str(error):
        return str(error)
    if isinstance(error, TimeoutError):
        return f"no answer within {headers_seconds:g} s"
    return type(error).__name__


def _proxy(url: URL) -> URL | None:
    """Return the proxy that the environment names for *url*. (The session's own way would also read ``.netrc``.)"""
    host = url.host or ""
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    return None if not proxy or proxy_bypass(f"{host}:{url.port}") else URL(proxy)
