"""``paranoia report|compare|export|plan|runs``: from run directories alone, with stable exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from html_runs import write_run
from record_builders import pair, scenario
from synthetic_runs import HOSTILE, trials

from pytest_paranoia import cli
from pytest_paranoia.reporting.schema import summary_schema
from pytest_paranoia.schema.record import Record
from pytest_paranoia.schema.taxonomy import VARIANTS
from pytest_paranoia.store import RunDirectory
from pytest_paranoia.store.summary import as_data

Run = Callable[..., tuple[int, str, str]]


def make(path: Path, records: list[Record], **manifest: object) -> Path:
    return write_run(path, [(record, {}) for record in records], **manifest)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs on the same items, the later one with more excess."""
    folder = tmp_path_factory.mktemp("commands")
    make(folder / "reports/before", trials(pairs=30))
    make(folder / "reports/after", trials(pairs=30, seed=2, excess=0.5), created="2026-10-19T10:00:00+00:00")
    return folder


@pytest.fixture
def run(base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(base)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = cli.main(arguments)
        except SystemExit as error:  # argparse
            code = int(error.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def snapshot(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}


# -- runs


def test_runs_lists_the_latest_first(run: Run) -> None:
    code, out, err = run("runs")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("after  2026-10-19 10:00  ")
    assert "scored of 264" in lines[0]
    assert lines[3].startswith("before  2026-10-18 10:00  ")
    assert lines[1].startswith("  haiku-4.5: VR ") or lines[1].startswith("  opus-5: VR ")
    assert "CAVE" in lines[1]


def test_runs_names_what_cannot_be_read_and_shows_the_rest(run: Run, tmp_path: Path) -> None:
    make(tmp_path / "good", [pair()])
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/run.json").write_text("{")
    code, out, err = run("runs", str(tmp_path))
    assert code == 2
    assert "good  " in out
    assert err.startswith(f"paranoia: {tmp_path}/bad/run.json: damaged")
    assert len(err.splitlines()) == 1
    assert run("runs", str(tmp_path / "bad/run.json"))[0] == 2
    assert run("runs", str(tmp_path / "good"))[1].startswith("good  ")
    (tmp_path / "empty").mkdir()
    assert run("runs", str(tmp_path / "empty"))[:2] == (0, f"no runs in {tmp_path}/empty\n")


# -- report


def test_report_shows_tables_and_writes_the_page(run: Run, base: Path) -> None:
    code, out, err = run("report", "before", "--resamples", "200")
    assert (code, err) == (0, "")
    for expected in (
        "ParanoiaEval Table 3",
        "ParanoiaEval Table 5",
        "ParanoiaEval Table 18",
        "CAVE-Bench",
        "left out",
        "200 resamples",
        "report: reports/before/report.html",
    ):
        assert expected in out
    assert max(map(len, out.split("left out")[0].splitlines())) <= 120
    page = base / "reports/before/report.html"
    assert page.read_bytes().startswith(b"<!")
    page.unlink()


def test_report_leaves_the_run_alone_and_never_runs_an_agent(
    run: Run, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(base)
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a command started a process"))
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert run("report", "before", "--html", str(tmp_path / "x.html"), "--resamples", "50")[0] == 0
    assert opened == []
    assert run("report", "before", "--no-html", "--resamples", "50")[0] == 0
    assert run("compare", "before", "after", "--resamples", "50")[0] == 0
    assert run("plan", "before")[0] == 0
    assert run("runs")[0] == 0
    assert run("export", "before", "--out", str(tmp_path / "t"), "--resamples", "50")[0] == 0
    assert snapshot(base) == before
    assert (tmp_path / "x.html").is_file()
    run("report", "before", "--html", str(tmp_path / "x.html"), "--open", "yes", "--resamples", "50")
    assert opened == [(tmp_path / "x.html").as_uri()]


def test_the_same_seed_gives_the_same_text(run: Run) -> None:
    first = run("report", "before", "--no-html", "--resamples", "300", "--seed", "5")[1]
    assert run("report", "before", "--no-html", "--resamples", "300", "--seed", "5")[1] == first
    assert run("report", "before", "--no-html", "--resamples", "300", "--seed", "6")[1] != first


# -- export


def test_export_writes_every_format(run: Run, tmp_path: Path) -> None:
    arguments = ("--format", "csv", "--format", "json", "--format", "latex", "--published", "--resamples", "50")
    code, out, _ = run("export", "before", "--out", str(tmp_path / "t"), *arguments)
    assert code == 0
    assert [line.partition(":")[0] for line in out.splitlines()] == ["csv", "json", "latex"]
    names = {path.name for path in (tmp_path / "t").iterdir()}
    assert {"table2.csv", "table3.tex", "table18.json", "cave.csv", "paths.csv", "factors.tex", "trials.csv"} <= names
    rows = json.loads((tmp_path / "t/cave.json").read_text())["rows"]
    assert any(row["agent"] == "GLM-5.2 (published)" and row["published"] for row in rows)


def test_export_without_pyarrow_says_so(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_paranoia.reporting.tables.files.find_spec", lambda _: None)
    code, _, err = run("export", "before", "--out", str(tmp_path), "--format", "parquet", "--resamples", "20")
    assert code == 2
    assert err == (
        "paranoia: Parquet needs pyarrow, which is missing: pip install 'pytest-paranoia[parquet]', "
        "or use another format\n"
    )


def test_export_names_damaged_trials(run: Run, tmp_path: Path) -> None:
    path = make(tmp_path / "r", [pair(), pair(variant="E-")])
    next(path.glob("trials/*E-*/record.json"), next(path.glob("trials/*/record.json"))).write_text("{")
    code, _, err = run("export", str(path), "--out", str(tmp_path / "t"), "--resamples", "20")
    assert code == 0
    assert "truncated or no JSON" in err
    assert err.endswith("; left out\n")


def test_the_page_and_the_json_have_the_same_numbers(run: Run, tmp_path: Path) -> None:
    arguments = ("--resamples", "300", "--seed", "5")
    files = ("--html", str(tmp_path / "a.html"), "--json", str(tmp_path / "a.json"))
    code, out, _ = run("report", "before", *arguments, *files)
    assert code == 0
    data = json.loads((tmp_path / "a.json").read_text())
    jsonschema.validate(data, summary_schema())
    page = (tmp_path / "a.html").read_text()
    assert "from 300 resamples with seed 5" in page
    assert (data["statistics"]["resamples"], data["statistics"]["seed"]) == (300, 5)
    for agent in ("opus-5", "haiku-4.5"):
        delta = data["statistics"]["agents"][agent]["pairs"]["all"]["all"]["delta"]
        low, value, high = (f"{round(delta[name], 1) + 0.0:.1f}" for name in ("low", "value", "high"))
        assert f"{value} [{low}, {high}]" in out
        assert f'<span class="value">{value}</span> <span class="ci">{low} to {high}</span>' in page
    run("report", "before", "--resamples", "300", "--seed", "6", "--html", str(tmp_path / "b.html"))
    assert (tmp_path / "b.html").read_text() != page
    # The one in the run directory has none: what it would need takes too long at the end of a session.
    assert "statistics" not in as_data(RunDirectory.open(Path("reports/before")).summary())


def test_gates_of_the_run_are_judged_anew(run: Run, tmp_path: Path) -> None:
    gates = ["max vr 20", "min tsr 50"]
    path = make(tmp_path / "r", [pair(True), pair(variant="E-")], options={"gates": gates})
    code, out, _ = run("report", str(path), "--resamples", "20")
    assert code == 0  # told, not judged
    assert re.search(r"FAIL  vr <= 20 +100.0  opus-5", out)
    page = (path / "report.html").read_text()
    assert "Gates: FAILED" in page
    assert "<td>at most 20.0</td><td>100.0</td>" in page
    assert "<td>at least 50.0</td><td>100.0</td>" in page
    broken = make(tmp_path / "b", [pair()], options={"gates": ["max nonsense 20"]})
    code, _, err = run("report", str(broken))
    assert code == 2
    assert err.startswith("paranoia: run.json of b: key 'options.gates': unknown metric 'nonsense'")


# -- compare


def test_compare_writes_its_table(run: Run, tmp_path: Path) -> None:
    formats = ("--format", "csv", "--format", "json")
    code, out, _ = run("compare", "before", "after", "--resamples", "50", "--out", str(tmp_path), *formats)
    assert code == 0
    assert f"csv: {tmp_path}/comparison.csv" in out
    rows = json.loads((tmp_path / "comparison.json").read_text())["rows"]
    assert len(rows) == len((tmp_path / "comparison.csv").read_text().splitlines()) - 1 == 14
    assert {"effect_lo", "relative", "detectable"} <= rows[0].keys()


def test_compare_names_everything_it_leaves_out(run: Run, tmp_path: Path) -> None:
    shared = [pair(item="x/one", variant=variant) for variant in VARIANTS]
    more = [
        pair(item=f"x/{number:03}-with-a-long-name", variant=variant) for number in range(40) for variant in VARIANTS
    ]
    old, new = make(tmp_path / "old", [*shared, *more]), make(tmp_path / "new", shared)
    code, out, _ = run("compare", str(old), str(new), "--resamples", "20")
    assert code == 0
    told = " ".join(out.partition("left out:")[2].split())
    assert told.startswith("opus-5, tsr, vr, er_pooled: no trial after: x/000-with-a-long-name, ")
    assert all(f"x/{number:03}-with-a-long-name" in told for number in range(40))
    assert max(map(len, out.splitlines())) <= 120


def test_compare_shows_effect_interval_p_and_what_could_be_seen(run: Run) -> None:
    code, out, err = run("compare", "before", "after", "--resamples", "500")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "compared: before (before) with after (after), on the same items"
    assert lines[1].split()[:6] == ["agent", "metric", "items", "dropped", "before", "after"]
    heads = {word for line in lines if line.startswith("agent") for word in line.split()}
    assert {"change", "%", "p", "(Holm)", "detectable"} <= heads
    vr = next(line for line in lines if line.split()[:2] == ["opus-5", "vr"])
    before, after = (float(text) for text in vr.split()[4:6])
    assert after > before
    assert "80% power" in out
    assert "left out:" in out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--threshold", "vr=100"], 0),
        (["--threshold", "vr=0"], 1),
        (["--threshold", "tsr=100", "--threshold", "vr=0"], 1),
        (["--threshold", "er_pooled=0"], 1),
        (["--threshold", "vr=0", "--metric", "cave"], 1),
        (["--agent", "opus-5=haiku-4.5"], 0),
        (["--agent", "nobody"], 2),
        (["--threshold", "nothing=3"], 2),
        (["--threshold", "vr"], 2),
        (["--threshold", "vr=-1"], 2),
        (["--threshold", "rate_minus=1"], 2),
        (["--metric", "nothing"], 2),
        (["--resamples", "0"], 2),
    ],
)
def test_compare_exit_codes(run: Run, arguments: list[str], code: int) -> None:
    found, out, err = run("compare", "before", "after", "--resamples", "100", *arguments)
    assert found == code, out + err
    assert ("FAIL  " in out) == (code == 1)
    # Whatever the verdict, both values, the change and what was allowed.
    for line in out.splitlines():
        if line.startswith(("PASS  ", "FAIL  ")) and "unchanged" not in line and "not measured" not in line:
            assert re.search(r"-?[\d.]+ -> -?[\d.]+, (worse|better) by [\d.]+, allowed [\d.]+$", line), line
    if code == 2:
        assert "Traceback" not in err
        assert err


def test_a_threshold_can_ask_for_significance(run: Run) -> None:
    arguments = ("compare", "before", "after", "--resamples", "100", "--agent", "opus-5", "--threshold", "cave=0")
    strict, out, _ = run(*arguments)
    loose, _, _ = run(*arguments, "--significant")
    p = next(line for line in out.splitlines() if line.split()[:2] == ["opus-5", "cave"])
    assert (strict, loose) in {(1, 0), (0, 0)}, p


def test_two_agents_of_one_run_and_runs_of_one_agent_each(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("compare", "before", "before", "--agent", "opus-5=haiku-4.5", "--resamples", "50")
    assert code == 0
    assert "opus-5 -> haiku-4.5" in out
    old = make(tmp_path / "old", trials(["a"], pairs=4, scenarios=0))
    new = make(tmp_path / "new", trials(["b"], pairs=4, scenarios=0, seed=3))
    code, out, _ = run("compare", str(old), str(new), "--resamples", "50")
    assert code == 0
    assert "a -> b" in out


def test_nothing_in_common_is_told(run: Run, tmp_path: Path) -> None:
    old = make(tmp_path / "old", [pair(agent="a", item="x/one")])
    other = make(tmp_path / "other", [pair(agent="a", item="x/two")])
    code, out, err = run("compare", str(old), str(other))
    assert (code, out) == (2, "")
    assert "no item with the same content is scored in both" in err
    changed = make(tmp_path / "changed", [pair(agent="a", item="x/one", item_hash="ffff")])
    assert run("compare", str(old), str(changed))[0] == 2
    assert run("compare", str(old), str(changed), "--changed-items", "--resamples", "20")[0] == 0
    empty = make(tmp_path / "empty", [])
    assert "no agent in both" in run("compare", str(old), str(empty))[2]


# -- plan


def test_plan_from_a_pilot_and_from_rates(run: Run) -> None:
    code, out, _ = run("plan", "before", "--runs", "1", "3", "--width", "8", "--stopping", "fixed at 200 pairs")
    assert code == 0
    assert out.count("interval now") == 2
    assert out.count("Stopping rule: fixed at 200 pairs") == 2
    assert " 3 runs: " in out
    code, out, _ = run("plan", "--rates", "20", "50")
    assert code == 0
    assert "assumed: 20 and 50 percent" in out
    assert run("plan", "--rates", "20", "--metric", "vr")[0] == 0
    assert run("plan", "before", "--agent", "opus-5", "--metric", "cave")[1].count("interval now") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["before", "--rates", "20"],
        ["--rates", "120"],
        ["--rates", "1", "2", "3"],
        ["--rates", "20", "--metric", "cave"],
        ["before", "--agent", "nobody"],
        ["before", "--width", "0"],
        ["before", "--width", "nan"],
        ["before", "--runs", "0"],
    ],
)
def test_plan_refuses_what_cannot_be_meant(run: Run, arguments: list[str]) -> None:
    code, out, err = run("plan", *arguments)
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err


# -- all of them


@pytest.mark.parametrize(
    "arguments", [["report"], ["compare", "before"], ["export", "--out", "t"], ["plan"]], ids=lambda given: given[0]
)
def test_an_unreadable_run_is_one_line_with_its_path(run: Run, tmp_path: Path, arguments: list[str]) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "run.json").write_text('{"schema": 99}')
    for name, expected in (("befor", "Did you mean before?"), (str(damaged), "another version")):
        code, out, err = run(*arguments, name)
        assert (code, out) == (2, "")
        assert len(err.splitlines()) == 1
        assert err.startswith("paranoia: ")
        assert name in err
        assert expected in err


def test_an_empty_run_and_hostile_names_are_no_accident(run: Run, tmp_path: Path) -> None:
    empty = make(tmp_path / "empty", [])
    assert run("report", str(empty), "--resamples", "20")[0] == 0
    assert run("export", str(empty), "--out", str(tmp_path / "t"))[0] == 0
    assert run("plan", str(empty))[0] == 2
    records = [pair(True, agent=HOSTILE, situation=HOSTILE, repository=HOSTILE), scenario(1, agent=HOSTILE)]
    hostile = make(tmp_path / "hostile", records)
    for arguments in (["report", str(hostile)], ["runs", str(tmp_path)], ["plan", str(hostile)]):
        code, out, _ = run(*arguments)
        assert code == 0
        assert all(line.isprintable() for line in out.splitlines())


def test_help_and_usage(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert "Exit codes: 0 done, 1 a check or threshold failed, 2 usage or an unreadable run" in " ".join(out.split())
    for name in ("prepare", "report", "compare", "export", "plan", "runs"):
        assert name in out
        assert run(name, "--help")[0] == 0
    assert run()[0] == 2
    assert run("nothing")[0] == 2


def test_help_and_runs_load_no_statistics(base: Path) -> None:
    """pandas and SciPy take longer to load than everything else takes to run."""
    script = (
        "import sys; from pytest_paranoia import cli; code = cli.main(['runs']);"
        "sys.exit(code or bool({'pandas', 'scipy', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=base, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_reader_that_has_enough_is_no_error(base: Path) -> None:
    command = f"{sys.executable} -m pytest_paranoia.cli report before --no-html --resamples 20 | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=base,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert (done.returncode, done.stderr) == (0, "")
