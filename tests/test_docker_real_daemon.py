"""A daemon of the test's own, killed in the middle of a run and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from docker import APIClient
from docker.errors import DockerException
from live_sessions import Place, eventually, gone, processes
from small_items import COPY, EDIT, ItemFolder

from pytest_paranoia.environments.docker.settings import OWNER_LABEL
from requirements import require

AGENTS = ("--model=minimal,paranoid", "--paranoia-environment=docker")
EARLY = {f"tiny/early[avoidance-{v}-{agent}-run1]" for v in ("E+", "E-") for agent in ("minimal", "paranoid")}
PLANNED = 8
SLEEP = f"8.{os.getpid():07}"
BASE = """
from pytest_paranoia.environments.docker import machine
machine.OPTIONAL = ()
print(machine.build()[0])
"""


class OwnDaemon:
    """A dockerd with folders and a socket of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"unix://{folder}/d.sock"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        (self.folder / "pid").unlink(missing_ok=True)
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen(
            [
                "dockerd",
                *(f"--data-root={self.folder}/data", f"--exec-root={self.folder}/exec", f"--pidfile={self.folder}/pid"),
                *("-H", self.address, "--iptables=false", "--bridge=none"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()
        eventually(self.answers, f"dockerd: {(self.folder / 'log').read_text()[-500:]}", 60)

    def answers(self) -> bool:
        # The SDK leaves the socket of a connection that fails open.
        with suppress(DockerException, OSError), socket.socket(socket.AF_UNIX) as asked:
            asked.connect(f"{self.folder}/d.sock")
            with self.client() as client:
                return bool(client.ping())
        return False

    @contextmanager
    def client(self) -> Iterator[APIClient]:
        made = APIClient(self.address, version="1.41", timeout=20)
        try:
            yield made
        finally:
            made.close()

    def containers(self) -> list[object]:
        with self.client() as client:
            found: list[object] = client.containers(all=True, filters={"label": OWNER_LABEL})
        return found

    def kill(self) -> None:
        """Kill it as no daemon wants to end, with its containerd."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End it and all it runs."""
        if self.process is not None and self.process.poll() is None:
            with suppress(DockerException, OSError), self.client() as client:
                for one in client.containers(all=True):
                    client.remove_container(one["Id"], force=True)
            self.process.terminate()
            self.process.wait(60)
        subprocess.run(["umount", "-R", f"{self.folder}/data"], capture_output=True, check=False)


@pytest.fixture(scope="module")
def daemon() -> Iterator[OwnDaemon]:
    require("dockerd")
    # Not below the tests' own folder: a socket's name is short, and the name of what overlayfs works on has no colon.
    folder = Path(tempfile.mkdtemp(prefix="d", dir="/var/tmp"))
    made = OwnDaemon(folder)
    try:
        made.start()
        environment = {**os.environ, "DOCKER_HOST": made.address}
        subprocess.run([sys.executable, "-c", BASE], env=environment, check=True, timeout=300)
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_a_daemon_killed_in_the_middle(
    daemon: OwnDaemon, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", daemon.address)
    monkeypatch.setenv("DOCKER_CLIENT_TIMEOUT", "20")
    monkeypatch.setenv("PARANOIA_CACHE", str(cache))
    items = ItemFolder(tmp_path / "bench")
    items.pair("tiny/early")
    held = f"[[steps.actions]]\nrun = 'sleep {SLEEP}'\n{EDIT}"
    items.pair("tiny/held", runs={"minimal": held, "excess": COPY + EDIT})
    place = Place(tmp_path / "place", items.folder, cache, tmp_path / SLEEP)
    try:
        session = place.start(*AGENTS, "--paranoia-run=own", "-n2")
        eventually(lambda: place.records("own").keys() >= EARLY and processes(SLEEP), "the held trials", 200)
        before = {key: record["finished"] for key, record in place.records("own").items()}
        daemon.kill()
        assert session.wait() not in (0, pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR), session.text
        records = place.records("own")
        assert {key: records[key]["finished"] for key in before} == before
        assert {record["reason"] for record in records.values() if record["status"] != "scored"} == {"docker-daemon"}
        gone(lambda: processes(SLEEP), "the trials of the dead daemon", 20)
        daemon.start()
        resumed = place.run(*AGENTS, "--paranoia-resume=own")
        assert resumed.process.returncode == 0, resumed.text
        after = place.records("own")
        assert len(after) == PLANNED
        assert all(record["status"] == "scored" for record in after.values())
        assert {key: after[key]["finished"] for key in before} == before
        latest = time.monotonic() + 30
        while daemon.containers():
            assert time.monotonic() < latest, daemon.containers()
            time.sleep(0.2)
    finally:
        place.clear()
