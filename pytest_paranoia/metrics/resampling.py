"""Bootstrap intervals over whole units. A unit is a task pair or a scenario with everything that was measured on it.

Array first: a statistic is a function of *sums over units*. Resampling units then is one product of a matrix of
multinomial counts with a matrix of per-unit columns, for all agents and metrics at once, and leaving a unit out is a
subtraction. Sources: ParanoiaEval M.2 (resampling whole task pairs); Efron and Tibshirani, An Introduction to the
Bootstrap (1993), chapters 13 (percentile) and 14.3 (BCa).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from pytest_paranoia.metrics.frame import Floats

CONFIDENCE: Final = 0.95
RESAMPLES: Final = 10_000
SEED: Final = 20261130
UNDEFINED_SHARE: Final = 0.05
"""An interval is undefined where more than this share of resamples leaves its statistic undefined (no E- excess)."""
_BLOCK: Final = 150_000
# OpenBLAS: SMP_THRESHOLD_MIN * GEMM_MULTITHREAD_THRESHOLD multiplications (interface/gemm.c).
_THREADED: Final = 250_000
# Values that are equal on paper differ in the last bits of the single-precision sums; they must count as ties.
_TIE: Final = 1e-6

Statistic = Callable[[Floats], Floats]
"""Maps sums ``(columns, n)`` to values ``(statistics, n)``, NaN where undefined, without warning."""


@dataclass(frozen=True)
class Intervals:
    """Limits of each statistic: percentile (``lo``, ``hi``), bias-corrected and accelerated (``bca_lo``, ``bca_hi``).

    ``undefined``: share of the resamples in which the statistic was undefined; they enter no interval.
    """

    point: Floats
    lo: Floats
    hi: Floats
    bca_lo: Floats
    bca_hi: Floats
    undefined: Floats


def generator(seed: int, *names: str) -> np.random.Generator:
    """Return the generator of one table cell: what is drawn there does not depend on which other cells exist."""
    return np.random.default_rng([seed, *(crc32(name.encode()) for name in names)])


def divide(numerator: ArrayLike, denominator: ArrayLike) -> Floats:
    """Return the quotient, NaN (and no warning) where the denominator is 0."""
    above, below = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    zero = below == 0
    if not zero.any():
        return np.asarray(above / below)
    return np.asarray(above / np.where(zero, np.nan, below))


def mean_defined(values: Floats, axis: int = -1) -> Floats:
    """Return the mean of what is not NaN, NaN (and no warning) where nothing is."""
    unknown = np.isnan(values)
    if values.shape[axis] and not unknown.any():
        return np.asarray(values.mean(axis=axis))
    return divide(np.where(unknown, 0.0, values).sum(axis=axis), values.shape[axis] - unknown.sum(axis=axis))


def counts(units: int, resamples: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return how often each unit is drawn in each resample ``(resamples, units)``: rows are multinomial."""
    drawn = rng.integers(0, units, size=(resamples, units), dtype=np.uint16 if units < 2**16 else np.int64)
    places = drawn + np.arange(0, resamples * units, units)[:, None]
    return np.bincount(places.ravel(), minlength=resamples * units).reshape(resamples, units).astype(np.float32)


def product(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return *left* @ *right* as a stack of products so small that OpenBLAS starts no threads for them.

    Its threads spin while they wait: on a busy machine, as in a session with ``-n``, one large product of this shape
    takes three times the processor time and ten times the wall clock. It also keeps sums the same on any machine size.
    """
    rows = max(1, _THREADED // max(1, right.size))
    whole = len(left) // rows * rows
    stacked = np.matmul(left[:whole].reshape(-1, rows, left.shape[1]), right).reshape(whole, right.shape[1])
    return np.concatenate([stacked, left[whole:] @ right]) if whole < len(left) else stacked


def resampled_sums(columns: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Return sums ``(columns, resamples)`` of *columns* ``(units, columns)`` over resampled units."""
    return np.concatenate(list(_blocks(columns, resamples, rng)), axis=1)


def _blocks(columns: Floats, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Yield those sums in blocks that stay in the processor's cache, whatever the number of units and columns.

    The product is in single precision, several times as fast: exact for the counts that most columns hold, good to a
    millionth for the others.
    """
    units, width = columns.shape
    block = max(1, _BLOCK // max(units, width, 1))
    single = columns.astype(np.float32)
    for start in range(0, resamples, block):
        drawn = product(counts(units, min(block, resamples - start), rng), single)
        yield drawn.T.astype(np.float64, order="C")


def bootstrap(
    columns: ArrayLike,
    statistic: Statistic,
    *,
    resamples: int = RESAMPLES,
    rng: np.random.Generator | None = None,
    confidence: float = CONFIDENCE,
) -> Intervals:
    """Return point values and intervals of *statistic* over the units (rows) of *columns*.

    Undefined (NaN) limits: fewer than two units, an undefined point, or too many undefined resamples.
    """
    data = np.asarray(columns, dtype=np.float64)
    if not np.isfinite(data).all():
        raise ValueError("columns of a bootstrap must be finite: leave out what is missing and count it in a column")
    total = data.sum(axis=0)
    point = statistic(total[:, None])[:, 0]
    if len(data) < 2:
        nothing = np.full(point.shape, np.nan)
        return Intervals(point, nothing, nothing, nothing, nothing, np.zeros(point.shape))
    drawn = np.empty((len(point), resamples))
    start = 0
    for sums in _blocks(data, resamples, rng or np.random.default_rng(SEED)):
        stop = start + sums.shape[1]
        drawn[:, start:stop] = statistic(sums)
        start = stop
    return intervals(point, drawn, statistic((total - data).T), confidence)


def intervals(point: Floats, drawn: Floats, left_out: Floats, confidence: float = CONFIDENCE) -> Intervals:
    """Return intervals of statistics ``(k,)``, of which *drawn* holds ``(k, resamples)``, *left_out* ``(k, units)``.

    Source: Efron and Tibshirani (1993), equations 13.5, 14.10, 14.14 and 14.15; ties count half in the bias
    correction, as these statistics are discrete.
    """
    total = drawn.shape[1]
    defined = total - np.isnan(drawn).sum(axis=1)
    share = 1 - defined / total
    tail = (1 - confidence) / 2
    bca = _bca_levels(point, drawn, defined, left_out, tail)
    levels = np.stack([np.full(point.shape, tail), np.full(point.shape, 1 - tail), *bca], axis=1)
    levels[(share > UNDEFINED_SHARE) | np.isnan(point)] = np.nan
    limits = np.full(levels.shape, np.nan)
    for row in np.flatnonzero(~np.isnan(levels[:, 0])):
        known = ~np.isnan(levels[row])
        limits[row, known] = _quantiles(drawn[row], int(defined[row]), levels[row, known])
    lo, hi, bca_lo, bca_hi = limits.T
    return Intervals(point, lo, hi, bca_lo, bca_hi, share)


def _quantiles(values: Floats, defined: int, levels: Floats) -> Floats:
    """Linear between order statistics, as ``numpy.quantile``, among what is *defined* (NaN is ordered last).

    Selecting the few order statistics takes half the time of sorting.
    """
    position = levels * (defined - 1)
    below = position.astype(np.int64)
    above = np.minimum(below + 1, defined - 1)
    chosen = np.partition(values, np.unique([below, above]))
    return np.asarray(chosen[below] + (chosen[above] - chosen[below]) * (position - below))


def _bca_levels(
    point: Floats, drawn: Floats, defined: NDArray[np.int64], left_out: Floats, tail: float
) -> tuple[Floats, Floats]:
    tie = _TIE * (1 + np.abs(point))
    below = np.count_nonzero(drawn < (point - tie)[:, None], axis=1)
    not_above = np.count_nonzero(drawn <= (point + tie)[:, None], axis=1)
    bias = ndtri(divide((below + not_above) / 2, defined))  # infinite where every resample lies on one side
    away = mean_defined(left_out)[:, None] - left_out
    away = np.where(np.isnan(away), 0.0, away)
    spread = (away**2).sum(axis=1)
    # Nothing varies: no skewness to correct, rather than 0 / 0.
    varies = spread > (_TIE * (1 + np.abs(point))) ** 2
    skew = np.where(varies, divide((away**3).sum(axis=1), 6 * np.where(varies, spread, 1.0) ** 1.5), 0.0)
    bias = np.where(np.isfinite(bias), bias, np.nan)
    found = []
    for z in (ndtri(tail), ndtri(1 - tail)):
        moved = bias + z
        found.append(np.asarray(ndtr(bias + divide(moved, 1 - skew * moved)), dtype=np.float64))
    return found[0], found[1]
