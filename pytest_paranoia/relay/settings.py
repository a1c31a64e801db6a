"""What holds for a whole run of the relay, and what a run has used so far."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_paranoia.relay.contract import CapName, Overload, Refusal


@dataclass(frozen=True)
class Settings:
    """Settings of the run. Times are seconds, ``max_cost`` US dollars (None: no limit), ``prices`` a user's price
    table.

    A call that the provider refuses for the moment is repeated until ``attempts`` calls or ``retry_seconds`` are used
    up; the wait before a repetition starts at ``backoff``, doubles, and is never longer than ``longest_wait``, also
    where the provider asks for more. ``headers_seconds`` is how long a provider may take until its answer begins,
    ``idle_seconds`` how long it may then stay silent.
    """

    max_cost: float | None = None
    prices: str | None = None
    attempts: int = 6
    retry_seconds: float = 300.0
    backoff: float = 1.0
    longest_wait: float = 60.0
    connect_seconds: float = 30.0
    headers_seconds: float = 600.0
    idle_seconds: float = 600.0


@dataclass(frozen=True)
class RunTotals:
    """The run so far, over all trials. ``cost_usd`` is None as soon as one call's price is unknown; ``known_cost_usd``
    is the sum of the others. ``refusal`` stops the run, ``capped`` says that ``max_cost`` is used up, or with
    ``unpriced`` that it cannot be kept, as this model has no price.
    """

    requests: int = 0
    retries: int = 0
    cost_usd: float | None = 0.0
    known_cost_usd: float = 0.0
    prices: str | None = None
    refusal: Refusal | None = None
    capped: CapName | None = None
    overload: Overload | None = None
    unpriced: str | None = None
