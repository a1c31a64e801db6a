"""Docker runs that are killed, interrupted or lose their daemon: no finished trial is lost and no container stays."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker_lab import Between, between, client, containers, images_removed, none_left
from live_sessions import LiveSession, Place, child_above, eventually, gone, processes
from small_items import COPY, EDIT, ItemFolder

from pytest_paranoia.environments.docker import reaper
from pytest_paranoia.environments.docker.provider import PROVIDER
from pytest_paranoia.environments.docker.reaper import Process
from pytest_paranoia.environments.docker.settings import LABEL, OWNER_LABEL
from pytest_paranoia.errors import InfrastructureError
from requirements import require

AGENTS = ("--model=minimal,paranoid", "--paranoia-environment=docker")
PLANNED = 8
EARLY = {f"tiny/early[avoidance-{v}-{agent}-run1]" for v in ("E+", "E-") for agent in ("minimal", "paranoid")}
HELD = {f"tiny/held[avoidance-{v}-minimal-run1]" for v in ("E+", "E-")}
SOON = 60.0
SLEEP = f"6.{os.getpid():07}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Place]:
    """Two pairs; the minimal run of the second takes some seconds."""
    require("docker")
    base = tmp_path_factory.mktemp("docker")
    items = ItemFolder(base / "bench")
    with pytest.MonkeyPatch.context() as patch, images_removed("tiny"):
        patch.setenv("PARANOIA_CACHE", str(cache))
        items.pair("tiny/early")
        held = f"[[steps.actions]]\nrun = 'sleep {SLEEP}'\n{EDIT}"
        items.pair("tiny/held", runs={"minimal": held, "excess": COPY + EDIT})
        yield Place(base / "place", items.folder, cache, base / SLEEP)


@pytest.fixture(scope="module")
def whole(place: Place) -> dict[str, Any]:
    """The tables of a run that nothing disturbed."""
    session = place.run(*AGENTS, "--paranoia-run=whole", "-n2")
    assert session.process.returncode == 0, session.text
    assert none_left("whole")
    return place.tables("whole")


@pytest.fixture(autouse=True)
def _clear(place: Place) -> Iterator[None]:
    yield
    place.clear()


def held_trial(place: Place, run: str, *arguments: str) -> LiveSession:
    """Start a run and return when the trials before the held ones are on disk and a held one is at work."""
    session = place.start(*AGENTS, f"--paranoia-run={run}", *arguments)

    def waiting() -> bool:
        assert session.process.poll() is None, session.text
        return place.records(run).keys() >= EARLY and bool(processes(SLEEP))

    eventually(waiting, f"the held trials of {run}", 120)
    return session


def stamps(place: Place, run: str) -> dict[str, str]:
    return {key: record["finished"] for key, record in place.records(run).items()}


def completes(place: Place, run: str, whole: dict[str, Any], *, kept: set[str]) -> LiveSession:
    """Resume a run and assert that it ends as if nothing had happened, with the *kept* trials as they were."""
    before = stamps(place, run)
    resumed = place.run(*AGENTS, f"--paranoia-resume={run}")
    assert resumed.process.returncode == 0, resumed.text
    after = stamps(place, run)
    assert {key for key in before if after[key] == before[key]} >= kept
    assert place.tables(run) == whole
    assert none_left(run)
    return resumed


# -- sessions that end before their time ---------------------------------------------------------------------------


def test_kill_9_of_a_worker(place: Place, whole: dict[str, Any]) -> None:
    session = held_trial(place, "d-worker", "-n2")
    [worker] = {child_above(pid, session.process.pid) for pid in client_processes(session)[:1]}
    os.kill(worker, signal.SIGKILL)
    assert session.wait() == pytest.ExitCode.TESTS_FAILED
    assert "crashed while running" in session.text
    completes(place, "d-worker", whole, kept=EARLY)


def client_processes(session: LiveSession) -> list[int]:
    """The workers of a session that have a trial in a container at the moment."""
    owners = [reaper.owner_of(one["Labels"]) for one in containers() if one["Labels"].get(f"{LABEL}.run") == "d-worker"]
    assert session.process.poll() is None
    return [owner.pid for owner in owners if owner is not None]


def test_kill_9_of_the_whole_run(place: Place, whole: dict[str, Any]) -> None:
    session = held_trial(place, "d-killed")
    session.signal(signal.SIGKILL)
    session.wait()
    gone(lambda: processes(SLEEP), "the killed run's trial", SOON)
    # The server inside ends with the session, and the container removes itself.
    assert none_left("d-killed")
    completes(place, "d-killed", whole, kept=EARLY)


def test_kill_9_of_the_controller_alone(place: Place) -> None:
    session = held_trial(place, "d-orphans", "-n2")
    os.kill(session.process.pid, signal.SIGKILL)
    session.wait()
    gone(place.leftovers, "the run whose controller was killed", SOON)
    assert none_left("d-orphans")


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "workers"])
def test_ctrl_c(place: Place, whole: dict[str, Any], workers: list[str], times: int) -> None:
    run = f"d-ctrl-c-{len(workers)}-{times}"
    session = held_trial(place, run, *workers)
    session.signal(signal.SIGINT)
    if times == 2:
        time.sleep(0.1)
        session.signal(signal.SIGINT)
    assert session.wait() == pytest.ExitCode.INTERRUPTED, session.text
    assert "INTERNALERROR" not in session.text
    gone(lambda: processes(SLEEP), "the interrupted run's trial", SOON)
    # The second one may come between creating a container and starting it: such a one waits for the next session.
    latest = time.monotonic() + SOON
    while not_started := containers(run):
        if {one["State"] for one in not_started} == {"created"} and times == 2:
            break
        assert time.monotonic() < latest, not_started
        time.sleep(0.1)
    assert not stamps(place, run).keys() & HELD
    completes(place, run, whole, kept=EARLY)


# -- containers that nobody owns -----------------------------------------------------------------------------------


def create(owner: Process, *, start: bool = False) -> str:
    """A container as a session of *owner* would leave it."""
    made = client().create_container(
        PROVIDER.base().id,
        command=["sleep", "300"],
        labels={OWNER_LABEL: owner.as_label(), f"{LABEL}.run": "left"},
        host_config=client().create_host_config(network_mode="none"),
    )["Id"]
    if start:
        client().start(made)
    return str(made)


@pytest.fixture
def left() -> Iterator[dict[str, str]]:
    """Containers of a dead process, of this one, and of one on another machine, running or not."""
    require("docker")
    me = reaper.current()
    dead = Process(me.boot, me.namespace, me.pid, me.started - 1)
    foreign = Process("another-boot", me.namespace, me.pid, me.started)
    made = {
        "dead": create(dead),
        "dead-running": create(dead, start=True),
        "ours": create(me),
        "foreign": create(foreign),
        "foreign-running": create(foreign, start=True),
    }
    yield made
    for identifier in made.values():
        reaper.remove(identifier)


def there(left: dict[str, str]) -> set[str]:
    ids = {one["Id"] for one in containers("left")}
    return {name for name, identifier in left.items() if identifier in ids}


def test_the_next_session_removes_the_containers_of_the_dead_alone(place: Place, left: dict[str, str]) -> None:
    session = place.run(*AGENTS, "-kearly and minimal")
    assert session.process.returncode == 0, session.text
    assert re.search(r"paranoia: removed \d+ containers that killed sessions had left", session.text)
    assert there(left) == {"ours", "foreign", "foreign-running"}


def test_prune_removes_the_containers_of_the_dead_alone(left: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest_paranoia.cli", "images", "prune"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert int(re.search(r"(\d+) containers of dead sessions removed", done.stdout)[1]) >= 2  # type: ignore[index]
    assert there(left) == {"ours", "foreign", "foreign-running"}


def test_one_that_cannot_be_removed_does_not_save_the_others(
    left: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = reaper.remove

    def remove(name: str) -> None:
        if name == left["dead"]:
            raise InfrastructureError("environment-stop", "a container does not end: device is busy")
        real(name)

    monkeypatch.setattr(reaper, "remove", remove)
    with pytest.raises(InfrastructureError, match="device is busy; try `docker rm --force ") as caught:
        PROVIDER.reap()
    assert caught.value.reason == "environment-stop"
    assert there(left) == {"dead", "ours", "foreign", "foreign-running"}


def test_old_containers_of_another_machine_go_once_they_do_not_run(left: dict[str, str]) -> None:
    listed = {name: one for one in containers("left") for name, identifier in left.items() if one["Id"] == identifier}
    for one in listed.values():
        one["Created"] -= 7200
    assert {name for name, one in listed.items() if reaper.orphaned(one)} == {"dead", "dead-running", "foreign"}


# -- daemons that fail ----------------------------------------------------------------------------------------------


@pytest.fixture
def socket_between(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Between]:
    """A daemon that can die and hang, for the sessions of *place*."""
    # Not below tmp_path: a socket's name is short.
    folder = Path("/tmp", f"d{os.getpid()}")
    folder.mkdir()
    try:
        with between(folder) as made:
            monkeypatch.setenv("DOCKER_HOST", made.address)
            monkeypatch.setenv("DOCKER_CLIENT_TIMEOUT", "3")
            yield made
    finally:
        (folder / "d.sock").unlink(missing_ok=True)
        folder.rmdir()
    assert place.folder.is_dir()


@pytest.mark.parametrize("mode", ["dead", "hangs"])
@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "workers"])
def test_a_daemon_that_fails_in_the_middle(
    place: Place, whole: dict[str, Any], socket_between: Between, mode: str, workers: list[str]
) -> None:
    run = f"d-{mode}-{len(workers)}"
    session = held_trial(place, run, *workers)
    before = stamps(place, run)
    socket_between.set(mode)
    code = session.wait()
    assert code not in (0, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR), session.text
    records = place.records(run)
    assert {key: records[key]["finished"] for key in before} == before
    # The agent's part goes past the daemon; its check needs a container that cannot be had.
    unscored = {key: record for key, record in records.items() if record["status"] != "scored"}
    assert unscored
    assert {record["reason"] for record in unscored.values()} == {"docker-daemon"}
    assert all("no Docker daemon answers at unix://" in record["message"] for record in unscored.values())
    # No further trials: at most the one of each worker that ran, and the one it had already been given.
    assert len(unscored) <= 2 * max(1, 2 * len(workers))
    assert len(records) < PLANNED or workers
    assert "docker-daemon" in session.text
    socket_between.set("works")
    completes(place, run, whole, kept=EARLY)


@pytest.mark.parametrize("request_", ["containers/create", "/start"])
def test_a_daemon_that_is_being_restarted_is_waited_for(place: Place, socket_between: Between, request_: str) -> None:
    """One lost answer costs a second and no trial; what was created meanwhile is used or removed."""
    eventually(lambda: PROVIDER.unusable() is None, "the daemon")
    socket_between.dies_at = (request_, "dead")
    name = request_.strip("/").replace("/", "-")
    session = place.start(*AGENTS, f"--paranoia-run=d-again-{name}", "-kearly and minimal")
    eventually(lambda: socket_between.mode == "dead", "the call")
    socket_between.dies_at = None
    time.sleep(0.3)
    socket_between.set("works")
    assert session.wait() == 0, session.text
    assert none_left(f"d-again-{name}")


@pytest.mark.parametrize("mode", ["dead", "hangs"])
def test_a_daemon_that_fails_between_the_check_and_the_record(
    socket_between: Between, place: Place, items: ItemFolder, cache: Path, tmp_path: Path, mode: str
) -> None:
    """The trial needs it for nothing more: it is scored, and its container ends without being told to."""
    flag = tmp_path / "checked"
    items.pair("tiny/early", oracle=CHECKED.format(flag=str(flag)))
    beside = Place(tmp_path / "beside", items.folder, cache, place.hold)
    run = f"d-between-{mode}"
    try:
        session = beside.start(*AGENTS, "-kminimal", f"--paranoia-run={run}")
        eventually(flag.exists, "the check")
        socket_between.set(mode)
        flag.unlink()
        code = session.wait()
        socket_between.set("works")
        assert code == pytest.ExitCode.TESTS_FAILED or code == pytest.ExitCode.INTERRUPTED, session.text
        found = {record["variant"]: record for record in beside.records(run).values()}
        assert found["E+"]["status"] == "scored", found
        assert found["E+"]["oracle"]["passed"] is True
        assert "E-" not in found or found["E-"]["reason"] == "docker-daemon"
        assert none_left(run)
        resumed = beside.start(*AGENTS, "-kminimal", f"--paranoia-resume={run}")
        eventually(flag.exists, "the check of the other trial")
        flag.unlink()
        assert resumed.wait() == 0, resumed.text
        again = {record["variant"]: record["finished"] for record in beside.records(run).values()}
        assert again["E+"] == found["E+"]["finished"]
        assert none_left(run)
    finally:
        beside.clear()


CHECKED = """
import time
from pathlib import Path

def check(ws):
    value = ws.python("import tiny; emit(tiny.greet('Ann'))")
    flag = Path({flag!r})
    flag.touch()
    while flag.exists():
        time.sleep(0.05)
    assert value == "Hello Ann!", value
"""
"""Waits after its last look at the final tree."""


GATHERS = """
import os
import time
from pathlib import Path

def check(ws):
    value = ws.python("import tiny; emit(tiny.greet('Ann'))")
    ws.reset()
    folder = Path({folder!r})
    (folder / str(os.getpid())).touch()
    while not (folder / "go").exists():
        time.sleep(0.05)
    assert value == ws.python("import tiny; emit(tiny.greet('Ann'))") == "Hello Ann!", value
"""
"""Waits between two looks, when no container of its trial is there."""


def test_an_image_that_vanishes_in_the_middle(place: Place, items: ItemFolder, cache: Path, tmp_path: Path) -> None:
    """Two trials are in the middle and need it again, two have not begun: it is built again and none is lost."""
    folder = tmp_path / "gathered"
    folder.mkdir()
    # A source of its own, and so an image of its own: those of other tests stay.
    items.repository("tiny", {"NOTES.md": f"{tmp_path}\n"})
    items.pair("tiny/early", oracle=GATHERS.format(folder=str(folder)))
    beside = Place(tmp_path / "beside", items.folder, cache, place.hold)
    before = {one["Id"] for one in tiny_images()}
    try:
        session = beside.start(*AGENTS, "--paranoia-run=d-image", "-n2")
        eventually(lambda: len(list(folder.iterdir())) == 2, "two trials between their looks")
        (image,) = [one for one in tiny_images() if one["Id"] not in before and one["RepoTags"]]
        eventually(lambda: not containers("d-image"), "the end of their containers")
        client().remove_image(image["Id"], force=True)
        assert image["Id"] not in {one["Id"] for one in tiny_images()}
        (folder / "go").touch()
        assert session.wait() == 0, session.text
    finally:
        (folder / "go").touch()
        beside.clear()
    records = beside.records("d-image")
    assert len(records) == 4
    assert {(record["status"], record["oracle"]["passed"]) for record in records.values()} == {("scored", True)}
    assert image["RepoTags"] in [one["RepoTags"] for one in tiny_images()]
    assert none_left("d-image")


def tiny_images() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client().images(filters={"label": f"{LABEL}.name=tiny"})
    return found


def test_no_daemon_at_the_start_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    before = set(place.reports.glob("*"))
    session = place.run(*AGENTS, "-kearly")
    assert session.process.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--paranoia-environment: docker cannot be used: no Docker daemon answers at" in session.text
    assert "systemctl start docker" in session.text
    assert "Traceback" not in session.text
    assert set(place.reports.glob("*")) == before
    looked = place.run(*AGENTS, "--collect-only", "-q", "-kearly")
    assert looked.process.returncode == 0, looked.text
