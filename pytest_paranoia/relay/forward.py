"""One call of a trial, from its request to the end of its answer: admitted, sent, passed on, metered, logged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol as Interface

import aiohttp
from aiohttp import web

from pytest_paranoia.relay import answers
from pytest_paranoia.relay.account import Account, Capped
from pytest_paranoia.relay.asking import Asked, UsageFilter
from pytest_paranoia.relay.contract import Call, Overload, Refusal, Route
from pytest_paranoia.relay.redaction import Redactor
from pytest_paranoia.relay.run import Run
from pytest_paranoia.relay.upstream import Incoming, Outgoing, Unreached, sendable
from pytest_paranoia.relay.usage import Meter, StreamError, Tokens
from pytest_paranoia.relay.wire import Attempt, Ending, Exchange
from pytest_paranoia.relay.wirelog import WireLog

_JSON = ("Content-Type", "application/json")
_FINAL = ("x-should-retry", "false")
"""Both vendors' client libraries heed it: what was repeated here need not be repeated there."""

_GATEWAY = 502

_NO_RESPONSES = (
    "; the call was one of the Responses API: for a server that has Chat Completions alone, give its provider "
    'protocols = ["openai-chat"] in the file of --paranoia-models'
)


class Source(Interface):
    """Where answers come from: the provider, or a recording."""

    def call(
        self, outgoing: Outgoing, trial: object, attempts: list[Attempt], check: Callable[[], None]
    ) -> AbstractAsyncContextManager[Incoming]:
        """Give the answer to one request; see ``Upstream.call``."""


class ClientGone(Exception):
    """The trial's client went away before its answer was complete."""


class Stopped(Exception):
    """The run may make no more calls; what the client is told."""

    def __init__(self, status: int, message: str, code: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Unrecorded(Exception):
    """The recording holds no answer to a request."""


@dataclass(eq=False)
class TrialState:
    """What the calls of one trial share. ``closing`` is set before its open calls are ended; ``fault`` is the first
    mistake of the relay itself.
    """

    run: Run
    route: Route
    account: Account
    log: WireLog
    redactor: Redactor
    source: Source
    replayed: bool
    count: int = 0
    closing: bool = False
    fault: str | None = None


@dataclass(eq=False)
class Passage:
    """State of one call. All times count from its arrival but ``at``, which counts from the trial's."""

    trial: TrialState
    request: web.BaseRequest
    asked: Asked
    number: int = 0
    at: float = 0.0
    started: str = ""
    attempts: list[Attempt] = field(default_factory=list)
    status: int = answers.UNREACHED
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    chunks: list[tuple[float, int]] = field(default_factory=list)
    first_byte: float | None = None
    ended: Ending = "none"
    by_relay: bool = False
    sent: bool = False
    meter: Meter | None = None

    def __post_init__(self) -> None:
        self.trial.count += 1
        self.number = self.trial.count
        self.at = self.trial.account.now()
        self.started = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def age(self) -> float:
        """Seconds since the call arrived."""
        return self.trial.account.now() - self.at

    async def reject(self, status: int, message: str, code: str) -> web.StreamResponse:
        """Answer what the relay does not serve; that it was asked for is logged."""
        try:
            return await self.refuse(status, message, code)
        finally:
            self.trial.log.ended(self._exchange(None))

    async def serve(self) -> web.StreamResponse:
        """Answer the call."""
        account = self.trial.account
        account.arrived()
        self.trial.log.asked(self.number, self.asked.body)
        try:
            return await self._serve()
        except asyncio.CancelledError:
            self.ended = "closed" if self.trial.closing else "client-gone"
            raise
        except (ClientGone, ConnectionError) as error:
            self.ended = "client-gone"
            raise ConnectionError("the client has gone") from error
        finally:
            account.left()
            self._note()

    async def _serve(self) -> web.StreamResponse:
        try:
            self._check_run()
            self._check_trial()
            async with self.trial.source.call(self._outgoing(), self.trial, self.attempts, self._set_out) as incoming:
                # It is not sent again from here on, and a stream may be open for long.
                self.asked = self.asked.lightened()
                return await self._pass_on(incoming)
        except Stopped as stop:
            return await self.refuse(stop.status, str(stop), stop.code)
        except Unreached as error:
            message = f"the provider cannot be reached: {error}"
            self._overloaded(answers.UNREACHED, message)
            return await self.refuse(_GATEWAY, message, "unreached", "api_error")
        except Unrecorded as error:
            self.trial.account.unrecorded += 1
            return await self.refuse(400, str(error), "replay-unrecorded")

    def _set_out(self) -> None:
        """Called right before each try at the provider, after all waiting: much may have happened meanwhile."""
        self._check_run()
        self.sent = True

    def _check_run(self) -> None:
        """Raise Stopped where the run may make no more calls."""
        trial = self.trial
        if trial.replayed:
            return
        if (refusal := trial.run.refusal) is not None:
            trial.account.refusal = trial.account.refusal or refusal
            raise Stopped(refusal.status, refusal.message, f"refused-{refusal.kind}")
        if self.asked.metered:
            self._stop(trial.run.over_cost(priced=self._priced(), model=self._model()))

    def _check_trial(self) -> None:
        """Raise Stopped where the trial may make no more calls, else count this one in."""
        if self.asked.metered:
            self._stop(self.trial.account.admit(priced=self._priced(), model=self._model()))

    def _stop(self, capped: Capped | None) -> None:
        if capped is not None:
            self.trial.account.cap(capped)
            raise Stopped(400, capped.message, f"cap-{capped.cap}")

    def _model(self) -> str:
        return self.asked.model or self.trial.route.model

    def _priced(self) -> bool:
        return self.trial.run.prices.find(self.trial.route.provider.name, self._model()) is not None

    def _outgoing(self) -> Outgoing:
        asked = self.asked
        ask_usage = asked.hide_usage and self.trial.route.provider.base_url not in self.trial.run.plain_usage
        return Outgoing(
            method=asked.method,
            path=asked.path,
            query=asked.query,
            protocol=asked.protocol,
            headers=sendable(self.request.headers.items()),
            body=asked.with_usage() if ask_usage else asked.body,
            plain_body=asked.body if ask_usage else None,
            asked=asked,
        )

    # -- the answer ------------------------------------------------------------------------------------------------

    async def refuse(
        self, status: int, message: str, code: str, kind: str = "invalid_request_error"
    ) -> web.StreamResponse:
        """Answer with an error of the relay's own."""
        self.by_relay = True
        self.status, self.headers = status, [_JSON, _FINAL]
        body = answers.error_body(self.asked.protocol, f"{message} [{code}]", code, kind)
        body = self.trial.redactor.clean(body)
        response = web.Response(status=status, body=body, headers=dict(self.headers))
        await response.prepare(self.request)
        await response.write_eof()
        self._seen(body)
        self.ended = "complete"
        return response

    async def _pass_on(self, incoming: Incoming) -> web.StreamResponse:
        trial, asked = self.trial, self.asked
        self.status = incoming.status
        self.headers = [(name, trial.redactor.text(value)) for name, value in incoming.headers]
        if incoming.status >= 400:
            self._judge(incoming)
        kind = next((value for name, value in self.headers if name.lower() == "content-type"), "")
        streamed = kind.startswith("text/event-stream")
        if asked.metered and asked.protocol is not None:
            self.meter = Meter(asked.protocol, streamed=streamed)
        response = web.StreamResponse(status=incoming.status)
        for name, value in self.headers:
            response.headers.add(name, value)
        await _to_client(response.prepare(self.request))
        usage_filter = UsageFilter() if asked.hide_usage and streamed else None
        try:
            async for data in self._clean(incoming):
                self._seen(data)
                shown = data if usage_filter is None else usage_filter.feed(data)
                try:
                    if shown:
                        await _to_client(response.write(shown))
                finally:
                    # Afterwards, since the client need not wait for it.
                    if self.meter is not None:
                        self.meter.feed(data)
        except (aiohttp.ClientError, TimeoutError):
            return await self._break(response)
        if usage_filter is not None and (rest := usage_filter.finish()):
            await _to_client(response.write(rest))
        await _to_client(response.write_eof())
        self.ended = "complete"
        return response

    async def _clean(self, incoming: Incoming) -> AsyncIterator[bytes]:
        stream = self.trial.redactor.stream()
        if data := stream.feed(incoming.first):
            yield data
        async for chunk in incoming.chunks:
            if data := stream.feed(chunk):
                yield data
        if data := stream.finish():
            yield data

    def _seen(self, data: bytes) -> None:
        if self.first_byte is None:
            self.first_byte = round(self.age(), 4)
        self.chunks.append((round(self.age(), 4), len(data)))
        self.body += data

    async def _break(self, response: web.StreamResponse) -> web.StreamResponse:
        """The provider's answer broke off: so does ours, without the end that would make it look whole."""
        self.ended = "broken"
        protocol = self.request.protocol
        assert protocol is not None
        protocol.force_close()
        return response

    def _judge(self, incoming: Incoming) -> None:
        """Note what an error means for the trial and the run."""
        trial, body = self.trial, incoming.first
        found = (
            answers.refusal(incoming.status, body, self.asked.model, trial.route.model) if self.asked.metered else None
        )
        if found is not None:
            self._refused(found)
        elif incoming.status in answers.RETRIED:
            self._overloaded(incoming.status, answers.message_of(body))
        else:
            return
        self.headers = [*((name, value) for name, value in self.headers if name.lower() != _FINAL[0]), _FINAL]

    def _judge_stream(self, error: StreamError) -> None:
        """Note what an error means that came inside an answer which had begun well."""
        found = answers.stream_refusal(error.kind, error.message)
        if found is None:
            self._overloaded(self.status, f"{error.kind}: {error.message}")
        else:
            self._refused(found)

    def _refused(self, found: Refusal) -> None:
        message = self.trial.redactor.text(found.message)
        if found.kind == "model" and self.asked.protocol == "openai-responses" and not answers.names_model(message):
            message += _NO_RESPONSES
        found = Refusal(found.kind, found.status, message, self._named())
        self.trial.account.refusal = self.trial.account.refusal or found
        if not self.trial.replayed:
            self.trial.run.refusal = self.trial.run.refusal or found

    def _overloaded(self, status: int, message: str) -> None:
        found = Overload(status, len(self.attempts), self.trial.redactor.text(message), self._named())
        self.trial.account.overload = found
        if not self.trial.replayed:
            self.trial.run.overload = found

    def _named(self) -> str:
        """Say whose call of which model this is, and where it goes; some endpoints take their key in the query."""
        base = self.trial.route.provider.base_url.partition("?")[0].rstrip("/")
        where = base + self.asked.path.removeprefix("/v1")
        return self.trial.redactor.text(f"the {self.trial.route.caller}'s call of {self._model()!r} at {where}")

    # -- the account -----------------------------------------------------------------------------------------------

    def _note(self) -> None:
        """Meter and log the call, however it ended."""
        call = self._call() if self.sent and self.asked.metered else None
        if self.ended in ("broken", "truncated"):
            self.trial.account.breaks += 1
        if self.meter is not None and self.meter.error is not None and self.status < 400:
            self._judge_stream(self.meter.error)
        if call is not None:
            self.trial.account.ended(call)
            self.trial.run.ended(call, spent=not self.trial.replayed)
        self.trial.log.ended(self._exchange(call))

    def _call(self) -> Call:
        tokens = self.meter.finish() if self.meter is not None else Tokens()
        if self.ended == "complete" and self.status < 400 and self.meter is not None and not self.meter.ended:
            self.ended = "truncated"
        model = self._model()
        price = self.trial.run.prices.find(self.trial.route.provider.name, *filter(None, (tokens.model, model)))
        return Call(
            protocol=self.asked.protocol or "openai-chat",
            model=tokens.model or model,
            status=self.status,
            started=round(self.at, 4),
            first_byte=self.first_byte,
            seconds=round(self.age(), 4),
            attempts=max(1, len(self.attempts)),
            input_tokens=tokens.input,
            cached_tokens=tokens.cached,
            cache_write_tokens=tokens.cache_writes,
            output_tokens=tokens.output,
            reasoning_tokens=tokens.reasoning,
            cost_usd=None if price is None else price.cost(tokens),
            asked=model,
        )

    def _exchange(self, call: Call | None) -> Exchange:
        asked = self.asked
        return Exchange(
            number=self.number,
            started=self.started,
            at=round(self.at, 4),
            method=asked.method,
            path=asked.path,
            query=asked.query,
            protocol=asked.protocol,
            main=asked.main,
            request_headers=sendable(self.request.headers.items()),
            status=self.status,
            headers=tuple(self.headers),
            body=bytes(self.body),
            chunks=tuple(self.chunks),
            first_byte=self.first_byte,
            seconds=round(self.age(), 4),
            ended=self.ended,
            by="relay" if self.by_relay else "recording" if self.trial.replayed else "provider",
            attempts=tuple(self.attempts),
            call=call,
        )


async def _to_client(writing: Awaitable[object]) -> None:
    """Await a write to the trial's client: its errors are of the same classes as those of the provider's connection."""
    try:
        await writing
    except ConnectionError as error:
        raise ClientGone from error
