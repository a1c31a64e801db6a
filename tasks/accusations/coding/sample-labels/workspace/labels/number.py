"""Making and reading a sample number: ward, year and day of the year, serial, check character."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime

from labels import check

PROFILE_7_FROM = date(2026, 11, 2)

_NUMBER = re.compile(r"([A-Z]\d)(\d{5})(\d{5})([0-9A-Z])")


class BadNumber(ValueError):
    """What was read is no valid sample number."""


@dataclass(frozen=True)
class Number:
    """What a sample number says."""

    ward: str
    day: date
    serial: int


def make(number: Number) -> str:
    """Return the number as it is printed, also when a label is printed again."""
    body = f"{number.ward}{number.day:%y%j}{number.serial:05}"
    if number.day < PROFILE_7_FROM:
        return body + check.over_serial(number.serial)
    return body + check.over_all(body)


def read(text: str) -> Number:
    """Return what *text* says. Raises BadNumber."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise BadNumber(f"{text!r} has not the form of a sample number")
    ward, day, serial, _ = match.groups()
    try:
        number = Number(ward, datetime.strptime(day, "%y%j").date(), int(serial))
    except ValueError as error:
        raise BadNumber(f"{text!r}: {error}") from error
    if make(number) != text:
        raise BadNumber(f"{text!r}: check character")
    return number
