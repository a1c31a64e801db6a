"""Serves the recorded answers of an earlier trial instead of the provider's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from pytest_paranoia.relay.asking import MODELS_PATH, Asked, said
from pytest_paranoia.relay.forward import Unrecorded
from pytest_paranoia.relay.sse import Splitter
from pytest_paranoia.relay.upstream import Incoming, Outgoing
from pytest_paranoia.relay.wire import Attempt, Exchange, read_wire

_SAID = ("messages", "input")


@dataclass(frozen=True)
class _Likeness:
    """What of a request tells which recorded one it repeats: all of it, where it began, and how far it has come."""

    whole: str
    beginning: str
    turns: int


@dataclass
class _Recorded:
    """A recorded answer, the request it belongs to reduced to what is compared."""

    exchange: Exchange
    likeness: _Likeness
    used: bool = False


class Recording:
    """A recorded wire log. An answer is served once, but the list of models, which is asked for without order."""

    def __init__(self, exchanges: list[Exchange]) -> None:
        answered = [exchange for exchange in exchanges if exchange.by != "relay" and exchange.status]
        self._recorded = [_Recorded(exchange, _likeness(exchange.request)) for exchange in answered]
        self._asked = 0

    @classmethod
    def load(cls, path: Path) -> Recording:
        """Read a log. Raises WireError."""
        return cls(sorted(read_wire(path), key=lambda exchange: exchange.started))

    @asynccontextmanager
    async def call(
        self,
        outgoing: Outgoing,
        trial: object,  # noqa: ARG002
        attempts: list[Attempt],
        check: Callable[[], None],
    ) -> AsyncIterator[Incoming]:
        """Give the recorded answer; see ``Upstream.call``. Raises Unrecorded."""
        assert outgoing.asked is not None
        check()
        exchange = self._find(outgoing.asked)
        attempts.append(Attempt(exchange.status, 0.0))
        pieces = _pieces(exchange)
        yield Incoming(
            exchange.status, list(exchange.headers), pieces[0] if pieces else b"", _play(exchange, pieces[1:])
        )

    def _find(self, asked: Asked) -> Exchange:
        self._asked += 1
        kind = [
            one
            for one in self._recorded
            if (one.exchange.method, one.exchange.path, one.exchange.main) == (asked.method, asked.path, asked.main)
        ]
        left = [one for one in kind if not one.used or asked.path == MODELS_PATH]
        if not left:
            what = "with tools" if asked.main else "without tools"
            raise Unrecorded(
                f"the recording has no answer to call {self._asked} of this trial: {asked.method} {asked.path} {what}, "
                f"of which it holds {len(kind)}"
            )
        wanted = _likeness(said(asked.body))
        chosen = max(left, key=lambda one: _closeness(one.likeness, wanted))  # of equals the first
        chosen.used = True
        return chosen.exchange


def _closeness(one: _Likeness, other: _Likeness) -> int:
    """The same request before the same turn of the same conversation before the same conversation before the order."""
    if one.whole == other.whole:
        return 3
    if one.beginning != other.beginning:
        return 0
    return 2 if one.turns == other.turns else 1


def _likeness(content: Any) -> _Likeness:
    fields = content if isinstance(content, dict) else {}
    spoken: Any = next((fields[name] for name in _SAID if fields.get(name)), [])
    turns = spoken if isinstance(spoken, list) else [spoken]
    return _Likeness(_digest([fields.get("model"), spoken]), _digest(turns[:1]), len(turns))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _pieces(exchange: Exchange) -> list[bytes]:
    """Return an answer as it is to be sent: a stream event by event."""
    kind = next((value for name, value in exchange.headers if name.lower() == "content-type"), "")
    if not kind.startswith("text/event-stream"):
        return [exchange.body] if exchange.body else []
    splitter = Splitter()
    events = splitter.feed(exchange.body)
    rest = splitter.rest()
    return [*events, rest] if rest else events


async def _play(exchange: Exchange, pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    if exchange.ended not in ("complete", "truncated"):
        raise aiohttp.ClientPayloadError("the recorded answer broke off here")
