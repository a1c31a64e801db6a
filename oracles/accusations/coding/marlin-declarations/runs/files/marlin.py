# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Declarations of the Marlin terminals: plain lines (docs/formats.md)."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal

from landings.lots import BadMessage, Lot, boat_of

HALF_BOX = Decimal("12.5")
SPECIES = {"HK": "HKE", "LG": "LIN", "WR": "WRF", "CE": "COE", "SB": "SBR", "RF": "BRF"}

_FIRST = re.compile(r"M1 (\w{5}) (\d{10}) (\d{2})")
_LOT = re.compile(r"([A-Z]{2})([123])(\d{3})(H?)")
_LAST = re.compile(r"E(\d{4})")


def _parts(pattern: re.Pattern[str], line: str) -> tuple[str, ...]:
    match = pattern.fullmatch(line.rstrip())
    if match is None:
        raise BadMessage(f"marlin: cannot read the line {line!r}")
    return match.groups()


def read(message: str) -> list[Lot]:
    """Return the lots of a Marlin declaration, none where the boat lands nothing. Raises BadMessage."""
    lines = message.splitlines()
    if len(lines) < 2:
        raise BadMessage("marlin: no last line")
    terminal, time, count = _parts(_FIRST, lines[0])
    boat = boat_of(terminal)
    try:
        declared = datetime.strptime(time, "%y%m%d%H%M")
    except ValueError as error:
        raise BadMessage(f"marlin: {error}") from error
    if len(lines) - 2 != int(count):
        raise BadMessage(f"marlin: {count} lot lines announced, {len(lines) - 2} there")

    lots, total = [], 0
    for line in lines[1:-1]:
        species, grade, boxes, half = _parts(_LOT, line)
        if species not in SPECIES:
            raise BadMessage(f"marlin: unknown species {species}")
        halves = 2 * int(boxes) + bool(half)
        total += halves
        lots.append(Lot(boat, SPECIES[species], int(grade), halves * HALF_BOX, declared))
    (announced,) = _parts(_LAST, lines[-1])
    if int(announced) != total:
        raise BadMessage(f"marlin: {announced} half boxes announced, {total} there")
    return lots
