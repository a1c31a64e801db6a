"""Paired effects with intervals and tests (ParanoiaEval section 4.3, appendix M, Tables 2, 3, 5 and 15 to 18)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from pytest_paranoia.metrics.frame import Floats, Integers
from pytest_paranoia.metrics.pairing import ALL, POOLED, PairArrays, pair_arrays
from pytest_paranoia.metrics.permutations import UNDEFINED, holm, sign_flip
from pytest_paranoia.metrics.resampling import RESAMPLES, SEED, bootstrap, divide, generator, mean_defined

GROUP_KINDS: Final = (ALL, "treatment", "situation", "repository")
ESTIMATED: Final = ("delta", "vr", "er_pooled", "tsr", "tsr_plus", "tsr_minus", "rate_minus", "er_mean")
"""Columns that have an interval: each with ``_lo``, ``_hi`` (percentile) and ``_bca_lo``, ``_bca_hi``."""
LIMITS: Final = ("_lo", "_hi", "_bca_lo", "_bca_hi")
_COUNTS: Final = ("pairs", "attempted", "unscored", "scored_plus", "scored_minus", "complete", "dropped", "runs")
_RATES: Final = ("tsr", "tsr_plus", "tsr_minus", "vr", "rate_minus", "er_mean", "er_pooled", "delta")
COLUMNS: Final[tuple[str, ...]] = (
    *("agent", "group_kind", "group", *_COUNTS, *_RATES),
    *(name + limit for name in ESTIMATED for limit in LIMITS),
    *("p", "p_method", "p_holm", "violations", "violations_passing"),
)


def paired_effects(
    trials: pd.DataFrame | PairArrays,
    *,
    group_kinds: Sequence[str] = GROUP_KINDS,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> pd.DataFrame:
    """Return a row an agent and group, and one over all agents (``POOLED``) where there are several.

    Source: ParanoiaEval section 4.3 (VR, ER), M.1 (delta), Table 3 (intervals, Holm), Table 5 (treatments). Columns are
    ``COLUMNS``; percentages and percentage points; what each means, and which trials enter, is in docs/statistics.md.
    """
    arrays = trials if isinstance(trials, PairArrays) else pair_arrays(trials)
    rows: list[dict[str, Any]] = []
    for kind in group_kinds:
        for name, units in arrays.members(kind):
            rows += _group(arrays, kind, name, units, resamples, seed)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    texts = ("agent", "group_kind", "group", "p_method")
    numbers = dict.fromkeys((*_COUNTS, "violations"), "int64")
    floats = {name: "float64" for name in COLUMNS if name not in numbers and name not in texts}
    return table.astype({**numbers, **floats, **dict.fromkeys(texts, "string")})


def _group(
    arrays: PairArrays, kind: str, name: str, units: Integers, resamples: int, seed: int
) -> list[dict[str, Any]]:
    rows = _points(arrays, units)
    for row, values in zip(rows, _estimated(arrays, units, kind, name, resamples, seed), strict=True):
        row.update(values)
    adjusted = holm([row["p"] for row in rows[:-1]])
    for row, p in zip(rows, [*adjusted, rows[-1]["p"]], strict=True):
        # The pooled row is a question of its own (Table 3): one test, nothing to adjust.
        row.update(group_kind=kind, group=name, p_holm=p)
    tried = [row for row in rows[:-1] if row["attempted"]]
    return [*tried, rows[-1]] if len(tried) > 1 else tried


def _points(arrays: PairArrays, units: Integers) -> list[dict[str, Any]]:
    """Rows of all agents and, last, of all agents together."""
    v_plus, v_minus = arrays.v_plus[:, units], arrays.v_minus[:, units]
    done_plus, complete = arrays.done_plus[:, units], arrays.complete[:, units]
    attempted = arrays.attempted[:, units]
    scored = {"scored_plus": ~np.isnan(v_plus), "scored_minus": ~np.isnan(v_minus)}
    counted = {
        "pairs": (scored["scored_plus"] | scored["scored_minus"]).any(axis=2).sum(axis=1),
        "attempted": attempted.sum(axis=(1, 2)),
        "unscored": arrays.unscored[:, units].sum(axis=(1, 2)),
        **{key: known.sum(axis=(1, 2)) for key, known in scored.items()},
        "complete": complete.sum(axis=(1, 2)),
        "runs": (attempted.sum(axis=1) > 0).sum(axis=1),
        "violations": np.nansum(v_plus, axis=(1, 2)).astype(np.int64),
    }
    counted["dropped"] = counted["scored_plus"] + counted["scored_minus"] - 2 * counted["complete"]
    passing = np.nansum(v_plus * done_plus, axis=(1, 2))
    rows: list[dict[str, Any]] = []
    for place, agent in enumerate(arrays.agents):
        test = sign_flip(arrays.differences[place, units], denominator=arrays.denominator)
        rows.append(
            {"agent": agent, "p": test.p, "p_method": test.method}
            | {key: values[place] for key, values in counted.items()}
            | {"violations_passing": float(100 * divide(passing[place], counted["violations"][place]))}
        )
    test = sign_flip(arrays.pooled_differences[units], denominator=arrays.pooled_denominator) if rows else UNDEFINED
    pooled: dict[str, Any] = {"agent": POOLED, "p": test.p, "p_method": test.method}
    pooled |= {key: values.sum() for key, values in counted.items()}
    pooled["pairs"] = int((scored["scored_plus"] | scored["scored_minus"]).any(axis=(0, 2)).sum())
    pooled["runs"] = int((attempted.sum(axis=(0, 1)) > 0).sum())
    pooled["violations_passing"] = float(100 * divide(passing.sum(), counted["violations"].sum()))
    return [*rows, pooled]


def _estimated(
    arrays: PairArrays, units: Integers, kind: str, name: str, resamples: int, seed: int
) -> list[dict[str, float]]:
    """``ESTIMATED`` of every agent and of all together, with intervals from the same resampled pairs."""
    agents, runs = len(arrays.agents), len(arrays.runs)
    scale, pooled_scale = arrays.scale(arrays.denominator), arrays.scale(arrays.pooled_denominator)
    columns, pooled = _columns(arrays, units, scale, pooled_scale)
    width = columns.shape[2]

    def statistic(sums: Floats) -> Floats:
        each = sums[: agents * width].reshape(agents, width, -1)
        together = sums[agents * width :]
        by_run = np.moveaxis(each[:, :-2].reshape(agents, (width - 2) // runs, runs, -1), 1, 0)
        v_plus, v_minus, done_plus, done_minus = by_run[:4]
        n_plus, n_minus, plus, minus = by_run[4:] if len(by_run) > 4 else (len(units), len(units), v_plus, v_minus)
        difference, having = each[:, -2], each[:, -1]
        # ER: per run one ratio of sums over the same pairs, then their mean (Table 2); Table 3 has one ratio over all.
        rates = [
            *((v_plus, n_plus), (done_plus + done_minus, n_plus + n_minus)),
            *((done_plus, n_plus), (done_minus, n_minus), (v_minus, n_minus), (minus - plus, minus)),
        ]
        vr, *others = (mean_defined(100 * divide(part, of), axis=1) for part, of in rates)
        plus, minus = plus.sum(axis=1), minus.sum(axis=1)
        er = 100 * divide(minus - plus, minus)
        delta = 100 / scale * divide(difference, having)
        if agents == 1:  # "all agents" is this one
            return np.concatenate([delta, vr, er, *others])
        all_er = 100 * divide((minus - plus).sum(axis=0), minus.sum(axis=0))
        all_delta = 100 / pooled_scale * divide(together[:1], together[1:])
        means = [part for values in (vr, *others) for part in (values, mean_defined(values, axis=0)[None])]
        return np.concatenate([delta, all_delta, *means[:2], er, all_er[None], *means[2:]])

    data = np.concatenate([columns.reshape(len(units), agents * width), pooled], axis=1)
    made = bootstrap(data, statistic, resamples=resamples, rng=generator(seed, "pairs", kind, name))
    layers = agents + (agents > 1)
    values: dict[str, Floats] = {}
    for place, metric in enumerate(ESTIMATED):
        part = slice(place * layers, (place + 1) * layers)
        values[metric] = made.point[part]
        for limit, limits in zip(LIMITS, (made.lo, made.hi, made.bca_lo, made.bca_hi), strict=True):
            values[metric + limit] = limits[part]
    return [{key: float(column[min(row, layers - 1)]) for key, column in values.items()} for row in range(agents + 1)]


def _columns(arrays: PairArrays, units: Integers, scale: int, pooled_scale: int) -> tuple[Floats, Floats]:
    """What a resample sums: ``[unit, agent, column]``, and ``[unit, 2]`` of all agents together.

    Columns: V(E+), V(E-), tasks done in E+ and in E- of each run; where any trial of these units has no score, also the
    number of E+, that of E-, V(E+) and V(E-) of complete ones of each run; then difference, has one.
    """
    v_plus, v_minus, complete = arrays.v_plus[:, units], arrays.v_minus[:, units], arrays.complete[:, units]
    plus, minus, differences = ~np.isnan(v_plus), ~np.isnan(v_minus), arrays.differences[:, units]
    having = ~np.isnan(differences)
    sides = [(v_plus, plus), (v_minus, minus)]
    sides += [(arrays.done_plus[:, units], plus), (arrays.done_minus[:, units], minus)]
    if not complete.all():
        sides += [(plus, plus), (minus, minus), (v_plus, complete), (v_minus, complete)]
    columns = [np.where(known, values, 0.0) for values, known in sides]
    columns += [np.where(having, scale * differences, 0.0).round(9)[..., None], having.astype(np.float64)[..., None]]
    together = arrays.pooled_differences[units]
    defined = ~np.isnan(together)
    pooled = np.stack([np.where(defined, pooled_scale * together, 0.0).round(9), defined.astype(np.float64)], axis=1)
    return np.concatenate(columns, axis=2).transpose(1, 0, 2), pooled
