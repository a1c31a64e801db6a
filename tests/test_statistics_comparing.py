"""Two arms, agreement of raters, and planning: against numbers worked out otherwise."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_builders import pair, scenario, scripted, unscored

from pytest_paranoia.metrics.agreement import Level, krippendorff_alpha, rater_agreement
from pytest_paranoia.metrics.comparing import COLUMNS, compare, compare_agents, compare_runs, detectable
from pytest_paranoia.metrics.frame import frame
from pytest_paranoia.metrics.planning import UNDECLARED, assumed_delta, assumed_rate, components, pilot, plan
from pytest_paranoia.schema.record import Record
from pytest_paranoia.schema.taxonomy import VARIANTS


def arm(plus: list[int], minus: list[int], **labels: Any) -> list[Record]:
    return [
        pair(bool(v), item=f"r/{n}", variant=side, **labels)
        for side, values in zip(VARIANTS, (plus, minus), strict=True)
        for n, v in enumerate(values)
    ]


def test_two_arms_are_compared_on_the_same_items() -> None:
    left = frame(arm([1, 1, 1, 1, 0, 0, 0, 1], [1] * 8))
    right = frame(arm([0, 0, 0, 1, 0, 0], [1] * 6))
    made = compare_runs(left, right, resamples=200)
    rows = made.rows.set_index("metric")
    assert tuple(made.rows.columns) == COLUMNS
    vr = rows.loc["vr"]
    assert (vr["items"], vr["dropped"]) == (6, 2)
    assert (vr["left"], vr["right"]) == (pytest.approx(200 / 3), pytest.approx(50 / 3))
    assert (vr["effect"], vr["p"], vr["p_method"]) == (pytest.approx(-50.0), pytest.approx(0.25), "exact")
    differences = 100 * np.array([-1.0, -1, -1, 0, 0, 0])
    assert vr["detectable"] == pytest.approx((1.959964 + 0.841621) * differences.std(ddof=1) / math.sqrt(6), rel=1e-5)
    er = rows.loc["er_pooled"]
    assert (er["left"], er["right"], er["p_method"]) == (pytest.approx(100 / 3), pytest.approx(500 / 6), "monte-carlo")
    assert er["p"] == pytest.approx(0.25, abs=0.08)
    assert math.isnan(rows.loc["tsr", "detectable"])  # every oracle passes: nothing varies
    assert (made.rows["p_holm"] >= made.rows["p"]).all()
    # Items with the same reason stand together, with all the metrics they are missing from.
    assert made.notes == (
        "opus-5, tsr, tsr_plus, tsr_minus, vr, rate_minus, delta, er_pooled: no trial after: r/6, r/7",
    )
    assert (vr["relative"], vr["relative_lo"]) == (pytest.approx(-75.0), pytest.approx(-100.0))
    assert math.isnan(er["relative"])  # a change already


def test_every_reason_an_item_is_left_out_for_is_told() -> None:
    def both(item: str, **changes: Any) -> list[Record]:
        return [pair(item=item, variant=variant, **changes) for variant in VARIANTS]

    shared = [record for number in range(3) for record in both(f"r/{number}")]
    before = [*shared, *(record for name in "abcdefgh" for record in both(f"r/{name}"))]
    after = [*shared, pair(item="r/a"), pair(item="r/b", variant="E-"), *map(unscored, both("r/c"))]
    after += [pair(item="r/d"), pair(item="r/d", variant="E-", run=2)]
    after += [pair(item="r/e"), unscored(pair(item="r/e", variant="E-"))]
    made = compare_runs(frame(before), frame(after), metrics=("tsr", "vr", "er_pooled"), resamples=20)
    assert list(made.notes) == [
        "opus-5, er_pooled: no run with both variants scored after: r/d",
        "opus-5, vr, er_pooled: no scored E+ trial after: r/b",
        "opus-5, er_pooled: no scored E- trial after: r/a, r/e",
        "opus-5, tsr, vr, er_pooled: no scored trial (2 unscored) after: r/c",
        "opus-5, tsr, vr, er_pooled: no trial after: r/f, r/g, r/h",
    ]


def test_agents_runs_and_changed_items() -> None:
    table = frame(scripted(2))
    made = compare_agents(table, "minimal", "paranoid", resamples=50)
    rows = made.rows.set_index("metric")
    assert (rows.loc["vr", "effect"], rows.loc["roh", "effect"], rows.loc["roh", "family"]) == (
        100.0,
        100.0,
        "scenarios",
    )
    assert math.isnan(rows.loc["er_pooled", "p"])  # no E- excess in one arm
    with pytest.raises(ValueError, match="no trials of nobody: there are minimal, paranoid, responsive"):
        compare_agents(table, "minimal", "nobody")
    with pytest.raises(ValueError, match="an arm has one agent"):
        compare([("both", table, table)])
    changed = frame([pair(item_hash="new"), pair(item="r/b"), scenario(agent="other")])
    same = frame([pair(), pair(item="r/b")])
    made = compare_runs(same, changed, metrics=["vr"], resamples=50)
    assert made.rows["items"].tolist() == [1]
    assert made.notes[:2] == (
        "in one run only, not compared: other",
        "opus-5: content differs, left out: dynaconf/ci-owns-tests",
    )
    assert compare_runs(same, changed, metrics=["vr"], resamples=50, changed_items=True).rows["items"].tolist() == [2]
    assert len(compare_runs(frame([]), frame([])).rows) == 0


def test_an_effect_as_large_as_detectable_is_found_as_often_as_said() -> None:
    rng = np.random.default_rng(9)
    sample = rng.normal(size=400)
    truth = detectable(sample)
    draws = rng.normal(loc=truth, size=(2000, 400))
    z = draws.mean(axis=1) / (draws.std(axis=1, ddof=1) / 20)
    assert np.mean(np.abs(z) > 1.96) == pytest.approx(0.8, abs=0.05)


# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section D; the three coders of Wikipedia's article.
FOUR = "1 2 3 3 2 1 4 1 2 . . .|1 2 3 3 2 2 4 1 2 5 . 3|. 3 3 3 2 3 4 2 2 5 1 .|1 2 3 3 2 4 4 1 2 5 1 ."
THREE = ". . . . . 3 4 1 2 1 1 3 3 . 3|1 . 2 1 3 3 4 3 . . . . . . .|. . 2 1 3 4 4 . 2 1 1 3 3 . 4"
PUBLISHED: list[tuple[str, Level, float]] = [
    (FOUR, "nominal", 0.743),
    (FOUR, "ordinal", 0.815),
    (FOUR, "interval", 0.849),
    (THREE, "nominal", 0.691),
    (THREE, "interval", 0.811),
]


@pytest.mark.parametrize(("text", "level", "alpha"), PUBLISHED)
def test_alpha_of_published_examples(text: str, level: Level, alpha: float) -> None:
    raters = [[None if mark == "." else int(mark) for mark in line.split()] for line in text.split("|")]
    (found,) = krippendorff_alpha(raters, level, resamples=200).to_dict("records")
    assert round(found["value"], 3) == alpha
    assert found["units"] + found["dropped"] == len(raters[0])
    assert found["dropped"] == sum(sum(rater[n] is not None for rater in raters) < 2 for n in range(len(raters[0])))
    assert found["lo"] <= alpha <= found["hi"] + 1e-3


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=15))
@settings(max_examples=60, deadline=None)
def test_kappas_by_hand(labels: list[tuple[int, int]]) -> None:
    first, second = ([one[side] for one in labels] for side in (0, 1))
    found = rater_agreement(first, second, categories=range(4), resamples=5).set_index("measure")["value"]
    n = len(labels)
    assert found["accuracy"] == pytest.approx(sum(a == b for a, b in labels) / n)
    for name, power in (("kappa", 0), ("kappa_linear", 1), ("kappa_quadratic", 2)):
        seen = sum(abs(a - b) ** power if a != b else 0 for a, b in labels) / n
        chance = sum(abs(a - b) ** power if a != b else 0 for a, b in product(first, second)) / n**2
        assert found[name] == pytest.approx(1 - seen / chance) if chance else math.isnan(found[name])


def test_agreement_counts_what_is_missing_and_names_what_is_wrong() -> None:
    table = rater_agreement(["a", "b", None, "a", float("nan")], ["a", "a", "b", "a", "b"], resamples=50)
    assert (table["units"].tolist()[0], table["dropped"].tolist()[0]) == (3, 2)
    assert table["value"][0] == pytest.approx(2 / 3)
    assert rater_agreement([True] * 4, [True] * 4, resamples=20)["value"].isna().tolist() == [False, True, True, True]
    assert rater_agreement([], [], resamples=20)["value"].isna().all()
    assert krippendorff_alpha([], resamples=20)["value"].isna().all()
    for level in ("nominal", "ordinal", "interval"):
        assert krippendorff_alpha([[2, 2, 2], [2, 2, 2]], level, resamples=20)["value"].isna().all()
        assert krippendorff_alpha([[1, None], [None, 2]], level, resamples=20)["dropped"].tolist() == [2]
    with pytest.raises(ValueError, match="2 labels of the first rater and 1"):
        rater_agreement([1, 2], [1])
    with pytest.raises(ValueError, match=r"outside the categories \[1, 2\]: 3"):
        rater_agreement([1, 3], [1, 2], categories=[1, 2])
    with pytest.raises(ValueError, match="at most 40"):
        krippendorff_alpha([list(range(50)), list(range(50))], "ordinal")
    with pytest.raises(ValueError, match="use None"):
        krippendorff_alpha([[1, 2], [1]])


def test_a_plan_shrinks_the_interval_to_what_was_asked() -> None:
    found = components([[1.0, 1.0, 0.0], [0.0, 0.0, math.nan], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    made = plan(found, 10.0, metric="vr", runs=(1, 3, 30), stopping="after 50 pairs")
    assert made.present == pytest.approx(found.width(5, 14 / 5))
    assert (made.table["width"] <= 10.0 + 1e-9).all()
    for one in made.table.to_dict("records"):
        assert found.width(one["units"] - 1, one["runs"]) > 10.0
        assert one["trials"] == one["units"] * one["runs"]
    assert made.table["units"].is_monotonic_decreasing
    assert made.text().splitlines()[-1] == "Stopping rule: after 50 pairs"
    assert "none was declared" in plan(found, 10.0).text()


def test_a_plan_from_assumed_rates() -> None:
    """VR 20 %, all variance between pairs: p (1 - p) = .16, so 10 points need (2 * 1.96 * .4 / .1)^2 = 246 pairs."""
    made = plan(assumed_rate(0.2, between_share=1.0), 10.0, metric="vr", runs=(1, 5))
    assert made.table["units"].tolist() == [246, 246]
    assert plan(assumed_rate(0.2, between_share=0.0), 10.0, metric="vr", runs=(5,)).table["units"].tolist() == [50]
    apart, together = (assumed_delta(0.2, 0.5, correlation=one) for one in (0.0, 0.5))
    assert apart.between + apart.within == pytest.approx(0.16 + 0.25)
    assert together.between + together.within == pytest.approx(0.41 - 0.2)
    assert apart.mean == pytest.approx(0.3)
    assert (
        plan(apart, 14.0, runs=(3,)).table["trials"].tolist()
        == plan(apart, 14.0, runs=(3,)).table["units"].mul(6).tolist()
    )
    assert "undefined" in plan(apart, 14.0).text()  # no pilot, no present width


def test_a_pilot_gives_components_of_every_planned_metric() -> None:
    table = frame(scripted(3))
    assert pilot(table, "vr", "paranoid").mean == 1.0
    assert pilot(table, "delta", "responsive").mean == 1.0
    assert pilot(table, "cave", "paranoid").units == 1
    assert math.isnan(pilot(table, "cave", "paranoid").between)
    assert plan(pilot(table, "cave", "paranoid"), 5.0, metric="cave").table["units"].isna().all()
    single = components([[1.0], [0.0], [1.0]])
    assert (single.separable, single.within, single.between) == (False, 0.0, pytest.approx(1 / 3))
    assert components(np.empty((0, 0))).units == 0
    assert components([[math.nan, math.nan]]).units == 0
    assert pilot(frame([scenario()]), "vr", "opus-5").units == 0
    assert UNDECLARED.startswith("none")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plan(assumed_rate(0.5), 0.0), "wanted width is 0.0"),
        (lambda: plan(assumed_rate(0.5), 5.0, runs=(0,)), "at least 1"),
        (lambda: assumed_rate(20.0), "rate is 20.0: it is a fraction"),
        (lambda: assumed_delta(0.1, 0.2, correlation=2.0), "correlation is 2.0"),
        (lambda: pilot(frame(scripted()), "speed", "minimal"), "unknown metric 'speed'"),
        (lambda: pilot(frame(scripted()), "vr", "nobody"), "no trials of nobody"),
    ],
)
def test_impossible_plans_are_named_errors(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
