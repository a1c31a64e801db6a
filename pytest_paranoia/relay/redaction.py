"""Keeps a provider's key out of whatever leaves the relay, also where the provider sends it back."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit

if TYPE_CHECKING:
    from pytest_paranoia.relay.contract import Provider

SHORTEST_SECRET = 8
"""A shorter key is a placeholder ("none", "EMPTY"): hiding it would spoil ordinary text."""

MASK = b"[redacted]"

SECRET_HEADERS = frozenset(
    {"authorization", "x-api-key", "api-key", "x-goog-api-key", "proxy-authorization", "cookie", "set-cookie"}
)

_KEY_NAME = re.compile(r"key|token|secret|signature|password|^sig$|^auth", re.IGNORECASE)


def of_provider(provider: Provider) -> list[str]:
    """Return the keys that a provider's entry holds, in headers and address; that of ``key_env`` is elsewhere."""
    in_headers = [value for name, value in provider.headers.items() if name.lower() in SECRET_HEADERS]
    return [*in_headers, *in_query(provider.base_url)]


def in_query(url: str) -> list[str]:
    """Return the keys in the query of *url*, as written and as meant: some providers take theirs there.

    A version is none.
    """
    pairs = [part.partition("=")[::2] for part in urlsplit(url).query.split("&")]
    values = [value for name, value in pairs if _KEY_NAME.search(name)]
    return sorted({form for value in values for form in (value, unquote(value), unquote_plus(value)) if form})


def _forms(secret: str) -> set[bytes]:
    """Return how a secret may be written: as it is, escaped, in base64 (whatever comes before it), in hex."""
    raw = secret.encode()
    forms = {raw, raw.hex().encode(), raw.hex().upper().encode()}
    forms |= {text.encode() for text in (quote(secret, safe=""), quote(secret), quote_plus(secret))}
    for escaped in (json.dumps(secret), json.dumps(secret, ensure_ascii=False)):
        inner = escaped[1:-1]
        forms |= {inner.encode(), inner.replace("/", "\\/").encode(), json.dumps(inner)[1:-1].encode()}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for offset in range(3):
            # Of the characters at both ends, some bits belong to what stands beside the secret.
            text = encode(b"\0" * offset + raw)
            start = -(-offset * 8 // 6)
            forms.add(text[start : (offset + len(raw)) * 8 // 6])
    return {form for form in forms if len(form) >= SHORTEST_SECRET}


class Redactor:
    """Masks secrets in whole texts, and in streams by ``stream()``."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms: set[bytes] = set()
        for secret in secrets:
            if len(secret) >= SHORTEST_SECRET:
                forms |= _forms(secret)
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self._bytes = frozenset(b"".join(forms))

    def clean(self, data: bytes) -> bytes:
        """Return *data* with every form of every secret masked."""
        for form in self._forms:
            if form in data:
                data = data.replace(form, MASK)
        return data

    def text(self, text: str) -> str:
        """Return *text* with every form of every secret masked."""
        data = text.encode("utf-8", "surrogatepass")
        cleaned = self.clean(data)
        return text if cleaned == data else cleaned.decode("utf-8", "surrogatepass")

    def begun(self, data: bytes) -> int:
        """Return how many bytes at the end of *data* may be the beginning of a secret."""
        if not data or data[-1] not in self._bytes:
            return 0  # as every event of a stream, which ends with a line feed
        longest = 0
        for form in self._forms:
            for size in range(min(len(form) - 1, len(data)), longest, -1):
                if data.endswith(form[:size]):
                    longest = size
                    break
        return longest

    def stream(self) -> RedactedStream:
        """Return a fresh state for one stream."""
        return RedactedStream(self)


class RedactedStream:
    """Masks secrets in a stream cut anywhere: nothing is held back but what may be the beginning of a secret."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes and return those that may go on."""
        data = self._redactor.clean(self._held + data)
        held = self._redactor.begun(data)
        self._held = data[len(data) - held :]
        return data[: len(data) - held]

    def finish(self) -> bytes:
        """Return what is left; the stream has ended."""
        held, self._held = self._held, b""
        return held
