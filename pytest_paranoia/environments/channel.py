"""The host's side of an environment: talks to the server of ``init.py``, and ends it for certain."""

from __future__ import annotations

import functools
import marshal
import os
import select
import signal
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import Literal

from pytest_paranoia.environments.base import ExecResult, LimitName, Limits, OnOutput
from pytest_paranoia.environments.standstill import SLICE, standstill
from pytest_paranoia.errors import InfrastructureError

START_SECONDS = 60.0
GRACE_SECONDS = 20.0
"""How long after a command's own deadline the server may take to report its end; then it counts as lost."""

STOP_SECONDS = 30.0

_MODULES = ("standstill", "processes", "init")  # in the order of their imports
_LIMITS: Mapping[str, LimitName] = {name: name for name in ("wall-clock", "processes", "memory", "output")}
_STREAMS: Mapping[bytes, Literal["stdout", "stderr"]] = {b"o": "stdout", b"e": "stderr"}


@functools.cache
def server_code() -> list[tuple[str, CodeType]]:
    """Compile the server once per process; the interpreter inside is ours, so the code suits it.

    Under its full name a module there is found by the imports of the next, although its package is not there.
    """
    modules: list[tuple[str, CodeType]] = []
    for name in _MODULES:
        source = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
        modules.append((f"{__package__}.{name}", compile(source, name, "exec", dont_inherit=True, optimize=2)))
    return modules


def sizes(limits: Limits) -> tuple[int, int, int]:
    """Return the limits that the server keeps."""
    return limits.processes, limits.memory, limits.file_size


class Channel(ABC):
    """The socket to a running server. A subclass starts the server and knows how to end it.

    ``_pidfd`` holds the server's process, where that can be had from here.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._owner = os.getpid()
        self._buffer = bytearray()
        self._socket = connection
        self._pidfd: int | None = None
        self._open = True
        self._stood_still = 0.0

    def _greet(self, space: int = 0) -> list[tuple[int, int, bytes]]:
        """Wait until the server is ready; return what came along with its greeting (at most *space* bytes)."""
        self._socket.settimeout(START_SECONDS)
        data = b""
        ancillary: list[tuple[int, int, bytes]] = []
        silence = ""
        try:
            data, ancillary, _, _ = self._socket.recvmsg(5, space)
        except TimeoutError:
            silence = f"it gave no answer in {START_SECONDS:g} s, is this machine overloaded? "
        except OSError:  # the end of the other side: the complaint says more
            pass
        if data != b"h\0\0\0\0":
            what = f"{silence}({self._complaint()})" if silence else self._complaint()
            raise InfrastructureError("environment-start", f"the environment did not come up: {what}")
        return ancillary

    def _hold(self, pid: int) -> None:
        """Take hold of the server's process."""
        try:
            self._pidfd = os.pidfd_open(pid)
        except OSError as error:
            raise InfrastructureError("environment-start", f"cannot hold the environment's process: {error}") from error

    def _lost(self, why: str) -> InfrastructureError:
        error = InfrastructureError("environment-lost", f"the environment is gone ({why}; {self._complaint()})")
        self.close()
        return error

    @abstractmethod
    def _complaint(self) -> str:
        """Return what is known of how the server ended, in words."""

    @abstractmethod
    def _end(self, pidfd: int | None) -> None:
        """End the server and every process of the trial; return when none is left. Called once."""

    def close(self) -> None:
        """End the server and every process of the trial; return when none is left. May be called again."""
        if os.getpid() != self._owner:  # a fork of the test session inherited this: not its to end
            return
        self._socket.close()
        was_open, self._open = self._open, False
        pidfd, self._pidfd = self._pidfd, None
        try:
            if was_open:
                self._end(pidfd)
        finally:
            if pidfd is not None:
                os.close(pidfd)

    def run(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        stdin: bytes,
        timeout: float,
        output: int,
        on_output: OnOutput | None,
    ) -> ExecResult:
        """Run one command and return how it ended."""
        if not self._open:
            raise InfrastructureError("environment-lost", "the environment is not running")
        if not argv:
            raise ValueError("a command needs a program")
        variables = {_encode(name): _encode(value) for name, value in env.items()}
        request = marshal.dumps(([_encode(word) for word in argv], _encode(cwd), variables, stdin, timeout, output))
        started = time.monotonic()
        stood_still = self._stood_still
        deadline = started + timeout + GRACE_SECONDS - stood_still
        printed: dict[bytes, bytearray] = {b"o": bytearray(), b"e": bytearray()}
        try:
            self._socket.settimeout(GRACE_SECONDS)
            self._socket.sendall(len(request).to_bytes(4, "little") + request)
            while True:
                kind, payload = self._frame(deadline)
                if kind == b"x":
                    break
                printed[kind] += payload
                if on_output is not None:
                    on_output(_STREAMS[kind], payload)
        except TimeoutError:
            raise self._lost("it did not answer in time") from None
        except (OSError, EOFError):
            raise self._lost("the connection broke") from None
        except BaseException:
            # The command is half way through and the channel with it: nothing can be asked here any more.
            self.close()
            raise
        code, limit, dropped, session = payload.split()
        return ExecResult(
            exit_code=int(code),
            stdout=bytes(printed[b"o"]),
            stderr=bytes(printed[b"e"]),
            seconds=time.monotonic() - started - (self._stood_still - stood_still),
            limit=_LIMITS.get(limit.decode()),
            session=int(session),
            dropped=int(dropped),
        )

    def listen(self) -> socket.socket:
        """Have the server make a listening socket inside and pass it out; see ``base.Environment.listen``.

        A socket stays in the network namespace it was made in, whoever holds it: no bridge runs inside that a trial
        could end or impersonate.
        """
        if not self._open:
            raise InfrastructureError("environment-lost", "the environment is not running")
        request = marshal.dumps(None)
        try:
            self._socket.settimeout(GRACE_SECONDS)
            self._socket.sendall(len(request).to_bytes(4, "little") + request)
            # Nothing of an earlier command is under way any more, so the answer begins with the next byte.
            data, descriptors, _, _ = socket.recv_fds(self._socket, 5, 1)
        except TimeoutError:
            raise self._lost("it did not answer in time") from None
        except OSError:
            raise self._lost("the connection broke") from None
        if data != b"l\0\0\0\0" or len(descriptors) != 1:
            for descriptor in descriptors:
                os.close(descriptor)
            raise self._lost("it gave no listening socket")
        return socket.socket(fileno=descriptors[0])

    def _frame(self, deadline: float) -> tuple[bytes, bytes]:
        """Return the next frame. The time that this process stands still puts the *deadline* off."""
        self._fill(5, deadline)
        size = 5 + int.from_bytes(self._buffer[1:5], "little")
        self._fill(size, deadline)
        kind, payload = bytes(self._buffer[:1]), bytes(self._buffer[5:size])
        del self._buffer[:size]
        return kind, payload

    def _fill(self, size: int, deadline: float) -> None:
        while len(self._buffer) < size:
            started = time.monotonic()
            rest = deadline + self._stood_still - started
            if rest <= 0:
                raise TimeoutError
            asked = min(rest, SLICE)
            self._socket.settimeout(asked)
            try:
                data = self._socket.recv(1 << 18)
            except TimeoutError:
                continue
            finally:
                self._stood_still += standstill(asked, time.monotonic() - started)
            if not data:
                raise EOFError
            self._buffer += data


def _encode(text: str) -> bytes:
    """Encode as for the file system; what a model made up and no encoding has becomes a question mark."""
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def send_kill(pidfd: int) -> None:
    """Kill a process, unless it has ended."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def ended(pidfd: int, seconds: float) -> bool:
    """Return whether a process ends within so many seconds."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(seconds * 1000))
