"""The relay's process: one per run, it serves trials until the controller closes its stdin or is gone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from pytest_paranoia.relay import codec
from pytest_paranoia.relay.admin import AdminSocket, Answer, Refused, Session
from pytest_paranoia.relay.prices import PriceError
from pytest_paranoia.relay.run import Run
from pytest_paranoia.relay.trial import Trial

SOCKET_NAME = "relay.sock"
_LONGEST_PATH = 100  # a socket's path has room for 107 bytes


class TrialSession(Session):
    """The trials of one worker."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._trials: dict[int, Trial] = {}
        self._count = 0

    async def handle(self, message: dict[str, Any], descriptor: int | None) -> Answer:
        """Answer one request of the worker."""
        operation = message["op"]
        if operation == "totals":
            return {"totals": codec.plain(self._run.totals())}
        if operation == "open":
            if descriptor is None:
                raise Refused("relay-route", "no listening socket came along")
            return await self._open(message["route"], socket.socket(fileno=descriptor))
        trial = self._trials.get(message["trial"])
        if trial is None:
            raise Refused("relay-route", f"there is no trial {message['trial']} on this connection")
        if operation == "close":
            await trial.close()
        return {"metered": codec.plain(trial.metered())}

    async def _open(self, data: dict[str, Any], listener: socket.socket) -> Answer:
        try:
            trial = await Trial.open(self._run, codec.route(data), listener)
        except BaseException:
            listener.close()
            raise
        self._count += 1
        self._trials[self._count] = trial
        return {"trial": self._count}

    async def end(self) -> None:
        """Close what the worker left open."""
        for trial in self._trials.values():
            with contextlib.suppress(Refused):  # nobody is left to be told
                await trial.close()


async def _serve(parent: int, settings: dict[str, Any]) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    loop.add_reader(0, _read_on, over)
    # A fork of the controller may hold our stdin open; its own process tells for certain.
    with contextlib.suppress(ProcessLookupError):
        loop.add_reader(os.pidfd_open(parent), over.set)
    if os.getppid() != parent:
        return
    run = Run(codec.settings(settings))
    with _private_folder() as folder:
        admin = AdminSocket(Path(folder, SOCKET_NAME), lambda: TrialSession(run))
        _tell({"address": str(Path(folder, SOCKET_NAME))})
        await over.wait()
        await admin.close()
        await run.close()


def _read_on(over: asyncio.Event) -> None:
    if not os.read(0, 1 << 12):
        over.set()


def _private_folder() -> tempfile.TemporaryDirectory[str]:
    """Make a folder that only this user may enter (mode 0700), with a path short enough for a socket."""
    usual = tempfile.gettempdir()
    short = len(os.fsencode(usual)) + len(SOCKET_NAME) + 24 < _LONGEST_PATH
    return tempfile.TemporaryDirectory(prefix="relay-", dir=usual if short else "/tmp")


def _tell(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run the relay: the first line of stdin holds the settings, the first of stdout says where workers connect."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # Unbuffered: the event loop reads the rest.
    line = b""
    while not line.endswith(b"\n"):
        if not (data := os.read(0, 1)):
            return
        line += data
    request = json.loads(line)
    try:
        asyncio.run(_serve(request["parent"], request["settings"]))
    except (PriceError, OSError) as error:
        _tell({"error": str(error)})
        raise SystemExit(1) from error
