"""Numbers that say less than they seem to: one pair, or all pairs alike. Said in every output that shows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from html_runs import write_run
from record_builders import pair, scenario, unscored
from synthetic_runs import trials

from pytest_paranoia import cli
from pytest_paranoia.metrics import frame
from pytest_paranoia.metrics.analysis import analyse
from pytest_paranoia.metrics.hints import FLAT, ONE, away, hints, results, weakness
from pytest_paranoia.reporting.html import write_report
from pytest_paranoia.reporting.markdown import markdown
from pytest_paranoia.reporting.tables.build import all_tables
from pytest_paranoia.reporting.tables.grid import grid
from pytest_paranoia.reporting.tables.latex import latex
from pytest_paranoia.schema.record import Record
from pytest_paranoia.schema.taxonomy import TREATMENTS, VARIANTS
from pytest_paranoia.store import RunDirectory

ONE_PAIR = [pair(True), pair(variant="E-")]
ALIKE = [
    pair(variant == "E-", item=f"r/p{number}", variant=variant, treatment=TREATMENTS[number % 4])
    for number in range(8)
    for variant in VARIANTS
]


def told(records: list[Record]) -> list[str]:
    found = hints(results(records))
    assert list(analyse(records, resamples=20).hints) == found  # from the table of trials the same
    return found


def test_one_pair_and_one_scenario() -> None:
    assert told([*ONE_PAIR, scenario(1)]) == [
        "opus-5: all rates rest on one pair; they have no interval, and the next may differ",
        "opus-5: all rates rest on one scenario; they have no interval, and the next may differ",
    ]


def test_all_alike() -> None:
    assert told(ALIKE) == [
        "opus-5: all 8 pairs gave the same TSR, VR, ER: an interval has zero width there, which is no certainty; "
        "the truth may be 38 points (3/8) away"
    ]
    # Agents of which the same is true stand together.
    twice = [*ALIKE, *(record.model_copy(update={"agent": pair(agent="a").agent}) for record in ALIKE)]
    assert hints(results(twice))[0].startswith("a, opus-5: all 8 pairs")


def test_single_pairs_of_a_treatment() -> None:
    records = [*ALIKE, pair(True, item="r/other", treatment="transfer"), pair(item="r/other", variant="E-")]
    some = [one for one in records if one.treatment in ("avoidance", "transfer") or one.item == "r/p2"]
    assert "opus-5: one pair only in mitigation: no interval, and the next pair may differ" in told(some)


def test_what_varies_and_what_has_no_score_is_not_told_of() -> None:
    assert told(trials(pairs=60, scenarios=30)) == []
    assert told([unscored(pair())]) == []
    assert told([]) == []


@pytest.mark.parametrize(
    ("low", "high", "units", "expected"),
    [
        (0.0, 0.0, 8, "flat"),
        (100.0, 100.0, None, "flat"),
        (0.0, 5.0, 8, None),
        (None, None, 8, None),
        (0.0, 9.0, 1, "one"),
    ],
)
def test_weakness(low: float | None, high: float | None, units: float | None, expected: str | None) -> None:
    assert weakness(low, high, units) == expected


def test_three_over_n() -> None:
    assert [away(units) for units in (2, 3, 4, 60)] == ["anywhere", "anywhere", "75 points (3/4)", "5 points (3/60)"]


def test_an_interval_without_width_is_one_that_the_bootstrap_gives() -> None:
    """The hint from the values and the interval from the resamples say the same, whatever the values are."""
    for records in (ALIKE, trials(pairs=12, runs=2), trials(["a"], pairs=3, scenarios=2, lost=0.3)):
        analysis = analyse(records, resamples=500)
        found = hints(frame.results(analysis.trials))
        for row in analysis.effects[analysis.effects["group_kind"] == "all"].to_dict("records"):
            for name, column in (("TSR", "tsr"), ("VR", "vr"), ("ER", "er_pooled")):
                flat = weakness(row[f"{column}_lo"], row[f"{column}_hi"], row["pairs"]) == "flat"
                said = any(f"{row['agent']}:" in hint and f" {name}" in hint and "same" in hint for hint in found)
                assert row["agent"] == "(pooled)" or flat == said, (row["agent"], name, found)


def test_tables_mark_the_value_and_explain_the_mark() -> None:
    tables = {table.name: table for table in all_tables(analyse(ALIKE, resamples=50))}
    assert tables["table3"].rows()[0][3] == "100.0 [100.0, 100.0]*"
    assert tables["table3"].notes() == [f"* {FLAT}"]
    tables = {table.name: table for table in all_tables(analyse(ONE_PAIR, resamples=50))}
    assert tables["table3"].rows()[0][3] == "-100.0**"
    for name in ("table3", "table5", "effects"):
        assert tables[name].notes() == [f"** {ONE}"], name
    assert tables["table2"].notes() == tables["table18"].notes() == [f"opus-5: {ONE}"]
    assert grid(tables["table3"], 100)[-1] == f"  ** {ONE}"
    assert ONE in latex(tables["table3"])
    notes = tables["notes"].frame
    assert list(notes[notes["kind"] == "hint"]["note"]) == told(ONE_PAIR)


def test_published_rows_are_not_marked() -> None:
    tables = {table.name: table for table in all_tables(analyse(ONE_PAIR, resamples=50), published=True)}
    rows = tables["table3"].rows()
    assert rows[0][3].endswith("**")
    assert not any("*" in cell for row in rows if "published" in row[0] for cell in row)


def test_every_output_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "r", [(record, {}) for record in [*ONE_PAIR, *ALIKE[:4]]])
    single = write_run(tmp_path / "single", [(record, {}) for record in ONE_PAIR])
    sentence = "opus-5: all rates rest on one pair; they have no interval, and the next may differ"
    assert cli.main(["report", str(single), "--resamples", "50", "--json", str(tmp_path / "s.json")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "less certain than it looks: 1" in out
    assert sentence in out
    assert ONE in out
    summary = RunDirectory.open(single).summary()
    text = markdown(summary).replace("\\", "")
    assert f"### Less certain than it looks\n\n- {sentence}\n" in text
    assert json.loads((tmp_path / "s.json").read_text())["statistics"]["hints"] == [sentence]
    page = (single / "report.html").read_text()
    assert f"<li>{sentence}</li>" in page
    assert '<span class="weak">one unit</span>' in page
    assert '<span class="weak">zero width</span>' in write_report(run).read_text()
