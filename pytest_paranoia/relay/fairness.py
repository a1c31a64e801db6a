"""A provider's limits over all trials of the run: calls open at once, calls per minute, and whose turn it is."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

MINUTE = 60.0


class ProviderQueue:
    """Admits calls within the limits. Trials that wait take turns: one with many subagents holds up no other."""

    def __init__(self, concurrency: int | None, per_minute: int | None, window: float = MINUTE) -> None:
        self._concurrency = concurrency
        self._per_minute = per_minute
        self._window = window
        self._open = 0
        self._starts: deque[float] = deque()
        self._held_until = 0.0
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, trial: Hashable) -> AsyncIterator[None]:
        """Wait for this trial's turn; the place is free again when the block ends."""
        await self._enter(trial)
        try:
            yield
        finally:
            self._leave()

    def hold(self, seconds: float) -> None:
        """Admit nobody for so long: the provider asked for it."""
        self._held_until = max(self._held_until, time.monotonic() + seconds)

    async def _enter(self, trial: Hashable) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(trial, deque()).append(place)
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._leave()  # admitted in the moment in which the caller gave up
            raise

    def _leave(self) -> None:
        self._open -= 1
        self._admit()

    def _admit(self) -> None:
        """Let in whoever may enter now, one call per trial in turn, and come back when the next one may."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting and (self._concurrency is None or self._open < self._concurrency):
            trial, queue = next(iter(self._waiting.items()))
            place = queue[0]
            if not place.done():
                if wait := self._wait():
                    self._timer = asyncio.get_running_loop().call_later(wait, self._admit)
                    return
                self._open += 1
                if self._per_minute is not None:
                    self._starts.append(time.monotonic())
                place.set_result(None)
            queue.popleft()
            if queue:
                self._waiting.move_to_end(trial)
            else:
                del self._waiting[trial]

    def _wait(self) -> float:
        """Return the seconds until the next call may start, 0 for now."""
        now = time.monotonic()
        until = self._held_until
        if self._per_minute is not None:
            while self._starts and self._starts[0] <= now - self._window:
                self._starts.popleft()
            if len(self._starts) >= self._per_minute:
                until = max(until, self._starts[0] + self._window)
        return max(0.0, until - now)
