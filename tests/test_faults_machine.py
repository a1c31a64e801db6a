"""Machines that fail under a run: memory, disk, clock, folders that vanish, sessions beside one another."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jumping_clock
import pytest
from attacks import actions
from held_runs import AGENTS, EARLY, HELD, PLANNED, SOON, held_place, start_held
from live_sessions import LiveSession, Place, child_above, eventually, gone
from small_items import EDIT, ItemFolder

from pytest_paranoia.store import trial_folder_name
from requirements import require


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Place]:
    """Two pairs; the minimal run of the second waits while the hold is there."""
    with held_place(tmp_path_factory.mktemp("machine"), cache) as made:
        yield made


@pytest.fixture(autouse=True)
def _nothing_left(place: Place) -> Iterator[None]:
    yield
    place.clear()
    gone(place.leftovers, "the session", SOON)


@pytest.fixture(scope="module")
def whole(place: Place) -> dict[str, Any]:
    """The tables of a run that nothing disturbed."""
    session = place.run(AGENTS, "--paranoia-run=whole", "-n2")
    assert session.process.returncode == 0, session.text
    return place.tables("whole")


def stamps(place: Place, run: str) -> dict[str, str]:
    return {key: record["finished"] for key, record in place.records(run).items()}


def completes(place: Place, run: str, whole: dict[str, Any], again: set[str], *arguments: str) -> LiveSession:
    """Resume a run; assert that only the trials *again* are made, and that the tables are those of a whole run."""
    before = stamps(place, run)
    resumed = place.run(AGENTS, f"--paranoia-resume={run}", "-n2", *arguments)
    assert resumed.process.returncode == 0, resumed.text
    after = stamps(place, run)
    assert {key for key, stamp in after.items() if stamp != before.get(key)} == again
    assert place.tables(run) == whole
    return resumed


# -- memory ----------------------------------------------------------------------------------------------------------


@contextmanager
def memory_group(limit: int) -> Iterator[Path]:
    """A control group of the kernel whose processes get *limit* bytes together."""
    require("memory-cgroup")
    first = Path("/sys/fs/cgroup/memory")
    group = (first if first.is_dir() else first.parent) / f"paranoia-test-{secrets.token_hex(4)}"
    group.mkdir()
    try:
        (group / ("memory.limit_in_bytes" if first.is_dir() else "memory.max")).write_text(str(limit))
        yield group
    finally:
        eventually(lambda: not (group / "cgroup.procs").read_text(), "the end of the group's processes", SOON)
        group.rmdir()


def oom_kills(group: Path) -> int:
    path = next(path for path in (group / "memory.oom_control", group / "memory.events") if path.exists())
    return sum(int(line.split()[1]) for line in path.read_text().splitlines() if line.split()[0] == "oom_kill")


def test_a_worker_killed_by_the_oom_killer(place: Place, whole: dict[str, Any]) -> None:
    with memory_group(1 << 20) as group:
        session = start_held(place, "oom", "-n2")
        held = place.held()[0]
        (group / "cgroup.procs").write_text(str(child_above(held, session.process.pid)))
        place.hold.unlink()  # the worker goes on with its trial and needs memory for it
        assert session.wait() == pytest.ExitCode.TESTS_FAILED
        assert oom_kills(group) >= 1
    assert "crashed while running" in session.text
    assert "planned but missing: 1\n" in session.text
    lost = place.records("whole").keys() - place.records("oom").keys()
    assert len(lost) == 1
    completes(place, "oom", whole, set(lost))


# -- clock -----------------------------------------------------------------------------------------------------------


def test_a_clock_that_jumps(
    place: Place, whole: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two days back while trials run, then a month ahead: durations come from another clock, resume from no clock."""
    off = tmp_path / "off"
    off.write_text("0")
    monkeypatch.setenv(jumping_clock.VARIABLE, str(off))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    session = start_held(place, "clock", "-n2", "-p", "jumping_clock")
    off.write_text("-172800")
    place.hold.unlink()
    assert session.wait() == 0, session.text
    records = place.records("clock")
    # The clock did jump: by it these trials ended before they began.
    ended_first = {key for key, record in records.items() if record["finished"] < record["started"]}
    assert ended_first
    assert ended_first <= HELD
    for record in records.values():
        assert record["status"] == "scored"
        assert all(0 <= seconds < 60 for seconds in record["timing"].values()), record["timing"]
    assert place.tables("clock") == whole
    # Earlier trials have later dates now; still nothing is made again.
    off.write_text("2592000")
    completes(place, "clock", whole, set(), "-p", "jumping_clock")


# -- folders that vanish ---------------------------------------------------------------------------------------------


def test_a_record_deleted_during_the_run(place: Place, whole: dict[str, Any]) -> None:
    session = start_held(place, "deleted", "-n2")
    key = min(EARLY)
    shutil.rmtree(place.reports / "deleted" / "trials" / trial_folder_name(key))
    place.hold.unlink()
    assert session.wait() == pytest.ExitCode.TESTS_FAILED
    assert "planned but missing: 1\n" in session.text
    assert key in session.text
    assert len(place.records("deleted")) == PLANNED - 1
    completes(place, "deleted", whole, {key})


@pytest.mark.parametrize("what", ["trials", "plan.json", "the run"])
def test_folders_of_the_run_deleted_during_the_run(place: Place, what: str) -> None:
    """Whatever is gone: what is left of the records never counts as the whole."""
    run = f"gone-{what.partition('.')[0].replace(' ', '-')}"
    session = start_held(place, run, "-n2")
    folder = place.reports / run
    target = folder if what == "the run" else folder / what
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    if what == "plan.json":
        # As it would be where nothing else told: the trials that were there are gone too.
        shutil.rmtree(folder / "trials" / trial_folder_name(min(EARLY)))
    place.hold.unlink()
    assert session.wait() == pytest.ExitCode.TESTS_FAILED, session.text
    assert "INTERNALERROR" not in session.text
    assert "Traceback" not in session.text
    said = f"{run}/plan.json: could not write: No such file" if what == "the run" else "planned but missing: "
    assert said in session.text, session.text


# -- sessions beside one another -------------------------------------------------------------------------------------


def test_runs_at_once_with_an_empty_cache_and_one_name(place: Place, tmp_path: Path) -> None:
    """Two of the three have the same name: one of them gets it, the other is refused, and nobody's files are lost."""
    warm, place.cache = place.cache, tmp_path / "cold"
    try:
        sessions = {
            name: place.start("--model=minimal", "-n2", "-kearly", f"--paranoia-run={name.partition(' ')[0]}")
            for name in ("twin", "twin again", "third")
        }
        codes = {name: session.wait() for name, session in sessions.items()}
    finally:
        place.cache = warm
    assert codes["third"] == 0, sessions["third"].text
    twins = {codes[name]: sessions[name].text for name in ("twin", "twin again")}
    assert twins.keys() == {0, int(pytest.ExitCode.USAGE_ERROR)}, codes
    assert "reports/twin: the run exists already" in twins[int(pytest.ExitCode.USAGE_ERROR)]
    for run in ("twin", "third"):
        assert {key: record["status"] for key, record in place.records(run).items()} == {
            f"tiny/early[avoidance-{variant}-minimal-run1]": "scored" for variant in ("E+", "E-")
        }
    assert place.scratch() == []


# -- disk ------------------------------------------------------------------------------------------------------------

SMALL_SCRATCH = """
set -eu
mount -t tmpfs -o size=24m tmpfs "$1"
shift
"$@"
"""


def test_a_disk_that_a_trial_fills(items: ItemFolder, cache: Path, tmp_path: Path) -> None:
    """The disk of the trials, not of the records: trials without room are unscored, those before and after are not."""
    require("tmpfs")
    items.pair("tiny/before")
    items.pair("tiny/fills", runs={"minimal": EDIT + actions("head -c 100000000 /dev/zero > big")})
    items.pair("tiny/filled", runs={"minimal": EDIT + actions("head -c 100000000 /dev/zero > big || true")})
    items.pair("tiny/later")
    place = Place(tmp_path / "place", items.folder, cache, tmp_path / "no-hold")
    command = place.command("--model=minimal", "-kEplus", "--paranoia-run=filled")
    done = place.finished(
        ["unshare", "-m", "sh", "-c", SMALL_SCRATCH, "sh", str(place.tmp), *command],
    )
    found = {
        record["item"]: (record["status"], record["reason"], record["message"])
        for record in place.records("filled").values()
    }
    assert {name: entry[:2] for name, entry in found.items()} == {
        "tiny/before": ("scored", None),
        "tiny/fills": ("unscored", "reference-run"),
        "tiny/filled": ("unscored", "disk-full"),
        "tiny/later": ("scored", None),
    }, done.stdout
    assert "No space left on device" in found["tiny/fills"][2]
    assert "TMPDIR" in found["tiny/filled"][2]
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert json.loads((place.reports / "filled" / "summary.json").read_text())["counts"]["scored"] == 2
    assert os.listdir(place.tmp) == []  # noqa: PTH208


# -- limits of the shell ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["-n 24", "-f 4", "-t 60", "-v 1000000"])
def test_resource_limits_of_the_shell_that_trials_would_fail_by(place: Place, given: str) -> None:
    """They are handed down to what an agent runs and to what checks it, and would look like work that is not done."""
    before = set(place.reports.glob("*"))
    done = place.finished(
        ["bash", "-c", f'ulimit {given}; exec "$@"', "bash", *place.command("--model=minimal", "-kearly")],
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert f"--paranoia-environment: local cannot be used: ulimit {given} limits " in done.stderr
    assert "raise it in the shell" in done.stderr
    assert set(place.reports.glob("*")) == before


# -- a run directory that takes no more ------------------------------------------------------------------------------

# As where the kernel makes a file system read-only after an error: below the session, and without asking it.
TURNS_READ_ONLY = """
set -eu
reports="$1"
shift
mount -t tmpfs tmpfs "$reports"
(
    until ls "$reports"/*/trials/*/record.json > /dev/null 2>&1; do sleep 0.05; done
    mount --bind "$reports" "$reports"
    mount -o remount,bind,ro "$reports"
) &
set +e
"$@"
status=$?
cp -r "$reports" kept
exit $status
"""


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "workers"])
def test_a_run_directory_that_becomes_read_only(
    items: ItemFolder, cache: Path, tmp_path: Path, workers: list[str]
) -> None:
    require("tmpfs")
    items.pair("tiny/early")
    items.pair("tiny/later", runs={"minimal": EDIT + actions("sleep 2")})
    place = Place(tmp_path / "place", items.folder, cache, tmp_path / "no-hold")
    place.reports.mkdir()
    command = place.command("--model=minimal", "--paranoia-run=frozen", *workers)
    done = place.finished(
        ["unshare", "-m", "sh", "-c", TURNS_READ_ONLY, "sh", str(place.reports), *command],
        seconds=180,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    kept = list((place.folder / "kept" / "frozen").glob("trials/*/record.json"))
    assert kept
    assert all(json.loads(path.read_text())["status"] == "scored" for path in kept)
    assert f"planned but missing: {4 - len(kept)}\n" in done.stdout
    assert "results and summary are not on disk: " in done.stdout
    assert "Read-only file system" in done.stdout
    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert place.scratch() == []
