"""Provider of ``--paranoia-environment docker``."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import pytest

from pytest_paranoia.environments.base import EnvironmentProvider, EnvironmentSpec, Limits
from pytest_paranoia.environments.docker import bases, images, reaper
from pytest_paranoia.environments.docker.bases import Base
from pytest_paranoia.environments.docker.container import DockerEnvironment
from pytest_paranoia.environments.docker.daemon import DAEMON
from pytest_paranoia.environments.docker.settings import Settings, user
from pytest_paranoia.errors import InfrastructureError, ParanoiaError

DISK_BYTES = 1024**3
"""Free bytes that the daemon's folder must have left: images and what trials write outside their workspace."""

API_VERSION = (1, 41)
_PROBE_SECONDS = 30.0
_bases: dict[Settings, Base] = {}


@dataclass(frozen=True)
class DockerProvider(EnvironmentProvider):
    """Containers of one session, or with ``labels`` of one trial."""

    settings: Settings = field(default_factory=Settings)
    labels: Mapping[str, str] = field(default_factory=dict)
    name = "docker"

    @property
    def owner(self) -> int | None:  # type: ignore[override]
        """The user of trials, where root runs the tests."""
        return user()[0] if os.geteuid() == 0 else None

    def base(self) -> Base:
        """Return the base image, looked up once per process. Raises InfrastructureError."""
        if self.settings not in _bases:
            _bases[self.settings] = bases.resolve(self.settings)
        return _bases[self.settings]

    def for_session(self, options: Mapping[str, Any]) -> Self:
        """Return the provider with ``docker-base`` and ``docker-starts`` of the command line."""
        starts = options.get("docker-starts")
        if starts is not None and starts < 1:
            raise pytest.UsageError(f"--paranoia-docker-starts: {starts} given, expected a whole number of at least 1")
        base = options.get("docker-base")
        if base is not None and (not base or any(letter.isspace() for letter in base)):
            raise pytest.UsageError(f"--paranoia-docker-base: {base!r} is no name of an image")
        return replace(self, settings=Settings(base, starts or Settings().starts))

    def for_trial(self, run: str, trial: str) -> Self:
        """Return the provider with the names of a run and a trial, for labels."""
        return replace(self, labels={"run": run, "trial": trial})

    def isolation(self) -> str | None:
        """Return None: a container that cannot be had is an error, never a trial without one."""
        return None

    def unusable(self) -> str | None:
        """Look whether a container can be had: daemon, platform, disk, base image; then have one and speak to it."""
        try:
            if (silence := DAEMON.silence()) is not None:
                return silence
            info = DAEMON.call("ask the daemon about its machine", lambda client: client.info())
            spoken = str(DAEMON.client().api_version)
            if tuple(map(int, spoken.split("."))) < API_VERSION:
                needed = ".".join(map(str, API_VERSION))
                return f"the Docker daemon speaks API {spoken}, {needed} is needed: install Docker 20.10 or newer"
            if (lack := _lack(info)) is not None:
                return lack
            self.base()
            return self._probe()
        except (ParanoiaError, OSError) as error:  # also of our own folders: the cache may be closed, a disk full
            return str(error)

    def _probe(self) -> str | None:
        """Start a container, and let it read and write a file of ours: only where the daemon sees our files it can."""
        with tempfile.TemporaryDirectory(prefix="paranoia-probe-") as name:
            folder = Path(name)
            (folder / "workspace").mkdir()
            (folder / "workspace" / "asked").write_text("yes", encoding="utf-8")
            spec = EnvironmentSpec(folder / "workspace", folder, limits=Limits(wall_clock=_PROBE_SECONDS))
            environment = DockerEnvironment(spec, self.base, self.settings, {"run": "probe"})
            try:
                environment.start()
                result = environment.exec(["sh", "-c", "cp asked answered"])
                if result.exit_code or not (folder / "workspace" / "answered").is_file():
                    return f"a container cannot use a folder of this machine ({result.stderr!r}): {_SHARING}"
            except InfrastructureError as error:
                return f"{error}; {_SHARING}" if _looks_unshared(str(error)) else str(error)
            finally:
                environment.stop()
        return None

    def digest(self) -> str | None:
        """Return the digest of the base image."""
        return self.base().digest

    def reap(self) -> int:
        """Remove the containers of dead sessions, and images that killed builds have left; return how many containers.

        Raises InfrastructureError.
        """
        removed = len(reaper.reap())
        images.tidy(age=images.BUILD_SECONDS)  # a younger one may be in the making
        return removed

    def create(self, spec: EnvironmentSpec) -> DockerEnvironment:
        """Return an environment that is not started yet."""
        return DockerEnvironment(spec, self.base, self.settings, self.labels)


_SHARING = (
    "the daemon has to see the files of this machine under the same names (set TMPDIR to a folder that it shares, or "
    "use a daemon on this machine)"
)


_OTHER_USERS = {"rootless": "runs without root", "userns": "maps users (userns-remap)"}
_LIMITS = {"MemoryLimit": "the memory", "PidsLimit": "the processes", "CpuCfsQuota": "the processor time"}


def _looks_unshared(text: str) -> bool:
    return "bind source path does not exist" in text or "did not come up" in text


def _lack(info: Mapping[str, Any]) -> str | None:
    """Return what the daemon's machine lacks, None where nothing."""
    if info.get("OSType") != "linux":
        return f"the Docker daemon runs {info.get('OSType')} containers; switch it to Linux containers"
    for word, name in _OTHER_USERS.items():
        if any(f"name={word}" in str(option) for option in info.get("SecurityOptions") or ()):
            return (
                f"the Docker daemon {name}: a trial's user would be another one than the owner of its files on this "
                "machine; use a daemon that runs as root and maps no users (DOCKER_HOST names it)"
            )
    unlimited = [what for key, what in _LIMITS.items() if info.get(key) is False]
    if unlimited:
        return (
            f"the Docker daemon cannot limit {' and '.join(unlimited)} of a container: enable these control groups in "
            "the kernel (`docker info` shows what it lacks)"
        )
    root = Path(str(info.get("DockerRootDir") or "/"))
    try:
        free = shutil.disk_usage(root).free
    except OSError:  # another machine's, or closed: the build will tell
        return None
    if free < DISK_BYTES:
        return (
            f"{root} has {free / 1e9:.1f} GB left, {DISK_BYTES / 1e9:.1f} GB are needed: `paranoia images prune` and "
            "`docker system prune` make room"
        )
    return None


PROVIDER = DockerProvider()
