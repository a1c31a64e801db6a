"""What the tests of the docker environment share: the daemon as a tester sees it, a daemon that can fail."""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from docker import APIClient
from docker.errors import APIError
from docker.utils import kwargs_from_env

from pytest_paranoia.environments.docker.settings import LABEL, OWNER_LABEL


def client(seconds: int = 60) -> APIClient:
    """A client of our own, to see what is true whatever the code under test says."""
    return APIClient(**kwargs_from_env(), version="auto", timeout=seconds)


def containers(run: str | None = None) -> list[dict[str, Any]]:
    """All containers of ours, of one run where it is named."""
    label = OWNER_LABEL if run is None else f"{LABEL}.run={run}"
    found: list[dict[str, Any]] = client().containers(all=True, filters={"label": label})
    return found


def none_left(run: str | None = None, seconds: float = 20) -> bool:
    """Whether all containers of a run are gone within the time that a daemon takes to remove them."""
    latest = time.monotonic() + seconds
    while containers(run):
        if time.monotonic() > latest:
            return False
        time.sleep(0.1)
    return True


@contextmanager
def images_removed(name: str) -> Iterator[None]:
    """Remove the images of a repository afterwards, once no other test of this machine uses them either."""
    lock = os.open(Path(tempfile.gettempdir(), f"docker-tests-{name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for one in client().images(filters={"label": f"{LABEL}.name={name}"}):
                for tag in one.get("RepoTags") or ():
                    with suppress(APIError):
                        client().remove_image(tag)
    finally:
        os.close(lock)


class Between:
    """A socket between a session and the daemon: ``mode`` is what becomes of the daemon.

    ``works`` passes everything on; ``dead`` takes no connection and cuts those there are; ``hangs`` takes whatever is
    asked and never answers. ``answers`` counts requests by their first words, such as ``POST /containers/create``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mode = "works"
        self.asked: list[str] = []
        self.dies_at: tuple[str, str] | None = None
        """Part of a request, and the mode from the moment on in which it is asked."""
        self._open: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """Value for DOCKER_HOST."""
        return f"unix://{self.path}"

    def set(self, mode: str) -> None:
        """Change what becomes of the daemon, also for the connections there are."""
        self.mode = mode
        if mode == "dead":
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Take no further connection."""
        self.set("dead")
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                theirs, _ = self._listener.accept()
                if self.mode == "dead":
                    theirs.close()
                    continue
                behind = socket.socket(socket.AF_UNIX)
                behind.connect("/var/run/docker.sock")
                self._open += [theirs, behind]
                threading.Thread(target=self._pass, args=(theirs, behind, True), daemon=True).start()
                threading.Thread(target=self._pass, args=(behind, theirs, False), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, request: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if request:
                    line = data.split(b"\r\n", 1)[0].decode("latin-1")
                    self.asked.append(line)
                    if self.dies_at is not None and self.dies_at[0] in line:
                        self.set(self.dies_at[1])
                while self.mode == "hangs":
                    time.sleep(0.05)
                if self.mode == "dead":
                    break
                sink.sendall(data)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@contextmanager
def between(folder: Path) -> Iterator[Between]:
    """A socket between us and the daemon."""
    made = Between(folder / "d.sock")
    try:
        yield made
    finally:
        made.close()
