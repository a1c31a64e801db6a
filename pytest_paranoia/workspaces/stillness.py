"""Holding a trial still: looking at a tree from outside is only safe while no process of the agent can change it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pytest_paranoia.environments.base import Environment

_SECONDS = 30.0


@contextmanager
def held_still(environment: Environment) -> Iterator[None]:
    """Stop every process in *environment*, and let them go on afterwards.

    Else a process in the background could turn a folder into a link to the host's files between our looking at it and
    our reading it. Signal -1 is for all processes one may see, so only where they are those of the trial alone.
    """
    if not environment.isolated:
        yield
        return
    environment.exec(["/bin/sh", "-c", "kill -STOP -1"], timeout=_SECONDS)
    try:
        yield
    finally:
        environment.exec(["/bin/sh", "-c", "kill -CONT -1"], timeout=_SECONDS)
