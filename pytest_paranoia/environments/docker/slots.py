"""How many containers may be starting at once on this machine, whatever ``-n`` is and however many sessions there are.

A slot is the lock of a file: the kernel gives it back however its holder dies.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pytest_paranoia.environments.docker import locks
from pytest_paranoia.errors import InfrastructureError

REASON = "environment-start"
WAIT_SECONDS = 600.0
_LOOK_SECONDS = 0.01


@contextmanager
def starting(count: int) -> Iterator[None]:
    """Hold one of *count* slots. Raises InfrastructureError (``environment-start``) after ten minutes without one."""
    folder = str(locks.folder(REASON))
    latest = time.monotonic() + WAIT_SECONDS
    while (slot := _free(folder, count)) is None:
        if time.monotonic() > latest:
            raise InfrastructureError(REASON, f"no turn to start a container within {WAIT_SECONDS:.0f} s")
        time.sleep(_LOOK_SECONDS)
    try:
        yield
    finally:
        os.close(slot)


def _free(folder: str, count: int) -> int | None:
    # Neighbours begin their search at different slots, so that they do not all open the first ones.
    for number in range(count):
        name = f"{folder}/docker-start-{(number + os.getpid()) % count}.lock"
        try:
            slot = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise locks.unusable(error, REASON) from error
        try:
            fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(slot)
        else:
            return slot
    return None
