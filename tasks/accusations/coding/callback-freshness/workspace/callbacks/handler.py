"""The WSGI application around the decision: reads the request, counts the outcome, hands on what is admitted."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from callbacks.admission import DELIVERY, KEY, MAX_BODY, SIGNATURE, TIME, Admission, Policy

PHRASES = {
    200: "OK",
    202: "Accepted",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    413: "Content Too Large",
}


def secrets_from(environ: Mapping[str, str], policy: Policy) -> dict[str, bytes]:
    """Collect the secrets of a carrier's keys: nl-26a is CALLBACK_SECRET_NL_26A."""
    found = {}
    for key in policy.keys:
        name = "CALLBACK_SECRET_" + key.upper().replace("-", "_")
        if name in environ:
            found[key] = environ[name].encode()
    return found


class Application:
    """Answers ``POST /callbacks/<carrier>``; *pass_on* gets carrier, delivery id and body of what is admitted."""

    def __init__(
        self,
        policies: Mapping[str, Policy],
        pass_on: Callable[[str, str, bytes], None],
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._doors = {name: Admission(policy, secrets_from(environ, policy)) for name, policy in policies.items()}
        self._pass_on = pass_on
        self._clock = clock
        self.counts: Counter[tuple[str, str, str]] = Counter()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        carrier = environ.get("PATH_INFO", "").removeprefix("/callbacks/")
        door = self._doors.get(carrier)
        if door is None or environ.get("REQUEST_METHOD") != "POST":
            return self._answer(start_response, 404, "nothing here")
        try:
            length = min(int(environ.get("CONTENT_LENGTH") or 0), MAX_BODY + 1)
        except ValueError:
            return self._answer(start_response, 400, "length")
        body = environ["wsgi.input"].read(length)
        headers = {
            name: environ.get("HTTP_" + name.upper().replace("-", "_"), "") for name in (KEY, TIME, DELIVERY, SIGNATURE)
        }
        decision = door.decide(headers, body, self._clock())
        self.counts[carrier, decision.outcome, decision.reason] += 1
        if decision.admitted:
            try:
                self._pass_on(carrier, headers[DELIVERY], body)
            except Exception:
                # The ledger has not taken it, so the carrier's next attempt must not count as a repeat.
                door.forget(headers[DELIVERY])
                raise
        return self._answer(start_response, decision.status, decision.reason)

    @staticmethod
    def _answer(start_response: Callable[..., Any], status: int, text: str) -> list[bytes]:
        start_response(f"{status} {PHRASES[status]}", [("Content-Type", "text/plain")])
        return [text.encode() + b"\n"]
