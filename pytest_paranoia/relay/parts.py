"""Writes many JSON values that repeat each other so that every part is written once, and restores them without loss.

A conversation's requests repeat all that was said before: written whole, a log grows with the square of the turns.
Here a part that is worth it gets a number when it is first written and is a reference from then on; a long list is
written as how much of an earlier list it repeats, and the rest.

In an encoded value an object whose only key begins with ``~`` means: ``{"~": N}`` the part N; ``{"~more": [N, K,
[...]]}`` the first K elements of the list that is part N, then the elements given; ``{"~plain": [[key, value], ...]}``
an object one of whose own keys begins with ``~``.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

MARK = "~"
_REFERENCE, _MORE, _PLAIN = "~", "~more", "~plain"
_WORTH = 48
"""A part shorter than so many characters costs less than a reference to it."""

_LONG = 4
"""From so many elements on, a list is compared with an earlier one that begins alike."""


_SCALARS = frozenset({int, float, bool, type(None)})


class Encoder:
    """Encodes JSON values one after the other; ``encode`` also returns the parts that are new."""

    def __init__(self) -> None:
        self._references: dict[bytes, dict[str, int]] = {}
        self._lists: dict[int | str, tuple[int, list[int | str]]] = {}
        self._new: list[Any] = []

    def encode(self, value: object) -> tuple[Any, list[Any]]:
        """Return the encoded value and the parts to add to the table before it is read."""
        encoded = self._value(value)
        new, self._new = self._new, []  # not kept here: a part may be large
        return encoded, new

    def _value(self, value: object) -> Any:
        kind = type(value)
        if kind is str:
            assert isinstance(value, str)
            if len(value) < _WORTH:
                return value
            return self._part(value, b"s", value.encode("utf-8", "surrogatepass"))
        if kind in _SCALARS:
            return value
        if isinstance(value, list):
            return self._list(value)
        assert isinstance(value, dict)
        encoded: Any = {key: self._value(child) for key, child in value.items()}
        if any(key.startswith(MARK) for key in value):
            encoded = {_PLAIN: [[key, child] for key, child in encoded.items()]}
        return self._small(encoded)

    def _list(self, value: list[Any]) -> Any:
        encoded = [self._value(child) for child in value]
        if len(encoded) < _LONG:
            return self._small(encoded)
        # A reference stands for what it refers to; all else is small enough to compare as text.
        marks: list[int | str] = [
            child[_REFERENCE] if type(child) is dict and len(child) == 1 and _REFERENCE in child else repr(child)
            for child in encoded
        ]
        earlier = self._lists.get(marks[0])
        shared = _common(earlier[1], marks) if earlier else 0
        shorter = {_MORE: [earlier[0], shared, encoded[shared:]]} if earlier and shared > 1 else encoded
        known = len(self._references)
        reference = self._part(shorter, b"l", repr(marks).encode())
        if reference[_REFERENCE] == known:
            self._lists[marks[0]] = (known, marks)
        return reference

    def _small(self, encoded: Any) -> Any:
        """Return a reference to a value whose large parts are references already, itself where it is not worth one."""
        text = repr(encoded)
        return self._part(encoded, b"v", text.encode()) if len(text) >= _WORTH else encoded

    def _part(self, encoded: Any, kind: bytes, text: bytes) -> dict[str, int]:
        """Return the reference to a part; *text* is the same for the same value, and among its kind for no other."""
        digest = blake2b(text, digest_size=16, person=kind).digest()
        reference = self._references.get(digest)
        if reference is None:
            reference = self._references[digest] = {_REFERENCE: len(self._references)}
            self._new.append(encoded)
        return reference


def _common(one: list[int | str], other: list[int | str]) -> int:
    count = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        count += 1
    return count


class Decoder:
    """Restores what an Encoder wrote, in the same order. Raises ValueError, LookupError or TypeError for anything
    else.
    """

    def __init__(self) -> None:
        self._parts: list[Any] = []

    def decode(self, encoded: Any, new: list[Any]) -> Any:
        """Return the value; *new* are the parts that came with it. What values have in common is shared: do not change
        it.
        """
        for part in new:
            self._parts.append(self._value(part))
        return self._value(encoded)

    def _value(self, encoded: Any) -> Any:
        if isinstance(encoded, list):
            return [self._value(child) for child in encoded]
        if not isinstance(encoded, dict):
            return encoded
        if len(encoded) == 1:
            ((key, content),) = encoded.items()
            if key == _REFERENCE:
                return self._parts[content]
            if key == _MORE:
                number, shared, rest = content
                return [*self._parts[number][:shared], *(self._value(child) for child in rest)]
            if key == _PLAIN:
                return {name: self._value(child) for name, child in content}
        return {key: self._value(child) for key, child in encoded.items()}
