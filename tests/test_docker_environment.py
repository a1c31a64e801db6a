"""Containers as the daemon and those inside see them; what every environment must do is in test_local_environment."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from attacks import load, trial_of, with_pytest
from docker import APIClient
from docker.errors import APIError, ImageNotFound
from docker_lab import client, containers, images_removed, none_left
from requests import Response
from small_items import ItemFolder

from pytest_paranoia.environments.base import EnvironmentSpec, ExecResult, Limits, Mount
from pytest_paranoia.environments.docker import bases, images, layer, locks, slots
from pytest_paranoia.environments.docker.container import MEMORY_RESERVE, TASKS_PER_PROCESS, DockerEnvironment
from pytest_paranoia.environments.docker.provider import PROVIDER, DockerProvider
from pytest_paranoia.environments.docker.settings import LABEL, Settings, user
from pytest_paranoia.environments.local import PROVIDER as LOCAL
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


def test_a_start_that_fails_names_the_first_reason(tmp_path: Path) -> None:
    """A container that fails to start removes itself: that it is missing is no reason."""
    labelled = PROVIDER.for_trial("fails-to-start", "trial")
    with (
        pytest.raises(InfrastructureError, match="cannot be mounted because it is inside /proc") as caught,
        running(tmp_path, labelled, mounts=[Mount(tmp_path, "/proc/no-such-place")]),
    ):
        pass
    assert caught.value.reason == "environment-start"
    assert "No such container" not in str(caught.value)
    assert none_left("fails-to-start", 5)


def test_what_a_daemon_could_not_do_once_is_done_at_the_second_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled = PROVIDER.for_trial("starts-again", "trial")
    failed: list[str] = []
    real = APIClient.start

    def start(self: APIClient, container: str) -> None:
        if not failed:
            failed.append(container)
            self.remove_container(container, force=True)  # as with auto-remove
            answer = Response()
            answer.status_code = 500
            raise APIError("for once", answer, "no room for one more control group")
        real(self, container)

    monkeypatch.setattr(APIClient, "start", start)
    with running(tmp_path, labelled) as environment:
        assert said(environment, "echo hello") == "hello"
        [made] = containers("starts-again")
        assert made["Names"] != [f"/{failed[0]}"]
    assert none_left("starts-again")


def test_an_image_is_built_before_a_turn_to_start_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build may take longer than others wait for a turn."""
    free: list[bool] = []
    real = images.ensure

    def ensure(*arguments: Any) -> images.Image:
        slot = slots._free(str(locks.folder("environment-start")), 1)
        free.append(slot is not None)
        if slot is not None:
            os.close(slot)
        return real(*arguments)

    monkeypatch.setenv("PARANOIA_CACHE", str(tmp_path / "cache"))
    PROVIDER.base()
    monkeypatch.setattr(images, "ensure", ensure)
    with running(tmp_path, replace(PROVIDER, settings=Settings(starts=1))):
        assert free == [True, False]


def test_a_umask_that_closes_files_is_no_obstacle(items: ItemFolder, tmp_path: Path) -> None:
    """Where root runs the tests, a trial's user is another one."""
    service = tmp_path / "portal"
    service.write_text("#!/bin/sh\necho served\n")
    items.pair()
    stage = replace(stage_of(items), services=(service,))
    before = os.umask(0o077)
    try:
        workspace, scratch = tmp_path / "workspace", tmp_path / "scratch"
        workspace.mkdir()
        scratch.mkdir()
        with images_removed("tiny"):
            environment = PROVIDER.create(stage.spec(workspace, scratch, Limits()))
            environment.start()
            try:
                assert said(environment, "portal; echo x > new; cat new") == "served\nx"
            finally:
                environment.stop()
    finally:
        os.umask(before)


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
    # Content of its own: another test of this process may have had the same image, and removed it.
    items.repository(files={"mark.txt": secrets.token_hex(8)})
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


NAMES = """
import socket
server = socket.create_server(("localhost", 0))
print(server.getsockname()[0], socket.getaddrinfo("localhost", 80)[0][4], socket.gethostbyname(socket.gethostname()))
print(socket.gethostname(), socket.getfqdn(), socket.getservbyname("https"), socket.getprotobyname("tcp"))
"""


def test_names_and_services_are_those_of_local(tmp_path: Path) -> None:
    """Test suites listen on "localhost"; a daemon leaves /etc/hosts empty where a container has no network."""
    require("bubblewrap")
    argv = ["python3", "-c", NAMES]
    with running(tmp_path) as environment:
        inside = environment.exec(argv)
    (tmp_path / "local").mkdir()
    local = LOCAL.create(EnvironmentSpec(tmp_path / "workspace", tmp_path / "local"))
    local.start()
    try:
        found = local.exec(argv)
    finally:
        local.stop()
    assert inside.stdout.decode() == found.stdout.decode(), (inside.stderr, found.stderr)
    assert inside.stdout.decode() == "127.0.0.1 ('127.0.0.1', 80) 127.0.0.1\ndev localhost 443 6\n"


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
    # Content of its own: with the same, a test beside this one would use the same image.
    items.repository(files={"mark.txt": secrets.token_hex(8)})
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


@pytest.mark.parametrize("name", ["Foo:1", ":::", "../info", "https://foo/bar", "-rm", "foo?bar", "python@sha256:abc"])
def test_what_is_no_name_of_a_base(name: str) -> None:
    with pytest.raises(InfrastructureError, match="is no name of an image") as caught:
        bases.resolve(Settings(base=name))
    assert repr(name) in str(caught.value)
    assert "--paranoia-docker-base expects name:tag" in str(caught.value)
    assert PROVIDER.for_session({"docker-base": name}).unusable() == str(caught.value)


def test_a_base_of_another_platform_is_refused() -> None:
    other = "arm64" if platform.machine() == "x86_64" else "amd64"
    layer_of = BytesIO()
    tarfile.open(fileobj=layer_of, mode="w").close()
    content = layer_of.getvalue()
    config = {"architecture": other, "os": "linux", "config": {}, "rootfs": {"type": "layers"}}
    config["rootfs"]["diff_ids"] = [f"sha256:{hashlib.sha256(content).hexdigest()}"]  # type: ignore[index]
    manifest = [{"Config": "config.json", "RepoTags": ["paranoia-tests/other:1"], "Layers": ["layer.tar"]}]
    archive = BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, data in (
            ("layer.tar", content),
            ("config.json", json.dumps(config).encode()),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, BytesIO(data))
    for _ in client().load_image(archive.getvalue()):
        pass
    try:
        with pytest.raises(InfrastructureError, match=f"it is for linux/{other}, this machine is linux/"):
            bases.resolve(Settings(base="paranoia-tests/other:1"))
    finally:
        client().remove_image("paranoia-tests/other:1")


@pytest.mark.parametrize("filled", [False, True], ids=["empty", "filled"])
def test_a_cache_that_cannot_be_written_is_told(filled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even by root: a file lies where the folder should be, or a folder where a lock should."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("PARANOIA_CACHE", str(cache))
    fresh = replace(PROVIDER, settings=Settings(starts=1))
    if filled:
        assert fresh.unusable() is None
        lock = cache / "locks/docker-start-0.lock"
        lock.unlink()
        lock.mkdir()
    else:
        cache.write_text("")
    found = replace(PROVIDER, settings=Settings(base=PROVIDER.base().name, starts=1)).unusable()
    assert found is not None
    assert f"the cache folder {cache} cannot be used" in found
    assert "PARANOIA_CACHE" in found


def test_a_base_that_is_nowhere_is_told_with_what_helps() -> None:
    with pytest.raises(InfrastructureError, match="paranoia images base") as caught:
        bases.resolve(Settings(base="localhost:9/no/such-image:1"))
    assert "localhost:9/no/such-image:1" in str(caught.value)
