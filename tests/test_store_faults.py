"""Kill -9 and full disks, with real processes and a real file system."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from processes import child
from record_builders import pair

from pytest_paranoia.store import RunDirectory, RunManifest

HERE = Path(__file__).parent


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "reports", RunManifest(), "first")


WRITER = """
import sys; from pathlib import Path; from record_builders import pair
from pytest_paranoia.store import RunDirectory
run = RunDirectory.open(Path(sys.argv[1]))
print("ready", flush=True)
for n in range(100_000):
    key = n % 5
    run.write_trial(pair(item=f"r/p{key}", message=str(n)), {"trajectory.json": b"x" * 40_000, "files/a": b"y"})
    print(key, flush=True)
"""


def test_a_writer_killed_at_any_moment_leaves_complete_trials(run: RunDirectory) -> None:
    """Kill -9 in a loop, mostly amid replacements: what was once written stays readable, with all its artifacts."""
    rng = random.Random(7)
    written: set[str] = set()
    for attempt in range(100):
        if attempt >= 10 and written:  # on a busy machine the first ones may be killed before they wrote anything
            break
        process = child(WRITER, run.path)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.0, 0.06))
        process.send_signal(signal.SIGKILL)
        written |= {f"r/p{line.strip()}" for line in process.communicate(timeout=60)[0].splitlines() if line.strip()}
        loaded = run.records()
        assert {record.item for record in loaded.records} >= written
        assert all(problem.reason.startswith("half-written") for problem in loaded.problems)
        run.close()
        with RunDirectory.open(run.path, exclusive=True) as resumed:
            assert resumed.records().problems == ()
            assert list((run.path / ".work").iterdir()) == []
            for folder in (run.path / "trials").iterdir():
                assert (folder / "trajectory.json").stat().st_size == 40_000
                assert (folder / "files" / "a").read_bytes() == b"y"
            assert {record.item for record in resumed.records().records} >= written
    assert written


def test_a_reader_beside_a_writer_always_finds_the_trial(run: RunDirectory) -> None:
    """At no moment of a replacement is there neither the old record nor the new."""
    run.write_trial(pair(item="r/p0"), {})
    process = child(WRITER.replace("n % 5", "0"), run.path)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        seen: set[str] = set()
        deadline = time.monotonic() + 30
        while len(seen) < 50 and time.monotonic() < deadline:
            loaded = run.records()
            (record,) = loaded.records
            seen.add(record.message)
            assert all(problem.reason.startswith("half-written: its writer") for problem in loaded.problems)
    finally:
        process.kill()
        process.communicate(timeout=60)
    assert len(seen) > 5


def test_recovery_of_each_moment_of_a_replacement(run: RunDirectory) -> None:
    """The states a kill can leave, made by hand: the loop above hits the short ones too rarely."""
    run.close()
    work = run.path / ".work"
    between = run.write_trial(pair(item="r/between"), {})
    between.rename(work / f"old-{between.name}.aa")
    after = run.write_trial(pair(item="r/after"), {})
    shutil.copytree(after, work / f"old-{after.name}.bb")
    broken = run.write_trial(pair(item="r/broken"), {})
    (broken / "record.json").write_text("{")
    broken.rename(work / f"old-{broken.name}.cc")
    (work / f"new-{after.name}.dd").mkdir()
    (work / f"gone-{after.name}.ee").mkdir()
    before = run.records()
    assert {record.item for record in before.records} == {"r/between", "r/after"}
    assert sorted(problem.reason.partition(":")[0] for problem in before.problems) == [
        "half-written",
        "truncated or no JSON",
    ]
    with RunDirectory.open(run.path, exclusive=True) as resumed:
        assert {record.item for record in resumed.records().records} == {"r/between", "r/after"}
        assert resumed.records().problems == ()
        assert {name: text.partition(":")[0] for name, text in resumed.recovered} == {
            between.name: "restored",
            broken.name: "unreadable, was being replaced",
            after.name: "half-written when the run was killed",
        }
        assert len(list((run.path / "set-aside").iterdir())) == 1
        assert resumed.summary().recovered == resumed.recovered


FULL = """
import os, sys, json; from pathlib import Path; from record_builders import pair
from pytest_paranoia.store import RunDirectory, RunManifest, StoreError
base = Path(sys.argv[1])
if os.system(f"mount -t tmpfs -o size=1m tmpfs {base}"):
    sys.exit(77)
run = RunDirectory.create(base, RunManifest(), "full")
found = {}
for n in range(50):
    try:
        run.write_trial(pair(item=f"r/p{n}"), {"trajectory.json": b"x" * 200_000})
    except StoreError as error:
        found = {"message": str(error), "full": error.full, "failed_at": n}
        break
loaded = run.records()
found |= {"records": len(loaded.records), "problems": [p.reason for p in loaded.problems]}
found["work"] = os.listdir(run.path / ".work")
before = run.path.joinpath("trials", os.listdir(run.path / "trials")[0])
try:  # a replacement that does not fit leaves the old record in place
    run.write_trial(pair(item="r/p0", message="new"), {"trajectory.json": b"x" * 900_000})
except StoreError as error:
    found["replace"] = error.full
found["after"] = [r.message for r in run.records().records]
(base / "filler").write_bytes(b"")
try:
    with open(base / "filler", "wb", buffering=0) as filler:
        while True: filler.write(b"x" * 4096)
except OSError:
    pass
try:
    run.finish()
except StoreError as error:
    found["finish"] = error.full
found["left"] = sorted(p.name for p in run.path.iterdir())
print(json.dumps(found))
"""


def on_small_disk(script: str, disk: Path) -> str:
    """Return what *script* prints in a mount namespace of its own, so that there is nothing to unmount after it."""
    if shutil.which("unshare") is not None:
        for prefix in (("unshare", "-m"), ("unshare", "-r", "-m")):
            process = child(script, disk, prefix=prefix)
            output, errors = process.communicate(timeout=120)
            if process.returncode == 0:
                return output
            if "Traceback" in errors:
                pytest.fail(errors)
    reason = "no tmpfs of 1 MiB can be mounted here (needs unshare, and root or user namespaces)"
    if "tmpfs" in (word.strip() for word in os.environ.get("PARANOIA_REQUIRE", "").split(",")):
        pytest.fail(f"tmpfs is required by PARANOIA_REQUIRE but missing: {reason}", pytrace=False)
    pytest.skip(reason)


def test_a_full_disk_costs_only_the_trial_being_written(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    found = json.loads(on_small_disk(FULL, disk))
    assert found["full"] is True
    assert "the disk is full" in found["message"]
    assert "Free space and go on with --paranoia-resume" in found["message"]
    assert 1 <= found["records"] == found["failed_at"]
    assert (found["problems"], found["work"]) == ([], [])
    assert (found["replace"], found["after"]) == (True, [""] * found["records"])
    assert found["finish"] is True
    assert found["left"] == [".lock", ".work", "run.json", "trials"]
