"""The relay as the controller and its workers see it: start it once per run, connect from each worker, open per trial.

relay = Relay.start(Settings(max_cost=20))          # controller; relay.address goes to the workers
client = connect(address)                           # worker
trial = client.open(route, environment.listen())    # the trial's calls now have a way out
metered = trial.close()
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import site
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pytest_paranoia
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.relay import codec, frames
from pytest_paranoia.relay.contract import Metered, Route
from pytest_paranoia.relay.settings import RunTotals, Settings

_DEFAULTS = Settings()
START_SECONDS = 60.0
ANSWER_SECONDS = 60.0
STOP_SECONDS = 20.0
LOST = "relay-lost"


def connect(address: str) -> RelayClient:
    """Connect to the relay of the run. Raises InfrastructureError (``relay-lost``)."""
    return RelayClient(address)


class RelayClient:
    """One connection to the relay. Its trials end with it, also when the process dies. May be used from any thread."""

    def __init__(self, address: str) -> None:
        self._lock = threading.Lock()
        self._buffer = bytearray()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(ANSWER_SECONDS)
        try:
            self._socket.connect(address)
        except OSError as error:
            self._socket.close()
            raise InfrastructureError(LOST, f"cannot reach the model relay: {error}") from error

    def open(self, route: Route, listener: socket.socket) -> RelayTrial:
        """Let the calls that arrive at *listener* go the *route*; the socket now belongs to the relay and is closed
        here.

        Raises InfrastructureError: ``relay-route`` where the route cannot be used (a key that is not set, a log that
        cannot be written, a recording that cannot be read), ``relay-lost``.
        """
        with listener:
            answer = self._ask({"op": "open", "route": codec.plain(route)}, listener.fileno())
        return RelayTrial(self, answer["trial"])

    def totals(self) -> RunTotals:
        """Return what the whole run has used so far."""
        return codec.totals(self._ask({"op": "totals"})["totals"])

    def close(self) -> None:
        """Close the connection and with it the trials that are still open."""
        self._socket.close()

    def ask_trial(self, operation: str, trial: int) -> Metered:
        """For RelayTrial: ask for one of its operations."""
        return codec.metered(self._ask({"op": operation, "trial": trial})["metered"])

    def _ask(self, message: dict[str, Any], descriptor: int | None = None) -> dict[str, Any]:
        with self._lock:
            try:
                data = frames.pack(message)
                if descriptor is not None:
                    sent = socket.send_fds(self._socket, [data], [descriptor])
                    data = data[sent:]
                self._socket.sendall(data)
                while (answer := frames.unpack(self._buffer)) is None:
                    received = self._socket.recv(1 << 16)
                    if not received:
                        raise EOFError("the connection ended")
                    self._buffer += received
            except (OSError, EOFError, ValueError) as error:
                # The next answer could be that of this question: nothing can be asked here any more.
                self._socket.close()
                raise InfrastructureError(LOST, f"the model relay does not answer: {error}") from error
        if "error" in answer:
            raise InfrastructureError(answer["reason"], answer["error"])
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RelayTrial:
    """One trial's way to its model."""

    def __init__(self, client: RelayClient, identity: int) -> None:
        self._client = client
        self._identity = identity
        self._final: Metered | None = None

    def metered(self) -> Metered:
        """Return the account so far; after ``close`` the final one."""
        return self._final or self._client.ask_trial("metered", self._identity)

    def close(self) -> Metered:
        """Close the listener, abort open calls, finish the wire log, and return the final account. Idempotent.

        Raises InfrastructureError: ``wire-log`` where the log could not be written whole, ``relay-fault`` where the
        relay itself made a mistake, ``relay-lost``. What was metered until then ``metered`` still returns.
        """
        if self._final is None:
            self._final = self._client.ask_trial("close", self._identity)
        return self._final


class Relay:
    """The relay's process, owned by the controller. It ends with ``close``, and when the controller ends, however."""

    def __init__(self, process: subprocess.Popen[bytes], log: IO[bytes], address: str) -> None:
        self._process = process
        self._log = log
        self._client: RelayClient | None = None
        self.address = address
        """Path of the private admin socket; what ``connect`` needs in a worker."""

    @classmethod
    def start(cls, settings: Settings = _DEFAULTS, *, environ: Mapping[str, str] | None = None) -> Relay:
        """Start the relay with the variables *environ* (default: this process's), which hold the providers' keys.

        Raises InfrastructureError: ``relay-start``, with what the process said.
        """
        variables = _variables(os.environ if environ is None else environ)
        log: IO[bytes] = os.fdopen(os.memfd_create("relay"), "w+b")
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pytest_paranoia.relay"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd="/",
                env=variables,
                # Ctrl-C in a terminal is for the test session, which ends its trials in order and then this.
                start_new_session=True,
            )
        except OSError as error:
            log.close()
            raise InfrastructureError("relay-start", f"cannot start the model relay: {error}") from error
        relay = cls(process, log, "")
        try:
            relay.address = relay._greet(settings)
        except BaseException:
            relay.close()
            raise
        return relay

    def _greet(self, settings: Settings) -> str:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it is gone already: what it said is in its log
            stdin.write(json.dumps({"parent": os.getpid(), "settings": codec.plain(settings)}).encode() + b"\n")
            stdin.flush()
        line = b""
        deadline = time.monotonic() + START_SECONDS
        while not line.endswith(b"\n"):
            if not select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise InfrastructureError("relay-start", f"the model relay did not come up in {START_SECONDS:.0f} s")
            if not (data := os.read(stdout.fileno(), 1 << 16)):
                raise InfrastructureError("relay-start", f"the model relay did not come up: {self._complaint()}")
            line += data
        answer = json.loads(line)
        if "error" in answer:
            raise InfrastructureError("relay-start", answer["error"])
        address: str = answer["address"]
        return address

    def _complaint(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        said = self.said()
        return f"exit status {self._process.returncode}" + (f": {said}" if said else "")

    def said(self) -> str:
        """Return the end of what the process said on stderr: nothing, unless the relay itself made a mistake."""
        return os.pread(self._log.fileno(), 1 << 20, 0)[-4000:].decode(errors="replace").strip()

    @property
    def pid(self) -> int:
        """Process id of the relay."""
        return self._process.pid

    def open(self, route: Route, listener: socket.socket) -> RelayTrial:
        """As ``RelayClient.open``, for trials that run in the controller."""
        return self._own().open(route, listener)

    def totals(self) -> RunTotals:
        """Return what the whole run has used so far."""
        return self._own().totals()

    def _own(self) -> RelayClient:
        if self._client is None:
            self._client = connect(self.address)
        return self._client

    def close(self) -> None:
        """End the relay: open calls are aborted, wire logs finished. Idempotent."""
        if self._client is not None:
            self._client.close()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with contextlib.suppress(BrokenPipeError):
            stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        stdout.close()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the relay's variables: it must import this very package, and nothing from the folder tests run in."""
    # Large buffers come and go: glibc would else keep what one burst of calls needed for the whole run.
    environ = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "65536", **environ}
    home = str(Path(pytest_paranoia.__file__).resolve().parent.parent)
    if home in map(os.path.realpath, site.getsitepackages()):
        return dict(environ)
    given = environ.get("PYTHONPATH")
    return {**environ, "PYTHONPATH": os.pathsep.join([home, given] if given else [home])}
