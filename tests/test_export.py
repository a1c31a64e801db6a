"""Tables in every format: complete, in the papers' layout, and harmless whatever an agent is called."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from paper_records import AGENTS, published_records
from record_builders import pair, scenario
from synthetic_runs import FORMULA, HOSTILE, trials

from pytest_paranoia.metrics.analysis import analyse
from pytest_paranoia.reporting.tables import Column, Table
from pytest_paranoia.reporting.tables.build import all_tables
from pytest_paranoia.reporting.tables.files import FORMATS, MissingParquet, write_tables
from pytest_paranoia.reporting.tables.grid import grid
from pytest_paranoia.reporting.tables.latex import escaped, latex
from pytest_paranoia.store import StoreError

PAPERS = {"table2", "table3", "table5", "table15_run1", "table16_run2", "table18", "cave", "paths", "factors"}
TIDY = {"effects", "runs", "interactions", "correlations", "scenarios", "task_types", "transitions", "trials", "notes"}

RATES = tuple(
    f"{metric}_{group}"
    for metric, groups in (
        ("tsr", ("all", "e_plus", "e_minus")),
        ("vr", ("all", "avoidance", "transfer", "mitigation", "acceptance")),
        ("er", ("all", "avoidance", "transfer", "mitigation", "acceptance")),
    )
    for group in groups
)


@pytest.fixture(scope="module")
def tables() -> dict[str, Table]:
    return {table.name: table for table in all_tables(analyse(trials(), resamples=200))}


@pytest.fixture(scope="module")
def published() -> dict[str, Table]:
    return {table.name: table for table in all_tables(analyse(trials(), resamples=200), published=True)}


def test_every_table_is_there(tables: dict[str, Table]) -> None:
    assert set(tables) == PAPERS | TIDY
    for table in tables.values():
        assert {column.key for column in table.columns} <= set(table.frame.columns)
        assert all(len(row) == len(table.columns) for row in table.rows())


def test_only_what_was_measured_has_a_table() -> None:
    pairs = {table.name for table in all_tables(analyse([pair()], resamples=20))}
    assert {"table2", "table3", "effects", "trials"} <= pairs
    assert not pairs & {"cave", "paths", "factors", "scenarios"}
    scenarios = {table.name for table in all_tables(analyse([scenario()], resamples=20))}
    assert {"cave", "paths", "factors", "trials"} <= scenarios
    assert not scenarios & {"table2", "table3", "table5", "table18"}
    assert all_tables(analyse([], resamples=20)) == []


def test_numbers_agree_with_the_summary(tables: dict[str, Table]) -> None:
    from pytest_paranoia.metrics import aggregate

    rows = tables["table2"].frame.set_index("agent")
    cave = tables["cave"].frame.set_index("agent")
    for agent, metrics in aggregate(trials()).items():
        assert metrics.pairs is not None
        assert metrics.scenarios is not None
        for group, excess in metrics.pairs.excess.items():
            assert rows.loc[agent, f"vr_{group}"] == pytest.approx(excess.vr.mean)
            expected = float("nan") if excess.er.mean is None else excess.er.mean
            assert rows.loc[agent, f"er_{group}"] == pytest.approx(expected, nan_ok=True)
        assert rows.loc[agent, "tsr_e_plus"] == pytest.approx(metrics.pairs.tsr["E+"].mean)
        assert cave.loc[agent, "cave"] == pytest.approx(metrics.scenarios.scores.cave)
        paths = tables["paths"].frame
        mine = paths[(paths["agent"] == agent) & (paths["kind"] == "all")].iloc[0]
        assert {path: mine[f"n_{path}"] for path in metrics.scenarios.scores.paths} == metrics.scenarios.scores.paths


def test_the_papers_own_trials_give_the_papers_tables() -> None:
    """9,600 trials that realise Tables 15 to 17: every measured row stands at the published one below it."""
    tables = {table.name: table for table in all_tables(analyse(published_records(), resamples=20), published=True)}
    compared = 0
    for name, keys in (
        ("table2", RATES),
        ("table15_run1", RATES),
        ("table16_run2", RATES),
        ("table17_run3", RATES),
        ("table3", ("e_plus", "e_minus", "delta", "er")),
    ):
        rows = {str(row["agent"]): row for row in tables[name].frame.to_dict("records")}
        for agent in AGENTS:
            for key in keys:
                # Printed with one decimal, and a mean of three printed numbers may be off by as much again.
                assert rows[agent][key] == pytest.approx(rows[f"{agent} (published)"][key], abs=0.101), (
                    name,
                    agent,
                    key,
                )
                compared += 1
    assert compared == len(AGENTS) * (4 * len(RATES) + 4)
    runs = tables["table18"].frame
    ours, theirs = runs[~runs["published"]].set_index("agent"), runs[runs["published"]].set_index("agent")
    for agent, name in zip(AGENTS, theirs.index, strict=True):
        for key in ("run1", "run2", "run3", "pooled", "range"):
            assert ours.loc[agent, key] == pytest.approx(theirs.loc[name, key], abs=0.101)


def test_published_rows_are_marked_in_name_and_column(published: dict[str, Table]) -> None:
    for name in PAPERS - {"paths", "factors"}:
        frame = published[name].frame
        label = "treatment" if name == "table5" else "agent"
        theirs = frame[frame["published"]]
        assert len(theirs) > 0
        assert all(text.endswith(" (published)") for text in theirs[label])
        assert all("arXiv:" in text for text in theirs["source"])
        ours = frame[~frame["published"]]
        assert not any("published" in text for text in ours[label])
        assert set(ours["source"]) == {"this run"}
    table2 = published["table2"].frame.set_index("agent")
    assert table2.loc["Opus-5 (published)", "vr_all"] == 58.7
    table3 = published["table3"].frame.set_index("agent")
    assert tuple(table3.loc["Sonnet-5 (published)", ["delta_lo", "delta_hi"]]) == (16.8, 29.8)
    assert published["table3"].frame["complete"].dtype == "Int64"  # a paper does not print it; ours stays whole
    shown = {row[0]: row for row in published["table3"].rows()}
    assert shown["Opus-5 (published)"][-1] == ".004"
    assert shown["Sonnet-5 (published)"][-1] == "<.001"
    assert {row[0]: row for row in published["cave"].rows()}["GLM-5.2 (published)"][1] == ""
    assert "published" not in published["effects"].frame.columns


@pytest.mark.parametrize("form", ["csv", "latex", "json"])
def test_files_are_written_for_every_table(tmp_path: Path, published: dict[str, Table], form: str) -> None:
    folder = tmp_path / "a" / "b"
    written = write_tables(published.values(), folder, form)
    assert sorted(path.stem for path in written) == sorted(published)
    assert sorted(folder.iterdir()) == sorted(written)  # no temporary names stay behind
    for path in written:
        text = path.read_text(encoding="utf-8")
        frame = published[path.stem].frame
        if form == "csv":
            back = pd.read_csv(path, keep_default_na=False, na_values=[""])
            assert list(back.columns) == list(frame.columns)
            assert len(back) == len(frame)
        elif form == "json":
            assert len(json.loads(text)["rows"]) == len(frame)
            assert "NaN" not in text
        else:
            assert text.count(" \\\\\n") == len(frame) + (2 if "\\cmidrule" in text else 1) + len(
                published[path.stem].notes()
            )


def test_csv_gives_back_the_same_numbers(tables: dict[str, Table]) -> None:
    frame = tables["effects"].frame
    back = pd.read_csv(io.BytesIO(FORMATS["csv"][1](tables["effects"])))
    for name in ("delta", "vr", "er_pooled_lo", "p_holm"):
        pd.testing.assert_series_equal(back[name], frame[name], check_dtype=False)


def hostile_tables(name: str) -> list[Table]:
    records = [
        pair(variant == "E-", agent=name, variant=variant, item=f"repo/p{number}", situation=name)
        for variant in ("E+", "E-")
        for number in range(3)
    ]
    records += [scenario(agent=name), scenario(1, f=1.0, e=1.0, agent="other")]
    return all_tables(analyse(records, resamples=50))


def test_csv_holds_no_formula() -> None:
    for start in (FORMULA, "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1"):
        for table in hostile_tables(start):
            rows = list(csv.DictReader(io.StringIO(FORMATS["csv"][1](table).decode(), newline="")))
            assert rows
            for cell in (cell for row in rows for cell in row.values()):
                if cell.startswith(("=", "+", "-", "@", "\t", "\r")):
                    float(cell)  # only numbers may begin so
    frame = pd.DataFrame({"agent": pd.array([FORMULA], dtype="string"), "effect": [-1.5]})
    text = FORMATS["csv"][1](Table("t", "t", "s", (), frame)).decode()
    assert next(csv.reader(text.splitlines()[1:])) == [f"'{FORMULA}", "-1.5"]


def test_latex_holds_no_command_of_an_agent() -> None:
    assert escaped(r"a_b & 50% \x {y} $z$ #1 ~ ^") == (
        r"a\_b \& 50\% \textbackslash{}x \{y\} \$z\$ \#1 \textasciitilde{} \textasciicircum{}"
    )
    ours = re.compile(
        r"\\(?:begin|end)\{(?:tabular|longtable)\}(?:\{(?:[lr]|p\{0\.6\\linewidth\})+\})?|\\\\"
        r"|\\(?:toprule|midrule|bottomrule|endhead|endgroup)|\\begingroup\\[a-z]+\\setlength\{\\tabcolsep\}\{3pt\}"
        r"|\\cmidrule\(lr\)\{\d+-\d+\}|\\multicolumn\{\d+\}\{(?:c|p\{0\.9\\linewidth\})\}|\\footnotesize "
        r"|\\text[a-z]+\{\}|\{\\char34\}|\\[&%$#_{}]|\$-\$"
    )
    for table in hostile_tables(HOSTILE):
        body = "\n".join(line for line in latex(table).splitlines() if not line.startswith("%"))
        rest = ours.sub("", body)
        assert "\\" not in rest
        assert not set("%$#_~^") & set(rest)
        assert rest.count("{") == rest.count("}")
        assert "\x1b" not in body
        for line in body.splitlines():
            if line.endswith("\\\\") and "\\multicolumn" not in line:
                assert len(re.findall(r"(?<!\\)&", line)) == len(table.columns) - 1


def test_latex_is_booktabs_and_a_long_table_breaks() -> None:
    frame = pd.DataFrame({"a": [f"n{number}" for number in range(60)], "b": [-0.04] * 60, "c": [-3.5] * 60})
    columns = (Column("a", "a", "text"), Column("b", "b", group="G"), Column("c", "c", group="G"))
    text = latex(Table("t", "title", "source", columns, frame))
    assert text.startswith("% t: title. Source: source.\n")
    assert "\\begin{longtable}{lrr}" in text
    assert "\\endhead" in text
    assert "n0 & 0.0 & $-$3.5 \\\\" in text
    assert " & \\multicolumn{2}{c}{G} \\\\" in text


def test_a_grid_fits_and_repeats_its_labels(tables: dict[str, Table]) -> None:
    for table in tables.values():
        for width in (80, 120):
            lines = grid(table, width)
            assert len(lines) >= len(table.frame) + 1
            if table.name not in ("notes", "trials", "factors", "transitions"):
                assert max(map(len, lines)) <= width
    for table in hostile_tables(HOSTILE):
        for line in grid(table, 80):
            assert line.isprintable()
            assert line.isascii()


def test_cells_say_what_is_undefined_and_never_minus_zero() -> None:
    rows: list[tuple[Column, dict[str, object], str]] = [
        (Column("a", "a"), {"a": float("nan")}, "undef"),
        (Column("a", "a"), {"a": -0.01}, "0.0"),
        (Column("a", "a", "count"), {"a": 3.0}, "3"),
        (Column("a", "a", "text"), {"a": None}, ""),
        (Column("a", "a", "p"), {"a": 0.0004}, "<.001"),
        (Column("a", "a", "p"), {"a": 1.0}, "1.000"),
        (Column("a", "a", "estimate"), {"a": 1.0, "a_lo": float("nan"), "a_hi": 2.0}, "1.0"),
        (Column("a", "a", "estimate"), {"a": 1.0, "a_lo": -2.0, "a_hi": 2.0}, "1.0 [-2.0, 2.0]"),
    ]
    for column, row, expected in rows:
        assert column.cell(row) == expected


def test_parquet_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: dict[str, Table]
) -> None:
    monkeypatch.setattr("pytest_paranoia.reporting.tables.files.find_spec", lambda _: None)
    with pytest.raises(MissingParquet, match=r"pip install 'pytest-paranoia\[parquet\]'"):
        write_tables(tables.values(), tmp_path / "out", "parquet")
    assert not (tmp_path / "out").exists()


def test_parquet_keeps_types(tmp_path: Path, published: dict[str, Table]) -> None:
    pytest.importorskip("pyarrow", reason="the extra [parquet] is not installed")
    for path in write_tables(published.values(), tmp_path, "parquet"):
        frame = published[path.stem].frame.reset_index(drop=True)
        pd.testing.assert_frame_equal(pd.read_parquet(path), frame, check_dtype=False)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, tables: dict[str, Table]) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/out: could not create the folder"):
        write_tables(tables.values(), tmp_path / "file" / "out", "csv")


def test_the_same_run_gives_the_same_bytes(tables: dict[str, Table]) -> None:
    again = {table.name: table for table in all_tables(analyse(trials(), resamples=200))}
    for name, table in tables.items():
        for form in ("csv", "latex", "json"):
            assert FORMATS[form][1](table) == FORMATS[form][1](again[name])
