"""What was left out of the statistics, in words: nothing leaves a denominator in silence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pandas as pd

from pytest_paranoia.metrics.pairing import PairArrays

_NAMED: Final = 5


def notes(trials: pd.DataFrame, arrays: PairArrays) -> list[str]:
    """Return a sentence for everything that was dropped or is uneven, in a stable order."""
    return [*_not_scored(trials), *_relabelled(trials), *_incomplete(arrays), *_uneven(arrays)]


def _named(names: Iterable[str]) -> str:
    listed = sorted(set(names))
    return ", ".join(listed[:_NAMED]) + (f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else "")


def _not_scored(trials: pd.DataFrame) -> list[str]:
    found = []
    lost = trials[trials["status"] != "scored"]
    for (agent, kind, status), rows in lost.groupby(["agent", "kind", "status"], observed=True):
        of = int(((trials["agent"] == agent) & (trials["kind"] == kind)).sum())
        why = ", ".join(f"{reason} {count}" for reason, count in sorted(rows["reason"].value_counts().items()))
        # What is lost more often on one side of the pairs may be lost because of it.
        sides = "; ".join(
            f"{count} of {name}" for name, count in sorted(rows["variant"].value_counts().items()) if count
        )
        why = f"{why}; {sides}" if sides else why
        found.append(
            f"{agent}: {len(rows)} of {of} {kind} trials are {status} ({why}) and left out: {_named(rows['item'])}"
        )
    return found


def _relabelled(trials: pd.DataFrame) -> list[str]:
    labels = trials[["item", "treatment", "situation", "repository", "domain", "family", "g", "d", "q", "p", "s"]]
    distinct = labels.astype("string").drop_duplicates()
    doubled = distinct.loc[distinct["item"].duplicated(keep=False), "item"]
    found = [f"labels changed between trials, counted as separate items: {_named(doubled)}"] if len(doubled) else []
    hashes = trials[["item", "item_hash"]].drop_duplicates()
    edited = hashes.loc[hashes["item"].duplicated(keep=False), "item"]
    return [*found, f"content changed between trials: {_named(edited)}"] if len(edited) else found


def _incomplete(arrays: PairArrays) -> list[str]:
    found = []
    alone = np.isnan(arrays.v_plus) != np.isnan(arrays.v_minus)
    items = arrays.units["item"].to_numpy(dtype=object)
    for place, agent in enumerate(arrays.agents):
        if count := int(alone[place].sum()):
            named = _named(items[alone[place].any(axis=1)])
            found.append(
                f"{agent}: {count} scored trials have no scored counterpart in their run and enter TSR and VR, "
                f"but not ER and delta: {named}"
            )
    return found


def _uneven(arrays: PairArrays) -> list[str]:
    found = []
    items = arrays.units["item"].to_numpy(dtype=object)
    for place, agent in enumerate(arrays.agents):
        often = arrays.complete[place].sum(axis=1)
        some = often[often > 0]
        if len(some) and some.min() < some.max():
            few = _named(items[(often > 0) & (often < some.max())])
            found.append(f"{agent}: pairs have {some.min()} to {some.max()} complete runs; fewer than most: {few}")
    having = arrays.complete.any(axis=2)
    partly = having.any(axis=0) & ~having.all(axis=0)
    if partly.any():
        found.append(
            f"{int(partly.sum())} pairs are not complete for every agent, whose rates then are of different pairs: "
            f"{_named(items[partly])}"
        )
    return found
