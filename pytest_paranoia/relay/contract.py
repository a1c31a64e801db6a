"""What the relay is told of a trial and what it tells back. Plain data: it crosses a process border as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Protocol = Literal["anthropic-messages", "openai-responses", "openai-chat"]
CapName = Literal["requests", "tokens", "cost", "run-cost"]
RefusalKind = Literal["key", "model", "quota"]

PATHS: dict[str, Protocol] = {
    "/v1/messages": "anthropic-messages",
    "/v1/responses": "openai-responses",
    "/v1/chat/completions": "openai-chat",
}
"""The paths a trial may call, and what they speak. Below ``base_url`` they are the same without ``/v1``."""


@dataclass(frozen=True)
class Provider:
    """Where model calls go. ``base_url`` holds the API's version (``https://host/v1``).

    ``key_env`` names the variable of the relay's own environment that holds the key, None where there is none; ``auth``
    how it is sent. ``concurrency`` (calls open at once) and ``requests_per_minute`` hold over all trials of the run.
    """

    name: str
    base_url: str
    key_env: str | None = None
    protocols: tuple[Protocol, ...] = ("openai-chat",)
    auth: Literal["bearer", "x-api-key"] = "bearer"
    headers: dict[str, str] = field(default_factory=dict)
    concurrency: int | None = None
    requests_per_minute: int | None = None


@dataclass(frozen=True)
class Caps:
    """What one trial may use; None is without a limit. ``cost`` in US dollars: with an unknown price it cannot be kept,
    so a trial that has this cap and an unpriced model is refused at the first call.
    """

    requests: int | None = None
    tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True)
class Route:
    """One trial's way through the relay. ``wire`` is the file the relay appends its log to; ``replay`` a recorded one
    whose answers are served instead of the provider's. ``model`` is the provider's id of the model under test,
    ``caller`` who asks it: errors name it.
    """

    trial: str
    provider: Provider
    model: str
    wire: str
    caps: Caps = Caps()
    replay: str | None = None
    caller: Literal["agent", "judge"] = "agent"


@dataclass(frozen=True)
class Refusal:
    """An answer after which no other call can succeed either: the run stops. ``call`` says whose call of which model it
    was, and where it went.
    """

    kind: RefusalKind
    status: int
    message: str
    call: str = ""


@dataclass(frozen=True)
class Overload:
    """A call that failed although it was repeated: ``status`` 0 means that the provider could not be reached. ``call``
    as in ``Refusal``.
    """

    status: int
    attempts: int
    message: str
    call: str = ""


@dataclass(frozen=True)
class Call:
    """One call as metered; the fields are those of ``schema.record.Usage``. ``model`` as the answer names it, ``asked``
    as the request did: an alias is answered in a dated name, an error in none.

    ``started`` is seconds since the trial was opened, ``first_byte`` and ``seconds`` are counted from there on.
    """

    protocol: Protocol
    model: str
    status: int
    started: float
    first_byte: float | None
    seconds: float
    attempts: int = 1
    input_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    asked: str = ""


@dataclass(frozen=True)
class Metered:
    """The trial's account so far. ``capped`` is the first cap that was hit, ``refusal`` what stops the run,
    ``overload`` the last call that stayed without an answer. ``unpriced``: nothing was used up, but a cap on cost
    cannot be kept, as this model has no price. ``prices`` is the date of the price table. ``busy`` in seconds.
    ``breaks`` counts answers that broke off, ``unrecorded`` the requests of a replay that its recording has no answer
    for.
    """

    calls: tuple[Call, ...] = ()
    retries: int = 0
    capped: CapName | None = None
    refusal: Refusal | None = None
    overload: Overload | None = None
    prices: str | None = None
    busy: float = 0.0
    breaks: int = 0
    unrecorded: int = 0
    unpriced: str | None = None
