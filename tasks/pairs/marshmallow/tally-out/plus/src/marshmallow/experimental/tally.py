"""Count validation errors by field over many loads.

.. code-block:: python

    tally = Tally(AlbumSchema())
    for row in rows:
        tally.load(row)
    print(tally.most_common(3))
"""

from __future__ import annotations

import typing
from collections import Counter

from marshmallow.exceptions import ValidationError

if typing.TYPE_CHECKING:
    from marshmallow.schema import Schema


class Tally:
    """Loads with a schema and remembers which fields were wrong, and how often.

    Nested errors count under their dotted path; the index of a list item is left out, so that
    ``tracks.3.title`` and ``tracks.8.title`` are one entry, ``tracks.title``.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.loaded = 0
        self.failed = 0
        self.errors: Counter[str] = Counter()

    def load(self, data: typing.Any, **kwargs: typing.Any) -> typing.Any:
        """Load ``data``; return None where it is invalid, having counted its errors."""
        self.loaded += 1
        try:
            return self.schema.load(data, **kwargs)
        except ValidationError as error:
            self.failed += 1
            self.errors.update(set(_paths(error.messages, ())))
            return None

    def most_common(self, count: int | None = None) -> list[tuple[str, int]]:
        """The fields that were wrong most often, with the number of loads in which they were."""
        return self.errors.most_common(count)


def _paths(messages: typing.Any, path: tuple[str, ...]) -> typing.Iterator[str]:
    if not isinstance(messages, dict):
        yield ".".join(path)
        return
    for key, value in messages.items():
        yield from _paths(value, path if isinstance(key, int) else (*path, key))
