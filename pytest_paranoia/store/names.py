"""Names on disk: readable, unique and safe for any trial key."""

from __future__ import annotations

import hashlib
import re
from typing import Final

MAX_NAME: Final = 120
"""Longest folder name of a trial, in characters (all ASCII, so bytes too)."""

RUN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VARIANT = re.compile(r"(?<![A-Za-z0-9])E([+-])(?=[-\]]|$)")
_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
_HASH_DIGITS = 10


def variants_file_name(item: str, item_hash: str) -> str:
    """Return the file name of what the variants of *item* differ in: a readable slug and a hash of item and content."""
    digest = hashlib.sha256(f"{item}\0{item_hash}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
    readable = _UNSAFE.sub("-", item)[: MAX_NAME - _HASH_DIGITS - 6].strip("-.")
    return f"{readable or 'item'}-{digest}.json"


def trial_folder_name(key: str) -> str:
    """Return the folder name of the trial *key*: a readable slug and a hash of the whole key.

    ``E+`` and ``E-`` are spelt ``Eplus`` and ``Eminus``, since both signs vanish from a slug. The hash keeps keys apart
    that look alike; the name never starts with a dot, holds no separator, and has at most MAX_NAME characters.
    """
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
    spelt = _VARIANT.sub(lambda sign: "Eplus" if sign[1] == "+" else "Eminus", key)
    readable = _UNSAFE.sub("-", spelt)[: MAX_NAME - _HASH_DIGITS - 1].strip("-.")
    return f"{readable or 'trial'}-{digest}"
