"""One run for each trial of a session: what failed is never repeated until it passes, and nothing runs twice."""

from __future__ import annotations

from contextlib import suppress

import pytest

from pytest_paranoia.errors import InfrastructureError


def refuse(config: pytest.Config) -> None:
    """Raise ``pytest.UsageError`` where another plugin is asked to run tests more than once.

    Its score would be the best, or the last, of several runs, and nothing in the tables would tell.
    """
    option = config.option
    reruns = getattr(option, "reruns", None)
    if reruns is None:
        with suppress(ValueError):
            reruns = config.getini("reruns")
    given = {
        "--reruns": getattr(option, "force_reruns", None) or reruns,
        "--force-flaky": getattr(option, "force_flaky", False),
        "--dist=each": getattr(option, "dist", "no") == "each",
    }
    for name, value in given.items():
        if value and str(value) != "0":
            remedy = "give --reruns=0" if name == "--reruns" else "leave it out"
            raise pytest.UsageError(
                f"{name}: runs a trial more than once, and its score would be that of the luckiest or the last run; "
                f"{remedy} (--paranoia-runs N makes N runs and reports them all)"
            )


class Begun:
    """The trials that this process has begun."""

    def __init__(self) -> None:
        self._keys: set[str] = set()

    def add(self, key: str) -> None:
        """Note a trial. Raises InfrastructureError (``repeated``) where it had its run: its record stays as it is."""
        if key in self._keys:
            raise InfrastructureError(
                "repeated",
                f"{key} has had its run in this session, which counts; a plugin that repeats tests must leave trials "
                "alone (--paranoia-runs N makes N runs and reports them all)",
            )
        self._keys.add(key)
