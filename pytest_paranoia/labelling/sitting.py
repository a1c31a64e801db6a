"""A sitting from outside: its address survives a restart, so that an open page goes on where its server went away."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.labelling.desk import Desk
from pytest_paranoia.labelling.server import HOST, PageServer
from pytest_paranoia.labelling.store import LABELS
from pytest_paranoia.store.files import explained, write_atomic

_FILE: Final = ".sitting.json"
_SECRET = re.compile(r"[\w-]{20,64}")


class PortTaken(ParanoiaError):
    """The port asked for is in use."""


def sit(desk: Desk, port: int | None, opened: Callable[[str], None]) -> None:
    """Serve *desk* until the process is interrupted or terminated; *opened* is told the address.

    Without a *port* the one of the last sitting is taken again if it is free, else any. Raises PortTaken, StoreError.
    """
    asyncio.run(_sit(desk, port, opened))


async def _sit(desk: Desk, port: int | None, opened: Callable[[str], None]) -> None:
    folder = desk.run / LABELS / desk.annotator
    with explained(folder, "make it"):
        folder.mkdir(parents=True, exist_ok=True)
    secret, before = _last(folder)
    server = PageServer(desk, before if port is None else port, secret)
    try:
        address = await server.start()
    except OSError as error:
        if port is not None:
            raise PortTaken(f"port {port} of {HOST}: {error.strerror}; choose another one with --port") from error
        server = PageServer(desk, 0, secret)
        address = await server.start()
    # Whoever can read it can write labels in this name: as private as the labels themselves.
    write_atomic(folder / _FILE, json.dumps({"secret": secret, "port": server.port}).encode())
    (folder / _FILE).chmod(0o600)
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, done.set)
    try:
        opened(address)
        await done.wait()
    finally:
        await server.stop()


def _last(folder: Path) -> tuple[str, int]:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        data = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        if _SECRET.fullmatch(data["secret"]) and 0 <= int(data["port"]) < 65_536:
            return data["secret"], int(data["port"])
    return secrets.token_urlsafe(24), 0
