"""The relay's admin socket: workers open, ask about and close trials; a trial's listener comes as a descriptor."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from pytest_paranoia.relay import frames

Answer = dict[str, Any]
_MOST_DESCRIPTORS = 4


class Refused(Exception):
    """A request that cannot be met: the worker gets *reason* and the message as an InfrastructureError."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Session(Protocol):
    """What one connection may ask; implemented by the server."""

    async def handle(self, message: dict[str, Any], descriptor: int | None) -> Answer:
        """Answer *message*; a descriptor that came along now belongs to the session. Raises Refused."""

    async def end(self) -> None:
        """The connection has ended."""


class AdminSocket:
    """Accepts connections at a path that only this user can reach."""

    def __init__(self, path: Path, session: Callable[[], Session]) -> None:
        self._session = session
        self._tasks: set[asyncio.Task[None]] = set()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._socket.bind(str(path))
        self._socket.listen(1024)
        self._accepting = asyncio.create_task(self._accept())

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._socket)
            except OSError:  # out of descriptors, or gone before it was accepted
                await asyncio.sleep(0.1)
                continue
            if _user(connection) != os.geteuid():
                connection.close()
                continue
            task = asyncio.create_task(_serve(connection, self._session()))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Accept nothing more and end the connections with their trials."""
        tasks = [self._accepting, *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._socket.close()


def _user(connection: socket.socket) -> int:
    layout = "3i"
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(layout))
    uid: int = struct.unpack(layout, data)[1]
    return uid


async def _serve(connection: socket.socket, session: Session) -> None:
    loop = asyncio.get_running_loop()
    connection.setblocking(False)
    buffer = bytearray()
    descriptors: list[int] = []
    try:
        while await _receive(connection, buffer, descriptors):
            while (message := frames.unpack(buffer)) is not None:
                try:
                    answer = await session.handle(message, descriptors.pop(0) if descriptors else None)
                except Refused as error:
                    answer = {"reason": error.reason, "error": str(error)}
                except Exception as error:  # of this request alone: other trials of the worker go on
                    traceback.print_exc()
                    answer = {"reason": "relay-fault", "error": f"{type(error).__name__}: {error}"}
                await loop.sock_sendall(connection, frames.pack(answer))
    except OSError:
        pass  # the worker is gone, which ends its trials
    finally:
        connection.close()
        for descriptor in descriptors:
            os.close(descriptor)
        # Also while the relay itself ends, which cancels this task.
        await asyncio.shield(session.end())


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _receive(connection: socket.socket, buffer: bytearray, descriptors: list[int]) -> bool:
    """Wait for data and the descriptors that come with it; return False at the end of the connection."""
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()
    loop.add_reader(connection, _settle, readable)
    try:
        await readable
    finally:
        loop.remove_reader(connection)
    with contextlib.suppress(BlockingIOError):
        data, found, _, _ = socket.recv_fds(connection, 1 << 16, _MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
        descriptors += found
        buffer += data
        return bool(data)
    return True
