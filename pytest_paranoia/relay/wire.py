"""The wire log of a trial: every call it made, as sent and answered, read back exchange by exchange.

A log is JSON lines (``wire.jsonl``, or ``.xz``): a header, then for each call a line when it is made and a line when
it has ended. What requests repeat is written once (``parts``). No key is in it: headers that hold one are left out, and
what a provider echoed is masked.
"""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.relay.contract import Call, Protocol
from pytest_paranoia.relay.parts import Decoder, Encoder

WIRE_SCHEMA = 1
Ending = Literal["complete", "truncated", "broken", "client-gone", "closed", "none"]


class WireError(ParanoiaError):
    """A wire log that cannot be read; the message names file, line and what is wrong."""


@dataclass(frozen=True)
class Attempt:
    """One try at the provider: the status (0: no answer), how long it took, and the wait after it. In seconds."""

    status: int
    seconds: float
    message: str = ""
    wait: float = 0.0


@dataclass(frozen=True)
class Exchange:
    """One call. ``started`` is ISO 8601, ``at`` seconds since the trial was opened; ``first_byte`` and ``seconds`` and
    the times of ``chunks`` (seconds, bytes) count from there. ``main`` says whether the call had tools, which titles
    and summaries have not.

    ``request`` is the parsed JSON, or the text where it was none. ``status`` 0 is no answer. ``ended``: ``complete``;
    ``truncated`` (a proper end, but not that of the protocol); ``broken`` (the connection broke off); ``client-gone``;
    ``closed`` (the trial was); ``none`` (no answer came). ``by`` is ``relay`` where the relay itself answered.
    """

    number: int
    started: str
    at: float
    method: str
    path: str
    query: str = ""
    protocol: Protocol | None = None
    main: bool = False
    request_headers: tuple[tuple[str, str], ...] = ()
    request: Any = None
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    chunks: tuple[tuple[float, int], ...] = ()
    first_byte: float | None = None
    seconds: float = 0.0
    ended: Ending = "none"
    by: Literal["provider", "relay", "recording"] = "provider"
    attempts: tuple[Attempt, ...] = ()
    call: Call | None = None

    @property
    def text(self) -> str:
        """The answer as text."""
        return self.body.decode("utf-8", "backslashreplace")


def header_line(**facts: object) -> dict[str, Any]:
    """Return the first line of a log."""
    return {"wire": WIRE_SCHEMA, **facts}


def request_line(number: int, request: object, encoder: Encoder) -> dict[str, Any]:
    """Return what call *number* asked as its line."""
    try:
        encoded, parts = encoder.encode(request)
    except RecursionError:  # nested deeper than anybody means it: kept as it is
        encoded, parts = json.dumps(request), []
    return {"asked": number, "request": encoded, "parts": parts}


def exchange_line(exchange: Exchange) -> dict[str, Any]:
    """Return everything else of a call as its line."""
    data = {
        name: value for name, value in vars(exchange).items() if name not in ("request", "body", "attempts", "call")
    }
    try:
        data["body"] = exchange.body.decode()
    except UnicodeDecodeError:
        data["body"] = {"base64": base64.b64encode(exchange.body).decode()}
    data["attempts"] = [asdict(attempt) for attempt in exchange.attempts]
    data["call"] = exchange.call and asdict(exchange.call)
    return data


def read_wire(path: Path) -> Iterator[Exchange]:
    """Yield the exchanges of a log in the order in which they ended. Raises WireError.

    A call whose end was not written, because the relay itself was killed, is none.
    """
    try:
        with _open(path) as stream:
            yield from _exchanges(path, stream)
    except (OSError, lzma.LZMAError, EOFError) as error:
        raise WireError(f"{path}: the wire log cannot be read: {error}") from error


def _open(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", lzma.open(path)) if path.suffix == ".xz" else path.open("rb")


def _exchanges(path: Path, stream: IO[bytes]) -> Iterator[Exchange]:
    decoder: Decoder | None = None
    requests: dict[int, Any] = {}
    for number, line in enumerate(stream, 1):
        try:
            data = json.loads(line)
            if "wire" in data:
                if data["wire"] != WIRE_SCHEMA:
                    raise WireError(
                        f"{path}:{number}: found a wire log of version {data['wire']!r}, expected {WIRE_SCHEMA}; "
                        "read it with the version of this package that wrote it"
                    )
                decoder = Decoder()
                continue
            if decoder is None:
                raise ValueError("the header is missing")
            if "asked" in data:
                requests[data["asked"]] = decoder.decode(data["request"], data["parts"])
                continue
            exchange = _exchange(data, requests.pop(data["number"], None))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise WireError(f"{path}:{number}: found no line of a wire log ({error}); the file is damaged") from error
        yield exchange


def _exchange(data: dict[str, Any], request: Any) -> Exchange:
    body = data["body"]
    return Exchange(
        **{
            **data,
            "request": request,
            "request_headers": tuple((name, value) for name, value in data["request_headers"]),
            "headers": tuple((name, value) for name, value in data["headers"]),
            "body": body.encode() if isinstance(body, str) else base64.b64decode(body["base64"]),
            "chunks": tuple((seconds, size) for seconds, size in data["chunks"]),
            "attempts": tuple(Attempt(**attempt) for attempt in data["attempts"]),
            "call": data["call"] and Call(**data["call"]),
        }
    )


def facts(path: Path) -> Mapping[str, Any]:
    """Return what a log's header says: trial, model, provider and when it was opened. Raises WireError."""
    try:
        with _open(path) as stream:
            data = json.loads(stream.readline())
    except (OSError, lzma.LZMAError, EOFError, ValueError) as error:
        raise WireError(f"{path}: the wire log cannot be read: {error}") from error
    if not isinstance(data, dict) or "wire" not in data:
        raise WireError(f"{path}:1: found no header of a wire log")
    return data
