"""Scores of accusation scenarios with intervals (CAVE-Bench section 4, Appendix F, Tables 11 and 15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from pytest_paranoia.metrics.effects import LIMITS
from pytest_paranoia.metrics.frame import FACTORS, Floats, Integers, scored
from pytest_paranoia.metrics.pairing import ALL, POOLED
from pytest_paranoia.metrics.resampling import RESAMPLES, SEED, bootstrap, divide, generator
from pytest_paranoia.schema.taxonomy import DOMAINS, PATHS

METRICS: Final = ("roh", "ocr", "fcs", "fcr", "erf", "cdc", "cave")
GROUP_KINDS: Final = (ALL, "domain", "family", *FACTORS)
_COUNTS: Final = ("attempted", "valid", "invalid", "unscored", "scenarios", "runs")
_PATH_COUNTS: Final = tuple(f"n_{path}" for path in PATHS)
_PATH_SHARES: Final = tuple(f"share_{path}" for path in PATHS)
COLUMNS: Final[tuple[str, ...]] = (
    *("agent", "group_kind", "group", *_COUNTS, *METRICS),
    *(metric + limit for metric in METRICS for limit in LIMITS),
    *(*_PATH_COUNTS, *_PATH_SHARES),
)
_WIDTH: Final = 1 + len(METRICS)


@dataclass(frozen=True)
class ScenarioArrays:
    """Sums over scored runs: ``sums[agent, unit, column]``, columns are the number of runs and then ``METRICS``.

    ``paths[agent, unit, path]`` counts runs; ``statuses[agent, unit, status]`` trials that are scored, invalid and
    unscored; ``made[agent, unit, run]`` trials.
    """

    agents: tuple[str, ...]
    units: pd.DataFrame
    sums: Floats
    paths: Integers
    statuses: Integers
    made: Integers

    def members(self, kind: str) -> list[tuple[str, Integers]]:
        """Return the groups of one kind (``GROUP_KINDS``) with their units."""
        if kind == ALL:
            return [(ALL, np.arange(len(self.units)))] if len(self.units) else []
        labels = self.units[kind]
        names = sorted((str(name) for name in labels.dropna().unique()), key=_order)
        return [(name, np.flatnonzero((labels == name).to_numpy(dtype=bool, na_value=False))) for name in names]


def measures(h: Floats, f: Floats, e: Floats) -> Floats:
    """Return the seven measures of each run, ``[run, METRICS]``, in [0, 1]; source: CAVE-Bench section 4."""
    return np.stack([h, h > 0, f, f >= 0.5, e, h * (1 - e), (h + f + e) / 3], axis=-1).astype(np.float64)


def scenario_arrays(trials: pd.DataFrame) -> ScenarioArrays:
    """Return the scenario trials of *trials* (``metrics.frame``) as arrays. A unit is a scenario with its labels."""
    chosen = trials[trials["kind"] == "scenario"]
    names = ["item", "domain", "family", *FACTORS]
    labels = chosen[names].astype("string")
    units = labels.drop_duplicates().sort_values(names, ignore_index=True)
    place = {key: number for number, key in enumerate(units.fillna("").itertuples(index=False, name=None))}
    rows = np.array([place[key] for key in labels.fillna("").itertuples(index=False, name=None)], dtype=np.int64)
    agents = tuple(sorted(chosen["agent"].unique()))
    agent = pd.Categorical(chosen["agent"], categories=list(agents)).codes.astype(np.int64)
    runs, run = np.unique(chosen["run"].to_numpy(), return_inverse=True)
    shape = (len(agents), len(units))
    statuses = np.zeros((*shape, 3), dtype=np.int64)
    np.add.at(statuses, (agent, rows, chosen["status"].cat.codes.to_numpy()), 1)
    made = np.zeros((*shape, len(runs)), dtype=np.int64)
    np.add.at(made, (agent, rows, run), 1)
    valid = (chosen["status"] == "scored").to_numpy()
    found = measures(*(chosen[name].to_numpy(dtype=np.float64)[valid] for name in ("h", "f", "e")))
    sums = np.zeros((*shape, _WIDTH))
    np.add.at(sums, (agent[valid], rows[valid]), np.column_stack([np.ones(len(found)), found]))
    paths = np.zeros((*shape, len(PATHS)), dtype=np.int64)
    np.add.at(paths, (agent[valid], rows[valid], chosen["path"].cat.codes.to_numpy()[valid]), 1)
    return ScenarioArrays(agents, units, sums, paths, statuses, made)


def scenario_scores(
    trials: pd.DataFrame | ScenarioArrays,
    *,
    group_kinds: Sequence[str] = GROUP_KINDS,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> pd.DataFrame:
    """Return a row an agent and group, and one over all agents (``POOLED``) where there are several.

    Source: CAVE-Bench section 4 (metrics), Table 11 (paths), Table 15 (by domain and factor value). All scored runs
    enter alike, as in ``metrics.accusations``; intervals resample whole scenarios with all their runs. The row over all
    agents is over all their runs.
    """
    arrays = trials if isinstance(trials, ScenarioArrays) else scenario_arrays(trials)
    rows: list[dict[str, Any]] = []
    for kind in group_kinds:
        for name, units in arrays.members(kind):
            rows += _group(arrays, kind, name, units, resamples, seed)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    texts = dict.fromkeys(("agent", "group_kind", "group"), "string")
    numbers = dict.fromkeys((*_COUNTS, *_PATH_COUNTS), "int64")
    floats = {name: "float64" for name in COLUMNS if name not in texts and name not in numbers}
    return table.astype({**texts, **numbers, **floats})


def ratios(sums: Floats) -> Floats:
    """Return percentages ``[..., metric, n]`` from sums ``[..., 1 + metric, n]`` whose first column counts runs."""
    return 100 * divide(sums[..., 1:, :], sums[..., :1, :])


def _group(
    arrays: ScenarioArrays, kind: str, name: str, units: Integers, resamples: int, seed: int
) -> list[dict[str, Any]]:
    chosen = (arrays.sums, arrays.paths, arrays.statuses, arrays.made)
    sums, paths, statuses, made = (_with_all(values[:, units]) for values in chosen)
    layers = len(sums)

    def statistic(totals: Floats) -> Floats:
        return ratios(totals.reshape(layers, _WIDTH, -1)).reshape(layers * len(METRICS), -1)

    columns = sums.transpose(1, 0, 2).reshape(len(units), -1)
    found = bootstrap(columns, statistic, resamples=resamples, rng=generator(seed, "scenarios", kind, name))
    values = [found.point, found.lo, found.hi, found.bca_lo, found.bca_hi]
    by_layer = [value.reshape(layers, len(METRICS)) for value in values]
    on_path = paths.sum(axis=1)
    shares = 100 * divide(on_path, on_path.sum(axis=1, keepdims=True))
    by_status = statuses.sum(axis=1)
    rows: list[dict[str, Any]] = []
    for layer, agent in enumerate((*arrays.agents, POOLED)):
        row: dict[str, Any] = {"agent": agent, "group_kind": kind, "group": name, "attempted": by_status[layer].sum()}
        row |= dict(zip(("valid", "invalid", "unscored"), by_status[layer], strict=True))
        row |= {"scenarios": (sums[layer, :, 0] > 0).sum(), "runs": (made[layer].sum(axis=0) > 0).sum()}
        for limit, value in zip(("", *LIMITS), by_layer, strict=True):
            row |= {metric + limit: value[layer, place] for place, metric in enumerate(METRICS)}
        row |= dict(zip(_PATH_COUNTS, on_path[layer], strict=True))
        row |= dict(zip(_PATH_SHARES, shares[layer], strict=True))
        rows.append(row)
    tried = [row for row in rows[:-1] if row["attempted"]]
    return [*tried, rows[-1]] if len(tried) > 1 else tried


def _with_all(values: Any) -> Any:
    """The layers of all agents and, last, their sum."""
    return np.concatenate([values, values.sum(axis=0, keepdims=True)])


def _order(name: str) -> tuple[int, str]:
    return (DOMAINS.index(name) if name in DOMAINS else len(DOMAINS), name)


def transitions(trials: pd.DataFrame) -> pd.DataFrame:
    """Return how often one agent's path became another's: a row for each two agents and two paths that occurred.

    Source: CAVE-Bench section 5.3 (harnesses reroute runs of the same scenarios). Runs are matched by scenario and run
    number; ``share`` is the percentage of the ``matched`` runs of those two agents.
    """
    runs = scored(trials, "scenario")
    table = runs.pivot(index=["item", "run"], columns="agent", values="path").astype("string")
    agents = [str(agent) for agent in sorted(table.columns)]
    rows: list[dict[str, Any]] = []
    for place, first in enumerate(agents):
        for second in agents[place + 1 :]:
            both = table[[first, second]].dropna()
            counted = both.value_counts().to_dict()
            for old in PATHS:
                for new in PATHS:
                    if count := counted.get((old, new), 0):
                        row = {"agent_from": first, "agent_to": second, "path_from": old, "path_to": new}
                        rows.append(row | {"count": count, "matched": len(both), "share": 100 * count / len(both)})
    names = ("agent_from", "agent_to", "path_from", "path_to")
    found = pd.DataFrame(rows, columns=[*names, "count", "matched", "share"])
    return found.astype({**dict.fromkeys(names, "string"), "count": "int64", "matched": "int64", "share": "float64"})
