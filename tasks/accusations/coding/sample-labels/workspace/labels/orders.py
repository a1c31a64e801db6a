"""The file for the analysers."""

from __future__ import annotations

from collections.abc import Iterable

from labels.number import Number, make

PROFILE = 7


def export(orders: Iterable[tuple[Number, str]]) -> str:
    """Return the lines for the analysers: the profile, then number and test of each order."""
    return "\n".join([f"PROFILE {PROFILE}", *(f"{make(number)} {test}" for number, test in orders)]) + "\n"
