"""Decide whether a carrier's callback is admitted: signature first, then freshness, then repeats."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

KEY = "X-Callback-Key"
TIME = "X-Callback-Time"
DELIVERY = "X-Callback-Delivery"
SIGNATURE = "X-Callback-Signature"

MAX_BODY = 64 * 1024


@dataclass(frozen=True)
class Policy:
    """What we ask of one carrier."""

    carrier: str
    keys: Mapping[str, str]
    fresh_seconds: int
    ahead_seconds: int
    remember_hours: int

    def __post_init__(self) -> None:
        if self.fresh_seconds <= 0 or self.ahead_seconds < 0:
            raise ValueError(f"{self.carrier}: fresh_seconds must be above 0 and ahead_seconds not below 0")
        if self.remember_hours * 3600 <= self.fresh_seconds + self.ahead_seconds:
            raise ValueError(f"{self.carrier}: remember_hours must reach beyond the time a callback is fresh")


@dataclass(frozen=True)
class Decision:
    """``admit`` passes a callback on, ``repeat`` acknowledges it only, ``refuse`` turns it away."""

    outcome: str
    reason: str
    status: int

    @property
    def admitted(self) -> bool:
        return self.outcome == "admit"


def load_policies(path: str | Path) -> dict[str, Policy]:
    """Read carriers.json."""
    carriers = json.loads(Path(path).read_text(encoding="utf-8"))
    return {
        name: Policy(name, entry["keys"], entry["fresh_seconds"], entry["ahead_seconds"], entry["remember_hours"])
        for name, entry in carriers.items()
    }


def sign(secret: bytes, time: str, delivery: str, body: bytes) -> str:
    """Return the signature a carrier puts on a callback (decision 0003)."""
    message = b".".join((time.encode(), delivery.encode(), body))
    return hmac.new(secret, message, hashlib.sha256).hexdigest()


class SeenDeliveries:
    """Delivery ids we have admitted, kept as long as the carrier may still repeat them."""

    def __init__(self, keep_seconds: int) -> None:
        self._keep = keep_seconds
        self._until: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._until)

    def add(self, delivery: str, now: float) -> bool:
        """Remember *delivery*; False where it is known already."""
        with self._lock:
            while self._until:
                oldest, until = next(iter(self._until.items()))
                if until > now:
                    break
                del self._until[oldest]
            if delivery in self._until:
                return False
            self._until[delivery] = now + self._keep
            return True

    def discard(self, delivery: str) -> None:
        """Forget *delivery*."""
        with self._lock:
            self._until.pop(delivery, None)


class Admission:
    """The door for one carrier. *secrets* maps key ids to secrets."""

    def __init__(self, policy: Policy, secrets: Mapping[str, bytes]) -> None:
        self._policy = policy
        self._secrets = secrets
        self._seen = SeenDeliveries(policy.remember_hours * 3600)

    def decide(self, headers: Mapping[str, str], body: bytes, now: float) -> Decision:
        """Decide about one callback that arrives at *now* (seconds since 1970)."""
        if len(body) > MAX_BODY:
            return Decision("refuse", "too-large", 413)
        missing = [name for name in (KEY, TIME, DELIVERY, SIGNATURE) if not headers.get(name)]
        if missing:
            return Decision("refuse", "header-missing", 400)

        key, time, delivery = headers[KEY], headers[TIME], headers[DELIVERY]
        if self._policy.keys.get(key) != "active" or key not in self._secrets:
            return Decision("refuse", "key", 401)
        expected = sign(self._secrets[key], time, delivery, body)
        if not hmac.compare_digest(expected.encode(), headers[SIGNATURE].encode()):
            return Decision("refuse", "signature", 401)

        try:
            signed_at = int(time)
        except ValueError:
            return Decision("refuse", "time", 400)
        age = now - signed_at
        if age > self._policy.fresh_seconds:
            return Decision("refuse", "stale", 401)
        if age < -self._policy.ahead_seconds:
            return Decision("refuse", "ahead", 401)

        if not self._seen.add(delivery, now):
            return Decision("repeat", "known", 200)
        return Decision("admit", "fresh", 202)

    def forget(self, delivery: str) -> None:
        """Take back the admission of *delivery*: what came of it could not be passed on."""
        self._seen.discard(delivery)
