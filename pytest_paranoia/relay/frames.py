"""A message on the admin socket: four bytes of length, then JSON; a descriptor may come with the first byte."""

from __future__ import annotations

import json
from typing import Any

LENGTH_BYTES = 4


def pack(message: dict[str, Any]) -> bytes:
    """Return the bytes of a message."""
    body = json.dumps(message).encode()
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


def unpack(buffer: bytearray) -> dict[str, Any] | None:
    """Take the first whole message out of *buffer*; None while there is none."""
    if len(buffer) < LENGTH_BYTES:
        return None
    end = LENGTH_BYTES + int.from_bytes(buffer[:LENGTH_BYTES], "little")
    if len(buffer) < end:
        return None
    message: dict[str, Any] = json.loads(buffer[LENGTH_BYTES:end])
    del buffer[:end]
    return message
