"""Whether a machine is so busy that a time limit says nothing about the code that hit it."""

from __future__ import annotations

import time

WORK = 0.25
"""Seconds of processor time that are worked off to find out."""

BUSY = 2.0
"""Where work takes longer by this factor, time limits of a check were too short."""

PATIENCE_MAX = 40.0


def slowness() -> float:
    """Return how many times as long work takes as on an idle machine: 10 where ten want the same processor."""
    started, used = time.monotonic(), time.thread_time()
    while time.thread_time() - used < WORK:
        pass
    return (time.monotonic() - started) / (time.thread_time() - used)
