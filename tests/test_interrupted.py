"""Runs that are killed and interrupted: finished trials stay, nothing goes on running, and resume does the rest."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from held_runs import AGENTS, EARLY, HELD, PLANNED, SOON, held_place, start_held
from live_sessions import PATIENCE, LiveSession, Place, child_above, eventually, gone, processes
from small_items import COPY, EDIT, ItemFolder

from pytest_paranoia.store import RunDirectory, directory, trial_folder_name
from pytest_paranoia.workspaces.stage import reap_scratch_folders, scratch_folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Place]:
    """Two pairs; the minimal run of the second waits while the hold is there."""
    with held_place(tmp_path_factory.mktemp("interrupted"), cache) as made:
        yield made


@pytest.fixture(autouse=True)
def no_hold(place: Place) -> Iterator[None]:
    yield
    place.clear()


@pytest.fixture(scope="module")
def whole(place: Place) -> dict[str, Any]:
    """The tables of a run that nothing disturbed."""
    session = place.run(AGENTS, "--paranoia-run=whole", "-n2")
    assert session.process.returncode == 0, session.text
    return place.tables("whole")


def _resume(place: Place, run: str, *arguments: str) -> LiveSession:
    place.hold.unlink(missing_ok=True)
    return place.run(AGENTS, f"--paranoia-resume={run}", *arguments)


def _stamps(place: Place, run: str) -> dict[str, str]:
    return {key: record["finished"] for key, record in place.records(run).items()}


def test_kill_9_of_a_worker(place: Place, whole: dict[str, Any]) -> None:
    session = start_held(place, "worker", "-n2")
    held = place.held()[0]
    controller = session.process.pid
    worker = child_above(held, controller)
    # Meanwhile nobody else may write to the run.
    second = place.run(AGENTS, "--paranoia-resume=worker")
    assert second.process.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"another session writes to this run (process {controller})" in second.text
    os.kill(worker, signal.SIGKILL)
    gone(lambda: held in place.held(), "the killed worker's trial", SOON)
    place.hold.unlink()
    assert session.wait() == pytest.ExitCode.TESTS_FAILED
    assert "planned but missing: 1\n" in session.text
    assert "crashed while running" in session.text
    before = _stamps(place, "worker")
    assert len(before) == PLANNED - 1
    resumed = _resume(place, "worker", "-n3")
    assert resumed.process.returncode == 0, resumed.text
    after = _stamps(place, "worker")
    assert {key: after[key] for key in before} == before
    assert place.tables("worker") == whole


def test_kill_9_of_the_whole_run(place: Place, whole: dict[str, Any]) -> None:
    session = start_held(place, "killed")
    session.signal(signal.SIGKILL)
    session.wait()
    gone(place.leftovers, "the killed run", SOON)
    dead = [name for name in place.scratch() if not name.endswith(".lock")]
    assert dead
    before = _stamps(place, "killed")
    assert before.keys() == EARLY
    resumed = _resume(place, "killed", "-n2")
    assert resumed.process.returncode == 0, resumed.text
    assert "paranoia: resumed; 4 trials have a score and stay" in resumed.text
    assert f"paranoia: removed {len(dead)} scratch folders that killed sessions had left" in resumed.text
    assert place.scratch() == []
    after = _stamps(place, "killed")
    assert {key: after[key] for key in before} == before
    assert place.tables("killed") == whole
    manifest = json.loads((place.reports / "killed" / "run.json").read_text())
    assert [entry["options"]["agents"] for entry in manifest["resumed"]] == [["minimal", "paranoid"]]


def test_kill_9_of_the_controller_alone(place: Place) -> None:
    """Its workers find themselves alone and end, with their trials."""
    session = start_held(place, "orphans", "-n2")
    os.kill(session.process.pid, signal.SIGKILL)
    session.wait()
    gone(place.leftovers, "the run whose controller was killed", SOON)


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "workers"])
def test_ctrl_c(place: Place, whole: dict[str, Any], workers: list[str], times: int) -> None:
    run = f"ctrl-c-{len(workers)}-{times}"
    session = start_held(place, run, *workers)
    session.signal(signal.SIGINT)
    if times == 2:
        time.sleep(0.1)
        session.signal(signal.SIGINT)
    assert session.wait() == pytest.ExitCode.INTERRUPTED, session.text
    assert "INTERNALERROR" not in session.text
    gone(place.leftovers, "the interrupted run", SOON)
    before = _stamps(place, run)
    assert before.keys() >= EARLY
    assert not before.keys() & HELD
    assert "planned but missing: " in session.text
    assert len(json.loads((place.reports / run / "summary.json").read_text())["missing"]) == PLANNED - len(before)
    if times == 1:
        assert place.scratch() == []
    resumed = _resume(place, run)
    assert resumed.process.returncode == 0, resumed.text
    assert place.tables(run) == whole
    assert place.scratch() == []


@pytest.mark.parametrize(
    ("number", "workers", "everyone"),
    [(signal.SIGTERM, [], True), (signal.SIGTERM, ["-n2"], False), (signal.SIGHUP, ["-n2"], True)],
    ids=["SIGTERM alone", "SIGTERM to the controller", "SIGHUP to all"],
)
def test_a_session_whose_terminal_or_machine_goes_away(
    place: Place, whole: dict[str, Any], number: signal.Signals, workers: list[str], everyone: bool
) -> None:
    run = f"ended-{number.name}-{len(workers)}"
    session = start_held(place, run, *workers)
    before = _stamps(place, run)
    if everyone:
        session.signal(number)
    else:
        session.process.send_signal(number)
    assert session.wait() == -number
    gone(place.leftovers, "the ended run", SOON)
    assert {key: stamp for key, stamp in _stamps(place, run).items() if key in before} == before
    resumed = _resume(place, run, "-n2")
    assert resumed.process.returncode == 0, resumed.text
    after = _stamps(place, run)
    assert {key: after[key] for key in before} == before
    assert place.tables(run) == whole
    assert place.scratch() == []


def test_output_that_nobody_reads_any_more(place: Place, whole: dict[str, Any]) -> None:
    """As in ``pytest --paranoia … | head``: what was made stays, and the exit status says that there is more."""
    process = subprocess.Popen(
        place.command(AGENTS, "--paranoia-run=piped", "-v"),
        cwd=place.folder,
        env=place.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "[ 12%]" in line:
            break
    process.stdout.close()
    assert process.wait(PATIENCE) not in (0, pytest.ExitCode.NO_TESTS_COLLECTED)
    gone(place.leftovers, "the session", SOON)
    before = _stamps(place, "piped")
    assert before
    resumed = _resume(place, "piped")
    assert resumed.process.returncode == 0, resumed.text
    after = _stamps(place, "piped")
    assert {key: after[key] for key in before} == before
    assert place.tables("piped") == whole


def test_resume_with_nothing_left_to_do(place: Place, whole: dict[str, Any]) -> None:
    before = _stamps(place, "whole")
    for arguments in ([], ["-n2", "--paranoia-min-tsr=100"]):
        session = _resume(place, "whole", *arguments)
        assert session.process.returncode == 0, session.text
        assert "paranoia: resumed; 8 trials have a score and stay" in session.text
        assert {name: value for name, value in place.tables("whole").items() if name != "gates"} == {
            name: value for name, value in whole.items() if name != "gates"
        }
    assert _stamps(place, "whole") == before
    # What the whole run would have failed by fails it still.
    strict = _resume(place, "whole", "--paranoia-strict")
    assert strict.process.returncode == pytest.ExitCode.TESTS_FAILED
    gate = _resume(place, "whole", "--paranoia-max-vr=20")
    assert gate.process.returncode == pytest.ExitCode.TESTS_FAILED
    manifest = json.loads((place.reports / "whole" / "run.json").read_text())
    assert len(manifest["resumed"]) == 4


def test_resume_makes_unscored_trials_again(place: Place, whole: dict[str, Any]) -> None:
    place.hold.touch()
    session = place.run(AGENTS, "--paranoia-run=unscored", "-n2", "--paranoia-timeout=3")
    assert session.process.returncode == pytest.ExitCode.TESTS_FAILED
    before = place.records("unscored")
    assert {key for key, record in before.items() if record["status"] == "unscored"} == HELD
    assert {before[key]["reason"] for key in HELD} == {"wall-clock"}
    stamps = _stamps(place, "unscored")
    resumed = _resume(place, "unscored")
    assert resumed.process.returncode == 0, resumed.text
    assert {key for key, stamp in _stamps(place, "unscored").items() if stamp != stamps[key]} == HELD
    assert place.tables("unscored") == whole


def _copy(place: Place, run: str) -> Path:
    target = place.reports / run
    shutil.copytree(place.reports / "whole", target)
    return target


def _trial(run: Path, key: str) -> Path:
    return run / "trials" / trial_folder_name(key)


@pytest.mark.usefixtures("whole")
def test_resume_of_a_run_with_damaged_records(place: Place) -> None:
    run = _copy(place, "damaged")
    stamps = _stamps(place, "damaged")
    truncated, absent, version, half = sorted(EARLY)
    path = _trial(run, truncated) / "record.json"
    path.write_bytes(path.read_bytes()[:200])
    (_trial(run, absent) / "record.json").unlink()
    path = _trial(run, version) / "record.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 99}))
    folder = _trial(run, half)
    folder.rename(run / ".work" / f"new-{folder.name}.0123456789ab")
    (run / "results.csv").write_text("half a li")
    resumed = _resume(place, "damaged", "-n2")
    assert resumed.process.returncode == 0, resumed.text
    assert "paranoia: resumed; 4 trials have a score and stay" in resumed.text
    assert f"paranoia: tidied up {folder.name}: half-written when the run was killed" in resumed.text
    after = _stamps(place, "damaged")
    assert {key for key, stamp in after.items() if stamp != stamps[key]} == EARLY
    # What could not be read may be all that is left of a trial: it is kept.
    assert len(list((run / "set-aside").iterdir())) == 3


@pytest.mark.usefixtures("whole")
def test_what_cannot_be_resumed_is_refused_with_the_reason(place: Place, tmp_path: Path) -> None:
    run = _copy(place, "other")
    manifest, plan = (run / "run.json").read_text(), (run / "plan.json").read_text()

    def refused(*said: str, arguments: tuple[str, ...] = (AGENTS, "--paranoia-resume=other")) -> None:
        session = place.run(*arguments)
        assert session.process.returncode == pytest.ExitCode.USAGE_ERROR, session.text
        for part in said:
            assert part in session.text
        assert "Traceback" not in session.text

    def altered(**changes: object) -> None:
        (run / "run.json").write_text(json.dumps(json.loads(manifest) | changes))

    refused("no run 'whoel'", "did you mean whole? there: ", "other", arguments=(AGENTS, "--paranoia-resume=whoel"))
    refused(
        "other was made with the agents minimal, paranoid, not responsive; a run mixes no two: give "
        "--model minimal,paranoid, or start a new run",
        arguments=("--paranoia-resume=other",),
    )
    altered(judge={"name": "sensors", "version": "older"})
    refused("other was made with judge name=sensors version=older, this session has name=sensors version=")
    altered(schema=99)
    refused("run.json: written by another version (schema 99, this one reads 1). Use the version of pytest-paranoia")
    (run / "run.json").write_text(manifest[:100])
    refused("run.json: damaged (", "Its trials are intact; start a new run, or restore it")
    altered()
    (run / "plan.json").write_text(plan[:20])
    refused("plan.json: damaged (", "remove it, and the next session plans anew")
    (run / "plan.json").write_text(plan)
    others = ItemFolder(tmp_path / "others")
    others.scenario("coding/retries")
    items, place.items = place.items, others.folder
    try:
        refused(
            "other was made with other items than this session has; a run mixes no two: "
            f"give --paranoia-items {items.name}"
        )
    finally:
        place.items = items


@pytest.mark.usefixtures("whole")
def test_resume_after_an_item_was_edited(place: Place, tmp_path: Path) -> None:
    run = _copy(place, "edited")
    stamps = _stamps(place, "edited")
    edited = ItemFolder(tmp_path / "bench")
    shutil.copytree(place.items, edited.folder)
    edited.run("tiny/early", "excess", COPY + EDIT, reply="All done.")
    items, place.items = place.items, edited.folder
    try:
        session = _resume(place, "edited")
    finally:
        place.items = items
    assert session.process.returncode == 0, session.text
    for key in EARLY:
        assert f"paranoia: {key}: item changed since, runs again" in session.text
    assert session.text.count("item changed since") == len(EARLY)
    assert {key for key, stamp in _stamps(place, "edited").items() if stamp != stamps[key]} == EARLY
    assert len(list(run.glob("trials/*"))) == PLANNED


@pytest.mark.usefixtures("whole")
def test_resume_on_another_machine_with_another_version(place: Place, whole: dict[str, Any], tmp_path: Path) -> None:
    """A run folder is copied without what is hidden; where it lies now, and what wrote it first, changes no number."""
    run = tmp_path / "elsewhere" / "moved"
    shutil.copytree(place.reports / "whole", run, ignore=shutil.ignore_patterns(".*"))
    manifest = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(manifest | {"package": "0.0.1", "host": {"system": "Other", "cpus": 96}}))
    lost, spoilt = sorted(EARLY)[:2]
    shutil.rmtree(_trial(run, lost))
    (_trial(run, spoilt) / "record.json").unlink()
    (_trial(run, spoilt) / "record.json").mkdir()
    kept = {path: path.read_bytes() for path in run.glob("trials/*/record.json") if path.is_file()}
    assert len(kept) == PLANNED - 2
    sessions = [place.start(AGENTS, f"--paranoia-resume={run}") for _ in range(2)]
    codes = [session.wait() for session in sessions]
    # Both at once: one goes on with it and the other is refused, or comes when there is nothing left to do.
    assert sorted(codes) in ([0, 0], [0, int(pytest.ExitCode.USAGE_ERROR)]), [session.text for session in sessions]
    first = sessions[codes.index(0)]
    assert "the run's sessions had pytest-paranoia 0.0.1, " in first.text
    assert {path: path.read_bytes() for path in kept} == kept
    summary = json.loads((run / "summary.json").read_text())
    assert {name: value for name, value in summary.items() if name not in ("run", "created")} == whole
    resumed = json.loads((run / "run.json").read_text())["resumed"]
    assert len(resumed) == len(manifest["resumed"]) + codes.count(0)


@pytest.mark.usefixtures("whole")
def test_two_sessions_that_go_on_with_a_run_in_turn_are_both_noted(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one had the lock while this one had read the run's file and had no lock yet."""
    run = _copy(place, "in-turn")
    before = len(RunDirectory.open(run).manifest.resumed)
    lock = directory.RunLock

    def late(path: Path) -> directory.RunLock:
        monkeypatch.setattr(directory, "RunLock", lock)
        with RunDirectory.open(path, exclusive=True) as other:
            other.extend(other.manifest)
        return lock(path)

    monkeypatch.setattr(directory, "RunLock", late)
    with RunDirectory.open(run, exclusive=True) as ours:
        ours.extend(ours.manifest)
    assert len(RunDirectory.open(run).manifest.resumed) == before + 2


def test_two_runs_of_the_same_moment(place: Place) -> None:
    before = set(place.reports.iterdir()) if place.reports.exists() else set()
    sessions = [place.start("--model=minimal", "-n1", "-kearly") for _ in range(2)]
    assert [session.wait() for session in sessions] == [0, 0]
    runs = sorted(set(place.reports.iterdir()) - before)
    assert len(runs) == 2
    for run in runs:
        assert len(place.records(run.name)) == 2


def test_scratch_folders_of_the_living_and_of_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "tmpnotes").mkdir()
    (tmp_path / "paranoia-notes.lock").touch()
    (tmp_path / "tmp0123abcd").mkdir()  # nothing says whose it is
    (tmp_path / "tmpdeadbeef" / "workspace").mkdir(parents=True)
    (tmp_path / "paranoia-deadbeef.lock").touch()
    (tmp_path / "precious").mkdir()
    (tmp_path / "tmplinklink").symlink_to(tmp_path / "precious")
    (tmp_path / "paranoia-linklink.lock").touch()
    with scratch_folder() as living:
        assert reap_scratch_folders() == 1
        assert living.is_dir()
        assert living.stat().st_mode & 0o777 == 0o700
        names = {path.name for path in tmp_path.iterdir()}
    lock = f"paranoia-{living.name.removeprefix('tmp')}.lock"
    assert names == {"tmpnotes", "paranoia-notes.lock", "tmp0123abcd", "precious", "tmplinklink", living.name, lock}
    assert not living.exists()
    assert not (tmp_path / lock).exists()


def test_kill_9_during_a_hanging_oracle_leaves_no_driver(items: ItemFolder, cache: Path, tmp_path: Path) -> None:
    """The oracle's process lies outside the sandbox: it ends itself when its session is gone."""
    items.pair(oracle="import time\n\ndef check(ws):\n    time.sleep(300)\n")
    place = Place(tmp_path / "hanging", items.folder, cache, tmp_path / "no-hold")
    session = place.start("--model=minimal", "-k=Eplus")
    oracle = items.folder / "oracles/pairs/tiny/greet/oracle.py"
    eventually(lambda: processes(str(oracle)), "the oracle's process")
    session.signal(signal.SIGKILL)
    session.wait()
    gone(place.leftovers, "the oracle of a killed session", SOON)
