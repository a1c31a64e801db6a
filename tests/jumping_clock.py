"""A plugin for sessions under test (``-p jumping_clock``): the time of day is off by what a file says, in seconds.

Only the clock that people set: durations have a clock of their own, which no jump moves.
"""

from __future__ import annotations

import datetime as module
import os
import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

VARIABLE = "JUMPING_CLOCK"
_time = time.time


def _off() -> float:
    return float(Path(os.environ[VARIABLE]).read_text(encoding="utf-8"))


class JumpingDatetime(datetime):
    """``datetime`` whose ``now`` jumps."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> JumpingDatetime:
        shown = datetime.now(tz) + timedelta(seconds=_off())
        return cls.fromtimestamp(shown.timestamp(), tz)


if VARIABLE in os.environ:
    time.time = lambda: _time() + _off()
    module.datetime = JumpingDatetime  # type: ignore[misc]
