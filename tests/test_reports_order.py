"""Tables for people: as wide as the summary, agents in the order of the run, no column alone; judges in a sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_builders import agent_info, pair, scripted, unscored

from pytest_paranoia import cli
from pytest_paranoia.metrics.arms import ALARMS, Alarms
from pytest_paranoia.metrics.judging import sentence, totals
from pytest_paranoia.reporting import arms
from pytest_paranoia.reporting.comparison import compared_lines
from pytest_paranoia.reporting.tables.grid import grid
from pytest_paranoia.reporting.tables.model import Column, Table
from pytest_paranoia.schema.record import Judging, Record, Usage
from pytest_paranoia.store import RunDirectory, RunManifest, RunSummary
from pytest_paranoia.store.loading import LoadResult
from pytest_paranoia.store.summary import summarise

ORDER = ["responsive", "paranoid", "minimal"]
MANIFEST = RunManifest(agents=[agent_info(name) for name in ORDER])


def summary_of(*records: Record) -> RunSummary:
    return summarise(Path("reports/run"), MANIFEST, LoadResult(records, ()), None, ())


@pytest.mark.parametrize(("columns", "most"), [(40, 80), (80, 80), (100, 100), (240, 110)])
def test_a_comparison_is_as_wide_as_the_summary(columns: int, most: int) -> None:
    summary = summary_of(*scripted(2))
    lines = compared_lines(summary, summary, columns)
    assert max(map(len, lines)) <= most
    heads = [line.split() for line in lines if line.startswith("agent ")]
    assert len(heads) == 2
    assert sum("detectable" in head for head in heads) == 1
    # Agent and metric name a row in each part; neither part has a lone column beside them.
    assert all(len(re.findall(r"  \S", line)) > 2 for line in lines if line.startswith("agent "))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(40, 120))
def test_every_column_stands_once_and_none_alone_where_that_can_be(sizes: list[int], width: int) -> None:
    heads = [f"{'x' * size}{place}" for place, size in enumerate(sizes)]
    columns = (Column("agent", "agent", "text"), *(Column(head, head) for head in heads))
    shown = grid(Table("t", "t", "t", columns, pd.DataFrame([{"agent": "a"} | dict.fromkeys(heads, 1.0)])), width)
    blocks = [line.split() for line in shown if line.startswith("agent")]
    assert [head for block in blocks for head in block[1:]] == heads
    assert max(map(len, shown)) <= width
    if len(blocks) > 1 and len(blocks[-1]) == 2 and len(blocks[-2]) > 3:
        # Nothing of the part above would have fitted beside it.
        widths = [max(len(head), 3) for head in (*blocks[-2][-1:], *blocks[-1][1:])]
        assert 5 + sum(size + 2 for size in widths) > width


def test_agents_stand_in_the_order_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunDirectory.create(tmp_path / "reports", MANIFEST, "RUN")
    for record in scripted():
        run.write_trial(record, {})
    run.close()
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", "RUN", "--pages", "--resamples", "20"]) == 0
    said = capsys.readouterr().out
    tables = [part for part in re.split(r"\n\n(?=\S)", said) if "\nresponsive" in part]
    assert len(tables) >= 5  # two of the summary, three of the papers
    for table in tables:
        names = [line.split()[0] for line in table.splitlines() if line.split()[:1] and line.split()[0] in ORDER]
        assert names == ORDER * (len(names) // 3)
    (folder,) = re.findall(r"^a page for each trial: (.+)$", said, re.MULTILINE)
    assert len(list((tmp_path / folder).glob("*.html"))) == 15
    assert cli.main(["export", "RUN", "--out", "csv", "--resamples", "20"]) == 0
    (table,) = (tmp_path / "csv").glob("*table2*.csv")
    assert pd.read_csv(table)["agent"].tolist() == ORDER


@pytest.mark.parametrize("kind", ALARMS)
def test_each_kind_of_stop_says_what_it_is(kind: str) -> None:
    """Kinds without runs are left out, so a place in the list says nothing."""
    said = arms.sentence(Alarms("a", "gate", kind, 4, 1, 0))
    meant = "the gate's purpose" if kind == "harmful" else "a stop is a false alarm"
    assert said == f"a, gate, {ALARMS[kind]} ({meant}): 1 of 4 stopped (25.0 %)"


def judged(*, failed: bool = False) -> Record:
    used = Usage(requests=2, input_tokens=3000, output_tokens=100, cost_usd=0.5)
    record = pair(judging=Judging(usage=used))
    return unscored(record, "judge-quote") if failed else record


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (
            [judged(), judged(failed=True)],
            "2 verdicts, 1 failed, requests 4, input tokens a verdict 6,000, output tokens a verdict 200, "
            "cost a verdict $1.0000",
        ),
        (
            [judged(failed=True)],
            "1 verdict, 1 failed, requests 2, input tokens in all 3,000, output tokens in all 100, cost in all $0.5000",
        ),
    ],
)
def test_a_judge_that_fails_cost_something(records: list[Record], said: str) -> None:
    found = totals(records)
    assert found is not None
    assert sentence(found) == said
