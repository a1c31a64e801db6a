"""Containers that killed sessions left: found by their labels, and removed once their owner is known to be dead."""

from __future__ import annotations

import functools
import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_paranoia.environments.docker.daemon import DAEMON, said
from pytest_paranoia.environments.docker.settings import GONE, OWNER_LABEL
from pytest_paranoia.errors import InfrastructureError

_FOREIGN_SECONDS = 3600.0
"""How old a container of another machine, or of this one before it was restarted, has to be, and not running."""


@dataclass(frozen=True)
class Process:
    """A process, told from all others that there ever were: machine and its boot, process namespace, id and start."""

    boot: str
    namespace: int
    pid: int
    started: int

    def as_label(self) -> str:
        """Return it as the value of a label."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def here(self) -> bool:
        """Whether its life can be seen from this process."""
        me = current()
        return (self.boot, self.namespace) == (me.boot, me.namespace)

    @property
    def alive(self) -> bool:
        """Whether it still is there. Only asked of a process that is ``here``."""
        return _started(self.pid) == self.started


def current() -> Process:
    """Return this process."""
    pid = os.getpid()
    return Process(*_place(), pid, _started(pid) or 0)


@functools.cache
def _place() -> tuple[str, int]:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return boot, Path("/proc/self/ns/pid").stat().st_ino


def _started(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name is in parentheses and may hold anything, parentheses too: cut at the last one.
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def owner_of(labels: dict[str, str]) -> Process | None:
    """Return the owner that the labels of a container name, None where they name none that can be read."""
    with suppress(ValueError, TypeError):
        return Process(**json.loads(labels.get(OWNER_LABEL, "")))
    return None


def orphaned(container: dict[str, Any]) -> bool:
    """Whether a container, as the daemon lists it, belongs to nobody any more."""
    owner = owner_of(container.get("Labels") or {})
    if owner is not None and owner.here:
        return not owner.alive
    # Whether its owner lives cannot be seen from here. The server inside ends with its owner, so a running container
    # has one; in the others there was one a moment ago.
    age = time.time() - float(container.get("Created") or 0)
    return container.get("State") != "running" and age > _FOREIGN_SECONDS


def containers() -> list[dict[str, Any]]:
    """Return all containers of ours, running or not, as the daemon lists them. Raises InfrastructureError."""
    return DAEMON.call(
        "list the containers", lambda client: client.containers(all=True, filters={"label": OWNER_LABEL})
    )


def reap() -> list[str]:
    """Remove the containers of dead sessions; return their names.

    Raises InfrastructureError, where some cannot be removed after the others are, with their names.
    """
    removed, left = [], {}
    for container in containers():
        if not orphaned(container):
            continue
        name = (container.get("Names") or [container["Id"]])[0].lstrip("/")
        try:
            remove(container["Id"])
        except InfrastructureError as error:
            if error.reason == GONE:
                raise
            left[name] = str(error)
        else:
            removed.append(name)
    if left:
        first = next(iter(left.values()))
        raise InfrastructureError(
            "environment-stop", f"{first}; try `docker rm --force {' '.join(left)}` ({len(removed)} others are removed)"
        )
    return removed


def remove(name: str) -> None:
    """Remove a container, running or not. Raises InfrastructureError where that cannot be done."""
    from docker.errors import APIError

    try:
        DAEMON.call(
            "remove a container",
            lambda client: client.remove_container(name, v=True, force=True),
            reason="environment-stop",
        )
    except APIError as error:
        if error.status_code not in (404, 409):  # gone, or going
            raise InfrastructureError("environment-stop", f"a container does not end: {said(error)}") from error
