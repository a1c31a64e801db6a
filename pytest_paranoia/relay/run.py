"""What all trials of a run share: connections, prices, the providers' limits, what was spent, what stops the run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aiohttp

from pytest_paranoia.relay import prices
from pytest_paranoia.relay.account import Capped
from pytest_paranoia.relay.contract import Call, Overload, Provider, Refusal
from pytest_paranoia.relay.fairness import ProviderQueue
from pytest_paranoia.relay.settings import RunTotals, Settings


class Run:
    """State of the run. Made inside the event loop. Raises PriceError."""

    def __init__(self, settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
        self.settings = settings
        self.environ = environ
        self.prices = prices.load(None if settings.prices is None else Path(settings.prices))
        # Connections are ours to count; cookies and automatic headers are not what the trial sent.
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Content-Type", "Accept"),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=settings.connect_seconds),
        )
        self.writer = ThreadPoolExecutor(1, "wire-log")
        self.refusal: Refusal | None = None
        self.overload: Overload | None = None
        self.plain_usage: set[str] = set()
        """Base URLs of providers that do not know ``stream_options``."""

        self._queues: dict[tuple[str, str, int | None, int | None], ProviderQueue] = {}
        self._requests = 0
        self._retries = 0
        self._cost = 0.0
        self._unpriced = False
        self._capped: Capped | None = None

    def queue(self, provider: Provider) -> ProviderQueue:
        """Return the queue of the calls to *provider*."""
        key = (provider.name, provider.base_url, provider.concurrency, provider.requests_per_minute)
        return self._queues.setdefault(key, ProviderQueue(provider.concurrency, provider.requests_per_minute))

    def over_cost(self, *, priced: bool, model: str) -> Capped | None:
        """Return why the run may spend no more, None where it may."""
        limit = self.settings.max_cost
        if limit is None:
            return None
        found = None
        if not priced:
            said = f"the run may cost {limit:g} USD, but the price of {model!r} is unknown"
            found = Capped("run-cost", said, model)
        elif self._cost >= limit:
            found = Capped("run-cost", f"the run has cost {self._cost:.4f} of its {limit:g} USD")
        self._capped = self._capped or found
        return found

    def ended(self, call: Call, *, spent: bool) -> None:
        """Add a call; *spent* is False where it was not made in truth (a replay)."""
        self._requests += 1
        self._retries += max(0, call.attempts - 1)
        if spent and 200 <= call.status < 400:
            self._cost += call.cost_usd or 0.0
            self._unpriced = self._unpriced or call.cost_usd is None

    def totals(self) -> RunTotals:
        """Return the run so far."""
        return RunTotals(
            requests=self._requests,
            retries=self._retries,
            cost_usd=None if self._unpriced else self._cost,
            known_cost_usd=self._cost,
            prices=self.prices.date,
            refusal=self.refusal,
            capped=self._capped.cap if self._capped else None,
            unpriced=self._capped.unpriced if self._capped else None,
            overload=self.overload,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self.session.close()
        self.writer.shutdown()
