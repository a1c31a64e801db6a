"""Adding up what judgements used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from pytest_paranoia.schema.record import Usage

_COUNTS = (
    *("requests", "retries", "input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens"),
    *("reasoning_tokens", "cost_usd", "seconds", "malformed_calls"),
)
NOTHING: Final = Usage(**dict.fromkeys(_COUNTS, 0))
"""The usage of a verdict for which no model was asked: known, and zero."""


def added(usages: Sequence[Usage]) -> Usage:
    """Return the sum; a number that one of them does not know is not known."""
    dates = [usage.prices for usage in usages if usage.prices]
    return Usage(
        **{name: _sum(getattr(usage, name) for usage in usages) for name in _COUNTS},
        prices=dates[-1] if dates else None,
    )


def _sum(values: Iterable[Any]) -> Any:
    found = list(values)
    return None if None in found else sum(found)
