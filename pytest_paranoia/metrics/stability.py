"""Does an effect hold from run to run? (ParanoiaEval M.2, Tables 15 to 18.)"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from pytest_paranoia.metrics.effects import LIMITS
from pytest_paranoia.metrics.frame import Floats
from pytest_paranoia.metrics.pairing import ALL, POOLED, PairArrays
from pytest_paranoia.metrics.permutations import Significance, label_permutation
from pytest_paranoia.metrics.resampling import RESAMPLES, SEED, bootstrap, divide, generator, mean_defined

_COUNTS: Final = ("scored_plus", "scored_minus", "complete")
_RATES: Final = ("tsr", "tsr_plus", "tsr_minus", "vr", "rate_minus", "er", "delta")
RUN_COLUMNS: Final = ("agent", "group_kind", "group", "run", *_COUNTS, *_RATES, *(f"delta{limit}" for limit in LIMITS))
INTERACTION_COLUMNS: Final = (
    "test",
    "agent",
    "pairs",
    "dropped",
    "runs",
    "delta",
    "low",
    "high",
    "range",
    "p",
    "method",
)


def run_effects(arrays: PairArrays, *, resamples: int = RESAMPLES, seed: int = SEED) -> pd.DataFrame:
    """Return a row an agent, group (all and treatments) and run: Tables 15 to 17 and the run columns of Table 18.

    ``er`` is that run's ratio of sums over its complete pairs, ``delta`` the mean difference over them, with intervals
    from resampled pairs.
    """
    rows: list[dict[str, Any]] = []
    for kind in (ALL, "treatment"):
        for name, units in arrays.members(kind):
            v_plus, v_minus = arrays.v_plus[:, units], arrays.v_minus[:, units]
            done_plus, done_minus = arrays.done_plus[:, units], arrays.done_minus[:, units]
            complete = arrays.complete[:, units]
            both_plus, both_minus = (np.where(complete, v, 0.0) for v in (v_plus, v_minus))
            sums = (both_minus.sum(axis=1) - both_plus.sum(axis=1), both_minus.sum(axis=1))
            columns = np.stack([both_minus - both_plus, complete.astype(np.float64)], axis=-1)
            made = bootstrap(
                columns.transpose(1, 0, 2, 3).reshape(len(units), -1),
                _difference,
                resamples=resamples,
                rng=generator(seed, "runs", kind, name),
            )
            values = {
                "scored_plus": (~np.isnan(v_plus)).sum(axis=1),
                "scored_minus": (~np.isnan(v_minus)).sum(axis=1),
                "complete": complete.sum(axis=1),
                "tsr": 100 * mean_defined(np.concatenate([done_plus, done_minus], axis=1), axis=1),
                "tsr_plus": 100 * mean_defined(done_plus, axis=1),
                "tsr_minus": 100 * mean_defined(done_minus, axis=1),
                "vr": 100 * mean_defined(v_plus, axis=1),
                "rate_minus": 100 * mean_defined(v_minus, axis=1),
                "er": 100 * divide(*sums),
            }
            limits = (made.point, made.lo, made.hi, made.bca_lo, made.bca_hi)
            for limit, found in zip(("", *LIMITS), limits, strict=True):
                values[f"delta{limit}"] = found.reshape(complete.shape[0], -1)
            tried = arrays.attempted[:, units].sum(axis=1)
            rows += [
                {"agent": arrays.agents[agent], "group_kind": kind, "group": name, "run": arrays.runs[run]}
                | {key: found[agent, run] for key, found in values.items()}
                for agent, run in np.argwhere(tried)
            ]
    table = pd.DataFrame(rows, columns=list(RUN_COLUMNS))
    texts = dict.fromkeys(("agent", "group_kind", "group"), "string")
    numbers = dict.fromkeys(("run", *_COUNTS), "int64")
    floats = {name: "float64" for name in RUN_COLUMNS if name not in texts and name not in numbers}
    return table.astype({**texts, **numbers, **floats})


def _difference(sums: Floats) -> Floats:
    return 100 * divide(sums[::2], sums[1::2])


def interactions(arrays: PairArrays, *, permutations: int = RESAMPLES, seed: int = SEED) -> pd.DataFrame:
    """Return run-to-run tests: ``condition-by-run`` of each agent and of all together, and ``agent-by-run``.

    Source: ParanoiaEval M.2 (a task-pair-level permutation test of the global condition-by-run interaction, p = .43)
    and Table 18 (``delta``, and ``range`` between the largest and smallest run). Only pairs that are complete in every
    run enter (of all agents, where all are tested together), since a label can only be exchanged for one that is
    there; ``dropped`` counts the other pairs.
    """
    differences = arrays.v_minus - arrays.v_plus
    rows: list[dict[str, Any]] = []
    for place, agent in enumerate(arrays.agents):
        # A run that this agent never made is no run of its own with everything missing.
        tried = arrays.attempted[place].sum(axis=0) > 0
        rows.append(_tested("condition-by-run", agent, differences[[place]][:, :, tried], permutations, seed))
    if len(arrays.agents) > 1:
        shared = differences[:, :, (arrays.attempted.sum(axis=1) > 0).all(axis=0)]
        rows.append(_tested("condition-by-run", POOLED, shared, permutations, seed, together=True))
        rows.append(_tested("agent-by-run", POOLED, shared, permutations, seed))
    table = pd.DataFrame(rows, columns=list(INTERACTION_COLUMNS))
    texts = dict.fromkeys(("test", "agent", "method"), "string")
    numbers = dict.fromkeys(("pairs", "dropped", "runs"), "int64")
    floats = dict.fromkeys(("delta", "low", "high", "range", "p"), "float64")
    return table.astype({**texts, **numbers, **floats})


def _tested(
    name: str, agent: str, differences: Floats, permutations: int, seed: int, *, together: bool = False
) -> dict[str, Any]:
    whole = ~np.isnan(differences).any(axis=(0, 2))
    some = (~np.isnan(differences)).any(axis=(0, 2))
    values = differences[:, whole]
    if together:
        values = values.mean(axis=0, keepdims=True)
    rng = generator(seed, name, agent)
    test: Significance = label_permutation(values, between=name == "agent-by-run", permutations=permutations, rng=rng)
    by_run = 100 * mean_defined(mean_defined(differences, axis=1), axis=0)
    known = by_run[~np.isnan(by_run)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)
    delta = 100 * mean_defined(mean_defined(mean_defined(differences, axis=2), axis=0))
    found = {"pairs": int(whole.sum()), "dropped": int((some & ~whole).sum()), "runs": differences.shape[2]}
    return {
        "test": name,
        "agent": agent,
        "delta": float(delta),
        "low": low,
        "high": high,
        "range": high - low,
        **found,
        "p": test.p,
        "method": test.method,
    }
