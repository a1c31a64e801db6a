"""Containers as the daemon and those inside see them; what every environment must do is in test_local_environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from attacks import load, trial_of, with_pytest
from docker.errors import ImageNotFound
from docker_lab import client, containers, images_removed, none_left
from small_items import ItemFolder

from pytest_paranoia.environments.base import EnvironmentSpec, ExecResult, Limits, Mount
from pytest_paranoia.environments.docker import bases, images, layer
from pytest_paranoia.environments.docker.container import MEMORY_RESERVE, TASKS_PER_PROCESS, DockerEnvironment
from pytest_paranoia.environments.docker.provider import PROVIDER, DockerProvider
from pytest_paranoia.environments.docker.settings import LABEL, Settings, user
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.workspaces.stage import Stage, stage_pair
from requirements import require

MIB = 1 << 20


@pytest.fixture(autouse=True)
def _docker() -> None:
    require("docker")


@contextmanager
def running(folder: Path, provider: DockerProvider = PROVIDER, **options: Any) -> Iterator[DockerEnvironment]:
    for name in ("workspace", "scratch"):
        (folder / name).mkdir(exist_ok=True)
    environment = provider.create(EnvironmentSpec(folder / "workspace", folder / "scratch", **options))
    environment.start()
    try:
        yield environment
    finally:
        environment.stop()


def shell(environment: DockerEnvironment, script: str) -> ExecResult:
    return environment.exec(["sh", "-c", script])


def said(environment: DockerEnvironment, script: str) -> str:
    result = shell(environment, script)
    assert result.exit_code == 0, result
    return result.stdout.decode().strip()


def stage_of(items: ItemFolder) -> Stage:
    item = load(items, "tiny/greet")
    return stage_pair(item, "E+")  # type: ignore[arg-type]


# -- as the daemon sees it -----------------------------------------------------------------------------------------


def test_what_a_container_may_do(tmp_path: Path) -> None:
    labelled = PROVIDER.for_trial("run-of-this-test", "tiny/greet[avoidance-E+-minimal-run1]")
    limits = Limits(memory=512 * MIB, processes=300, cpus=1.0)
    with running(tmp_path, labelled, limits=limits) as environment:
        [found] = containers("run-of-this-test")
        made = client().inspect_container(found["Id"])
        assert environment.image == made["Image"]
    host, config = made["HostConfig"], made["Config"]
    assert (host["CapDrop"], host["CapAdd"], host["Privileged"]) == (["ALL"], None, False)
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert host["ReadonlyRootfs"] is True
    assert host["NetworkMode"] == "none"
    assert host["IpcMode"] == "private"
    assert host["Memory"] == host["MemorySwap"] == 512 * MIB + MEMORY_RESERVE
    assert host["PidsLimit"] == TASKS_PER_PROCESS * 300
    assert host["NanoCpus"] == 1_000_000_000
    assert config["User"] == ":".join(map(str, user()))
    assert user()[0] != 0
    assert config["Labels"][f"{LABEL}.trial"] == "tiny/greet[avoidance-E+-minimal-run1]"
    assert none_left("run-of-this-test")


def test_two_calls_start_a_trial_and_none_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What keeps a docker trial near the cost of its container: commands and the end go past the daemon."""
    with running(tmp_path):  # image and client are there afterwards
        pass
    asked: list[str] = []
    real = bases.DAEMON.call

    def count(what: str, *arguments: Any, **options: Any) -> Any:
        asked.append(what)
        return real(what, *arguments, **options)

    monkeypatch.setattr(bases.DAEMON, "call", count)
    with running(tmp_path) as environment:
        for _ in range(3):
            assert said(environment, "echo hello") == "hello"
    assert asked == ["create a container", "start a container"]


def test_a_container_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    labelled = PROVIDER.for_trial("cannot-start", "trial")
    with (
        pytest.raises(InfrastructureError, match="no-such-folder") as caught,
        running(tmp_path, labelled, mounts=[Mount(tmp_path / "no-such-folder", "/opt/tool")]),
    ):
        pass
    assert caught.value.reason == "environment-start"
    assert none_left("cannot-start", 5)


# -- as those inside see it ----------------------------------------------------------------------------------------


def test_dependencies_are_in_the_image_and_the_repository_is_closed(items: ItemFolder) -> None:
    with_pytest(items)
    items.pair()
    with images_removed("tiny"), trial_of(items, "tiny/greet", "minimal") as trial:
        trial.provider = PROVIDER
        environment = trial.bring_up()
        assert isinstance(environment, DockerEnvironment)
        assert environment.locate(trial.stage.python) == "/opt/env/bin/python"
        where = said(environment, "python -c 'import pytest, sys; print(sys.prefix, pytest.__file__)'")
        assert where.startswith("/opt/env /opt/env/lib/python3.")
        assert said(environment, "pytest --version").startswith("pytest ")
        mounts = said(environment, "cat /proc/self/mountinfo")
        assert "/opt/env" not in mounts
        assert "/envs/" not in mounts
        # Its content would show what a variant leaves out.
        assert b"Permission denied" in shell(environment, "ls /opt/repository").stderr
        assert said(environment, "ls /run/init; ls -A /run/init | wc -l") == "0"
        assert said(environment, "git log --format=%s | wc -l") == "1"
        assert "docker.sock" not in said(environment, "find / -name 'docker*.sock' 2> /dev/null; true")


def test_the_repository_is_in_the_image_at_its_commit(items: ItemFolder) -> None:
    items.repository()
    items.pair()
    stage = stage_of(items)
    with images_removed("tiny"):
        image = images.ensure(PROVIDER.base(), stage.ingredients)
        labels = client().inspect_image(image.id)["Config"]["Labels"]
        assert labels[f"{LABEL}.commit"] == stage.commit
        script = ["git", "-c", "safe.directory=*", "-C", f"/{layer.REPOSITORY}", "rev-parse", "HEAD"]
        api = client()
        made = api.create_container(image.id, command=script, user="0:0")["Id"]
        try:
            api.start(made)
            assert api.wait(made)["StatusCode"] == 0
            assert api.logs(made).decode().strip() == stage.commit
        finally:
            api.remove_container(made, force=True)


def test_orphans_are_collected(tmp_path: Path) -> None:
    """The server is the container's init."""
    with running(tmp_path) as environment:
        said(environment, "for i in 1 2 3 4 5; do (sh -c 'sleep 0.2 &' &); done; sleep 0.6")
        assert said(environment, "cat /proc/[0-9]*/stat | grep -c ') Z'; true") == "0"
        assert said(environment, "cat /proc/1/comm") == "init"


def test_files_belong_to_the_session_or_to_the_agent(tmp_path: Path) -> None:
    """Whatever the session writes, also later, is the agent's to change; what it may not read stays closed."""
    private = tmp_path / "private"
    private.mkdir()
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "given").write_text("a")
    with running(tmp_path, writable=[Mount(private, "/var/lib/agent")]) as environment:
        said(environment, "echo b >> given; mkdir made")
        (private / "later").mkdir()
        (private / "later" / "config").write_text("a")
        said(environment, "echo b >> /var/lib/agent/later/config; touch /var/lib/agent/later/new")
    assert (tmp_path / "workspace" / "given").read_text() == "ab\n"
    assert {path.stat().st_uid for path in (tmp_path / "workspace").iterdir()} == {user()[0]}


def test_nobody_is_made_owner_through_a_link(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: nobody else gives files away")
    private, secret = tmp_path / "private", tmp_path / "secret"
    private.mkdir()
    secret.write_text("of root")
    with running(tmp_path, writable=[Mount(private, "/var/lib/agent")]) as environment:
        said(environment, f"ln -s {secret} /var/lib/agent/link; ln -s / /var/lib/agent/folder")
        said(environment, "true")
    assert secret.stat().st_uid == 0
    assert Path("/").stat().st_uid == 0


# -- limits, and what ends ------------------------------------------------------------------------------------------


def test_memory_that_comes_too_fast_is_named_too(tmp_path: Path) -> None:
    """The kernel is quicker than the server's next look: still the limit is named, not the death."""
    with running(tmp_path, limits=Limits(memory=64 * MIB)) as environment:
        python = PROVIDER.base().facts.python
        result = environment.exec(
            [python, "-I", "-S", "-c", f"data = b'x' * {2048 * MIB}; import time; time.sleep(60)"]
        )
        assert (result.exit_code, result.limit) == (-9, "memory")
        assert said(environment, "echo alive") == "alive"


def test_a_removed_image_is_built_again(items: ItemFolder) -> None:
    items.repository()
    items.pair()
    with images_removed("tiny"):
        ingredients = stage_of(items).ingredients
        before = images.ensure(PROVIDER.base(), ingredients)
        with suppress(ImageNotFound):  # a test beside this one may have pruned it just now
            client().remove_image(before.tag)
        with trial_of(items, "tiny/greet", "minimal") as trial:
            trial.provider = PROVIDER
            environment = trial.bring_up()
            assert environment.exec(["true"]).exit_code == 0
        assert client().inspect_image(before.tag)["Id"] == environment.image


@pytest.mark.parametrize("long", [False, True])
def test_deep_folders_are_no_obstacle(tmp_path: Path, long: bool) -> None:
    """The name of a socket may have 107 bytes, that of a folder more."""
    folder = tmp_path / ("x" * 120) if long else tmp_path
    folder.mkdir(exist_ok=True)
    with running(folder) as environment:
        assert said(environment, "pwd") == "/workspace"


# -- what is refused before anything runs -----------------------------------------------------------------------


def test_no_daemon_is_said_with_a_remedy(tmp_path: Path) -> None:
    script = "from pytest_paranoia.environments.docker.provider import PROVIDER; print(PROVIDER.unusable())"
    for address, word in ((f"unix://{tmp_path}/none.sock", "start it"), ("tcp://127.0.0.1:9", "DOCKER_HOST")):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "DOCKER_HOST": address},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert address.split("//")[1].split(":")[0] in done.stdout
        assert word in done.stdout
        assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"version": "3.9"}, "the tests run on 3."),
        ({"implementation": "pypy"}, "it holds pypy"),
        ({"magic": "00"}, "other byte code"),
        ({"missing": ["git"]}, "lacks git"),
        ({"libc": ""}, "another C library than glibc"),
        ({"libc": "glibc 2.17"}, "has to be as new"),
    ],
)
def test_a_base_that_cannot_serve_is_refused(
    changed: dict[str, Any], word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARANOIA_CACHE", str(tmp_path))
    good = PROVIDER.base()
    monkeypatch.setattr(bases, "_ask", lambda *_: replace(good.facts, **changed))
    with pytest.raises(InfrastructureError, match=word) as caught:
        bases.resolve(Settings(base=good.name))
    assert caught.value.reason == "environment-image"
    assert good.name in str(caught.value)


def test_a_base_without_python_is_refused() -> None:
    recipe = b"FROM scratch\nLABEL only=this\n"
    for _ in client().build(fileobj=BytesIO(recipe), tag="paranoia-tests/empty:1", decode=True, rm=True, forcerm=True):
        pass
    try:
        with pytest.raises(InfrastructureError, match="nothing can be run in it"):
            bases.resolve(Settings(base="paranoia-tests/empty:1"))
    finally:
        client().remove_image("paranoia-tests/empty:1")


def test_a_base_that_is_nowhere_is_told_with_what_helps() -> None:
    with pytest.raises(InfrastructureError, match="paranoia images base") as caught:
        bases.resolve(Settings(base="localhost:9/no/such-image:1"))
    assert "localhost:9/no/such-image:1" in str(caught.value)
