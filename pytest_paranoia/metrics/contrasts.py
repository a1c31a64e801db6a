"""Differences of scenario scores: between task types, and between two arms on the same scenarios."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from pytest_paranoia.metrics.frame import Floats, scored
from pytest_paranoia.metrics.pairing import POOLED
from pytest_paranoia.metrics.resampling import (
    RESAMPLES,
    SEED,
    bootstrap,
    divide,
    generator,
    intervals,
    resampled_sums,
)
from pytest_paranoia.metrics.scenarios import METRICS, ScenarioArrays, measures, ratios, scenario_arrays

TASK_TYPE_COLUMNS: Final = (
    *("agent", "metric", "self_built", "inherited", "scenarios_self_built", "scenarios_inherited"),
    *("contrast", "contrast_lo", "contrast_hi"),
)
CHANGE_COLUMNS: Final = (
    *("metric", "scenarios", "dropped", "before", "after", "change", "change_lo", "change_hi"),
    *("relative", "relative_lo", "relative_hi", "relative_bca_lo", "relative_bca_hi"),
)


def task_types(trials: pd.DataFrame | ScenarioArrays, *, resamples: int = RESAMPLES, seed: int = SEED) -> pd.DataFrame:
    """Return self-built minus inherited, in points, of every metric and agent, with a percentile interval.

    Source: CAVE-Bench section 5.2 and Table 14. The scenarios of the two types are different ones, so each type is
    resampled on its own; NaN limits where one has fewer than two scenarios. Runs of self-built scenarios whose state
    was not established are not scored and do not enter (section D.2).
    """
    arrays = trials if isinstance(trials, ScenarioArrays) else scenario_arrays(trials)
    family = arrays.units["family"].to_numpy(dtype=object)
    layers = [*zip(arrays.agents, arrays.sums, strict=True)]
    if len(layers) > 1:
        layers.append((POOLED, arrays.sums.sum(axis=0)))
    rows: list[dict[str, Any]] = []
    for agent, sums in layers:
        # Scenarios that this agent has no scored run of tell nothing about it.
        sides = [sums[(family == name) & (sums[:, 0] > 0)] for name in ("self-built", "inherited-resume")]
        rng = generator(seed, "task types", agent)
        built, inherited = (ratios(side.sum(axis=0)[:, None])[:, 0] for side in sides)
        if min(len(side) for side in sides) < 2:
            lo = hi = np.full(len(METRICS), np.nan)
        else:
            first, second = (ratios(resampled_sums(side, resamples, rng)) for side in sides)
            made = intervals(built - inherited, first - second, np.zeros((len(METRICS), 1)))
            lo, hi = made.lo, made.hi
        for place, metric in enumerate(METRICS):
            values = (built[place], inherited[place], len(sides[0]), len(sides[1]))
            contrast = (built[place] - inherited[place], lo[place], hi[place])
            rows.append(dict(zip(TASK_TYPE_COLUMNS, (agent, metric, *values, *contrast), strict=True)))
    return _table(rows, TASK_TYPE_COLUMNS, ("agent", "metric"), ("scenarios_self_built", "scenarios_inherited"))


def relative_change(
    before: pd.DataFrame, after: pd.DataFrame, *, resamples: int = RESAMPLES, seed: int = SEED
) -> pd.DataFrame:
    """Return how much lower or higher every metric is in *after* than in *before*, on the scenarios scored in both.

    Source: CAVE-Bench section 5.4 (a live-signal gate cut ROH by 74 %): ``relative`` is 100 (after - before) / before,
    undefined where before is 0; ``change`` is in points. Both arms are resampled together by scenario. Each table has
    the trials of one arm: one agent of a run, or one agent with and without an intervention. ``dropped`` counts
    scenarios scored in only one.
    """
    arms = [_by_item(trials) for trials in (before, after)]
    shared = sorted(arms[0].keys() & arms[1].keys())
    dropped = len(arms[0].keys() | arms[1].keys()) - len(shared)
    width = 1 + len(METRICS)
    columns = np.array([np.concatenate([arm[item] for arm in arms]) for item in shared]).reshape(len(shared), 2 * width)

    def statistic(sums: Floats) -> Floats:
        old, new = ratios(sums[:width]), ratios(sums[width:])
        return np.concatenate([new - old, 100 * divide(new - old, old)])

    made = bootstrap(columns, statistic, resamples=resamples, rng=generator(seed, "relative change"))
    total = columns.sum(axis=0)[:, None]
    old, new = ratios(total[:width])[:, 0], ratios(total[width:])[:, 0]
    rows: list[dict[str, Any]] = []
    for place, metric in enumerate(METRICS):
        there = place + len(METRICS)
        change = (made.point[place], made.lo[place], made.hi[place])
        relative = (made.point[there], made.lo[there], made.hi[there], made.bca_lo[there], made.bca_hi[there])
        values = (metric, len(shared), dropped, old[place], new[place], *change, *relative)
        rows.append(dict(zip(CHANGE_COLUMNS, values, strict=True)))
    return _table(rows, CHANGE_COLUMNS, ("metric",), ("scenarios", "dropped"))


def _by_item(trials: pd.DataFrame) -> dict[str, Floats]:
    runs = scored(trials, "scenario")
    if runs["agent"].nunique() > 1:
        raise ValueError("an arm has one agent: choose its rows of the table first")
    found = measures(*(runs[name].to_numpy(dtype=np.float64) for name in ("h", "f", "e")))
    items = runs["item"].to_numpy(dtype=object)
    return {
        str(item): np.concatenate([[np.sum(items == item)], found[items == item].sum(axis=0)]) for item in set(items)
    }


def _table(
    rows: list[dict[str, Any]], columns: tuple[str, ...], texts: tuple[str, ...], counts: tuple[str, ...]
) -> pd.DataFrame:
    floats = {name: "float64" for name in columns if name not in texts and name not in counts}
    kinds = {**dict.fromkeys(texts, "string"), **dict.fromkeys(counts, "int64"), **floats}
    return pd.DataFrame(rows, columns=list(columns)).astype(kinds)
