"""Arms against a baseline in numbers: paired changes, false alarms, what has no value, and the reports of them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_builders import invalid, pair, scenario, unscored

from pytest_paranoia.metrics.arms import METRICS, Alarms, alarms, arm_report
from pytest_paranoia.reporting import arms as shown
from pytest_paranoia.reporting.schema import summary_schema
from pytest_paranoia.schema.record import GateInfo, InterventionInfo, Record

FEW = 200


def gated(denied: dict[str, int] | None = None, would: dict[str, int] | None = None) -> InterventionInfo:
    return InterventionInfo(
        name="gate:g", gates=[GateInfo(name="g", version="1")], denied_in=denied or {}, would_deny_in=would or {}
    )


def one(arm: str, item: str, failed: int, added: InterventionInfo | None = None, **changes: Any) -> Record:
    trial = f"{item}[a-{arm}-run{changes.get('run', 1)}]"
    return scenario(failed, 4, agent="a", item=item, arm=arm, trial=trial, intervention=added, **changes)


def test_changes_are_paired_by_item() -> None:
    records = [
        one("none", "web/x", 4, f=1.0, e=1.0),
        one("gate", "web/x", 1, gated(), f=1.0, e=1.0),
        one("none", "web/y", 2, f=0.5, e=0.0),
        one("gate", "web/y", 2, gated(), f=0.5, e=0.0),
        one("none", "web/z", 0),
        one("gate", "web/z", 0, gated()),
        one("gate", "web/alone", 4, gated()),  # no trial of the baseline
    ]
    report = arm_report(records, "none", ["none", "gate"], resamples=FEW)
    rows = {row["metric"]: row for row in report.changes.to_dict("records")}
    assert set(rows) == set(METRICS) - {"vr", "tsr"}
    roh = rows["roh"]
    assert (roh["agent"], roh["arm"], roh["items"], roh["dropped"]) == ("a", "gate", 3, 1)
    assert (roh["left"], roh["right"], roh["effect"], roh["relative"]) == (50, 25, -25, -50)
    assert roh["effect_lo"] < -25 < roh["effect_hi"] == 0
    assert rows["ocr"]["effect"] == 0
    assert rows["fcs"]["left"] == 50
    # CDC is harm with the evidence recognised: only y's, which the gate leaves as it is.
    assert (rows["cdc"]["left"], rows["cdc"]["right"]) == (pytest.approx(50 / 3), pytest.approx(50 / 3))
    assert any("web/alone" in note for note in report.notes)
    data = report.as_data()
    assert data["baseline"] == "none"
    declared = summary_schema()["$defs"]["arms"]["properties"]
    assert list(data) == list(declared)
    assert [sorted(row) for row in data["changes"][:1]] == [sorted(declared["changes"]["items"]["properties"])]
    assert [list(row) for row in data["alarms"][:1]] == [list(declared["alarms"]["items"]["properties"])]
    assert next(row for row in data["changes"] if row["metric"] == "roh")["relative"] == -50


def test_pairs_are_compared_in_vr_and_tsr() -> None:
    records = []
    for arm, violation, done in (("none", True, True), ("rule", False, False)):
        for item in ("r/a", "r/b"):
            added = InterventionInfo(name="rule:proportionality") if arm == "rule" else None
            fields: dict[str, Any] = {"arm": arm, "trial": f"{item}[{arm}]", "intervention": added}
            records.append(pair(violation, item=item, agent="a", done=done, **fields))
    report = arm_report(records, "none", ["none", "rule"], resamples=FEW)
    rows = {row["metric"]: row for row in report.changes.to_dict("records")}
    assert (rows["vr"]["left"], rows["vr"]["right"], rows["vr"]["relative"]) == (100, 0, -100)
    assert (rows["tsr"]["left"], rows["tsr"]["right"]) == (100, 0)  # the rule makes the agent do too little
    assert report.alarms == ()  # there is no gate to withhold anything


def test_alarms_are_told_from_what_gates_are_for() -> None:
    built: dict[str, Any] = {"family": "self-built", "established": scenario(0, 4).replay}
    records = [
        one("none", "web/harm", 2, run=1),
        one("none", "web/harm", 0, run=2),
        one("none", "web/built", 0),
        unscored(one("none", "web/lost", 4)),
        one("gate", "web/harm", 0, gated({"accuse": 3}), run=1),
        one("gate", "web/harm", 0, gated({"insist": 1}), run=2),
        one("gate", "web/built", 0, gated({"work": 1}), **built),
        one("gate", "web/lost", 0, gated({"accuse": 1})),  # what the baseline would have done is not known
        one("dry", "web/harm", 2, gated(would={"accuse": 1}), run=1),
        invalid(one("dry", "web/built", 4, gated({"work": 2}), **built)),
        pair(agent="a", arm="gate", trial="p[gate]", intervention=gated({"task": 1})),
        pair(agent="a", arm="gate", variant="E-", trial="q[gate]", intervention=gated()),
    ]
    found = {(one.arm, one.kind): (one.stopped, one.would, one.runs) for one in alarms(records, "none")}
    assert found == {
        ("gate", "harmful"): (1, 0, 1),
        ("gate", "preserve"): (1, 0, 2),
        ("gate", "work"): (1, 0, 1),
        ("gate", "pairs"): (1, 0, 2),
        ("dry", "harmful"): (0, 1, 1),
        ("dry", "work"): (1, 0, 1),
    }
    assert Alarms("a", "gate", "pairs", 2, 1, 0).rate == 50
    assert Alarms("a", "gate", "pairs", 0, 0, 0).rate is None


def test_lines_and_properties_say_the_same() -> None:
    records = [one("none", f"web/{n}", 2) for n in "xyz"]
    records += [one("gate", f"web/{n}", 0, gated({"accuse": 1})) for n in "xyz"]
    report = arm_report(records, "none", ["none", "gate"], resamples=FEW)
    for width in (80, 110):
        lines = shown.lines(report, "ascii", width)
        assert all(len(line) <= width for line in lines)
        assert "-100.0" in "\n".join(lines)
    values = shown.properties(report)
    assert values["a+gate.roh.change"] == "-50"
    assert values["a+gate.roh.relative"] == "-100"
    assert values["a+gate.stopped.harmful"] == "3/3"
    assert "a+gate.fcs.relative" not in values  # of nothing there is no percentage
    empty = arm_report([one("none", "web/x", 0)], "none", ["none", "gate"], resamples=FEW)
    assert shown.lines(empty, "ascii", 80)[0] == "no item is scored in two arms"


HARMS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=6)


@settings(max_examples=25, deadline=None)
@given(HARMS)
def test_a_change_is_the_difference_of_the_means(harms: list[tuple[int, int]]) -> None:
    records = [one("none", f"web/{n}", before) for n, (before, _) in enumerate(harms)]
    records += [one("gate", f"web/{n}", after, gated()) for n, (_, after) in enumerate(harms)]
    report = arm_report(records, "none", ["none", "gate"], resamples=FEW)
    roh = next(row for row in report.changes.to_dict("records") if row["metric"] == "roh")
    before, after = (100 * math.fsum(column) / 4 / len(harms) for column in zip(*harms, strict=True))
    assert roh["effect"] == pytest.approx(after - before)
    if before:
        assert roh["relative"] == pytest.approx(100 * (after - before) / before)
    else:
        assert math.isnan(roh["relative"])
    harmful = [one.runs for one in report.alarms if one.kind == "harmful"]
    assert sum(harmful) == sum(first > 0 for first, _ in harms)
