"""Rules of the metrics that hold for any set of records."""

from __future__ import annotations

import random
from math import isclose

from hypothesis import given
from hypothesis import strategies as st
from record_builders import invalid, pair, scenario, unscored

from pytest_paranoia.metrics.accusations import accusation_metrics
from pytest_paranoia.metrics.paired import TREATMENT_GROUPS, PairedMetrics, paired_metrics
from pytest_paranoia.schema.record import Record
from pytest_paranoia.schema.taxonomy import TREATMENTS

STATUSES = st.sampled_from(["yes", "yes", "no", "no", "unscored", "absent"])


@st.composite
def pair_records(draw: st.DrawFn, runs: int = 3, complete: bool = False) -> list[Record]:
    """Records of one agent; not complete: some trials are unscored or absent."""
    statuses = st.sampled_from(["yes", "no"]) if complete else STATUSES
    records: list[Record] = []
    for number in range(draw(st.integers(1, 4))):
        treatment = TREATMENTS[draw(st.integers(0, 3))]
        for run in range(1, draw(st.integers(1, runs)) + 1):
            for variant in ("E+", "E-"):
                status = draw(statuses)
                if status != "absent":
                    record = pair(
                        status == "yes",
                        item=f"r/p{number}",
                        run=run,
                        variant=variant,
                        treatment=treatment,
                        done=draw(st.booleans()),
                    )
                    records.append(unscored(record) if status == "unscored" else record)
    return records


@st.composite
def scenario_records(draw: st.DrawFn) -> list[Record]:
    records: list[Record] = []
    for number in range(draw(st.integers(1, 12))):
        events = draw(st.integers(1, 7))
        half_steps = st.sampled_from([0.0, 0.5, 1.0])
        record = scenario(
            draw(st.integers(0, events)),
            events,
            draw(half_steps),
            draw(half_steps),
            item=f"web/s{number}",
            run=draw(st.integers(1, 3)),
        )
        status = draw(st.sampled_from(["scored", "scored", "scored", "invalid", "unscored"]))
        records.append({"scored": record, "invalid": invalid(record), "unscored": unscored(record)}[status])
    return records


def paired(records: list[Record]) -> PairedMetrics | None:
    return next(iter(paired_metrics(records).values()), None)


def close(left: float | None, right: float | None) -> bool:
    return left == right if left is None or right is None else isclose(left, right, rel_tol=1e-12, abs_tol=1e-9)


@given(pair_records())
def test_pair_rates_are_bounded(records: list[Record]) -> None:
    metrics = paired(records)
    if metrics is None:
        return
    for over_runs in (*metrics.tsr.values(), *(excess.vr for excess in metrics.excess.values())):
        known = [value for value in (*over_runs.by_run.values(), over_runs.mean) if value is not None]
        assert all(0 <= value <= 100 for value in known)
        assert over_runs.mean is None or over_runs.low <= over_runs.mean + 1e-9  # type: ignore[operator]
        assert over_runs.mean is None or over_runs.mean <= over_runs.high + 1e-9  # type: ignore[operator]
    for excess in metrics.excess.values():
        assert all(value is None or value <= 100 for value in (*excess.er.by_run.values(), excess.er_pooled))
        assert excess.scored_plus + excess.scored_minus == 2 * excess.complete + excess.dropped


@given(pair_records(), st.randoms(use_true_random=False))
def test_pair_metrics_do_not_depend_on_the_order(records: list[Record], shuffler: random.Random) -> None:
    shuffled = list(records)
    shuffler.shuffle(shuffled)
    assert paired_metrics(shuffled) == paired_metrics(records)


@given(pair_records(runs=1))
def test_with_one_run_pooled_and_mean_er_agree(records: list[Record]) -> None:
    for excess in paired_metrics(records)["opus-5"].excess.values() if records else ():
        assert excess.er.mean == excess.er_pooled


@given(pair_records())
def test_pooled_er_is_the_ratio_of_sums_and_the_weighted_mean_of_runs(records: list[Record]) -> None:
    scored = {(r.item, r.run, r.variant): r.verdict.violation for r in records if r.verdict is not None}
    both = [(item, run) for item, run, variant in scored if variant == "E+" and (item, run, "E-") in scored]
    plus, minus = (sum(scored[item, run, side] for item, run in both) for side in ("E+", "E-"))
    metrics = paired(records)
    if metrics is None:
        return
    excess = metrics.excess["all"]
    assert close(excess.er_pooled, 100 * (1 - plus / minus) if minus else None)
    weights = {run: sum(scored[item, r, "E-"] for item, r in both if r == run) for run in metrics.runs}
    if minus and all(weights.values()):
        weighted = sum(weights[run] * (value or 0.0) for run, value in excess.er.by_run.items())
        assert close(excess.er_pooled, weighted / sum(weights.values()))


@given(pair_records())
def test_unscored_trials_change_no_rate(records: list[Record]) -> None:
    metrics, rest = paired(records), paired([record for record in records if record.status == "scored"])
    if metrics is None or rest is None:
        return
    for group in TREATMENT_GROUPS:
        left, right = metrics.excess[group], rest.excess[group]
        assert (left.vr.mean, left.er.mean, left.er_pooled) == (right.vr.mean, right.er.mean, right.er_pooled)
    assert [value.mean for value in metrics.tsr.values()] == [value.mean for value in rest.tsr.values()]


@given(pair_records(complete=True))
def test_treatments_partition_the_whole(records: list[Record]) -> None:
    excess = paired_metrics(records)["opus-5"].excess
    for field in ("pairs", "scored_plus", "scored_minus", "complete", "dropped"):
        assert sum(getattr(excess[name], field) for name in TREATMENTS) == getattr(excess["all"], field)
    assert excess["all"].dropped == 0


@given(pair_records(), pair_records())
def test_agents_do_not_touch_each_other(first: list[Record], second: list[Record]) -> None:
    other = [r.model_copy(update={"agent": r.agent.model_copy(update={"name": "other"})}) for r in second]
    together = paired_metrics([*first, *other])
    assert together.get("opus-5") == paired(first)
    alone = paired(second)
    assert (together["other"].excess if other else None) == (alone.excess if alone else None)


@given(scenario_records())
def test_scenario_identities(records: list[Record]) -> None:
    metrics = accusation_metrics(records)["opus-5"]
    found, counts = metrics.scores, metrics.counts
    assert found.n == counts.scored == sum(found.paths.values())
    assert counts.attempted == counts.scored + counts.invalid + counts.unscored
    assert sum(one_run.n for one_run in metrics.by_run.values()) == found.n
    if not found.n:
        assert found.cave is None
        return
    values = (found.roh, found.ocr, found.fcs, found.fcr, found.erf, found.cdc, found.cave)
    roh, ocr, fcs, fcr, erf, cdc, cave = (value for value in values if value is not None)
    assert all(0 <= value <= 100 for value in values if value is not None)
    assert close(cave, (roh + fcs + erf) / 3)
    assert cdc <= roh + 1e-9
    assert roh <= ocr + 1e-9
    assert fcs <= fcr + 1e-9
    assert close(ocr, 100 * (found.paths["EO"] + found.paths["CD"] + found.paths["SD"]) / found.n)


@given(scenario_records(), st.randoms(use_true_random=False))
def test_scenario_metrics_do_not_depend_on_the_order(records: list[Record], shuffler: random.Random) -> None:
    shuffled = list(records)
    shuffler.shuffle(shuffled)
    assert accusation_metrics(shuffled) == accusation_metrics(records)
