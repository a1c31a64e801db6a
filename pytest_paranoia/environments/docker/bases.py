"""Base images: which one is meant, fetched where it is not there, and what has to be true of it."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_paranoia.environments.docker import locks
from pytest_paranoia.environments.docker.daemon import DAEMON, said
from pytest_paranoia.environments.docker.reaper import current
from pytest_paranoia.environments.docker.settings import (
    GONE,
    LABEL,
    OWNER_LABEL,
    PREFIX,
    Settings,
    machine_base,
    official_base,
    python_version,
)
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.workspaces.cache import cached, digest

REASON = "environment-image"
PULL_SECONDS = 1800.0
LOOK_SECONDS = 60.0
NEEDED = ("bash", "git")
_VERSION = "1"

_LOOK = """\
import importlib.util, json, os, shutil, sys
try:
    libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
except (ValueError, OSError):
    libc = ""
print(json.dumps({
    "python": os.path.realpath(sys.executable),
    "version": "%d.%d" % sys.version_info[:2],
    "implementation": sys.implementation.name,
    "magic": importlib.util.MAGIC_NUMBER.hex(),
    "libc": libc,
    "missing": [name for name in NEEDED if shutil.which(name) is None],
}))
"""
_SHELL = 'for name in python3 python; do command -v $name >/dev/null && exec $name -I -S -c "$0"; done; echo null'


@dataclass(frozen=True)
class Facts:
    """What was found out inside a base image. ``python`` is the real path of its interpreter."""

    python: str
    version: str
    implementation: str
    magic: str
    libc: str
    missing: list[str]


@dataclass(frozen=True)
class Base:
    """A base image. ``digest`` is the registry's where it came from one, else the image's own id."""

    name: str
    id: str
    digest: str
    facts: Facts

    @property
    def pinned(self) -> str:
        """A name for exactly this image, for a recipe to begin with."""
        return f"{PREFIX}/pinned:{self.id.removeprefix('sha256:')[:24]}"


def name_of(settings: Settings) -> str:
    """Return the name of the base image that is meant. Raises InfrastructureError."""
    return settings.base or (machine_base() if _inspect(machine_base()) else official_base())


def there(settings: Settings) -> bool:
    """Return whether the base image is on this machine. Raises InfrastructureError."""
    return _inspect(name_of(settings)) is not None


def resolve(settings: Settings) -> Base:
    """Return the base image of a session, fetched where it is not there. Raises InfrastructureError with a remedy."""
    name = name_of(settings)
    found = _inspect(name) or _pull(name)
    identifier = str(found["Id"])
    if (found.get("Os"), _machine(found)) != ("linux", _machine()):
        raise _unfit(name, f"it is for {found.get('Os')}/{_machine(found)}, this machine is linux/{_machine()}")
    facts = _look(name, identifier)
    return Base(name, identifier, (found.get("RepoDigests") or [identifier])[0].rpartition("@")[2], facts)


def _inspect(name: str) -> dict[str, Any] | None:
    from docker.errors import APIError, ImageNotFound

    try:
        return DAEMON.call(f"look for the image {name}", lambda client: inspect(client, name))
    except ImageNotFound:
        return None
    except (APIError, ValueError) as error:  # no name of an image at all
        raise InfrastructureError(
            REASON,
            f"base image {name!r} is no name of an image ({said(error)}): --paranoia-docker-base expects name:tag, "
            "name@sha256:… or the id of an image that is here",
        ) from error


def inspect(client: Any, name: str) -> dict[str, Any]:
    """Return what the daemon says of an image (its stubs leave the call untyped)."""
    found: dict[str, Any] = client.inspect_image(name)
    return found


def _pull(name: str) -> dict[str, Any]:
    from docker.errors import APIError

    with locks.only_one(f"pull-{digest(name)[:16]}", f"fetching of {name}", PULL_SECONDS, REASON):
        if (found := _inspect(name)) is not None:  # another worker was faster
            return found
        try:
            DAEMON.call(f"fetch {name}", lambda client: _fetch(client, name), total=PULL_SECONDS, reason=REASON)
        except (APIError, InfrastructureError) as error:
            if isinstance(error, InfrastructureError) and error.reason == GONE:
                raise
            raise InfrastructureError(
                REASON,
                f"base image {name} is not there and cannot be fetched ({said(error)}); fetch it where a registry can "
                "be reached, name another with --paranoia-docker-base, or make one from this machine: `paranoia "
                "images base`",
            ) from error
        found = _inspect(name)
        if found is None:
            raise InfrastructureError(REASON, f"base image {name} was fetched and is not there")
        return found


def _fetch(client: Any, name: str) -> None:
    repository, tag = name, None
    if "@" not in name:
        repository, separator, last = name.rpartition(":")
        repository, tag = (repository, last) if separator and "/" not in last else (name, "latest")

    for line in client.pull(repository, tag=tag, stream=True, decode=True):
        if line.get("error"):
            raise OSError(line["error"])


def _look(name: str, identifier: str) -> Facts:
    """Return what is inside an image, asked once per machine, and refuse one that cannot serve."""

    def build(folder: Path) -> None:
        (folder / "facts.json").write_text(json.dumps(asdict(_ask(name, identifier))), encoding="utf-8")

    key = f"{digest(_VERSION, _LOOK, *NEEDED)[:8]}-{identifier.removeprefix('sha256:')[:24]}"
    facts = Facts(**json.loads((cached("docker-bases", key, build) / "facts.json").read_text(encoding="utf-8")))
    remedy = f"use one with Python {python_version()}, such as {official_base()}"
    if facts.implementation != "cpython" or facts.version != python_version():
        held = f"{facts.implementation} {facts.version}"
        raise _unfit(name, f"it holds {held}, the tests run on {python_version()}; {remedy}")
    if facts.magic != importlib.util.MAGIC_NUMBER.hex():
        raise _unfit(name, f"its Python {facts.version} reads other byte code than this one; {remedy}")
    if facts.missing:
        raise _unfit(name, f"it lacks {' and '.join(facts.missing)}, which agents and items need")
    here = os.confstr("CS_GNU_LIBC_VERSION") or ""
    if not facts.libc.startswith("glibc ") or _numbers(facts.libc) < _numbers(here):
        found = facts.libc or "another C library than glibc"
        raise _unfit(name, f"it has {found}; packages are chosen for this machine's {here}, so it has to be as new")
    return facts


def _ask(name: str, identifier: str) -> Facts:
    script = f"NEEDED = {NEEDED!r}\n{_LOOK}"

    def look(client: Any) -> bytes:
        container = client.create_container(
            identifier,
            entrypoint=["/bin/sh", "-c", _SHELL],
            command=[script],
            labels={OWNER_LABEL: current().as_label(), f"{LABEL}.run": "look"},
            network_disabled=True,
            host_config=client.create_host_config(network_mode="none", cap_drop=["ALL"]),
        )["Id"]
        try:
            client.start(container)
            client.wait(container, timeout=LOOK_SECONDS)
            said_inside: bytes = client.logs(container)
            return said_inside
        finally:
            client.remove_container(container, v=True, force=True)

    from docker.errors import APIError

    try:
        found_out = DAEMON.call(f"look into the image {name}", look, total=4 * LOOK_SECONDS, reason=REASON)
        output = found_out.decode("utf-8", "replace").strip()
    except APIError as error:
        raise _unfit(name, f"nothing can be run in it: {said(error)}") from error
    try:
        found = json.loads(output.splitlines()[-1])
        return Facts(**found)
    except (ValueError, TypeError, IndexError):
        raise _unfit(name, f"it holds no Python that can be run ({output[-200:]!r})") from None


def _machine(image: dict[str, Any] | None = None) -> str:
    name = str(image.get("Architecture")) if image else platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(name, name)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split()[-1].split(".") if part.isdigit()) if text else ()


def _unfit(name: str, why: str) -> InfrastructureError:
    text = f"base image {name} cannot be used: {why} (--paranoia-docker-base names another)"
    return InfrastructureError(REASON, text)
