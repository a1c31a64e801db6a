"""A server of ``init.py`` that was started as a child of this process, in a sandbox or without one."""

from __future__ import annotations

import marshal
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from pytest_paranoia.environments import channel
from pytest_paranoia.environments.base import Limits
from pytest_paranoia.environments.channel import Channel, ended, send_kill, server_code
from pytest_paranoia.errors import InfrastructureError

_BOOTSTRAP = """\
import marshal, os, sys
modules, arguments = marshal.loads(os.read({fd}, {size}))
for name, code in modules:
    module = sys.modules[name] = type(sys)(name)
    exec(code, module.__dict__)
module.serve({fd}, *arguments)
"""


class LaunchedChannel(Channel):
    """A running server and the socket to it.

    ``prefix`` is the command that starts the sandbox around the server, empty for none. ``mark`` is a text that
    only this trial's processes have in their environment; without a sandbox the last resort finds them by it.
    """

    def __init__(self, prefix: Sequence[str], python: str, limits: Limits, mark: str) -> None:
        ours, theirs = socket.socketpair()
        super().__init__(ours)
        self._isolated = bool(prefix)
        self._mark = mark
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] = os.fdopen(os.memfd_create("log"), "w+b")
        with theirs:
            # Tells the server's process id as seen from here: in its own namespace it knows only 1.
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            code = marshal.dumps((server_code(), (self._isolated, channel.sizes(limits))))
            ours.sendall(code)
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
            ancillary = self._greet(socket.CMSG_SPACE(struct.calcsize("3i")))
            credentials = [item for _, kind, item in ancillary if kind == socket.SCM_CREDENTIALS]
            self._hold(struct.unpack("3i", credentials[0])[0])
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        except BaseException:
            self.close()
            raise

    def _complaint(self) -> str:
        """Return what the sandbox or the server said on stderr, and how it ended."""
        code = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(1)
        # The other side writes through the same file position: do not move it.
        text = os.pread(self._log.fileno(), 1 << 16, 0)[-2000:].decode(errors="replace").strip()
        how = "its process still runs" if code is None else f"exit status {code}"
        return how + (f": {text}" if text else "")

    def _end(self, pidfd: int | None) -> None:
        process, self._process = self._process, None
        try:
            if process is not None:
                end = self._end_sandbox if self._isolated else self._end_server
                end(process, pidfd)
        finally:
            self._log.close()

    def _end_sandbox(self, process: subprocess.Popen[bytes], pidfd: int | None) -> None:
        """Kill the first process of the pid namespace: it becomes waitable only after all others are gone."""
        if pidfd is None:
            process.kill()  # the sandbox dies with it
        else:
            send_kill(pidfd)
            if not ended(pidfd, channel.STOP_SECONDS):
                raise InfrastructureError("environment-stop", "a process of the trial does not end")
        _wait(process)

    def _end_server(self, process: subprocess.Popen[bytes], pidfd: int | None) -> None:
        """Let the server end its descendants; where it could not, find them by their mark."""
        if pidfd is not None and not ended(pidfd, channel.STOP_SECONDS / 3):
            send_kill(pidfd)
        _wait(process)
        if process.returncode != 0:
            patience = time.monotonic() + channel.STOP_SECONDS
            while marked := _marked(self._mark):
                if time.monotonic() > patience:
                    raise InfrastructureError("environment-stop", f"processes do not end: {marked}")
                for pid in marked:
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.01)


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(channel.STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(channel.STOP_SECONDS)


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
