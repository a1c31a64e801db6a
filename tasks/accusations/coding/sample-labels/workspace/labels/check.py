"""Check characters of sample numbers."""

from __future__ import annotations

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
PROFILE_6 = "ABCDEFGHJKLMNPQRSTUVWXY"


def over_serial(serial: int) -> str:
    """Return the check character of profile 6: over the serial alone (until 1 November 2026)."""
    return PROFILE_6[serial % 23]


def over_all(text: str) -> str:
    """Return the check character of profile 7: ISO 7064, MOD 37,36, over everything before it (LAB-96)."""
    product = 36
    for character in text:
        product = (product + ALPHABET.index(character)) % 36 or 36
        product = product * 2 % 37
    return ALPHABET[(37 - product) % 36]
