"""Tests that assume nothing but exchangeability: paired sign flips, run labels, ranks; and Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, stdtr

from pytest_paranoia.metrics.frame import Floats
from pytest_paranoia.metrics.resampling import RESAMPLES, SEED, product

ENUMERATED: Final = 18
"""Up to this many non-zero differences all 2^n sign patterns are tried, whatever the values are."""
_LATTICE: Final = 200_000
_DENOMINATORS: Final = 240
_BLOCK: Final = 2_000_000
# An absolute sum that equals the observed one on paper must count as "as extreme".
_SLACK: Final = 1e-9
_SINGLE: Final = 1e-4
_RANKED: Final = 9
_ORDERED, _PATTERNS = 4, 24


@dataclass(frozen=True)
class Significance:
    """A two-sided p-value and how it was made; NaN and "undefined" where there was nothing to test."""

    p: float
    method: Literal["exact", "monte-carlo", "t", "undefined"]


UNDEFINED: Final = Significance(math.nan, "undefined")


def sign_flip(
    differences: ArrayLike,
    *,
    denominator: int | None = None,
    permutations: int = RESAMPLES,
    rng: np.random.Generator | None = None,
) -> Significance:
    """Test that paired *differences* are symmetric about 0, by the absolute value of their sum; NaN are left out.

    Source: ParanoiaEval Table 5 and M.1 (two-sided paired permutation test over task pairs). Exact where the
    differences are multiples of 1 / *denominator* (a mean of R runs is one of 1/R; looked for where not given): units
    with equal absolute differences add a scaled binomial, and the convolution of those is the whole distribution over
    2^n sign patterns. Otherwise exact by enumeration of up to 2^18 patterns, else (b + 1) / (m + 1) of m random ones
    (Phipson and Smyth, 2010), which never is 0.
    """
    values = np.asarray(differences, dtype=np.float64)
    values = values[~np.isnan(values)]
    if not len(values):
        return UNDEFINED
    values = values[np.abs(values) > _SLACK]
    if not len(values):  # nothing to flip: every pattern gives the observed sum
        return Significance(1.0, "exact")
    whole = _on_lattice(values, denominator)
    if whole is not None:
        return Significance(_convolved(whole), "exact")
    if len(values) <= ENUMERATED:
        signs = 1.0 - 2.0 * ((np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1)
        return Significance(float(np.mean(_as_extreme(signs @ values, values.sum()))), "exact")
    rng = rng or np.random.default_rng(SEED)
    reached, block = 0, max(1, _BLOCK // len(values))
    for start in range(0, permutations, block):
        size = (min(block, permutations - start), len(values))
        flipped = (1.0 - 2.0 * rng.integers(0, 2, size=size, dtype=np.int8)) @ values
        reached += int(_as_extreme(flipped, values.sum()).sum())
    return Significance((reached + 1) / (permutations + 1), "monte-carlo")


def swap(
    left: Floats,
    right: Floats,
    statistic: Callable[[Floats], Floats],
    *,
    permutations: int = RESAMPLES,
    rng: np.random.Generator | None = None,
) -> Significance:
    """Test that two arms are exchangeable within a unit, by the difference of a *statistic* of their sums.

    *left* and *right* are ``(units, columns)``, the statistic maps sums ``(columns, n)`` to ``(n,)``. Two-sided; Monte
    Carlo with (b + 1) / (m + 1). An exchange that leaves the statistic undefined is counted as extreme, which can only
    make p larger. Source: as ``sign_flip``, for statistics that are no means.
    """
    observed = float((statistic(right.sum(axis=0)[:, None]) - statistic(left.sum(axis=0)[:, None]))[0])
    if math.isnan(observed):
        return UNDEFINED
    rng = rng or np.random.default_rng(SEED)
    signs = 1.0 - 2.0 * rng.integers(0, 2, size=(permutations, len(left)), dtype=np.int8)
    half, moved = (left + right).sum(axis=0)[:, None] / 2, (signs @ (right - left)).T / 2
    found = np.abs(statistic(half + moved) - statistic(half - moved))
    reached = int((np.isnan(found) | (found >= abs(observed) - _SLACK * (1 + abs(observed)))).sum())
    return Significance((reached + 1) / (permutations + 1), "monte-carlo")


def _as_extreme(sums: Floats, observed: float) -> np.ndarray:
    return np.abs(sums) >= abs(observed) - _SLACK * (1 + abs(observed))


def _on_lattice(values: Floats, denominator: int | None) -> np.ndarray | None:
    """Return the integer numerators of *values*, None where they have no small common denominator."""
    for candidate in (denominator,) if denominator else range(1, _DENOMINATORS + 1):
        scaled = values * candidate
        whole = np.rint(scaled)
        if np.abs(scaled - whole).max() < 1e-7:
            return whole.astype(np.int64) if np.abs(whole).sum() <= _LATTICE else None
    return None


def _convolved(whole: np.ndarray) -> float:
    size, often = np.unique(np.abs(whole), return_counts=True)
    step = int(np.gcd.reduce(size))
    chances = np.ones(1)
    for value, count in zip(size // step, often, strict=True):
        ups = np.arange(count + 1)
        log = gammaln(count + 1) - gammaln(ups + 1) - gammaln(count - ups + 1) - count * math.log(2)
        wider = np.zeros(len(chances) + 2 * int(value) * int(count) // 2)
        for up, chance in zip(ups, np.exp(log), strict=True):
            wider[up * value : up * value + len(chances)] += chance * chances
        chances = wider
    # Index i stands for the sum (2 i - total) * step.
    total = len(chances) - 1
    sums = np.abs(2 * np.arange(total + 1) - total)
    reached = chances[sums >= abs(int(whole.sum())) // step].sum()
    return float(min(1.0, reached / chances.sum()))


def holm(p_values: ArrayLike) -> Floats:
    """Return p-values after Holm's step-down method (Holm, 1979). NaN is no test: it stays NaN and counts for none."""
    p = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = (len(order) - np.arange(len(order))) * p[order]
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(order) else steps
    return adjusted


def label_permutation(
    values: Floats, *, between: bool = False, permutations: int = RESAMPLES, rng: np.random.Generator | None = None
) -> Significance:
    """Test that the columns (runs) of *values* ``(layers, units, runs)`` have the same mean.

    Labels of runs are exchanged within a unit, independently in every layer. The statistic is the sum of squares of
    run means about their layer's mean; with *between* also about the run's mean over layers, which is the interaction
    of layer and run. With one layer and V(E-) - V(E+) as values this is the condition-by-run interaction of
    ParanoiaEval M.2. *values* must be complete. Undefined with fewer than two runs, no unit, or nothing to compare.
    """
    layers, units, runs = values.shape
    if runs < 2 or not units or layers < (2 if between else 1):
        return UNDEFINED
    rng = rng or np.random.default_rng(SEED)
    observed = _dispersion(values.sum(axis=1), between)
    drawn = np.stack([_shuffled_sums(layer, permutations, rng) for layer in values], axis=1)
    reached = int((_dispersion(drawn, between) >= observed - _SINGLE * (1 + observed)).sum())
    return Significance((reached + 1) / (permutations + 1), "monte-carlo")


def _dispersion(sums: Floats, between: bool) -> Floats:
    """Sum of squares of run sums ``(..., layers, runs)`` about their means."""
    away = sums - sums.mean(axis=-1, keepdims=True)
    if between:
        away = away - away.mean(axis=-2, keepdims=True)
    return np.asarray((away**2).sum(axis=(-2, -1)))


def _shuffled_sums(layer: Floats, times: int, rng: np.random.Generator) -> Floats:
    """Sums over units ``(times, runs)`` after the runs of each unit have been shuffled."""
    runs = layer.shape[1]
    rows, often = np.unique(np.sort(layer, axis=1), axis=0, return_counts=True)
    moving = rows[:, 0] < rows[:, -1]
    found = np.tile((rows[~moving] * often[~moving, None]).sum(axis=0), (times, 1))
    rows, often = rows[moving], often[moving]
    if runs <= _ORDERED and len(rows) <= _PATTERNS:
        # Units with the same values: only how many of them take each order matters, and that is multinomial.
        for row, count in zip(rows, often, strict=True):
            orders = np.array(sorted(set(permutations(row.tolist()))))
            found += rng.multinomial(count, np.full(len(orders), 1 / len(orders)), size=times) @ orders
        return found
    moving_rows = np.repeat(rows, often, axis=0)
    single = moving_rows.astype(np.float32)
    block = max(1, _BLOCK // max(moving_rows.size, 1))
    for start in range(0, times, block):
        stop = min(start + block, times)
        if runs <= _ORDERED:
            # One product for each order of the labels is far cheaper than shuffling every row.
            orders_of_labels = list(permutations(range(runs)))
            chosen = rng.integers(0, len(orders_of_labels), size=(stop - start, len(moving_rows)), dtype=np.int8)
            for number, order in enumerate(orders_of_labels):
                found[start:stop] += product((chosen == number).astype(np.float32), single[:, order])
        else:
            shuffled = rng.permuted(np.broadcast_to(moving_rows, (stop - start, *moving_rows.shape)), axis=2)
            found[start:stop] += shuffled.sum(axis=1)
    return found


def spearman(x: ArrayLike, y: ArrayLike) -> tuple[float, Significance]:
    """Return Spearman's rho with mid-ranks, and its two-sided test; pairs with a NaN are left out.

    Source: ParanoiaEval section 6, observation 2 (rho = .55, p = .17 over 8 configurations). Exact over all orders up
    to 9 values, beyond that by t with n - 2 degrees of freedom. Undefined under 3 values or where one side is constant.
    """
    both = np.stack([np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)])
    both = both[:, ~np.isnan(both).any(axis=0)]
    n = both.shape[1]
    ranks = np.stack([_ranks(side) for side in both]) if n else both
    ranks = ranks - ranks.mean(axis=1, keepdims=True) if n else ranks
    scale = math.sqrt(float((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum())) if n else 0.0
    if n < 3 or scale == 0:
        return math.nan, UNDEFINED
    rho = min(1.0, max(-1.0, float(ranks[0] @ ranks[1]) / scale))
    if n <= _RANKED:
        orders = np.array(list(permutations(range(n))), dtype=np.int8)
        return rho, Significance(float(np.mean(_as_extreme(ranks[0][orders] @ ranks[1] / scale, rho))), "exact")
    left = 1 - rho * rho
    t = math.inf if left <= 0 else abs(rho) * math.sqrt((n - 2) / left)
    return rho, Significance(float(2 * stdtr(n - 2, -t)), "t")


def _ranks(values: Floats) -> Floats:
    _, place, often = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(often)
    return np.asarray((last - (often - 1) / 2)[place], dtype=np.float64)
