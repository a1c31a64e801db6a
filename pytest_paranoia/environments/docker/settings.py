"""What a session may decide about containers, and the names under which everything of ours is found again."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from pytest_paranoia.errors import InfrastructureError

PREFIX = "paranoia"
"""First part of the names of our images and containers."""

LABEL = "pytest-paranoia"
"""First part of our labels."""

OWNER_LABEL = f"{LABEL}.owner"
"""On every container: the process that started it (``reaper.Process``)."""

GONE = "docker-daemon"
"""Reason of an error after which no further trial can be scored: the daemon does not answer."""

CALL_SECONDS = 60.0
_LONGEST = 86400.0
_VARIABLE = "DOCKER_CLIENT_TIMEOUT"

AGENT_ID = 1000


@dataclass(frozen=True)
class Settings:
    """``base`` is the image that all others are built from, None for the default; ``starts`` how many containers of
    this machine may be starting at once.
    """

    base: str | None = None
    starts: int = max(2, os.cpu_count() or 1)


def official_base() -> str:
    """Return the public image that is used where none is named and none was made on this machine."""
    return f"python:{python_version()}-bookworm"


def machine_base() -> str:
    """Return the name of the image that ``paranoia images base`` makes."""
    return f"{PREFIX}/base:python{python_version()}"


def python_version() -> str:
    """Return the version of Python that has to be the same in a container: it runs code that was compiled here."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def call_seconds() -> float:
    """Return how long the daemon may take for one call (``DOCKER_CLIENT_TIMEOUT``, else 60 s).

    Raises InfrastructureError where the variable holds something else than seconds.
    """
    given = os.environ.get(_VARIABLE, "").strip()
    if not given:
        return CALL_SECONDS
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _LONGEST:  # also false for what is no number
        raise InfrastructureError(
            GONE,
            f"{_VARIABLE}: {given!r} given, expected seconds, more than 0 and at most {_LONGEST:.0f}; unset it for "
            f"{CALL_SECONDS:.0f}",
        )
    return seconds


def user() -> tuple[int, int]:
    """Return user and group of a trial's processes: never root. Where root runs the tests, an ordinary user's."""
    if os.geteuid() == 0:
        return AGENT_ID, AGENT_ID
    return os.geteuid(), os.getegid()
