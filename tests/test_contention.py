"""A check's time limits on a machine that is busy with something else: they are no word about the code under test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, repeat

import pytest
from attacks import finish, trial_of
from small_items import ItemFolder
from test_kit import HEAD

from pytest_paranoia.scoring import contention
from requirements import require

OTHERS = 12
SPINS = "import time\nstart = time.process_time()\nwhile time.process_time() - start < 1.0:\n    pass\nemit(1)"


@pytest.fixture(autouse=True)
def _sandbox() -> None:
    require("bubblewrap")


@contextmanager
def crowded() -> Iterator[None]:
    """Share one processor with others, and so do all processes that are started meanwhile."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    # Each in a session of its own: the kernel may deal out a processor by sessions.
    spin = [sys.executable, "-S", "-c", "while True: pass"]
    others = [subprocess.Popen(spin, start_new_session=True) for _ in range(OTHERS)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
        os.sched_setaffinity(0, allowed)


def oracle(items: ItemFolder, body: str) -> None:
    items.repository()
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    items.pair(oracle=f"{HEAD}def check(ws: Workspace) -> None:\n{lines}\n")


def test_work_takes_longer_in_a_crowd() -> None:
    with crowded():
        assert contention.slowness() > contention.BUSY


def test_a_check_that_a_busy_machine_held_up_is_made_again(items: ItemFolder) -> None:
    """A second of work in three seconds: not among twelve others, and yet nothing is wrong with the code."""
    oracle(items, f"assert ws.python({SPINS!r}, timeout=3) == 1")
    with trial_of(items, "tiny/greet", "minimal", 60.0) as trial, crowded():
        played = finish(trial)
    assert played.outcome == "passed", played.trial.log[-5:]
    assert any("times as long as it should: once more" in line for line in played.trial.log), played.trial.log


def test_code_that_hangs_on_a_busy_machine_has_failed(items: ItemFolder) -> None:
    oracle(items, "ws.python('import time; time.sleep(600)', timeout=0.3)")
    with trial_of(items, "tiny/greet", "minimal", 60.0) as trial, crowded():
        played = finish(trial)
    assert (played.outcome, "wall-clock" in played.message) == ("failed", True), played
    assert any("once more" in line for line in played.trial.log)


def test_what_a_machine_gives_no_time_for_has_no_score(items: ItemFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it got ever busier between the two attempts."""
    oracle(items, "ws.python('import time; time.sleep(600)', timeout=0.2)")
    figures = chain([3.0, 70.0], repeat(1.0))
    monkeypatch.setattr(contention, "slowness", lambda: next(figures))
    with trial_of(items, "tiny/greet", "minimal", 60.0) as trial:
        played = finish(trial)
    assert played.outcome == "unscored"
    assert played.message.startswith("oracle-starved: ")
    assert "takes 70 times as long as an idle one" in played.message
