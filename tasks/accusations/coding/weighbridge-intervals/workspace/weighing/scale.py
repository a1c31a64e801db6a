"""What the bridge shows."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

LEAST = Decimal(200)
MOST = Decimal(50_000)
INTERVAL = Decimal(20)


class OutOfRange(ValueError):
    """The reading is one that nothing may be sold by."""


def shown(reading: Decimal) -> int:
    """Return the kilograms that the bridge shows for a *reading* of the load cells. Raises OutOfRange."""
    if not LEAST <= reading <= MOST:
        raise OutOfRange(f"{reading} kg is not between {LEAST} and {MOST} kg")
    return int((reading / INTERVAL).quantize(Decimal(1), ROUND_HALF_UP) * INTERVAL)
