"""Two arms on the same items: two agents of a run, or one agent in two runs (model A/B, with and without a gate)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.special import ndtri

from pytest_paranoia.metrics.effects import LIMITS
from pytest_paranoia.metrics.frame import Floats, scored
from pytest_paranoia.metrics.leftout import left_out
from pytest_paranoia.metrics.pairing import pair_arrays
from pytest_paranoia.metrics.permutations import UNDEFINED, holm, sign_flip, swap
from pytest_paranoia.metrics.resampling import (
    CONFIDENCE,
    RESAMPLES,
    SEED,
    bootstrap,
    divide,
    generator,
    mean_defined,
)
from pytest_paranoia.metrics.scenarios import METRICS as SCENARIO_METRICS
from pytest_paranoia.metrics.scenarios import measures

PAIR_METRICS: Final = ("tsr", "tsr_plus", "tsr_minus", "vr", "rate_minus", "delta", "er_pooled")
POWER: Final = 0.8
COLUMNS: Final[tuple[str, ...]] = (
    *("agent", "family", "metric", "items", "dropped", "left", "right", "effect"),
    *(f"effect{limit}" for limit in LIMITS),
    *("relative", "relative_lo", "relative_hi"),
    *("p", "p_method", "p_holm", "detectable"),
)
Values = Mapping[str, Floats]
"""One value an item; ER has two, the mean V(E+) and V(E-) of the item's complete runs."""


@dataclass(frozen=True)
class Comparison:
    """``rows``: ``COLUMNS``. ``notes``: what was left out. ``power`` is that of ``detectable``."""

    rows: pd.DataFrame
    notes: tuple[str, ...]
    power: float


def compare_agents(trials: pd.DataFrame, left: str, right: str, **options: Any) -> Comparison:
    """Compare two agents of one table of trials; options as of ``compare``. Raises ValueError for an unknown agent."""
    known = sorted(trials["agent"].unique())
    if unknown := [name for name in (left, right) if name not in known]:
        raise ValueError(f"no trials of {', '.join(unknown)}: there are {', '.join(known) or 'none'}")
    sides = (trials[trials["agent"] == left], trials[trials["agent"] == right])
    return compare([(f"{left} -> {right}", *sides)], **options)


def compare_runs(left: pd.DataFrame, right: pd.DataFrame, **options: Any) -> Comparison:
    """Compare every agent that is in both tables with itself; options as of ``compare``."""
    shared = sorted(set(left["agent"].unique()) & set(right["agent"].unique()))
    alone = sorted(set(left["agent"].unique()) ^ set(right["agent"].unique()))
    found = compare([(name, left[left["agent"] == name], right[right["agent"] == name]) for name in shared], **options)
    notes = (f"in one run only, not compared: {', '.join(alone)}",) if alone else ()
    return Comparison(found.rows, (*notes, *found.notes), found.power)


def compare(
    arms: Sequence[tuple[str, pd.DataFrame, pd.DataFrame]],
    *,
    metrics: Sequence[str] = (*PAIR_METRICS, *SCENARIO_METRICS),
    resamples: int = RESAMPLES,
    seed: int = SEED,
    power: float = POWER,
    changed_items: bool = False,
) -> Comparison:
    """Return right minus left of every metric, paired by item: rows of ``COLUMNS`` for each (label, left, right).

    Each table has one agent. Both arms are reduced to one value an item, the mean over its scored runs, so that items
    weigh alike however many runs they had; only items with a value on both sides enter, the others are ``dropped``.
    Items whose content (``item_hash``) differs are left out unless *changed_items*. Intervals resample items; p is the
    sign-flip test of ParanoiaEval M.1 (for ER, exchanging the arms of an item), Holm's correction covers all rows of
    the call, of both papers' families of metrics: choose *metrics* beforehand to test fewer. ``relative`` is the change
    in percent of the left value (CAVE-Bench 5.4), undefined where that is 0, and for ER, which is a change already.
    ``detectable`` is the smallest true effect that this sample shows with *power* at the 5 % level:
    (z(1 - .05/2) + z(power)) * SE, with the standard error SE = sd of the items' differences / sqrt(items).
    """
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for label, left, right in arms:
        if not changed_items:
            left, right, changed = _same_content(left, right)
            notes += [f"{label}: content differs, left out: {', '.join(changed)}"] if changed else []
        sides = [_values(trials) for trials in (left, right)]
        for metric in metrics:
            first, second = (side.get(metric, {}) for side in sides)
            if first or second:
                rows.append(_row(label, metric, first, second, resamples, seed, power))
        notes += left_out(label, (left, right), sides, metrics)
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = p
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    texts = dict.fromkeys(("agent", "family", "metric", "p_method"), "string")
    counts = dict.fromkeys(("items", "dropped"), "int64")
    floats = {name: "float64" for name in COLUMNS if name not in texts and name not in counts}
    return Comparison(table.astype({**texts, **counts, **floats}), tuple(notes), power)


def _same_content(left: pd.DataFrame, right: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    hashes = pd.concat([left, right])[["item", "item_hash"]].drop_duplicates()
    changed = sorted(hashes.loc[hashes["item"].duplicated(), "item"].unique())
    return left[~left["item"].isin(changed)], right[~right["item"].isin(changed)], changed


def _values(trials: pd.DataFrame) -> dict[str, dict[str, Floats]]:
    """For each metric, what is known of each item, as fractions."""
    if trials["agent"].nunique() > 1:
        raise ValueError("an arm has one agent: choose its rows of the table first")
    found: dict[str, dict[str, Floats]] = {}
    # Units are items here, whatever labels they have: one that was relabelled still is the same item.
    pairs = pair_arrays(trials.assign(treatment=None, situation=None, repository=None))
    if len(pairs.agents):
        done = np.concatenate([pairs.done_plus, pairs.done_minus], axis=2)
        both = [mean_defined(np.where(pairs.complete, v, np.nan), axis=2)[0] for v in (pairs.v_plus, pairs.v_minus)]
        columns = {"tsr": done, "tsr_plus": pairs.done_plus, "tsr_minus": pairs.done_minus}
        columns |= {"vr": pairs.v_plus, "rate_minus": pairs.v_minus}
        single = {name: mean_defined(values, axis=2)[0][:, None] for name, values in columns.items()}
        single |= {"delta": pairs.differences[0][:, None], "er_pooled": np.stack(both, axis=1)}
        items = [str(item) for item in pairs.units["item"]]
        for name, values in single.items():
            found[name] = {item: value for item, value in zip(items, values, strict=True) if not np.isnan(value).any()}
    runs = scored(trials, "scenario")
    if len(runs):
        each = measures(*(runs[name].to_numpy(dtype=np.float64) for name in ("h", "f", "e")))
        means = pd.DataFrame(each, columns=list(SCENARIO_METRICS)).groupby(runs["item"].to_numpy(dtype=object)).mean()
        for name in SCENARIO_METRICS:
            found[name] = {str(item): np.array([value]) for item, value in means[name].items()}
    return found


def _row(
    label: str, metric: str, first: Values, second: Values, resamples: int, seed: int, power: float
) -> dict[str, Any]:
    shared = sorted(first.keys() & second.keys())
    width = 2 if metric == "er_pooled" else 1
    sides = [np.array([side[item] for item in shared]).reshape(len(shared), width) for side in (first, second)]
    columns = np.column_stack([*sides, np.ones(len(shared))])
    statistic = _ratios if width == 2 else _means
    made = bootstrap(columns, statistic, resamples=resamples, rng=generator(seed, "compare", label, metric))
    rng = generator(seed, "compare permutations", label, metric)
    differences = (sides[1] - sides[0])[:, 0]
    test = UNDEFINED
    if not np.isnan(made.point[2]):
        test = (
            sign_flip(differences, permutations=resamples, rng=rng)
            if width == 1
            else swap(sides[0], sides[1], lambda sums: _ratio(sums), permutations=resamples, rng=rng)
        )
    relative = (np.nan, np.nan, np.nan) if width == 2 else (made.point[3], made.lo[3], made.hi[3])
    influence = 100 * differences if width == 1 else _influence(sides[1]) - _influence(sides[0])
    effect = (made.point[2], made.lo[2], made.hi[2], made.bca_lo[2], made.bca_hi[2])
    return {
        "agent": label,
        "family": "pairs" if metric in PAIR_METRICS else "scenarios",
        "metric": metric,
        "items": len(shared),
        "dropped": len(first.keys() ^ second.keys()),
        "left": made.point[0],
        "right": made.point[1],
        **{f"effect{limit}": value for limit, value in zip(("", *LIMITS), effect, strict=True)},
        **{f"relative{limit}": value for limit, value in zip(("", "_lo", "_hi"), relative, strict=True)},
        "p": test.p,
        "p_method": test.method,
        "detectable": detectable(influence, power),
    }


def detectable(differences: Floats, power: float = POWER, confidence: float = CONFIDENCE) -> float:
    """Return the smallest true mean that the sample of *differences* shows with *power*: (z + z) * sd / sqrt(n).

    Undefined (NaN) with fewer than two items, and where they do not vary: then the sample tells nothing about it.
    """
    if len(differences) < 2 or np.isnan(differences).any():
        return float("nan")
    error = float(np.std(differences, ddof=1)) / np.sqrt(len(differences))
    factor = float(ndtri((1 + confidence) / 2) + ndtri(power))
    return factor * error if error > 1e-12 else float("nan")


def _means(sums: Floats) -> Floats:
    left, right = (100 * divide(sums[side], sums[2]) for side in (0, 1))
    return np.stack([left, right, right - left, 100 * divide(right - left, left)])


def _ratio(sums: Floats) -> Floats:
    return 100 * divide(sums[1] - sums[0], sums[1])


def _ratios(sums: Floats) -> Floats:
    left, right = _ratio(sums[0:2]), _ratio(sums[2:4])
    return np.stack([left, right, right - left])


def _influence(side: Floats) -> Floats:
    """What each item contributes to ER's error (the delta method): -100 (v+ - ratio v-) / mean v-."""
    plus, minus = side.sum(axis=0)
    ratio = divide(plus, minus)
    return -100 * divide(side[:, 0] - ratio * side[:, 1], minus / max(len(side), 1))
