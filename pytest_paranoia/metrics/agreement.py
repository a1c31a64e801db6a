"""Do two judges, or a judge and a person, say the same? Each measure with a bootstrap interval over units.

Sources: ParanoiaEval section 4.3 (accuracy .965 and kappa .93 of the judge) and section 6 (alpha .76 of developers);
CAVE-Bench B.2 (exact agreement, weighted kappa, alpha). Cohen (1960, 1968); Krippendorff, Content Analysis (2004),
chapter 11. The ``krippendorff`` package computes one alpha at a time; here alpha is a function of sums over units like
everything else, so that 10,000 resamples are one product. Both agree to the last digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pytest_paranoia.metrics.frame import Floats
from pytest_paranoia.metrics.resampling import RESAMPLES, SEED, Intervals, Statistic, bootstrap, divide, generator

Level = Literal["nominal", "ordinal", "interval"]
COLUMNS: Final = ("measure", "value", "lo", "hi", "bca_lo", "bca_hi", "units", "dropped")
_CATEGORIES: Final = 40
"""More make tables of 40 x 40 cells a unit, and no kappa means anything there."""


def rater_agreement(
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    categories: Sequence[Any] | None = None,
    groups: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> pd.DataFrame:
    """Return accuracy (share of equal labels) and Cohen's kappa: plain, with linear and with quadratic weights.

    Labels are numbers, booleans or words; None and NaN are missing, and a unit that misses one is dropped and counted.
    *categories* is the order that weights need; by default the labels that occur, sorted. Kappa is undefined where
    chance would agree always (one category only). *groups* names what each unit belongs to, such as its task: whole
    groups are resampled then, as units of one group are not independent. Raises ValueError for unequal lengths and
    unknown labels.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} labels of the first rater and {len(second)} of the second")
    names = _ordered([*first, *second], categories)
    codes = _coded([first, second], names)
    known = (codes >= 0).all(axis=0)
    size = len(names)
    cells = np.zeros((int(known.sum()), size * size))
    units = len(cells)
    cells[np.arange(units), codes[0, known] * size + codes[1, known]] = 1
    if groups is not None:
        if len(groups) != len(first):
            raise ValueError(f"{len(groups)} groups for {len(first)} labels")
        cells = _by_group(cells, np.asarray(groups, dtype=object)[known])
    away = np.abs(np.arange(size)[:, None] - np.arange(size)).astype(np.float64)
    weights = {"kappa": (away > 0).astype(np.float64), "kappa_linear": away, "kappa_quadratic": away**2}

    def statistic(sums: Floats) -> Floats:
        table = divide(sums, sums.sum(axis=0)).reshape(size, size, -1)
        rows, columns = table.sum(axis=1), table.sum(axis=0)
        found = [np.einsum("iin->n", table)]
        for weight in weights.values():
            seen = np.einsum("ij,ijn->n", weight, table)
            expected = np.einsum("ij,in,jn->n", weight, rows, columns)
            found.append(1 - divide(seen, expected))
        return np.stack(found)

    made = bootstrap(cells, statistic, resamples=resamples, rng=generator(seed, "agreement"))
    return _table(["accuracy", *weights], made, units, int((~known).sum()))


def _by_group(cells: Floats, groups: NDArray[Any]) -> Floats:
    """Add up the rows of each group: a statistic of sums does not see the difference, the resampling does."""
    _, place = np.unique(groups.astype(str), return_inverse=True)
    summed = np.zeros((int(place.max(initial=-1)) + 1, cells.shape[1]))
    np.add.at(summed, place, cells)
    return summed


def krippendorff_alpha(
    ratings: Sequence[Sequence[Any]],
    level: Level = "nominal",
    *,
    categories: Sequence[Any] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> pd.DataFrame:
    """Return Krippendorff's alpha of *ratings* ``[rater][unit]``, None or NaN where a rater has none.

    Units with fewer than two ratings cannot be paired: they are dropped and counted. Undefined where no two ratings of
    different units differ, as nothing could then have disagreed. Raises ValueError for raters of unequal lengths.
    """
    if len({len(rater) for rater in ratings}) > 1:
        raise ValueError(f"raters have {[len(rater) for rater in ratings]} units: use None where one has no rating")
    columns, statistic = _interval(ratings) if level == "interval" else _categorical(ratings, level, categories)
    made = bootstrap(columns, statistic, resamples=resamples, rng=generator(seed, "alpha", level))
    units = len(ratings[0]) if ratings else 0
    return _table([f"alpha_{level}"], made, len(columns), units - len(columns))


def _interval(ratings: Sequence[Sequence[Any]]) -> tuple[Floats, Statistic]:
    """Squared differences need sums only: within a unit, and of x and x squared over all."""
    values = np.array([[np.nan if _missing(label) else float(label) for label in rater] for rater in ratings])
    values = values.reshape(len(ratings), len(ratings[0]) if ratings else 0)
    values = values[:, (~np.isnan(values)).sum(axis=0) >= 2]
    if values.size:
        values = values - np.nanmean(values)  # alpha does not change, and small numbers cancel less
    often = (~np.isnan(values)).sum(axis=0).astype(np.float64)
    filled = np.where(np.isnan(values), 0.0, values)
    total, squares = filled.sum(axis=0), (filled**2).sum(axis=0)
    within = divide(2 * (often * squares - total**2), often - 1)

    def statistic(sums: Floats) -> Floats:
        seen, n, x, xx = sums
        expected = 2 * (n * xx - x**2)
        expected = np.where(expected > 1e-6 * n * xx, expected, 0.0)
        return np.asarray(1 - (n - 1) * divide(seen, expected))[None]

    return np.stack([within, often, total, squares], axis=1), statistic


def _categorical(
    ratings: Sequence[Sequence[Any]], level: Level, categories: Sequence[Any] | None
) -> tuple[Floats, Statistic]:
    """Coincidences of each unit, ``[unit, category * category]`` (Krippendorff 2004, section 11.3)."""
    names = _ordered([label for rater in ratings for label in rater], categories)
    size = len(names)
    codes = _coded(ratings, names)
    often = np.stack([(codes == code).sum(axis=0) for code in range(size)], axis=1).astype(np.float64)
    often = often.reshape(-1, size)
    often = often[often.sum(axis=1) >= 2]
    together = often[:, :, None] * (often[:, None, :] - np.eye(size))
    columns = together / np.maximum(often.sum(axis=1) - 1, 1)[:, None, None]

    def statistic(sums: Floats) -> Floats:
        table = sums.reshape(size, size, -1)
        margin = table.sum(axis=1)
        if level == "nominal":
            distance = np.broadcast_to(1 - np.eye(size)[..., None], table.shape)
        else:
            middle = np.cumsum(margin, axis=0) - margin / 2
            distance = (middle[:, None] - middle[None, :]) ** 2
        expected = np.einsum("in,jn,ijn->n", margin, margin, distance)
        seen = (table * distance).sum(axis=(0, 1))
        return np.asarray(1 - (margin.sum(axis=0) - 1) * divide(seen, expected))[None]

    return columns.reshape(len(often), size * size), statistic


def _missing(label: Any) -> bool:
    return bool(pd.isna(label))


def _ordered(labels: Sequence[Any], categories: Sequence[Any] | None) -> list[Any]:
    found = {label for label in labels if not _missing(label)}
    names = list(categories) if categories is not None else sorted(found)
    if unknown := sorted(map(str, found - set(names))):
        raise ValueError(f"labels outside the categories {names}: {', '.join(unknown)}")
    if len(names) > _CATEGORIES:
        raise ValueError(f"{len(names)} categories: at most {_CATEGORIES}; numbers have level 'interval'")
    return names or [0]


def _coded(raters: Sequence[Sequence[Any]], names: list[Any]) -> NDArray[np.int64]:
    place = {name: code for code, name in enumerate(names)}
    found = [[-1 if _missing(label) else place[label] for label in rater] for rater in raters]
    return np.array(found, dtype=np.int64).reshape(len(raters), len(raters[0]) if raters else 0)


def _table(names: list[str], made: Intervals, units: int, dropped: int) -> pd.DataFrame:
    limits = (made.point, made.lo, made.hi, made.bca_lo, made.bca_hi)
    values = dict(zip(COLUMNS, (names, *limits, units, dropped), strict=True))
    return pd.DataFrame(values).astype({"measure": "string"})
