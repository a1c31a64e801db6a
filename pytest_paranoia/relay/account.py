"""What one trial has used, and whether it may use more."""

from __future__ import annotations

import time
from dataclasses import dataclass

from pytest_paranoia.relay.contract import Call, CapName, Caps, Metered, Overload, Refusal


@dataclass(frozen=True)
class Capped:
    """A call that may not be made: the cap's name and what the model's client is told. ``unpriced``: the cap was not
    reached, but cannot be kept, as this model has no price.
    """

    cap: CapName
    message: str
    unpriced: str | None = None


class Account:
    """Counts a trial's calls. Tokens of a cap are input plus output; what an answer did not tell counts as nothing
    there, so a cap may be passed by the calls that were open when it was reached.
    """

    def __init__(self, caps: Caps, prices: str) -> None:
        self._caps = caps
        self._prices = prices
        self._born = time.monotonic()
        self._calls: list[Call] = []
        self._admitted = 0
        self._tokens = 0
        self._cost = 0.0
        self._open = 0
        self._busy = 0.0
        self._busy_since = 0.0
        self.retries = 0
        self.breaks = 0
        self.unrecorded = 0
        self.capped: CapName | None = None
        self.unpriced: str | None = None
        self.refusal: Refusal | None = None
        self.overload: Overload | None = None

    def now(self) -> float:
        """Seconds since the trial was opened."""
        return time.monotonic() - self._born

    def arrived(self) -> None:
        """A call begins to be open."""
        if not self._open:
            self._busy_since = time.monotonic()
        self._open += 1

    def left(self) -> None:
        """A call is open no longer."""
        self._open -= 1
        if not self._open:
            self._busy += time.monotonic() - self._busy_since

    def admit(self, *, priced: bool, model: str) -> Capped | None:
        """Count a call in, or return why it may not be made."""
        found = self._refuse(priced, model)
        if found is None:
            self._admitted += 1
        return found

    def _refuse(self, priced: bool, model: str) -> Capped | None:
        caps = self._caps
        if caps.requests is not None and self._admitted >= caps.requests:
            return Capped("requests", f"the trial has made its {caps.requests} requests")
        if caps.tokens is not None and self._tokens >= caps.tokens:
            return Capped("tokens", f"the trial has used {self._tokens} of its {caps.tokens} tokens")
        if caps.cost is not None:
            if not priced:
                return Capped(
                    "cost", f"the trial may cost {caps.cost:g} USD, but the price of {model!r} is unknown", model
                )
            if self._cost >= caps.cost:
                return Capped("cost", f"the trial has cost {self._cost:.4f} of its {caps.cost:g} USD")
        return None

    def cap(self, found: Capped) -> None:
        """Note a cap that was hit; the first one stays."""
        if self.capped is None:
            self.capped, self.unpriced = found.cap, found.unpriced

    def ended(self, call: Call) -> None:
        """Add a call as it was metered."""
        self._calls.append(call)
        self.retries += max(0, call.attempts - 1)
        self._tokens += (call.input_tokens or 0) + (call.output_tokens or 0)
        self._cost += call.cost_usd or 0.0

    def metered(self) -> Metered:
        """Return the account."""
        busy = self._busy + (time.monotonic() - self._busy_since if self._open else 0.0)
        return Metered(
            calls=tuple(sorted(self._calls, key=lambda call: call.started)),
            retries=self.retries,
            capped=self.capped,
            unpriced=self.unpriced,
            refusal=self.refusal,
            overload=self.overload,
            prices=self._prices,
            busy=round(busy, 4),
            breaks=self.breaks,
            unrecorded=self.unrecorded,
        )
