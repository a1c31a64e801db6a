"""The ticket of a load."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from weighing.scale import shown


@dataclass(frozen=True)
class Ticket:
    """Kilograms as shown; *net* is what is sold."""

    plate: str
    gross: int
    tare: int
    net: int


def issue(plate: str, first: Decimal, second: Decimal) -> Ticket:
    """Return the ticket of two weighings, in whichever order. Raises OutOfRange."""
    tare, gross = sorted((shown(first), shown(second)))
    return Ticket(plate, gross, tare, gross - tare)
