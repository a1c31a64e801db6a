"""A daemon of the test's own: killed in the middle of a run and started again, and its store of images."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path

import pytest
from docker import APIClient
from docker.errors import DockerException
from live_sessions import Place, eventually, gone, processes
from small_items import COPY, EDIT, ItemFolder

from pytest_paranoia.environments.docker import locks
from pytest_paranoia.environments.docker.settings import LABEL, OWNER_LABEL, machine_base
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


LATER = """
import time
from pytest_paranoia.environments.docker import images
from pytest_paranoia.environments.docker.provider import PROVIDER
real = time.time
for seconds in (0, 1300):
    time.time = lambda: real() + seconds
    PROVIDER.reap()
    print(len(images.unfinished(bases=False)))
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


# -- its images ----------------------------------------------------------------------------------------------------


@pytest.fixture
def items(daemon: OwnDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ItemFolder:
    """An item whose repository has an image of its own, for commands that talk to the test's own daemon."""
    monkeypatch.setenv("DOCKER_HOST", daemon.address)
    monkeypatch.setenv("PARANOIA_CACHE", str(tmp_path / "cache"))
    made = ItemFolder(tmp_path / "bench")
    made.pair("tiny/early")
    return made


def paranoia(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest_paranoia.cli", "images", *words], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_store_without_a_base_is_listed_and_pruned(daemon: OwnDaemon, items: ItemFolder) -> None:
    """To look and to tidy up nothing has to be fetched."""
    assert items.folder.is_dir()
    paranoia("prune", "--all")
    with daemon.client() as client:
        client.tag(machine_base(), "kept-meanwhile", "1")
        client.remove_image(machine_base())
        try:
            listed, pruned = paranoia("list"), paranoia("prune", "--all")
            named = subprocess.run(
                [sys.executable, "-m", "pytest_paranoia.cli", "images", "list", "--base", machine_base()],
                capture_output=True,
                text=True,
                timeout=100,
            )
        finally:
            client.tag("kept-meanwhile:1", *machine_base().split(":"))
            client.remove_image("kept-meanwhile:1")
    assert "no base image is here yet" in listed
    assert listed.splitlines()[-1] == "0 images"
    assert pruned.splitlines() == ["0 containers of dead sessions removed", "0 images stay"]
    assert named.returncode == 2
    assert f"--base: there is no image {machine_base()} here" in named.stderr


def test_sessions_of_many_workers_build_each_image_once(
    daemon: OwnDaemon, items: ItemFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paranoia("prune", "--all")
    monkeypatch.setenv("DOCKER_HOST", daemon.address)
    place = Place(tmp_path / "place", items.folder, tmp_path / "cache", tmp_path / "hold")
    with daemon.client() as client:
        begun = int(time.time())
        session = place.run(*AGENTS, "-n4")
        assert session.process.returncode == 0, session.text
        # A second build of the same would give its result the same name once more.
        only = {"type": "image", "event": "tag"}
        events = client.events(since=begun, until=int(time.time()) + 1, filters=only, decode=True)
        tagged = [one["Actor"]["Attributes"]["name"] for one in events]
        built = [name for name in tagged if "/trial-tiny:" in name]
        assert len(built) == 1, tagged
        assert not client.images(filters={"dangling": True})


def test_what_a_killed_build_leaves_is_told_and_removed(daemon: OwnDaemon, items: ItemFolder) -> None:
    """It has all the labels of a finished image and no name: it is never the newest of its repository."""
    built = paranoia("build", "tiny", "--items", str(items.folder))
    tag = re.search(r"paranoia/trial-tiny:\w+", built)[0]  # type: ignore[index]
    with daemon.client() as client:
        labels = client.inspect_image(tag)["Config"]["Labels"]
        words = " ".join(f'{name}="{value}"' for name, value in labels.items())
        recipe = f"FROM {machine_base()}\nLABEL {words}\n".encode()
        for _ in client.build(fileobj=BytesIO(recipe), decode=True, rm=True, nocache=True):
            pass
        [left] = client.images(filters={"dangling": True})
        assert left["Created"] >= client.images(tag)[0]["Created"]
        listed = paranoia("list")
        assert "<none>" not in listed
        assert listed.splitlines()[-1] == "1 without a name: `paranoia images prune`"
        pruned = paranoia("prune")
        assert "1 images without a name removed" in pruned
        assert not client.images(filters={"dangling": True})
        assert client.inspect_image(tag)["RepoTags"] == [tag]


def test_what_a_killed_build_leaves_goes_with_the_next_session(daemon: OwnDaemon, items: ItemFolder) -> None:
    assert items.folder.is_dir()
    label = f'{LABEL}.name="tiny"'
    with daemon.client() as client:
        for _ in client.build(
            fileobj=BytesIO(f"FROM {machine_base()}\nLABEL {label} once=1\n".encode()), decode=True, rm=True
        ):
            pass
        done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, check=True, timeout=60)
    # A young one may be in the making.
    assert done.stdout.split() == ["1", "0"]


def test_nothing_of_a_build_that_goes_on_is_removed(daemon: OwnDaemon, items: ItemFolder) -> None:
    assert items.folder.is_dir()
    with daemon.client() as client:
        for _ in client.build(
            fileobj=BytesIO(f'FROM {machine_base()}\nLABEL {LABEL}.name="tiny" twice=1\n'.encode()),
            decode=True,
            rm=True,
        ):
            pass
        with locks.building("environment-image"):
            assert "an image is in the making" in paranoia("prune")
            assert len(client.images(filters={"dangling": True})) == 1
        assert "1 images without a name removed" in paranoia("prune")


@pytest.mark.parametrize("name", ['we"ird $HOME ünï', "日本", "...-", "n" * 200])
def test_every_folders_name_gets_an_image(daemon: OwnDaemon, items: ItemFolder, name: str) -> None:
    items.repository(name)
    built = paranoia("build", name, "--items", str(items.folder))
    tag = re.search(r"paranoia/trial-[a-z0-9-]+:[0-9a-f]{24}", built)[0]  # type: ignore[index]
    with daemon.client() as client:
        assert client.inspect_image(tag)["Config"]["Labels"][f"{LABEL}.name"] == name
