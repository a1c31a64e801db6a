"""Parts of the HTML report that need no browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from itertools import pairwise
from pathlib import Path

import pytest
from html_runs import HOSTILE, artifacts, large_run, write_run
from hypothesis import given
from hypothesis import strategies as st
from record_builders import pair
from view_builders import agent, bash, trajectory, user

from pytest_paranoia.reporting.html import rows, safe, write_report
from pytest_paranoia.reporting.html.charts.labels import beside, spread
from pytest_paranoia.reporting.html.charts.scatter import scatter
from pytest_paranoia.reporting.html.charts.slope import slope
from pytest_paranoia.reporting.html.numbers import Estimate, dollars, duration, number
from pytest_paranoia.reporting.html.packing import BLOCK, pack
from pytest_paranoia.reporting.html.steps import shown_steps
from pytest_paranoia.reporting.html.texts import Room, clipped
from pytest_paranoia.schema.trajectory import ObservationResult
from pytest_paranoia.store.files import StoreError


@given(st.text(max_size=400), st.integers(1, 100), st.lists(st.text(min_size=1, max_size=20), max_size=3))
def test_clipped_texts_lose_nothing_unsaid(text: str, limit: int, quotes: list[str]) -> None:
    pieces = clipped(text, limit, quotes)
    assert sum(piece if isinstance(piece, int) else len(piece) for piece in pieces) == len(text)
    at = 0
    for piece in pieces:
        if isinstance(piece, str):
            assert text[at : at + len(piece)] == piece
        at += piece if isinstance(piece, int) else len(piece)
    for quote in quotes:
        assert quote not in text or any(isinstance(piece, str) and quote in piece for piece in pieces)


@given(st.text())
def test_what_is_printed_can_be_seen(text: str) -> None:
    shown = safe.visible(text)
    assert not any(low <= ord(one) <= high for one in shown for low, high in safe.INVISIBLE)
    assert safe.visible(shown) == shown


def test_json_cannot_leave_its_script() -> None:
    text = safe.script_json({HOSTILE: [HOSTILE]})
    assert not set("<>&\u2028\x00") & set(text)
    assert json.loads(text) == {HOSTILE: [HOSTILE]}
    with pytest.raises(ValueError, match="JSON compliant"):
        safe.script_json(float("nan"))


def test_packed_details_come_back_in_order() -> None:
    details = [json.dumps({"at": at, "text": "x" * (BLOCK // 3)}) for at in range(8)]
    packed = pack(details)
    blocks = [json.loads(zlib.decompress(base64.b64decode(block))) for block in packed.blocks]
    assert len(blocks) > 2
    assert [blocks[block][index]["at"] for block, index in packed.where] == list(range(8))


@given(st.lists(st.floats(0, 300), max_size=30))
def test_labels_keep_their_distance_and_order(wanted: list[float]) -> None:
    placed = spread(wanted, 0, 300, 15)
    gap = min(15, 300 / max(len(wanted) - 1, 1))
    ordered = sorted(placed)
    assert all(other - one >= gap - 1e-6 for one, other in pairwise(ordered))
    assert all(-1e-6 <= place <= 300 + 1e-6 for place in placed)


def test_points_on_one_spot_get_labels_apart() -> None:
    taken: list[tuple[float, float, float, float]] = []
    places = {beside(200, 200, f"agent-{n}", taken, (0, 0, 500, 400)) for n in range(6)}
    assert len(places) == 6


def test_undefined_never_becomes_a_point() -> None:
    values = [("a", Estimate(50.0), Estimate(25.0)), ("b", Estimate(None), Estimate(0.0))]
    assert [line.told for line in slope("t", values).lines] == ["a: 50.0 in E-, 25.0 in E+"]
    assert slope("t", values).without == ["b"]
    assert scatter(values).without == ["b"]
    assert scatter([]).points == []
    assert number(None) == "undefined"
    assert number(-0.01) == "0.0"
    assert Estimate.of({"vr": float("nan"), "vr_lo": 1.0, "vr_hi": 2.0}, "vr").interval is None
    assert (dollars(None), dollars(0.0), dollars(0.00123), dollars(1234.5)) == (
        "unknown",
        "$0.00",
        "$0.0012",
        "$1,234.50",
    )
    assert (duration(None), duration(3.21), duration(90), duration(3_600), duration(90_000)) == (
        *("unknown", "3.2 s", "90 s"),
        *("60 min", "25.0 h"),
    )


def test_steps_bear_the_locators_that_quotes_use() -> None:
    child = trajectory(user("Look."), agent("", bash("ls", "a"))).model_copy(update={"trajectory_id": "t1"})
    run = trajectory(user("Do it."), agent("First.", bash("make", "x" * 5_000)), agent("Done."))
    result = ObservationResult(
        source_call_id="c0", content="x" * 5_000, subagent_trajectory_ref=[{"trajectory_id": "t1"}]
    )
    assert run.steps[1].observation is not None
    run.steps[1].observation.results[:] = [result]
    run = run.model_copy(update={"subagent_trajectories": [child]})
    steps = shown_steps(run, Room(6_000), {"step 2, call 1, output": ["x" * 10]})
    assert [step["at"] for step in steps] == ["step 1", "step 2", "step 3", "subagent 1, step 1", "subagent 1, step 2"]
    assert steps[2]["reply"] == 1
    assert steps[0]["role"] == "task"
    assert steps[1]["calls"][0]["parts"] == [["command", ["make"]]]
    assert any(isinstance(piece, int) for piece in steps[1]["calls"][0]["output"])
    assert steps[4]["calls"][0]["at"] == "subagent 1, step 2, call 1"


def test_counterparts_are_of_the_same_pair_agent_and_run() -> None:
    records = [pair(run=1), pair(run=2), pair(run=1, variant="E-"), pair(run=1, variant="E-", agent="other")]
    assert rows.counterparts(records) == [2, -1, 0, -1]


def test_the_page_asks_for_nothing(tmp_path: Path) -> None:
    page = write_report(large_run(tmp_path / "run", 60)).read_text()
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#)""", page)
    assert not re.search(r"@import|url\((?!#hatch)", page)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", page)
    assert "default-src 'none'" in page
    assert "unsafe-inline" not in page


def test_a_report_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [(pair(), artifacts(trajectory(user("Do it.")), "", "", ""))])
    with pytest.raises(StoreError, match="could not write"):
        write_report(run, tmp_path / "missing" / "report.html")
    with pytest.raises(StoreError, match="no run directory"):
        write_report(tmp_path)
