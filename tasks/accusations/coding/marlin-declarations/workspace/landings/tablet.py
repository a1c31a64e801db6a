"""Declarations of the tablets: JSON, one object each."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal, InvalidOperation

from landings.lots import BadMessage, Lot, boat_of


def read(message: str) -> list[Lot]:
    """Return the lots of a tablet's declaration. Raises BadMessage."""
    try:
        fields = json.loads(message)
        declared = datetime.strptime(fields["at"], "%Y-%m-%dT%H:%M")
        boat = boat_of(fields["terminal"])
        lots = [
            Lot(boat, str(lot["species"]), int(lot["grade"]), Decimal(lot["kilos"]), declared) for lot in fields["lots"]
        ]
    except BadMessage:
        raise
    except (ValueError, KeyError, TypeError, InvalidOperation) as error:
        raise BadMessage(f"tablet: {error!r}") from error
    if any(lot.grade not in (1, 2, 3) or lot.kilos <= 0 for lot in lots):
        raise BadMessage("tablet: grade must be 1 to 3, kilos above 0")
    return lots
