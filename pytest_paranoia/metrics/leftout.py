"""Why an item does not enter a comparison: named in full, items with the same reason and metrics together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

_SIDES: Final = ("before", "after")
_OF_MINUS: Final = frozenset({"tsr_minus", "rate_minus"})
_OF_PLUS: Final = frozenset({"tsr_plus", "vr"})
_OF_BOTH: Final = frozenset({"delta", "er_pooled"})
Found = Mapping[str, Mapping[str, Any]]
"""Values of one arm: metric, then item."""


def left_out(label: str, arms: Sequence[pd.DataFrame], values: Sequence[Found], metrics: Iterable[str]) -> list[str]:
    """Return a sentence for each reason for which items of *arms* (before, after) have no value of *metrics*.

    Only items that one arm has a value of are told of: what neither arm measured could never have been compared.
    """
    reasons: dict[tuple[str, frozenset[str]], list[str]] = defaultdict(list)
    for metric in metrics:
        first, second = (side.get(metric, {}) for side in values)
        by_reason: dict[str, set[str]] = defaultdict(set)
        for place, missing in enumerate((second.keys() - first.keys(), first.keys() - second.keys())):
            for item in missing:
                by_reason[f"{_reason(arms[place], item, metric)} {_SIDES[place]}"].add(item)
        for reason, items in by_reason.items():
            reasons[reason, frozenset(items)].append(metric)
    listed = sorted(reasons.items(), key=lambda entry: (entry[0][0], sorted(entry[0][1])))
    return [f"{label}, {', '.join(names)}: {reason}: {', '.join(sorted(items))}" for (reason, items), names in listed]


def _reason(trials: pd.DataFrame, item: str, metric: str) -> str:
    mine = trials[trials["item"] == item]
    if not len(mine):
        return "no trial"
    scored = mine[mine["status"] == "scored"]
    if not len(scored):
        counted = mine["status"].astype("string").value_counts().to_dict()
        return f"no scored trial ({', '.join(f'{count} {name}' for name, count in sorted(counted.items()))})"
    there = set(scored["variant"].dropna())
    wanted = {"E+"} if metric in _OF_PLUS else {"E-"} if metric in _OF_MINUS else {"E+", "E-"}
    if metric in _OF_BOTH | _OF_PLUS | _OF_MINUS and (lacking := sorted(wanted - there)):
        return f"no scored {' and no scored '.join(lacking)} trial"
    if metric in _OF_BOTH:
        return "no run with both variants scored"
    return "undefined"
