"""What the counter of the laboratory accepts."""

from __future__ import annotations

from datetime import date

from labels.number import PROFILE_7_FROM, BadNumber, Number, read

OLD_UNTIL = date(2026, 11, 9)


def accept(text: str, today: date) -> Number:
    """Return the sample of a tube that is handed in *today*. Raises BadNumber."""
    number = read(text)
    if number.day > today:
        raise BadNumber(f"{text!r} is from a day to come")
    if number.day < PROFILE_7_FROM and today > OLD_UNTIL:
        raise BadNumber(f"{text!r} is from before 2 November")
    return number
