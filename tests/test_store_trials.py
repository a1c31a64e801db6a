"""Trials on disk: written whole, replaced whole, read back with everything that is wrong named."""

from __future__ import annotations

import json
import os
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_builders import invalid, pair, scenario, unscored

from pytest_paranoia.store import RunDirectory, RunManifest, StoreError, trial_folder_name, trials
from pytest_paranoia.store.files import sync_file_system
from pytest_paranoia.store.names import MAX_NAME

HERE = Path(__file__).parent


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "reports", RunManifest(), "first")


def folders(run: RunDirectory) -> list[str]:
    return sorted(path.name for path in (run.path / "trials").iterdir())


def test_a_trial_reads_back_with_its_artifacts(run: RunDirectory, tmp_path: Path) -> None:
    patch = tmp_path / "some.patch"
    patch.write_bytes(b"\x00\xff" * 70_000)
    record = pair(True)
    folder = run.write_trial(record, {"trajectory.json": b"{}", "diff.patch": patch, "files/ab": b"", "a/b/c": b"1"})
    assert run.records().records == (record,)
    assert folder == run.trial_folder(record.trial)
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert found == ["a/b/c", "diff.patch", "files/ab", "record.json", "trajectory.json"]
    assert (folder / "diff.patch").read_bytes() == patch.read_bytes()
    assert list((run.path / ".work").iterdir()) == []


@pytest.mark.parametrize("whole", [True, False], ids=["one call", "one by one"])
def test_many_files_are_durable_before_the_record_is(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """By one call for all of them where the system has it: a disk may take 5 ms for each."""
    done: list[str] = []

    def each(path: Path) -> None:
        assert not (path.parents[1] / "record.json").exists()
        done.append(path.name)

    def all_at_once(folder: Path) -> bool:
        assert not (folder / "record.json").exists()
        return whole and sync_file_system(folder)

    monkeypatch.setattr(trials, "sync_file", each)
    monkeypatch.setattr(trials, "sync_file_system", all_at_once)
    files = {f"files/{number}": str(number).encode() for number in range(trials.SYNC_EACH + 1)}
    folder = run.write_trial(pair(), files)
    assert sorted(done) == ([] if whole else sorted(name.removeprefix("files/") for name in files))
    assert {path.name: path.read_bytes() for path in (folder / "files").iterdir()} == {
        name.removeprefix("files/"): content for name, content in files.items()
    }


@pytest.mark.parametrize("name", ["record.json", "../x", "/etc/x", "a/../b", "", ".", "a//b", "./a", "a\0b"])
def test_artifact_names_stay_inside(run: RunDirectory, name: str) -> None:
    with pytest.raises(StoreError, match="is no name for an artifact"):
        run.write_trial(pair(), {name: b""})
    assert folders(run) == []


def test_an_artifact_is_never_a_symlink_a_fifo_or_missing(run: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo", "missing", "."):
        with pytest.raises(StoreError, match="could not write the record"):
            run.write_trial(pair(), {"diff.patch": tmp_path / name})
    assert folders(run) == []
    assert list((run.path / ".work").iterdir()) == []


def test_text_that_json_cannot_carry_is_escaped(run: RunDirectory) -> None:
    run.write_trial(pair(done=False, message="name \udcff\x00\x1b[1m\u2028"), {})
    (record,) = run.records().records
    assert record.message == "name \\udcff\x00\x1b[1m\u2028"
    run.finish()


def test_a_new_record_replaces_the_old_one_whole(run: RunDirectory) -> None:
    run.write_trial(unscored(pair()), {"oracle.log": b"old", "only-old": b""})
    folder = run.write_trial(pair(True), {"oracle.log": b"new"})
    assert [record.status for record in run.records().records] == ["scored"]
    assert sorted(path.name for path in folder.iterdir()) == ["oracle.log", "record.json"]
    assert list((run.path / ".work").iterdir()) == []
    assert not (run.path / "set-aside").exists()


def test_an_unreadable_trial_is_set_aside_when_it_is_replaced(run: RunDirectory) -> None:
    folder = run.write_trial(pair(), {"trajectory.json": b"precious"})
    (folder / "record.json").write_text('{"schema": 7}')
    run.write_trial(pair(), {})
    assert len(run.records().records) == 1
    (kept,) = (run.path / "set-aside").iterdir()
    assert (kept / "trajectory.json").read_bytes() == b"precious"


def test_threads_that_write_the_same_trial_leave_one(run: RunDirectory) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: run.write_trial(pair(), {"n": str(number).encode()}), range(64)))
    assert len(run.records().records) == 1
    assert run.records().problems == ()
    assert list((run.path / ".work").iterdir()) == []


def damage(folder: Path, kind: str) -> None:
    path = folder / "record.json"
    content = path.read_bytes()
    raw: dict[str, Any] = json.loads(content)
    match kind:
        case "missing":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "truncated":
            path.write_bytes(content[: len(content) // 2])
        case "garbage":
            path.write_bytes(random.Random(1).randbytes(300))
        case "list":
            path.write_bytes(b"[]")
        case "deep":
            path.write_bytes(b"[" * 200_000)
        case "foreign":
            path.write_text(json.dumps(raw | {"schema": 2, "later": 1}))
        case "unknown key":
            path.write_text(json.dumps(raw | {"later": 1}))
        case "no verdict":
            path.write_text(json.dumps(raw | {"verdict": None}))
        case "folder":
            path.unlink()
            path.mkdir()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("missing", "half-written: no record.json"),
        ("empty", "empty"),
        ("truncated", "truncated or no JSON"),
        ("garbage", "truncated or no JSON"),
        ("list", "no record: JSON of type list"),
        ("deep", "truncated or no JSON"),
        ("foreign", "record schema 2, but this version of pytest-paranoia reads 1"),
        ("unknown key", "not a valid record: key 'later': unknown key (value 1)"),
        ("no verdict", "not a valid record: a scored record needs its oracle and verdict"),
        ("folder", "cannot be read: Is a directory"),
    ],
)
def test_a_damaged_record_is_a_problem_and_the_rest_is_read(run: RunDirectory, kind: str, reason: str) -> None:
    good = scenario()
    run.write_trial(good, {})
    damage(run.write_trial(pair(), {}), kind)
    loaded = run.records()
    assert loaded.records == (good,)
    (problem,) = loaded.problems
    assert problem.reason.startswith(reason)
    assert problem.path.is_relative_to(run.trial_folder(pair().trial))
    assert run.scored_keys().done == {good.trial}
    assert json.loads((run.finish().path / "summary.json").read_text())["counts"]["problems"] == 1
    run.write_trial(pair(), {})
    assert run.records().problems == ()


def test_copies_and_strays_are_problems(run: RunDirectory) -> None:
    folder = run.write_trial(pair(), {})
    shutil.copytree(folder, folder.with_name("0-copy"))
    raw = json.loads((folder / "record.json").read_text())
    folder.with_name("renamed-key").mkdir()
    (folder.with_name("renamed-key") / "record.json").write_text(json.dumps(raw | {"trial": "another key"}))
    (folder.parent / "stray.txt").write_text("x")
    (folder.parent / "link").symlink_to(folder)
    (folder.parent / ".DS_Store").write_text("x")
    loaded = run.records()
    assert [record.trial for record in loaded.records] == [pair().trial]
    assert {problem.path.name: problem.reason.partition(":")[0] for problem in loaded.problems} == {
        "0-copy": "duplicate",
        "renamed-key": "duplicate",
        "stray.txt": "not a trial folder",
        "link": "not a trial folder",
    }


def test_a_copy_without_hidden_folders_is_read(run: RunDirectory, tmp_path: Path) -> None:
    run.write_trial(pair(), {})
    shutil.copytree(run.path, tmp_path / "copy", ignore=shutil.ignore_patterns(".*"))
    copied = RunDirectory.open(tmp_path / "copy")
    assert (len(copied.records().records), copied.records().problems) == (1, ())
    with RunDirectory.open(tmp_path / "copy", exclusive=True) as resumed:
        resumed.write_trial(scenario(), {})
        assert len(resumed.records().records) == 2


def test_resume_knows_what_is_done(run: RunDirectory) -> None:
    records = {
        "scored": pair(item="r/a"),
        "invalid": invalid(scenario(item="web/b")),
        "unscored": unscored(pair(item="r/c")),
        "stale": pair(item="r/d"),
        "gone": pair(item="r/e"),
    }
    for record in records.values():
        run.write_trial(record, {})
    found = run.scored_keys({"r/a": "00e1", "web/b": "00e2", "r/c": "00e1", "r/d": "changed"})
    assert found.done == {records[name].trial for name in ("scored", "invalid", "gone")}
    assert found.stale == {records["stale"].trial}
    assert found.unscored == {records["unscored"].trial}
    assert run.scored_keys().stale == frozenset()


def test_names_are_readable() -> None:
    assert trial_folder_name("dynaconf/ci-owns-tests[transfer-E+-opus-5-run1]").startswith(
        "dynaconf-ci-owns-tests-transfer-Eplus-opus-5-run1-"
    )
    assert "-Eminus-" in trial_folder_name("a/b[x-E--opus-run1]")
    assert "-Eplus-" in trial_folder_name("a/b[x-E+]")


@given(st.text(max_size=400))
def test_any_key_has_a_safe_name(key: str) -> None:
    name = trial_folder_name(key)
    assert len(os.fsencode(name)) <= MAX_NAME
    assert name.isascii()
    assert name.isprintable()
    assert not {"/", "\\", " ", "\0"} & set(name)
    assert not name.startswith((".", "-"))


@given(st.text(max_size=200), st.text(max_size=200))
def test_different_keys_have_different_names(left: str, right: str) -> None:
    assert (trial_folder_name(left) == trial_folder_name(right)) == (left == right)
    assert trial_folder_name(left + "a" * 200) != trial_folder_name(left + "a" * 201)
