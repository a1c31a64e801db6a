"""Details of many trials in one file: compressed in blocks that the page unpacks one at a time, when it is asked to."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

BLOCK: Final = 400_000
"""Characters of JSON in a block: unpacked in some milliseconds, large enough for neighbours to share their text."""
_LEVEL: Final = 5


@dataclass(frozen=True)
class Packed:
    """``blocks`` are base64 of zlib streams, each a JSON array; ``where`` maps trials in order to (block, index)."""

    blocks: list[str]
    where: list[tuple[int, int]]


def pack(details: Iterable[str]) -> Packed:
    """Pack *details*, each a JSON text, in order. zlib lets go of the interpreter, so a second core compresses."""
    where: list[tuple[int, int]] = []
    futures: list[Future[str]] = []
    with ThreadPoolExecutor(max_workers=1) as pool:
        for block in _blocks(details):
            where += [(len(futures), index) for index in range(len(block))]
            futures.append(pool.submit(_compressed, block))
        return Packed([future.result() for future in futures], where)


def _blocks(details: Iterable[str]) -> Iterator[list[str]]:
    block: list[str] = []
    size = 0
    for detail in details:
        block.append(detail)
        size += len(detail)
        if size >= BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _compressed(block: list[str]) -> str:
    return base64.b64encode(zlib.compress(f"[{','.join(block)}]".encode("ascii"), _LEVEL)).decode("ascii")
