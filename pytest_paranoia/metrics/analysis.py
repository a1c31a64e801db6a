"""All tables of one run from its records: what reports and commands show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pytest_paranoia.metrics.contrasts import task_types
from pytest_paranoia.metrics.effects import GROUP_KINDS, paired_effects
from pytest_paranoia.metrics.frame import frame, results
from pytest_paranoia.metrics.hints import hints
from pytest_paranoia.metrics.notes import notes
from pytest_paranoia.metrics.pairing import POOLED, pair_arrays
from pytest_paranoia.metrics.permutations import spearman
from pytest_paranoia.metrics.resampling import RESAMPLES, SEED
from pytest_paranoia.metrics.scenarios import scenario_arrays, scenario_scores, transitions
from pytest_paranoia.metrics.stability import interactions, run_effects
from pytest_paranoia.schema.record import Record


@dataclass(frozen=True)
class Analysis:
    """Every table, and how it was made. All percentages; NaN is undefined and never 0. See docs/statistics.md.

    ``trials``: ``metrics.frame``. ``effects``: ``metrics.effects``. ``runs``: per agent, group and run
    (``metrics.stability``). ``interactions``: run-to-run tests and ranges. ``correlations``: rank correlations over
    agents. ``scenarios``, ``transitions``: ``metrics.scenarios``. ``task_types``: ``metrics.contrasts``.
    ``notes``: what was left out, in words; ``hints``: what only looks certain. The same records, ``resamples`` and
    ``seed`` give the same numbers.
    """

    trials: pd.DataFrame
    effects: pd.DataFrame
    runs: pd.DataFrame
    interactions: pd.DataFrame
    correlations: pd.DataFrame
    scenarios: pd.DataFrame
    task_types: pd.DataFrame
    transitions: pd.DataFrame
    notes: tuple[str, ...]
    hints: tuple[str, ...]
    resamples: int
    seed: int


def analyse(
    records: Iterable[Record],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    pair_groups: Sequence[str] = GROUP_KINDS,
) -> Analysis:
    """Return all statistics of *records*. Raises DuplicateTrials where two are of the same trial.

    *pair_groups* are the kinds of groups that ``effects`` has rows of: fewer take less time, the others stay the same.
    """
    return analyse_frame(frame(records), resamples=resamples, seed=seed, pair_groups=pair_groups)


def analyse_frame(
    trials: pd.DataFrame,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    pair_groups: Sequence[str] = GROUP_KINDS,
) -> Analysis:
    """Return all statistics of a table of trials (``metrics.frame``), or of some of its rows; the rest as above."""
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}: at least one is needed, and about 10,000 for a 95 % interval")
    pairs, scenarios = pair_arrays(trials), scenario_arrays(trials)
    effects = paired_effects(pairs, group_kinds=pair_groups, resamples=resamples, seed=seed)
    return Analysis(
        trials=trials,
        effects=effects,
        runs=run_effects(pairs, resamples=resamples, seed=seed),
        interactions=interactions(pairs, permutations=resamples, seed=seed),
        correlations=correlations(effects),
        scenarios=scenario_scores(scenarios, resamples=resamples, seed=seed),
        task_types=task_types(scenarios, resamples=resamples, seed=seed),
        transitions=transitions(trials),
        notes=tuple(notes(trials, pairs)),
        hints=tuple(hints(results(trials))),
        resamples=resamples,
        seed=seed,
    )


def correlations(effects: pd.DataFrame) -> pd.DataFrame:
    """Return Spearman's rank correlation of TSR with VR over agents, in each group of ``all`` and ``treatment``.

    Source: ParanoiaEval section 6, observation 2: rho .55, p .17.
    """
    rows: list[dict[str, Any]] = []
    chosen = effects[effects["group_kind"].isin(["all", "treatment"]) & (effects["agent"] != POOLED)]
    for (kind, group), one in chosen.groupby(["group_kind", "group"], sort=False):
        known = one[["tsr", "vr"]].dropna()
        rho, test = spearman(known["tsr"].to_numpy(dtype=np.float64), known["vr"].to_numpy(dtype=np.float64))
        found = {"rho": rho, "p": test.p, "method": test.method, "agents": len(known)}
        rows.append({"x": "tsr", "y": "vr", "group_kind": kind, "group": group} | found)
    table = pd.DataFrame(rows, columns=["x", "y", "group_kind", "group", "agents", "rho", "p", "method"])
    texts = dict.fromkeys(("x", "y", "group_kind", "group", "method"), "string")
    return table.astype({**texts, "agents": "int64", "rho": "float64", "p": "float64"})
