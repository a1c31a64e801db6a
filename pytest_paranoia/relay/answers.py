"""What a provider's error means, and errors of our own in the shape each protocol has for them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pytest_paranoia.relay.contract import Protocol, Refusal, RefusalKind

RETRIED = frozenset({429, 500, 502, 503, 504, 529})
UNREACHED = 0
"""Stands for the status where no answer came at all."""

_LONGEST_MESSAGE = 600
_QUOTA = re.compile(r"insufficient[_ ]quota|credit balance is too low|insufficient[_ ](balance|credits|funds)", re.I)
_NO_MODEL = re.compile(
    r"model[_ ]not[_ ](found|exist)|(unknown|invalid|no such) model\b|not a valid model"
    r"|\bmodels?\b[^.\n]{0,120}\b(does not exist|do not exist|not exist|not found|is not available|was not found)",
    re.I,
)
_FLAGGED = re.compile(r"moderation|flagged|content[_ ]policy|safety", re.I)


def error_body(protocol: Protocol | None, message: str, code: str, kind: str = "invalid_request_error") -> bytes:
    """Return an error as the protocol's own clients read it."""
    if protocol == "anthropic-messages":
        content: dict[str, Any] = {"type": "error", "error": {"type": kind, "message": message}, "code": code}
    else:
        content = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return json.dumps(content).encode()


def message_of(body: bytes) -> str:
    """Return an error's message: the one inside the JSON, else the beginning of the text."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, list) and content:
        content = content[0]
    error = content.get("error", content.get("detail", content)) if isinstance(content, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    text = message if isinstance(message, str) and message else body.decode(errors="replace")
    return " ".join(text.split())[:_LONGEST_MESSAGE]


def refusal(status: int, body: bytes, asked: str, under_test: str) -> Refusal | None:
    """Return why no other call of the run can succeed after this answer, None where that does not follow.

    *asked* is the model of the request: where it is another than the one *under_test* (a title, a subagent's choice),
    that it is unknown says nothing of the trial's own calls.
    """
    kind = _refusal_kind(status, body.decode(errors="replace"))
    if kind is None:
        return None
    text = body.decode(errors="replace")
    if kind == "model" and asked and not same_model(asked, under_test) and (_NO_MODEL.search(text) or asked in text):
        return None
    return Refusal(kind, status, message_of(body) or f"HTTP status {status}")


def stream_refusal(kind: str, message: str) -> Refusal | None:
    """The same for an error inside an answer that had begun well: *kind* is its code or type.

    Its status said nothing; the refusal has the one that such an error has elsewhere.
    """
    if _QUOTA.search(f"{kind}: {message}"):
        return Refusal("quota", 402, message)
    if kind in ("authentication_error", "invalid_api_key", "permission_error"):
        return Refusal("key", 401, message)
    return Refusal("model", 404, message) if _NO_MODEL.search(kind) else None


def _refusal_kind(status: int, text: str) -> RefusalKind | None:
    if status == 402 or (status in (400, 403, 429) and _QUOTA.search(text)):
        return "quota"
    if status == 401 or (status == 403 and not _FLAGGED.search(text)):
        return "key"
    if status == 404 or (status in (400, 422) and _NO_MODEL.search(text)):
        return "model"
    return None


def names_model(message: str) -> bool:
    """Whether an error says that the model is unknown, and not only that there is nothing at the address."""
    return _NO_MODEL.search(message) is not None


def same_model(asked: str, under_test: str) -> bool:
    """Whether a request asks for the model under test."""
    # Claude Code marks a long context this way; the provider never sees it.
    return asked.removesuffix("[1m]") == under_test.removesuffix("[1m]")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a provider asks to wait (a number, or a date), None where it does not ask."""
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) * factor
        except ValueError:
            try:
                seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
            except (ValueError, TypeError):  # no date, or one without a zone
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None
