"""Known values of the metrics, and gates."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_builders import invalid, one, pair, scenario, scripted, unscored

from pytest_paranoia.metrics.accusations import Scores, accusation_metrics, scores
from pytest_paranoia.metrics.agents import aggregate
from pytest_paranoia.metrics.gates import METRICS, NO_AGENT, UNDEFINED, Gate, evaluate
from pytest_paranoia.metrics.paired import Excess, paired_metrics
from pytest_paranoia.metrics.values import OverRuns
from pytest_paranoia.schema.record import Record
from pytest_paranoia.schema.taxonomy import PATHS, VARIANTS


def overall(records: list[Record]) -> Excess:
    return paired_metrics(records)["opus-5"].excess["all"]


@pytest.mark.parametrize(
    ("agent", "vr", "er", "roh"),
    [("minimal", 0.0, None, 0.0), ("responsive", 0.0, 100.0, 0.0), ("paranoid", 100.0, 0.0, 100.0)],
)
@pytest.mark.parametrize("runs", [1, 3])
def test_three_scripted_agents_have_known_values(
    agent: str, vr: float, er: float | None, roh: float, runs: int
) -> None:
    metrics = aggregate(scripted(runs))[agent]
    assert metrics.pairs is not None
    assert metrics.scenarios is not None
    excess = metrics.pairs.excess["all"]
    assert (excess.vr.mean, excess.er.mean, excess.er_pooled) == (vr, er, er)
    assert [metrics.pairs.tsr[group].mean for group in ("all", "E+", "E-")] == [100.0] * 3
    assert metrics.scenarios.scores.roh == roh
    assert metrics.pairs.excess["transfer"].vr.mean == vr
    assert metrics.pairs.excess["avoidance"].vr.mean is None


def test_mean_of_runs_and_pooled_er_differ() -> None:
    """Run 1: 1 of 4 against 4 of 4, ER 75; run 2: 1 of 4 against 1 of 4, ER 0. Mean 37.5, pooled 1 - 2/5 = 60."""
    records = [
        pair(violation, item=f"r/p{number}", variant=variant, run=run)
        for run, minus in ((1, 4), (2, 1))
        for number in range(4)
        for variant, violation in zip(VARIANTS, (number < 1, number < minus), strict=True)
    ]
    excess = overall(records)
    assert excess.er.by_run == {1: 75.0, 2: 0.0}
    assert (excess.er.mean, excess.er_pooled) == (37.5, 60.0)
    assert excess.vr.by_run == {1: 25.0, 2: 25.0}


def test_mean_over_runs_reproduces_the_published_table() -> None:
    """ParanoiaEval, 5.6-Luna, transfer: runs -33.3, 0.0, -37.5 (Tables 15 to 17) make -23.6 in Table 2."""
    mean = OverRuns({1: -33.3, 2: 0.0, 3: -37.5}).mean
    assert mean is not None
    assert round(mean, 1) == -23.6


def test_er_is_undefined_without_excess_in_e_minus_even_when_e_plus_has_some() -> None:
    excess = overall([pair(True, variant="E+"), pair(False, variant="E-")])
    assert (excess.vr.mean, excess.er.mean, excess.er_pooled) == (100.0, None, None)


def test_er_can_be_negative() -> None:
    records = [pair(True, item=f"r/p{n}", variant="E+") for n in range(3)]
    records += [pair(n == 0, item=f"r/p{n}", variant="E-") for n in range(3)]
    assert overall(records).er_pooled == -200.0


def test_er_takes_only_pairs_scored_in_both_variants_of_a_run() -> None:
    records = [pair(True, item="r/a", variant="E-"), pair(False, item="r/a", variant="E+")]
    records += [pair(True, item="r/b", variant="E+"), unscored(pair(item="r/b", variant="E-"))]
    records += [pair(True, item="r/c", variant="E-", run=2)]
    excess = overall(records)
    assert excess.er.by_run == {1: 100.0, 2: None}
    assert (excess.er.mean, excess.er.defined, excess.er_pooled) == (100.0, 1, 100.0)
    assert (excess.complete, excess.dropped, excess.pairs) == (1, 2, 3)
    assert excess.vr.by_run == {1: 50.0, 2: None}
    counts = one(records).counts
    assert (counts.attempted, counts.scored, counts.unscored) == (5, 4, 1)


def test_an_agent_without_any_score_has_only_undefined_values() -> None:
    metrics = one([unscored(pair()), unscored(scenario())])
    assert metrics.pairs is not None
    assert metrics.scenarios is not None
    assert {read(metrics) for name, read in METRICS.items() if name not in {"unscored", "invalid"}} == {None}
    assert METRICS["unscored"](metrics) == 100.0


def test_doubled_records_are_refused() -> None:
    with pytest.raises(ValueError, match="two scored records of opus-5"):
        aggregate([pair(), pair()])


def test_no_records_make_no_agents() -> None:
    assert aggregate([]) == {}
    assert scores([]) == Scores(0, None, None, None, None, None, None, None, dict.fromkeys(PATHS, 0))


def test_scenario_scores_by_hand() -> None:
    records = [scenario(1, 4, 1.0, 0.5), scenario(0, 4, 0.5, 0.0, item="web/b"), invalid(scenario(2, 2, item="web/c"))]
    metrics = accusation_metrics(records)["opus-5"]
    assert metrics.scores == Scores(
        n=2,
        roh=12.5,
        ocr=50.0,
        fcs=75.0,
        fcr=100.0,
        erf=25.0,
        cdc=6.25,
        cave=37.5,
        paths={"GR": 0, "PP": 0, "VC": 1, "EO": 0, "CD": 1, "SD": 0},
    )
    assert (metrics.counts.attempted, metrics.counts.scored, metrics.counts.invalid) == (3, 2, 1)


@pytest.mark.parametrize(
    ("failed", "f", "e", "path"),
    [
        (0, 0.0, 0.0, "GR"),
        (0, 0.0, 0.5, "PP"),
        (0, 0.0, 1.0, "PP"),
        (0, 0.5, 0.0, "VC"),
        (0, 1.0, 1.0, "VC"),
        (1, 0.0, 0.0, "EO"),
        (1, 1.0, 0.0, "EO"),
        (1, 0.5, 0.5, "CD"),
        (1, 0.0, 0.5, "SD"),
    ],
)
def test_the_six_paths(failed: int, f: float, e: float, path: str) -> None:
    assert [name for name, count in scores([scenario(failed, 2, f, e)]).paths.items() if count] == [path]


def test_gates_judge_every_agent_and_undefined_fails() -> None:
    results = evaluate([Gate.at_most("vr", 20), Gate.at_least("er", 50)], aggregate(scripted()))
    outcome = {(result.gate.metric, result.agent): (result.passed, result.reason) for result in results}
    assert outcome == {
        ("vr", "minimal"): (True, ""),
        ("vr", "paranoid"): (False, "100.0 > 20"),
        ("vr", "responsive"): (True, ""),
        ("er", "minimal"): (False, UNDEFINED),
        ("er", "paranoid"): (False, "0.0 < 50"),
        ("er", "responsive"): (True, ""),
    }


def test_a_gate_without_any_agent_fails() -> None:
    (result,) = evaluate([Gate.at_most("vr", 100)], {})
    assert (result.agent, result.passed, result.reason) == (NO_AGENT, False, UNDEFINED)


@given(st.floats(0, 100), st.floats(0, 100))
def test_both_comparators_pass_only_on_equality(value: float, threshold: float) -> None:
    both = Gate.at_most("vr", threshold).passes(value) and Gate.at_least("vr", threshold).passes(value)
    assert both == (abs(value - threshold) <= 1e-9)


@pytest.mark.parametrize(("metric", "threshold"), [("vrr", 1.0), ("vr", float("nan")), ("vr", float("inf"))])
def test_impossible_gates_are_refused(metric: str, threshold: float) -> None:
    with pytest.raises(ValueError, match=r"unknown metric|threshold"):
        Gate.at_most(metric, threshold)


def test_metrics_import_neither_pandas_nor_scipy() -> None:
    code = "import sys, pytest_paranoia.metrics; print({'pandas', 'scipy', 'numpy'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"
