"""A trial's request, read: what it asks of which model, and what is sent on for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_paranoia.relay.contract import PATHS, Protocol
from pytest_paranoia.relay.sse import Splitter, data_of

COUNT_PATH, MODELS_PATH = "/v1/messages/count_tokens", "/v1/models"
_KEPT_QUERY = "beta=true"


@dataclass(frozen=True)
class Asked:
    """A request. ``main`` calls have tools; titles and summaries have not.

    ``metered`` calls are those that cost tokens. ``hide_usage``: the trial did not ask for the usage that we need.
    """

    method: str
    path: str
    query: str
    protocol: Protocol | None
    metered: bool
    body: bytes
    model: str
    streamed: bool
    main: bool
    hide_usage: bool

    def lightened(self) -> Asked:
        """Return the request without what was sent, which may be large."""
        return replace(self, body=b"")

    def with_usage(self) -> bytes:
        """Return the body that also asks for usage."""
        content = json.loads(self.body)
        content["stream_options"] = {**(content.get("stream_options") or {}), "include_usage": True}
        return json.dumps(content, separators=(",", ":")).encode()


def protocol_of(method: str, path: str) -> Protocol | None:
    """Return the protocol whose errors suit a path, None where it is no path of the relay's."""
    if method == "POST":
        return PATHS.get(path) or ("anthropic-messages" if path == COUNT_PATH else None)
    return None


def known(method: str, path: str) -> bool:
    """Whether a trial may call this."""
    return protocol_of(method, path) is not None or (method == "GET" and path == MODELS_PATH)


def said(body: bytes) -> Any:
    """Return a body's JSON, its text where it is none, None where it is empty."""
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return body.decode("utf-8", "backslashreplace")


def read(method: str, path: str, query: str, body: bytes) -> Asked:
    """Read a request that is ``known``."""
    protocol = protocol_of(method, path)
    content = said(body)
    fields: Mapping[str, Any] = content if isinstance(content, dict) else {}
    model = fields.get("model")
    streamed = fields.get("stream") is True
    options = fields.get("stream_options")
    usable = options is None or isinstance(options, dict)
    wanted = isinstance(options, dict) and options.get("include_usage") is True
    return Asked(
        method=method,
        path=path,
        query=_KEPT_QUERY if _KEPT_QUERY in query.split("&") else "",
        protocol=protocol,
        metered=path in PATHS,
        body=body,
        model=model if isinstance(model, str) else "",
        streamed=streamed,
        main=_is_main(fields),
        hide_usage=protocol == "openai-chat" and streamed and usable and not wanted,
    )


def _is_main(fields: Mapping[str, Any]) -> bool:
    if fields.get("tools"):
        return True
    given = fields.get("input")
    return isinstance(given, list) and any(
        isinstance(item, dict) and item.get("type") == "additional_tools" for item in given
    )


class UsageFilter:
    """Keeps the chunk that only holds usage from a client that did not ask for it; everything else passes unchanged."""

    def __init__(self) -> None:
        self._splitter = Splitter()

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes and return those for the client: whole events."""
        return b"".join(event for event in self._splitter.feed(data) if not _only_usage(event))

    def finish(self) -> bytes:
        """Return the rest; the stream has ended."""
        rest = self._splitter.rest()
        return b"" if _only_usage(rest) else rest


def _only_usage(event: bytes) -> bool:
    if b'"usage"' not in event:
        return False
    try:
        content = json.loads(data_of(event))
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("choices") == [] and bool(content.get("usage"))
