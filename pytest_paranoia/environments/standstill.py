"""Waits that took longer than they were to: time that a process stood still, or its machine did, counts for nothing.

Used on both sides of an environment's socket, so it imports nothing.
"""

SLICE = 1.0
"""Seconds of the longest single wait of whoever counts this way."""

LATE = 2.0
"""Seconds by which a busy machine may wake a process late."""


def standstill(asked: float, took: float) -> float:
    """Return for how many of the *took* seconds of a wait of *asked* this process must have stood still.

    Time limits leave that out: Ctrl-Z, a paused container or a suspended machine says nothing about the command that
    was waited for.
    """
    return took - asked if took - asked > LATE else 0.0
