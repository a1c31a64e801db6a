"""The host's side of an environment: starts the server of ``init.py``, talks to it and ends it for certain."""

from __future__ import annotations

import functools
import marshal
import os
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import IO, Literal

from pytest_paranoia.environments.base import ExecResult, LimitName, Limits, OnOutput
from pytest_paranoia.errors import InfrastructureError

START_SECONDS = 60.0
GRACE_SECONDS = 20.0
"""How long after a command's own deadline the server may take to report its end; then it counts as lost."""

STOP_SECONDS = 30.0
_LONGEST_WAIT = 3600.0  # a deadline may be infinite, a socket's timeout may not

_MODULES = ("processes", "init")  # in the order of their imports
_BOOTSTRAP = """\
import marshal, os, sys
modules, arguments = marshal.loads(os.read({fd}, {size}))
for name, code in modules:
    module = sys.modules[name] = type(sys)(name)
    exec(code, module.__dict__)
module.serve({fd}, *arguments)
"""
_LIMITS: Mapping[str, LimitName] = {name: name for name in ("wall-clock", "processes", "memory", "output")}
_STREAMS: Mapping[bytes, Literal["stdout", "stderr"]] = {b"o": "stdout", b"e": "stderr"}


@functools.cache
def _server_code() -> list[tuple[str, CodeType]]:
    """Compile the server once per process; the interpreter inside is ours, so the code suits it.

    Under its full name a module there is found by the imports of the next, although its package is not there.
    """
    modules: list[tuple[str, CodeType]] = []
    for name in _MODULES:
        source = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
        modules.append((f"{__package__}.{name}", compile(source, name, "exec", dont_inherit=True, optimize=2)))
    return modules


class Channel:
    """A running server and the socket to it.

    ``prefix`` is the command that starts the sandbox around the server, empty for none. ``mark`` is a text that
    only this trial's processes have in their environment; without a sandbox the last resort finds them by it.
    """

    def __init__(self, prefix: Sequence[str], python: str, limits: Limits, mark: str) -> None:
        self._isolated = bool(prefix)
        self._mark = mark
        self._owner = os.getpid()
        self._buffer = bytearray()
        self._pidfd: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] = os.fdopen(os.memfd_create("log"), "w+b")
        self._socket, theirs = socket.socketpair()
        with theirs:
            # Tells the server's process id as seen from here: in its own namespace it knows only 1.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            sizes = (limits.processes, limits.memory, limits.file_size)
            code = marshal.dumps((_server_code(), (self._isolated, sizes)))
            self._socket.sendall(code)
            bootstrap = _BOOTSTRAP.format(fd=theirs.fileno(), size=len(code))
            try:
                self._process = subprocess.Popen(
                    [*prefix, python, "-I", "-S", "-c", bootstrap],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._log,
                    cwd="/",
                    env={"PATH": os.defpath, "LANG": "C.UTF-8"},
                    pass_fds=[theirs.fileno()],
                    # Ctrl-C in a terminal is for the test session, which then ends its trials in order.
                    start_new_session=True,
                )
            except OSError as error:
                self.close()
                raise InfrastructureError("environment-start", f"cannot start the environment: {error}") from error
        try:
            self._greet()
        except BaseException:
            self.close()
            raise

    def _greet(self) -> None:
        """Wait until the server is ready and take hold of its process."""
        space = socket.CMSG_SPACE(struct.calcsize("3i"))
        self._socket.settimeout(START_SECONDS)
        data = b""
        ancillary: list[tuple[int, int, bytes]] = []
        with suppress(OSError):  # silence, or the end of the other side: stderr says more
            data, ancillary, _, _ = self._socket.recvmsg(5, space)
        if data != b"h\0\0\0\0":
            raise InfrastructureError("environment-start", f"the environment did not come up: {self._complaint()}")
        credentials = [item for _, kind, item in ancillary if kind == socket.SCM_CREDENTIALS]
        pid, _, _ = struct.unpack("3i", credentials[0])
        try:
            self._pidfd = os.pidfd_open(pid)
        except OSError as error:
            raise InfrastructureError("environment-start", f"cannot hold the environment's process: {error}") from error
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)

    def _complaint(self) -> str:
        """Return what the sandbox or the server said on stderr, and how it ended."""
        code = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(1)
        # The other side writes through the same file position: do not move it.
        text = os.pread(self._log.fileno(), 1 << 16, 0)[-2000:].decode(errors="replace").strip()
        return f"exit status {code}" + (f": {text}" if text else "")

    def _lost(self, why: str) -> InfrastructureError:
        error = InfrastructureError("environment-lost", f"the environment is gone ({why}; {self._complaint()})")
        self.close()
        return error

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
        if self._process is None:
            raise InfrastructureError("environment-lost", "the environment is not running")
        if not argv:
            raise ValueError("a command needs a program")
        variables = {_encode(name): _encode(value) for name, value in env.items()}
        request = marshal.dumps(([_encode(word) for word in argv], _encode(cwd), variables, stdin, timeout, output))
        started = time.monotonic()
        deadline = started + timeout + GRACE_SECONDS
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
        code, limit, dropped = payload.split()
        return ExecResult(
            exit_code=int(code),
            stdout=bytes(printed[b"o"]),
            stderr=bytes(printed[b"e"]),
            seconds=time.monotonic() - started,
            limit=_LIMITS.get(limit.decode()),
            dropped=int(dropped),
        )

    def listen(self) -> socket.socket:
        """Have the server make a listening socket inside and pass it out; see ``base.Environment.listen``.

        A socket stays in the network namespace it was made in, whoever holds it: no bridge runs inside that a trial
        could end or impersonate.
        """
        if self._process is None:
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
        self._fill(5, deadline)
        size = 5 + int.from_bytes(self._buffer[1:5], "little")
        self._fill(size, deadline)
        kind, payload = bytes(self._buffer[:1]), bytes(self._buffer[5:size])
        del self._buffer[:size]
        return kind, payload

    def _fill(self, size: int, deadline: float) -> None:
        while len(self._buffer) < size:
            rest = deadline - time.monotonic()
            if rest <= 0:
                raise TimeoutError
            self._socket.settimeout(min(rest, _LONGEST_WAIT))
            try:
                data = self._socket.recv(1 << 18)
            except TimeoutError:
                continue
            if not data:
                raise EOFError
            self._buffer += data

    # -- the end ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the server and every process of the trial; return when none is left. May be called again."""
        if os.getpid() != self._owner:  # a fork of the test session inherited this: not its to end
            return
        self._socket.close()
        process, self._process = self._process, None
        pidfd, self._pidfd = self._pidfd, None
        try:
            if process is None:
                return
            end = self._end_sandbox if self._isolated else self._end_server
            end(process, pidfd)
        finally:
            if pidfd is not None:
                os.close(pidfd)
            self._log.close()

    def _end_sandbox(self, process: subprocess.Popen[bytes], pidfd: int | None) -> None:
        """Kill the first process of the pid namespace: it becomes waitable only after all others are gone."""
        if pidfd is None:
            process.kill()  # the sandbox dies with it
        else:
            _send_kill(pidfd)
            if not _ended(pidfd, STOP_SECONDS):
                raise InfrastructureError("environment-stop", "a process of the trial does not end")
        self._wait(process)

    def _end_server(self, process: subprocess.Popen[bytes], pidfd: int | None) -> None:
        """Let the server end its descendants; where it could not, find them by their mark."""
        if pidfd is not None and not _ended(pidfd, STOP_SECONDS / 3):
            _send_kill(pidfd)
        self._wait(process)
        if process.returncode != 0:
            patience = time.monotonic() + STOP_SECONDS
            while marked := _marked(self._mark):
                if time.monotonic() > patience:
                    raise InfrastructureError("environment-stop", f"processes do not end: {marked}")
                for pid in marked:
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.01)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)


def _encode(text: str) -> bytes:
    """Encode as for the file system; what a model made up and no encoding has becomes a question mark."""
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _send_kill(pidfd: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def _ended(pidfd: int, seconds: float) -> bool:
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


def _marked(mark: str) -> list[int]:
    """Return the live processes that have the mark in their environment."""
    wanted = os.fsencode(mark)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found
