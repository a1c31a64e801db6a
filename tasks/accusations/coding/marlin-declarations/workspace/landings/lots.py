"""What a declaration is turned into."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path

TERMINALS = Path(__file__).parent.parent / "data" / "terminals.csv"


class BadMessage(ValueError):
    """A declaration that cannot be read; the hall rings the boat."""


@dataclass(frozen=True)
class Lot:
    """Fish of one species and grade from one boat. *species* is the three-letter code, *kilos* exact."""

    boat: str
    species: str
    grade: int
    kilos: Decimal
    declared: datetime


def boat_of(terminal: str) -> str:
    """Return the boat on which *terminal* is. Raises BadMessage where it is on none."""
    with TERMINALS.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["terminal"] == terminal:
                return row["boat"]
    raise BadMessage(f"terminal {terminal} is on no boat of data/terminals.csv")
