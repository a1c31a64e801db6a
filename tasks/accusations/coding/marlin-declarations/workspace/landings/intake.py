"""The door: takes a declaration of any kind and has it read."""

from __future__ import annotations

from collections.abc import Callable

from landings import tablet
from landings.lots import BadMessage, Lot

# What a declaration begins with, and who reads it.
READERS: dict[str, Callable[[str], list[Lot]]] = {
    "{": tablet.read,
}


def read(message: str) -> list[Lot]:
    """Return the lots of *message*. Raises BadMessage."""
    for start, reader in READERS.items():
        if message.startswith(start):
            return reader(message)
    raise BadMessage(f"unknown kind of declaration: {message[:12]!r}")
