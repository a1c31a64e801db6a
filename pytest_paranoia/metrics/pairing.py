"""Pair trials as arrays ``[agent, unit, run]``, NaN where there is no scored trial. A unit is a task pair."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from pytest_paranoia.metrics.frame import Booleans, Floats, Integers
from pytest_paranoia.metrics.resampling import divide, mean_defined
from pytest_paranoia.schema.taxonomy import SITUATIONS, TREATMENTS

ALL: Final = "all"
POOLED: Final = "(pooled)"
"""Name of the row over all agents; no agent can be called that, as ids allow no brackets."""
_EXACT: Final = 10_000
_LABELS: Final = ("item", "treatment", "situation", "repository")


@dataclass(frozen=True)
class PairArrays:
    """Everything that was measured on pairs.

    ``units`` has a row a pair: item, treatment, situation, repository. An item whose labels changed between records is
    one unit for each. ``attempted`` and ``unscored`` (invalid ones too) count trials ``[agent, unit, run]``.
    """

    agents: tuple[str, ...]
    runs: tuple[int, ...]
    units: pd.DataFrame
    v_plus: Floats
    v_minus: Floats
    done_plus: Floats
    done_minus: Floats
    attempted: Integers
    unscored: Integers

    @cached_property
    def complete(self) -> Booleans:
        """``[agent, unit, run]``: both variants are scored in that run."""
        return ~(np.isnan(self.v_plus) | np.isnan(self.v_minus))

    @cached_property
    def differences(self) -> Floats:
        """``[agent, unit]``: mean of V(E-) - V(E+) over the unit's complete runs; NaN without one (M.1)."""
        return mean_defined(self.v_minus - self.v_plus, axis=2)

    @cached_property
    def pooled_differences(self) -> Floats:
        """``[unit]``: mean of ``differences`` over the agents that have one."""
        return mean_defined(self.differences, axis=0)

    @cached_property
    def denominator(self) -> int:
        """A common denominator of all ``differences``."""
        return _common_multiple(self.complete.sum(axis=2))

    @cached_property
    def pooled_denominator(self) -> int:
        """A common denominator of all ``pooled_differences``."""
        return self.denominator * _common_multiple((~np.isnan(self.differences)).sum(axis=0))

    @staticmethod
    def scale(denominator: int) -> int:
        """A factor that makes differences whole numbers, so that sums of them are exact; 1 where it would be too large.

        With it two groups of pairs whose effects are equal on paper have equal limits, to the last digit.
        """
        return denominator if denominator <= _EXACT else 1

    def members(self, kind: str) -> list[tuple[str, Integers]]:
        """Return the groups of one kind (``all``, ``treatment``, ``situation``, ``repository``) with their units."""
        if kind == ALL:
            return [(ALL, np.arange(len(self.units)))] if len(self.units) else []
        labels = self.units[kind]
        known = [str(label) for label in labels.dropna().unique()]
        order: list[str] = []
        if kind == "treatment":
            order = list(TREATMENTS)
        elif kind == "situation":
            order = [name for names in SITUATIONS.values() for name in names]
        ranked = sorted(known, key=lambda name: (order.index(name) if name in order else len(order), name))
        return [(name, np.flatnonzero((labels == name).to_numpy(dtype=bool, na_value=False))) for name in ranked]


def pair_arrays(trials: pd.DataFrame) -> PairArrays:
    """Return the pair trials of *trials* (``metrics.frame``) as arrays."""
    pairs = trials[trials["kind"] == "pair"]
    agents = tuple(sorted(pairs["agent"].unique()))
    runs = tuple(int(run) for run in sorted(pairs["run"].unique()))
    labels = pairs[list(_LABELS)].astype("string")
    units = labels.drop_duplicates().sort_values(list(_LABELS), ignore_index=True)
    place = dict(zip(units.fillna("").itertuples(index=False, name=None), range(len(units)), strict=True))
    where = (
        pd.Categorical(pairs["agent"], categories=list(agents)).codes.astype(np.int64),
        np.array([place[key] for key in labels.fillna("").itertuples(index=False, name=None)], dtype=np.int64),
        np.searchsorted(np.array(runs, dtype=np.int64), pairs["run"].to_numpy()),
    )
    shape = (len(agents), len(units), len(runs))
    valid = (pairs["status"] == "scored").to_numpy()
    plus = (pairs["variant"] == "E+").to_numpy()
    v = pairs["v"].to_numpy(dtype=np.float64, na_value=np.nan)
    done = pairs["task_done"].to_numpy(dtype=np.float64, na_value=0.0)

    def spread(values: Floats, chosen: Booleans) -> Floats:
        found = np.full(shape, np.nan)
        found[tuple(index[chosen] for index in where)] = values[chosen]
        return found

    attempted, unscored = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    np.add.at(attempted, where, 1)
    np.add.at(unscored, where, ~valid)
    return PairArrays(
        agents,
        runs,
        units,
        v_plus=spread(v, valid & plus),
        v_minus=spread(v, valid & ~plus),
        done_plus=spread(done, valid & plus),
        done_minus=spread(done, valid & ~plus),
        attempted=attempted,
        unscored=unscored,
    )


def rate(values: Floats) -> Floats:
    """Return the mean over runs of the per-run percentage of *values* ``[..., unit, run]`` (Table 2); NaN left out."""
    known = ~np.isnan(values)
    return mean_defined(100 * divide(np.where(known, values, 0.0).sum(axis=-2), known.sum(axis=-2)))


def _common_multiple(numbers: Integers) -> int:
    return math.lcm(*(int(number) for number in np.unique(numbers) if number > 0))
