"""How many pairs (or scenarios) and runs a wanted interval needs, from pilot data or from assumed rates.

A value of unit i in run r is mean + b_i + w_ir with variances ``between`` and ``within``: units differ, and a unit
differs from run to run. The mean over n units with R runs each has the variance (between + within / R) / n, so the
95 % interval is 2 * 1.96 * sqrt of that wide. More runs shrink only the second part; more units shrink both. Source:
one-way random effects (Searle, Casella and McCulloch, Variance Components, 1992, section 3.6); the papers resample
units, which has this variance (ParanoiaEval M.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtri

from pytest_paranoia.metrics.frame import scored
from pytest_paranoia.metrics.pairing import pair_arrays
from pytest_paranoia.metrics.resampling import CONFIDENCE, mean_defined
from pytest_paranoia.metrics.scenarios import METRICS as SCENARIO_METRICS
from pytest_paranoia.metrics.scenarios import measures

PLANNED: Final = ("delta", "vr", *SCENARIO_METRICS)
RUNS: Final = (1, 2, 3, 5, 10)
UNDECLARED: Final = "none was declared: intervals and p-values hold only if the number of trials was fixed beforehand"


@dataclass(frozen=True)
class Components:
    """Mean and variances, as fractions (not percent). ``runs`` is the mean number a unit.

    ``separable``: whether some unit had several runs; if not, ``within`` is 0 and ``between`` is all there is.
    """

    mean: float
    between: float
    within: float
    units: int
    runs: float
    separable: bool

    def width(self, units: float, runs: float, confidence: float = CONFIDENCE) -> float:
        """Width of the interval, in percentage points; NaN where variances or numbers are undefined."""
        variance = (self.between + self.within / runs) / units if units and runs else math.nan
        return 200 * float(ndtri((1 + confidence) / 2)) * math.sqrt(variance) if variance >= 0 else math.nan


@dataclass(frozen=True)
class Plan:
    """``table``: runs, units, trials and width for each number of runs; ``present``: the pilot's own width."""

    metric: str
    wanted: float
    confidence: float
    components: Components
    present: float
    table: pd.DataFrame
    stopping: str

    def text(self) -> str:
        """The plan in lines, with the stopping rule."""
        if self.components.units < 2:
            assumed = "no pilot, assumed rates" if not self.components.units else "a pilot of one unit shows no spread"
            pilot = f"{assumed}; a unit is a pair or a scenario"
        else:
            pilot = f"pilot: {self.components.units} pairs or scenarios with {self.components.runs:.3g} runs"
        now = "undefined" if math.isnan(self.present) else f"{self.present:.1f} points wide"
        lines = [f"{self.metric}: {self.confidence:.0%} interval now {now} ({pilot}); wanted {self.wanted:g} points"]
        spread = self.components.between + self.components.within
        if not spread > 0:
            # Also where it is NaN: a table made from it would promise that next to nothing is enough.
            return "\n".join([*lines, "  The pilot shows no spread, so nothing can be planned from it; assume rates."])
        lines += [
            f"  {row.runs:>3} runs: {row.units:>6} units, {row.trials:>7} trials" for row in self.table.itertuples()
        ]
        return "\n".join([*lines, f"Stopping rule: {self.stopping}"])


def components(values: ArrayLike) -> Components:
    """Return the variance components of *values* ``[unit, run]``, NaN where missing; between is never below 0."""
    data = np.asarray(values, dtype=np.float64)
    data = data[(~np.isnan(data)).any(axis=1)] if data.size else data.reshape(0, 0)
    often = (~np.isnan(data)).sum(axis=1).astype(np.float64)
    units, total = len(data), float(often.sum())
    if units < 2:
        mean = float(mean_defined(data.ravel())) if units else math.nan
        return Components(mean, math.nan, math.nan, units, total / units if units else math.nan, False)
    means = mean_defined(data, axis=1)
    inside = float(np.nansum((data - means[:, None]) ** 2))
    separable = total > units
    within = inside / (total - units) if separable else 0.0
    grand = float((means * often).sum() / total)
    outside = float((often * (means - grand) ** 2).sum()) / (units - 1)
    typical = (total - float((often**2).sum()) / total) / (units - 1)
    between = max(0.0, (outside - within) / typical)
    return Components(float(means.mean()), between, within, units, total / units, separable)


def pilot(trials: pd.DataFrame, metric: str, agent: str) -> Components:
    """Return the components of one of ``PLANNED`` from the trials of *agent*."""
    if metric not in PLANNED:
        raise ValueError(f"unknown metric {metric!r}: choose one of {', '.join(PLANNED)}")
    mine = trials[trials["agent"] == agent]
    if not len(mine):
        raise ValueError(f"no trials of {agent}: there are {', '.join(sorted(trials['agent'].unique())) or 'none'}")
    if metric in ("delta", "vr"):
        pairs = pair_arrays(mine)
        values = pairs.v_minus - pairs.v_plus if metric == "delta" else pairs.v_plus
        return components(values[0] if len(values) else np.empty((0, 0)))
    runs = scored(mine, "scenario")
    each = measures(*(runs[name].to_numpy(dtype=np.float64) for name in ("h", "f", "e")))
    measured = pd.DataFrame(
        {
            "item": runs["item"].to_numpy(dtype=object),
            "run": runs["run"].to_numpy(),
            "value": each[:, SCENARIO_METRICS.index(metric)],
        }
    )
    return components(measured.pivot(index="item", columns="run", values="value").to_numpy(dtype=np.float64))


def assumed_rate(rate: float, *, between_share: float = 0.5) -> Components:
    """Return the components of a rate (VR, OCR, FCR) of which *between_share* of the variance lies between units."""
    _fractions(rate=rate, between_share=between_share)
    variance = rate * (1 - rate)
    return Components(rate, between_share * variance, (1 - between_share) * variance, 0, 0.0, True)


def assumed_delta(
    rate_plus: float, rate_minus: float, *, between_share: float = 0.5, correlation: float = 0.0
) -> Components:
    """Return the components of delta from the rates of excess in E+ and E- and their *correlation* within a pair."""
    _fractions(rate_plus=rate_plus, rate_minus=rate_minus, between_share=between_share)
    if not -1 <= correlation <= 1:
        raise ValueError(f"correlation is {correlation}: it lies between -1 and 1")
    plus, minus = rate_plus * (1 - rate_plus), rate_minus * (1 - rate_minus)
    variance = plus + minus - 2 * correlation * math.sqrt(plus * minus)
    return Components(rate_minus - rate_plus, between_share * variance, (1 - between_share) * variance, 0, 0.0, True)


def plan(
    found: Components,
    wanted: float,
    *,
    metric: str = "delta",
    runs: Sequence[int] = RUNS,
    confidence: float = CONFIDENCE,
    stopping: str | None = None,
) -> Plan:
    """Return how many units each number of *runs* needs for an interval *wanted* percentage points wide.

    A trial is one run of one variant, so delta has two for each unit and run. *stopping* is the rule that was declared
    before the first look; it is carried along and printed, not enforced: an interval that was looked at until it was
    narrow or away from 0 covers less than it says.
    """
    if not (wanted > 0 and math.isfinite(wanted)):
        raise ValueError(f"the wanted width is {wanted}: it is a positive number of percentage points")
    if any(number < 1 for number in runs):
        raise ValueError(f"runs are {list(runs)}: at least 1 each")
    rows = []
    for number in runs:
        one = found.width(1, number, confidence)
        units = None if math.isnan(one) else max(2, math.ceil((one / wanted) ** 2 - 1e-9))
        trials = None if units is None else units * number * (2 if metric == "delta" else 1)
        width = math.nan if units is None else found.width(units, number, confidence)
        rows.append({"runs": number, "units": units, "trials": trials, "width": width})
    table = pd.DataFrame(rows, columns=["runs", "units", "trials", "width"])
    table = table.astype({"runs": "int64", "units": "Int64", "trials": "Int64", "width": "float64"})
    present = found.width(found.units, found.runs, confidence)
    return Plan(metric, wanted, confidence, found, present, table, stopping or UNDECLARED)


def _fractions(**values: float) -> None:
    for name, value in values.items():
        if not 0 <= value <= 1:
            raise ValueError(f"{name} is {value}: it is a fraction between 0 and 1")
