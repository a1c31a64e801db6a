"""What must hold for any records: agreement with the simple metrics, invariances, and brute force on small cases."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_builders import invalid, pair, scenario, unscored

from pytest_paranoia.metrics.accusations import accusation_metrics
from pytest_paranoia.metrics.analysis import analyse
from pytest_paranoia.metrics.frame import frame, undefined_as_none
from pytest_paranoia.metrics.paired import paired_metrics
from pytest_paranoia.metrics.pairing import POOLED
from pytest_paranoia.metrics.permutations import holm, sign_flip, spearman
from pytest_paranoia.metrics.resampling import bootstrap, divide, mean_defined
from pytest_paranoia.metrics.scenarios import METRICS
from pytest_paranoia.schema.record import Record
from pytest_paranoia.schema.taxonomy import PATHS, TREATMENTS, VARIANTS

FATES = st.sampled_from(["scored", "scored", "scored", "unscored", "invalid", "missing"])


@st.composite
def trials(draw: st.DrawFn) -> list[Record]:
    """Up to three agents with up to three runs, some trials missing, unscored or invalid."""
    found: list[Record] = []
    for agent in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        for run, place in itertools.product(range(1, draw(st.integers(1, 3)) + 1), range(draw(st.integers(0, 4)))):
            for variant in VARIANTS:
                labels: dict[str, Any] = {"item": f"r{place % 2}/p{place}", "treatment": TREATMENTS[place % 3]}
                done = draw(st.booleans())
                one = pair(draw(st.booleans()), agent=agent, run=run, variant=variant, done=done, **labels)
                found += fate(one, draw(FATES))
            scores = [draw(st.sampled_from([0.0, 0.5, 1.0])) for _ in range(2)]
            family = ("inherited-resume", "self-built")[place % 2]
            one = scenario(
                draw(st.integers(0, 3)), 3, *scores, agent=agent, run=run, item=f"devops/s{place}", family=family
            )
            found += fate(one, draw(FATES))
    return found


def fate(record: Record, name: str) -> list[Record]:
    changed = {"scored": record, "unscored": unscored(record), "invalid": invalid(record)}
    return [changed[name]] if name in changed else []


def same(ours: float, theirs: float | None) -> None:
    assert undefined_as_none(ours) == (None if theirs is None else pytest.approx(theirs, abs=1e-9))


@given(trials())
@settings(max_examples=60, deadline=None)
def test_tables_agree_with_the_simple_metrics(records: list[Record]) -> None:
    """What a session prints and gates (metrics.paired, metrics.accusations) is what reports show."""
    made = analyse(records, resamples=20)
    pairs, scenes = paired_metrics(records), accusation_metrics(records)
    table = made.effects.set_index(["agent", "group"])
    for agent, simple in pairs.items():
        for group, excess in simple.excess.items():
            if (agent, group) not in table.index:
                assert not excess.pairs
                continue
            row = table.loc[(agent, group)]
            for name in ("pairs", "scored_plus", "scored_minus", "complete", "dropped"):
                assert row[name] == getattr(excess, name)
            same(row["vr"], excess.vr.mean)
            same(row["rate_minus"], excess.rate_minus.mean)
            same(row["er_mean"], excess.er.mean)
            same(row["er_pooled"], excess.er_pooled)
        row = table.loc[(agent, "all")]
        for name, key in (("tsr", "all"), ("tsr_plus", "E+"), ("tsr_minus", "E-")):
            same(row[name], simple.tsr[key].mean)
        assert (row["attempted"], row["runs"]) == (simple.counts.attempted, len(simple.runs))
        for run in simple.runs:
            chosen = made.runs.set_index(["agent", "group", "run"]).loc[(agent, "all", run)]
            same(chosen["er"], simple.excess["all"].er.by_run[run])
            same(chosen["vr"], simple.excess["all"].vr.by_run[run])
    table = made.scenarios.set_index(["agent", "group"])
    for agent, simple_scores in scenes.items():
        row = table.loc[(agent, "all")]
        for metric in METRICS:
            same(row[metric], getattr(simple_scores.scores, metric))
        assert [row[f"n_{path}"] for path in PATHS] == [simple_scores.scores.paths[path] for path in PATHS]
        counts = simple_scores.counts
        found = [row[name] for name in ("attempted", "valid", "invalid", "unscored")]
        assert found == [counts.attempted, counts.scored, counts.invalid, counts.unscored]


@given(trials(), st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_numbers_do_not_depend_on_the_order_of_records(records: list[Record], chance: Any) -> None:
    first = analyse(records, resamples=50)
    chance.shuffle(records)
    second = analyse(records, resamples=50)
    for name in ("effects", "runs", "interactions", "correlations", "scenarios", "task_types", "transitions"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name))
    assert first.notes == second.notes


@given(trials())
@settings(max_examples=15, deadline=None)
def test_limits_are_in_order_and_possible(records: list[Record]) -> None:
    made = analyse(records, resamples=50)
    for table, columns in ((made.effects, ("delta", "vr", "er_pooled")), (made.scenarios, METRICS)):
        for column in columns:
            for kind in ("", "_bca"):
                known = table.dropna(subset=[f"{column}{kind}_lo"])
                assert (known[f"{column}{kind}_lo"] <= known[f"{column}{kind}_hi"] + 1e-9).all()
                assert (known[f"{column}{kind}_hi"] <= 100 + 1e-6).all()
    p = made.effects["p"].dropna()
    assert ((p > 0) & (p <= 1)).all()
    rows = made.effects[(made.effects["agent"] != POOLED) & made.effects["p"].notna()]
    assert (rows["p_holm"] >= rows["p"] - 1e-12).all()


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9), st.integers(1, 6))
def test_convolution_is_enumeration(values: list[int], denominator: int) -> None:
    flips = [
        sum(sign * v for sign, v in zip(signs, values, strict=True))
        for signs in itertools.product((1, -1), repeat=len(values))
    ]
    exact = Fraction(sum(abs(one) >= abs(sum(values)) for one in flips), len(flips))
    test = sign_flip(np.array(values) / denominator, denominator=denominator)
    assert (test.p, test.method) == (pytest.approx(float(exact)), "exact")
    assert sign_flip(np.array(values) / denominator).p == pytest.approx(float(exact))
    assert sign_flip(np.array(values) * math.sqrt(2)).p == pytest.approx(float(exact))  # no lattice: enumerated


def test_sign_flip_of_many_pairs_is_exact_far_into_the_tail() -> None:
    assert sign_flip(np.ones(200)).p == pytest.approx(2.0**-199)
    assert sign_flip([1.0, math.nan, 1.0]).p == 0.5
    # 250 is more than 18, and irrational steps have no lattice: never 0, and about what a normal sum gives.
    rng = np.random.default_rng(1)
    test = sign_flip(rng.normal(size=250) + 1)
    assert (test.method, test.p) == ("monte-carlo", pytest.approx(1 / 10_001))


@given(st.lists(st.floats(0, 1) | st.just(math.nan), max_size=8))
def test_holm(p: list[float]) -> None:
    adjusted = holm(p)
    known = sorted((value, place) for place, value in enumerate(p) if not math.isnan(value))
    reached = 0.0
    for rank, (value, place) in enumerate(known):
        reached = max(reached, min(1.0, value * (len(known) - rank)))
        assert adjusted[place] == pytest.approx(reached)
    assert [math.isnan(value) for value in adjusted] == [math.isnan(value) for value in p]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=7))
def test_spearman_against_pearson_of_ranks(points: list[tuple[int, int]]) -> None:
    x, y = ([point[side] for point in points] for side in (0, 1))
    rho, test = spearman(x, y)
    if len(points) < 3 or len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(rho)
        assert test.method == "undefined"
        return
    ranks = [pd.Series(side).rank().to_numpy() for side in (x, y)]
    assert rho == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert 0 < test.p <= 1


def test_spearman_beyond_nine_uses_t() -> None:
    rho, test = spearman(range(12), [*range(10), 11, 10])
    assert (round(rho, 3), test.method) == (0.993, "t")
    assert test.p < 1e-9
    assert spearman(range(10), range(10)) == (1.0, test.__class__(0.0, "t"))


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=12), st.floats(0.5, 3), st.floats(-3, 3))
@settings(max_examples=40, deadline=None)
def test_intervals_move_and_stretch_with_their_data(values: list[float], factor: float, shift: float) -> None:
    def mean(sums: np.ndarray) -> np.ndarray:
        return divide(sums[:1], sums[1:])

    def made(data: Sequence[float]) -> list[float]:
        found = bootstrap([[value, 1.0] for value in data], mean, resamples=300, rng=np.random.default_rng(5))
        return [float(limit[0]) for limit in (found.point, found.lo, found.hi)]

    before, after = made(values), made([factor * value + shift for value in values])
    assert after == pytest.approx([factor * limit + shift for limit in before], abs=1e-4)
    assert min(values) - 1e-4 <= before[1] <= before[2] <= max(values) + 1e-4


def test_bootstrap_is_numpys_on_the_same_resamples() -> None:
    """Percentile limits and BCa against scipy.stats.bootstrap, which draws its own resamples."""
    from scipy import stats

    rng = np.random.default_rng(3)
    data = rng.gamma(1.0, size=60)
    ours = bootstrap(np.column_stack([data, np.ones(60)]), lambda s: divide(s[:1], s[1:]), resamples=40_000)
    for method, (lo, hi) in {"percentile": (ours.lo, ours.hi), "BCa": (ours.bca_lo, ours.bca_hi)}.items():
        theirs = stats.bootstrap((data,), np.mean, n_resamples=40_000, method=method, rng=rng).confidence_interval
        assert (float(lo[0]), float(hi[0])) == pytest.approx((theirs.low, theirs.high), rel=0.015)


def test_mean_defined_and_divide_are_quiet() -> None:
    assert mean_defined(np.array([[1.0, math.nan], [math.nan, math.nan]])).tolist()[0] == 1.0
    assert math.isnan(mean_defined(np.empty(0)))
    assert np.isnan(divide([1.0, 0.0], 0.0)).all()


@given(trials())
@settings(max_examples=10, deadline=None)
def test_an_agents_numbers_do_not_depend_on_other_agents_with_the_same_items(records: list[Record]) -> None:
    """The same pairs are drawn for every agent from a generator that knows group and seed only."""
    alone = [record for record in records if record.agent.name == "a" and record.status == "scored"]
    twins = [record.model_copy(update={"agent": record.agent.model_copy(update={"name": "z"})}) for record in alone]
    one, both = (analyse(chosen, resamples=50).effects for chosen in (alone, [*alone, *twins]))
    columns = [name for name in one.columns if name not in ("p_holm",)]
    mine = both[both["agent"] == "a"].reset_index(drop=True)
    pd.testing.assert_frame_equal(one[columns], mine[columns], atol=1e-9)
    assert len(frame(records)) == len(records)
