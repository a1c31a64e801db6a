"""Run directories: made once, opened by many, summed up from disk."""

from __future__ import annotations

import csv
import json
import os
import stat
from pathlib import Path

import pytest
from processes import child
from record_builders import agent_info, invalid, pair, scenario, scripted, unscored

from pytest_paranoia.metrics.gates import Gate
from pytest_paranoia.schema.record import Record
from pytest_paranoia.store import RunDirectory, RunManifest, StoreError, results

HERE = Path(__file__).parent


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "reports", RunManifest(), "first")


def test_a_new_run_reads_back(run: RunDirectory) -> None:
    run.close()
    again = RunDirectory.open(run.path)
    assert again.manifest == run.manifest
    assert again.manifest.run == "first"
    assert again.records().records == ()
    assert again.planned() is None


def test_the_manifest_holds_no_personal_data(run: RunDirectory) -> None:
    text = (run.path / "run.json").read_text()
    assert str(Path.home()) not in text.replace('"/"', "")
    assert os.uname().nodename not in text or len(os.uname().nodename) < 4
    assert run.manifest.host.keys() <= {"system", "release", "machine", "cpus", "memory"}


def test_a_taken_name_is_refused_and_the_run_untouched(run: RunDirectory) -> None:
    run.write_trial(pair(), {})
    with pytest.raises(StoreError, match=r"first: the run exists already .*--paranoia-resume"):
        RunDirectory.create(run.path.parent, RunManifest(), "first")
    assert len(run.records().records) == 1


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a b", "x" * 101, "a\n", "ü"])
def test_names_that_are_no_folder_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="is no name for a run"):
        RunDirectory.create(tmp_path / "reports", RunManifest(), name)
    assert not (tmp_path / "up").exists()


def test_two_creators_at_once_never_share_a_folder(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from pytest_paranoia.store import RunDirectory, RunManifest, StoreError\n"
        "for n in range(20):\n"
        "    try: print(RunDirectory.create(Path(sys.argv[1]), RunManifest(), f'run{n}').path.name)\n"
        "    except StoreError as error: assert 'exists already' in str(error), error\n"
        "print(RunDirectory.create(Path(sys.argv[1]), RunManifest()).path.name)\n"
    )
    processes = [child(script, tmp_path) for _ in range(3)]
    made = [name for process in processes for name in process.communicate(timeout=120)[0].split()]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(made) == len(set(made)) == 20 + 3


def test_default_names_sort_by_time_and_never_repeat(tmp_path: Path) -> None:
    names = [RunDirectory.create(tmp_path, RunManifest()).path.name for _ in range(5)]
    assert len(set(names)) == 5


def test_only_one_session_writes_to_a_run(run: RunDirectory) -> None:
    with pytest.raises(StoreError, match=rf"another session writes to this run \(process {os.getpid()}\)"):
        RunDirectory.open(run.path, exclusive=True)
    RunDirectory.open(run.path)  # a worker or a report needs no lock
    run.close()
    run.close()
    with RunDirectory.open(run.path, exclusive=True) as resumed, pytest.raises(StoreError, match="another session"):
        RunDirectory.open(resumed.path, exclusive=True)
    RunDirectory.open(run.path, exclusive=True).close()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no run directory: run.json is missing, the path holds"),
        (b"", "damaged .*Its trials are intact"),
        (b'{"schema": 1, "ru', "damaged"),
        (b"[1]", "damaged"),
        (b'{"schema": 2, "new": true}', r"another version \(schema 2, this one reads 1\).*version of pytest-paranoia"),
        (b'{"run": "x", "schema": 1, "agents": 3}', r"damaged \(key 'agents': found 3, expected a valid array\)"),
    ],
)
def test_a_run_that_cannot_be_opened_says_why(run: RunDirectory, content: bytes | None, message: str) -> None:
    run.close()
    manifest = run.path / "run.json"
    manifest.unlink() if content is None else manifest.write_bytes(content)
    for exclusive in (False, True):
        with pytest.raises(StoreError, match=message):
            RunDirectory.open(run.path, exclusive=exclusive)


@pytest.mark.parametrize(("name", "what"), [("nowhere", "does not exist"), ("file", "is a file")])
def test_a_path_that_is_no_run_says_what_it_is(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=f"no run directory: run.json is missing, the path {what}"):
        RunDirectory.open(tmp_path / name)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="could not create the folder of all runs"):
        RunDirectory.create(tmp_path / "file" / "reports", RunManifest())


def test_a_resumed_session_is_noted(run: RunDirectory) -> None:
    first, second = agent_info("first"), agent_info("second")
    run.extend(RunManifest(agents=[first], items={"r/a": "1"}, options={"n": 2}))
    run.extend(RunManifest(agents=[second, first], items={"r/a": "2", "r/b": "1"}))
    manifest = RunDirectory.open(run.path).manifest
    assert manifest == run.manifest
    assert manifest.agents == [first, second]
    assert manifest.items == {"r/a": "2", "r/b": "1"}
    assert [entry.options for entry in manifest.resumed] == [{"n": 2}, {}]
    assert manifest.run == "first"


def test_plans_add_up(run: RunDirectory) -> None:
    run.plan(["b", "a"])
    run.plan(["a", "c"])
    assert run.planned() == ("b", "a", "c")
    run.write_trial(pair(), {})
    assert run.summary().missing == ("b", "a", "c")
    (run.path / "plan.json").write_text("{")
    with pytest.raises(StoreError, match=r"plan\.json: damaged"):
        run.planned()


def test_finish_writes_what_the_disk_holds(run: RunDirectory) -> None:
    records = [*scripted(2), unscored(pair(item="r/u")), invalid(scenario(item="web/i"))]
    for record in records:
        run.write_trial(record, {})
    run.plan([*(record.trial for record in records), "lost"])
    summary = run.finish([Gate.at_most("vr", 20)])
    assert summary.missing == ("lost",)
    assert not summary.gates_passed
    lines = [json.loads(line) for line in (run.path / "results.jsonl").read_text().splitlines()]
    assert len(lines) == len(records)
    assert all((run.path / line["folder"] / "record.json").is_file() for line in lines)
    with (run.path / "results.csv").open(newline="") as table:
        rows = list(csv.DictReader(table))
    assert {row["trial"] for row in rows} == {record.trial for record in records}
    data = json.loads((run.path / "summary.json").read_text())
    assert data["counts"] == {
        "attempted": 32,
        "scored": 30,
        "invalid": 1,
        "unscored": 1,
        "planned": 33,
        "missing": 1,
        "problems": 0,
    }
    assert data["reasons"] == {"invalid": {"not-established": 1}, "unscored": {"judge-no-answer": 1}}
    assert data["agents"]["minimal"]["pairs"]["excess"]["all"]["er_pooled"] is None
    assert data["agents"]["responsive"]["pairs"]["excess"]["all"]["er"] == {
        "mean": 100.0,
        "by_run": {"1": 100.0, "2": 100.0},
    }
    again = {name: (run.path / name).read_bytes() for name in ("results.jsonl", "results.csv", "summary.json")}
    RunDirectory.open(run.path).finish([Gate.at_most("vr", 20)])
    assert {name: (run.path / name).read_bytes() for name in again} == again


def test_columns_are_the_documented_ones() -> None:
    for record in (pair(True), scenario(), unscored(pair()), invalid(scenario())):
        assert [name for name in results.row(record) if not name.startswith("sensor_")] != []
        assert {name for name in results.row(record) if not name.startswith("sensor_")} <= set(results.COLUMNS)
    assert set(results.row(scenario())) | {"sensor_test_commands"} >= set(results.COLUMNS)
    documented = (HERE.parent / "docs" / "records.md").read_text()
    assert [name for name in results.COLUMNS if f"`{name}`" not in documented] == []
    assert [name for name in Record.model_fields if name != "schema_version" and f"`{name}`" not in documented] == []


def test_pandas_reads_the_tables(run: RunDirectory) -> None:
    pandas = pytest.importorskip("pandas")
    for record in scripted():
        run.write_trial(record, {})
    run.finish()
    table = pandas.read_csv(run.path / "results.csv", dtype={"item_hash": str}, keep_default_na=False, na_values=[""])
    assert set(table["item_hash"]) == {"00e1", "00e2"}
    rates = table[table["variant"] == "E+"].groupby("agent")["v"].mean()
    assert dict(rates) == {"minimal": 0.0, "paranoid": 1.0, "responsive": 0.0}
    assert table.loc[table["agent"] == "minimal", "verdict_kind"].dropna().unique().tolist() == ["none"]
    assert len(pandas.read_json(run.path / "results.jsonl", lines=True)) == len(scripted())


def test_files_have_the_mode_of_the_umask(run: RunDirectory) -> None:
    """Results are shared: a temporary file's private mode must not end up on them."""
    mask = os.umask(0)
    os.umask(mask)
    run.write_trial(pair(), {})
    run.finish()
    for name in ("run.json", "results.csv", "summary.json"):
        assert stat.S_IMODE((run.path / name).stat().st_mode) == 0o666 & ~mask
