"""Resource limits of the session's own process: trials and checks on this machine inherit them."""

from __future__ import annotations

import resource

from pytest_paranoia.environments.base import Limits

_KIB = 1024
_ENOUGH = (
    (resource.RLIMIT_NOFILE, "n", 1, 1024, "open files"),
    (resource.RLIMIT_NPROC, "u", 1, 1024, "processes"),
    (resource.RLIMIT_FSIZE, "f", _KIB, 1024**3, "the size of a file"),
    (resource.RLIMIT_AS, "v", _KIB, Limits().memory, "virtual memory"),
    (resource.RLIMIT_DATA, "d", _KIB, Limits().memory, "data"),
    (resource.RLIMIT_STACK, "s", _KIB, 1024**2, "the stack"),
    (resource.RLIMIT_CPU, "t", 1, resource.RLIM_INFINITY, "processor time"),
)
"""Limit, letter of ``ulimit``, its unit, the least that lets the code under test work undisturbed, in words."""


def too_low() -> str | None:
    """Return None where the limits let trials work, else which do not and what to do, in one line.

    A command that fails for one of them would look like a task that is not done.
    """
    low = []
    for which, letter, unit, least, words in _ENOUGH:
        soft = resource.getrlimit(which)[0]
        if soft != resource.RLIM_INFINITY and (least == resource.RLIM_INFINITY or soft < least):
            wanted = "unlimited" if least == resource.RLIM_INFINITY else f"{least // unit} or more"
            low.append(f"ulimit -{letter} {soft // unit} limits {words}, expected {wanted}")
    if not low:
        return None
    return f"{'; '.join(low)}: what an agent runs and what checks it would fail by that; raise it in the shell"
