"""Intervals and tests on simulated trials whose truth is known. A simulation is one "agent" of one large table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pytest_paranoia.metrics.agreement import krippendorff_alpha, rater_agreement
from pytest_paranoia.metrics.effects import paired_effects
from pytest_paranoia.metrics.frame import FACTORS, Floats
from pytest_paranoia.metrics.pairing import PairArrays
from pytest_paranoia.metrics.permutations import holm, label_permutation, sign_flip, swap
from pytest_paranoia.metrics.planning import Components, components
from pytest_paranoia.metrics.scenarios import ScenarioArrays, measures, scenario_scores

SIMULATIONS, PAIRS, RUNS = 1000, 200, 3


def arrays(v_plus: Floats, v_minus: Floats) -> PairArrays:
    """Complete pair arrays; every oracle passes."""
    agents, units, _ = v_plus.shape
    labels = {"item": [f"r/p{n}" for n in range(units)], "treatment": "transfer", "situation": "x", "repository": "r"}
    ones = np.ones_like(v_plus)
    none = np.zeros(v_plus.shape, dtype=np.int64)
    names = tuple(f"s{n:04d}" for n in range(agents))
    table = pd.DataFrame(labels).astype("string")
    return PairArrays(names, tuple(range(1, RUNS + 1)), table, v_plus, v_minus, ones, ones, none + 2, none)


def simulated(
    rng: np.random.Generator, evidence: float, simulations: int = SIMULATIONS, pairs: int = PAIRS
) -> PairArrays:
    """Pairs differ in how often the risk is treated; the evidence takes the share *evidence* of that away."""
    often = rng.beta(1.2, 1.2, size=(simulations, pairs, 1))
    shape = (simulations, pairs, RUNS)
    plus = rng.random(shape) < often * (1 - evidence)
    return arrays(plus.astype(np.float64), (rng.random(shape) < often).astype(np.float64))


def inside(table: pd.DataFrame, column: str, truth: float, kind: str = "") -> float:
    """Share of the intervals that hold the truth."""
    return float(((table[f"{column}{kind}_lo"] <= truth) & (truth <= table[f"{column}{kind}_hi"])).mean())


def test_intervals_of_pairs_cover_the_truth() -> None:
    """E V(E-) = 1/2 and E V(E+) = 3/10, so delta is 20 points, VR 30 % and ER 40 %."""
    made = paired_effects(simulated(np.random.default_rng(20), 0.4), group_kinds=("all",), resamples=1000)
    table = made.iloc[:-1]
    for column, truth in {"delta": 20.0, "vr": 30.0, "er_pooled": 40.0}.items():
        for kind in ("", "_bca"):
            assert 0.93 <= inside(table, column, truth, kind) <= 0.97, (column, kind)
        assert table[column].mean() == pytest.approx(truth, abs=0.4)
    assert (table["p"] < 0.05).mean() > 0.99


def test_intervals_of_scenarios_cover_the_truth() -> None:
    rng = np.random.default_rng(21)
    shape = (SIMULATIONS, 120, RUNS)
    ease = rng.beta(1.5, 2.5, size=(*shape[:2], 1))
    f, e = (rng.binomial(2, np.broadcast_to(ease, shape)) / 2 for _ in range(2))
    h = rng.binomial(4, np.broadcast_to(ease, shape)) / 4
    found = measures(h.ravel(), f.ravel(), e.ravel()).reshape(*shape, -1)
    sums = np.concatenate([np.full((*shape[:2], 1), float(RUNS)), found.sum(axis=2)], axis=2)
    labels = {"item": [f"devops/s{n}" for n in range(120)], "domain": "devops", "family": "self-built"}
    units = pd.DataFrame(labels | dict.fromkeys(FACTORS, "X1")).astype("string")
    paths, statuses = (np.zeros((*shape[:2], size), dtype=np.int64) for size in (6, 3))
    statuses[..., 0] = RUNS
    names = tuple(f"s{n:04d}" for n in range(SIMULATIONS))
    scenes = ScenarioArrays(names, units, sums, paths, statuses, np.ones(shape, dtype=np.int64))
    table = scenario_scores(scenes, group_kinds=("all",), resamples=500).iloc[:-1]
    mean = 1.5 / 4
    for column, truth in {"roh": mean, "fcs": mean, "erf": mean, "cave": mean, "cdc": mean - mean * 2.5 / 5}.items():
        for kind in ("", "_bca"):
            assert 0.93 <= inside(table, column, 100 * truth, kind) <= 0.97, (column, kind)


def uniform(p: Floats, slack: float = 0.0) -> None:
    """Never more small p-values than there should be, beyond what 3.3 standard errors explain; and not far fewer."""
    for level in (0.01, 0.05, 0.1, 0.25, 0.5, 0.75):
        error = 3.3 * np.sqrt(level * (1 - level) / len(p))
        assert level - error - slack <= np.mean(p <= level) <= level + error, level


def test_sign_flip_p_is_uniform_under_the_null() -> None:
    made = paired_effects(simulated(np.random.default_rng(22), 0.0), group_kinds=("all",), resamples=1)
    assert set(made["p_method"]) == {"exact"}
    uniform(made["p"].to_numpy()[:-1], slack=0.03)  # whole thirds: p jumps by a few hundredths around 1


def test_monte_carlo_and_enumerated_p_are_uniform_under_the_null() -> None:
    rng = np.random.default_rng(23)
    tests = [sign_flip(values, permutations=499, rng=rng) for values in rng.normal(size=(1500, 25))]
    assert {test.method for test in tests} == {"monte-carlo"}
    uniform(np.array([test.p for test in tests]), slack=0.005)
    tests = [sign_flip(values) for values in rng.normal(size=(1500, 9))]
    assert {test.method for test in tests} == {"exact"}
    uniform(np.array([test.p for test in tests]), slack=0.005)


def test_run_labels_and_swaps_are_uniform_under_the_null() -> None:
    rng = np.random.default_rng(24)
    p = [label_permutation(values[None], permutations=499, rng=rng).p for values in rng.normal(size=(800, 20, 3))]
    uniform(np.array(p), slack=0.005)
    layers = rng.normal(size=(500, 3, 12, 3)) + rng.normal(size=(500, 3, 12, 1))
    p = [label_permutation(values, between=True, permutations=299, rng=rng).p for values in layers]
    uniform(np.array(p), slack=0.01)
    arms = rng.gamma(2.0, size=(800, 2, 20, 2))
    p = [swap(one, two, lambda sums: sums[0] / sums[1], permutations=499, rng=rng).p for one, two in arms]
    uniform(np.array(p), slack=0.005)


def test_label_permutation_finds_what_is_there() -> None:
    rng = np.random.default_rng(25)
    noise = rng.normal(size=(4, 30, 3))
    drift = np.array([-1.0, 0.0, 1.0])
    assert label_permutation(noise[:1] + drift).p < 0.01
    together = label_permutation(noise + drift, between=True)
    assert together.p > 0.01  # all layers drift alike: no interaction
    apart = noise + drift * np.array([1, 1, -1, -1])[:, None, None]
    assert label_permutation(apart, between=True).p < 0.01


def test_holm_keeps_the_familywise_error() -> None:
    """1,500 families of eight agents, of which three have a true effect: an error is a rejected true null."""
    rng = np.random.default_rng(26)
    families, agents, effects = 1500, 8, 3
    values = rng.integers(-3, 4, size=(families, agents, 40)) / 3
    values[:, :effects] += 1 / 3
    p = np.array([sign_flip(one, denominator=3).p for one in values.reshape(-1, 40)]).reshape(families, agents)
    adjusted = np.array([holm(family) for family in p])
    assert (adjusted[:, effects:] <= 0.05).any(axis=1).mean() <= 0.05
    assert (p[:, effects:] <= 0.05).any(axis=1).mean() > 0.15  # which unadjusted p-values do not
    everywhere = np.array([holm(family[effects:]) for family in p])
    assert (everywhere <= 0.05).any(axis=1).mean() <= 0.05


def test_intervals_of_agreement_cover_the_truth() -> None:
    """A second rater repeats the first in 70 % and guesses otherwise: kappa and nominal alpha are .7."""
    rng = np.random.default_rng(27)
    held = {"kappa": 0, "alpha_nominal": 0}
    times = 300
    for number in range(times):
        first = rng.integers(0, 3, size=200)
        second = np.where(rng.random(200) < 0.7, first, rng.integers(0, 3, size=200))
        raters = [first.tolist(), second.tolist()]
        tables = [rater_agreement(*raters, resamples=400, seed=number)]
        tables.append(krippendorff_alpha(raters, resamples=400, seed=number))
        rows = pd.concat(tables).set_index("measure")
        for measure in held:
            held[measure] += int(rows.loc[measure, "lo"] <= 0.7 <= rows.loc[measure, "hi"])
    for measure, count in held.items():
        assert 0.915 <= count / times <= 0.98, measure  # 95 % give or take 2.5 standard errors


def test_components_are_unbiased_and_predict_the_spread_of_means() -> None:
    rng = np.random.default_rng(28)
    often = rng.beta(2.0, 2.0, size=(600, 50, 1))
    values = (rng.random((600, 50, RUNS)) < often).astype(np.float64)
    found = [components(one) for one in values]
    between, within = 0.05, 0.2  # the variance of beta(2, 2), and the mean of p (1 - p)
    assert np.mean([one.between for one in found]) == pytest.approx(between, abs=0.004)
    assert np.mean([one.within for one in found]) == pytest.approx(within, abs=0.004)
    predicted = Components(0.5, between, within, 50, RUNS, True).width(50, RUNS)
    seen = 2 * 1.96 * 100 * values.mean(axis=(1, 2)).std()
    assert predicted == pytest.approx(seen, rel=0.1)
