"""What a trial stands on gives way: its time stands still, its item is edited, what was prepared for it disappears."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from docker.errors import APIError
from docker_lab import client, containers
from held_runs import AGENTS, SOON, held_place, start_held
from live_sessions import LiveSession, Place, eventually, gone, processes
from small_items import ItemFolder

from requirements import require

SLEEP = "5.0625"
"""Seconds; in the command line of whatever waits here."""

CHECK_SECONDS = 8
ASKS_TWICE = f"""
def check(ws):
    done = ws.run(["sleep", "{SLEEP}"])
    assert done.returncode == 0, done
    assert ws.exists("README.md"), "README.md is gone"
    value = ws.python("import tiny; emit(tiny.greet('Ann'))")
    assert value == "Hello Ann!", f"greet gives {{value!r}}"
"""


@pytest.fixture(params=["local", "docker"])
def kind(request: pytest.FixtureRequest) -> str:
    """The environment."""
    chosen: str = request.param
    require("bubblewrap" if chosen == "local" else chosen)
    return chosen


@pytest.fixture
def place(items: ItemFolder, cache: Path, tmp_path: Path) -> Place:
    return Place(tmp_path / "place", items.folder, cache, tmp_path / "no-hold")


@pytest.fixture(autouse=True)
def _nothing_left(place: Place) -> Iterator[None]:
    yield
    place.clear()
    gone(place.leftovers, "the session", SOON)
    assert place.scratch() == []


# -- time ------------------------------------------------------------------------------------------------------------


def _family(pid: int) -> list[int]:
    """A process and all that descend from it, wherever they live."""
    found = [pid]
    for one in found:
        with suppress(OSError):  # it ended meanwhile
            tasks = Path(f"/proc/{one}/task")
            found += [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]
    return found


def _stand_still(session: LiveSession, run: str, what: str, seconds: float) -> None:
    """Stop a session, and with it all that it has started where that is asked for, for so many seconds."""
    pids = _family(session.process.pid) if what == "all" else [session.process.pid]
    boxes = [one["Id"] for one in containers(run)] if what == "all" else []
    for box in boxes:
        with suppress(APIError):  # the agent's, which is about to go
            client().pause(box)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    for pid in reversed(pids):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    for box in boxes:
        with suppress(APIError):
            client().unpause(box)


@pytest.mark.parametrize("what", ["session", "all"])
def test_a_check_that_stands_still_for_longer_than_its_time(
    place: Place, items: ItemFolder, kind: str, what: str
) -> None:
    """Ctrl-Z stops the session, a suspended machine all of it: neither is the fault of the code under test."""
    items.pair(oracle=ASKS_TWICE)
    session = place.start(
        *("--model=minimal", "-kEplus", "--paranoia-run=still", f"--paranoia-environment={kind}"),
        f"--paranoia-check-timeout={CHECK_SECONDS}",
    )
    eventually(lambda: processes(SLEEP), "the check", 120)
    _stand_still(session, "still", what, 2 * CHECK_SECONDS)
    assert session.wait() == 0, session.text
    (record,) = place.records("still").values()
    assert (record["status"], record["oracle"]) == ("scored", {**record["oracle"], "passed": True, "message": ""})


# -- files -----------------------------------------------------------------------------------------------------------

HELD = {f"tiny/held[avoidance-{v}-minimal-run1]" for v in ("E+", "E-")}


@pytest.fixture
def held(cache: Path, tmp_path: Path) -> Iterator[Place]:
    """Two pairs, the minimal run of the second waits; its prepared environment is its own."""
    with held_place(tmp_path / "held", cache) as made:
        yield made
        made.clear()
        gone(made.leftovers, "the session", SOON)


def _outcomes(place: Place, run: str) -> dict[str, tuple[str, str | None]]:
    return {key: (record["status"], record["reason"]) for key, record in place.records(run).items()}


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "workers"])
@pytest.mark.parametrize("deed", ["edited", "deleted", "oracles deleted"])
def test_an_item_that_is_altered_while_its_trial_runs(held: Place, deed: str, workers: list[str]) -> None:
    """The trial was begun with one content and would be checked by another: it is no result of either."""
    session = start_held(held, "altered", *workers)
    kept = held.records("altered")
    item = held.items / "tasks/pairs/tiny/held"
    oracles = held.items / "oracles/pairs/tiny/held"
    away = held.folder / "away"
    if deed == "edited":
        oracle = oracles / "oracle.py"
        before = oracle.read_text()
        oracle.write_text(before.replace("assert value", "assert True or value"))
    else:
        (item if deed == "deleted" else oracles).rename(away)
    held.hold.unlink()
    assert session.wait() == pytest.ExitCode.TESTS_FAILED, session.text
    found = _outcomes(held, "altered")
    assert {status for status, _ in (found[key] for key in HELD)} == {"unscored"}, found
    reasons = {reason for _, reason in (found[key] for key in HELD)}
    assert reasons <= {"item-changed", "oracle-no-result", "oracle-error"}
    assert deed == "oracles deleted" or reasons == {"item-changed"}
    assert {key: record for key, record in held.records("altered").items() if key in kept} == kept
    assert "INTERNALERROR" not in session.text
    if deed == "edited":
        oracle.write_text(before)
    else:
        away.rename(item if deed == "deleted" else oracles)
    resumed = held.run(AGENTS, "--paranoia-resume=altered", "-n2")
    assert resumed.process.returncode == 0, resumed.text
    assert set(_outcomes(held, "altered").values()) == {("scored", None)}


@pytest.mark.parametrize("what", ["envs", "repositories", "programs"])
def test_prepared_files_that_are_deleted_while_a_trial_runs(
    items: ItemFolder, place: Place, what: str, tmp_path: Path
) -> None:
    """What is missing then fails the work or the check of it, and neither is the agent's doing."""
    place.cache = tmp_path / "cold"
    items.pair(oracle=ASKS_TWICE)
    session = place.start("--model=minimal", "-kEplus", "--paranoia-run=robbed")
    eventually(lambda: processes(SLEEP), "the check", 120)
    pattern = "envs/tiny-*/bin" if what == "programs" else what
    (folder,) = place.cache.glob(pattern)
    shutil.rmtree(folder)
    assert session.wait() == pytest.ExitCode.TESTS_FAILED, session.text
    (record,) = place.records("robbed").values()
    assert (record["status"], record["reason"]) == ("unscored", "source"), record
    resumed = place.run("--model=minimal", "-kEplus", "--paranoia-resume=robbed")
    assert resumed.process.returncode == 0, resumed.text
    assert folder.is_dir()
