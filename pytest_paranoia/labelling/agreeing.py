"""How far two annotators agree, and what is exported of their labels (ParanoiaEval Appendix G.2, H; CAVE-Bench B.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pytest_paranoia.labelling.labels import ADJUDICATED, Label
from pytest_paranoia.labelling.store import LabelStore

FIELDS: Final = ("label", "degree", "task_done", "fact_seen", "false_confession", "recognition_failure", "utility")
"""The fields of a label that two annotators may differ in, beside the marks."""

ORDERS: Final[Mapping[str, tuple[str, Sequence[Any]]]] = {
    "label": ("nominal", ("evidence", "generic", "none")),
    "flagged": ("nominal", (False, True)),
    "degree": ("ordinal", ("none", "minor", "clear")),
    "task_done": ("nominal", ("no", "unclear", "yes")),
    "fact_seen": ("nominal", ("no", "unclear", "yes")),
    "false_confession": ("ordinal", (0.0, 0.5, 1.0)),
    "recognition_failure": ("ordinal", (0.0, 0.5, 1.0)),
    "utility": ("ordinal", (0, 1, 2, 3, 4)),
}
"""Measured fields, each with its level of measurement and its values in order."""


def differing(first: Label, second: Label) -> list[str]:
    """Return the fields in which two labels differ; ``forms`` for the set of marked forms."""
    found = [name for name in FIELDS if getattr(first, name) != getattr(second, name)]
    return found + (["forms"] if set(first.forms) != set(second.forms) else [])


def agreement(first: Mapping[str, Label], second: Mapping[str, Label]) -> dict[str, dict[str, Any]]:
    """Return, by field, accuracy, Cohen's kappa (plain, linear and quadratic) and Krippendorff's alpha, with intervals.

    Units are trials that both have finished. A field that none of them has (f of pairs) is left out. Values are shares
    (1 is full agreement); an undefined one is None, as where only one value occurs.
    """
    from pytest_paranoia.metrics.agreement import krippendorff_alpha, rater_agreement

    both = sorted(trial for trial in set(first) & set(second) if first[trial].complete and second[trial].complete)
    found: dict[str, dict[str, Any]] = {}
    for name, (level, order) in ORDERS.items():
        sides = [[_value(side[trial], name) for trial in both] for side in (first, second)]
        if all(value is None for side in sides for value in side):
            continue
        table = rater_agreement(*sides, categories=order).set_index("measure")
        alpha = krippendorff_alpha(sides, level, categories=order).set_index("measure")  # type: ignore[arg-type]
        found[name] = {str(measure): _numbers(row) for rows in (table, alpha) for measure, row in rows.iterrows()}
    return found


def _value(label: Label, name: str) -> Any:
    if name == "degree" and label.label in ("generic", "none"):
        return "none"
    return getattr(label, name)


def _numbers(row: Any) -> dict[str, Any]:
    def number(value: float) -> float | None:
        return None if value != value else round(float(value), 6)

    return {
        "value": number(row["value"]),
        "lo": number(row["lo"]),
        "hi": number(row["hi"]),
        "units": int(row["units"]),
        "dropped": int(row["dropped"]),
    }


def exported(store: LabelStore, names: Sequence[str], run: str) -> dict[str, Any]:
    """Return the labels of *names* and the adjudicated ones of a run, with the agreement of each two annotators."""
    labels = {name: store.all(name) for name in names}
    pairs = [(one, other) for at, one in enumerate(names) for other in names[at + 1 :]]
    return {
        "schema": 1,
        "run": run,
        "annotators": list(names),
        "labels": {name: _finished(found) for name, found in labels.items()},
        "adjudicated": _finished(store.all(ADJUDICATED)),
        "unfinished": {name: _unfinished(found) for name, found in labels.items()},
        "agreement": [{"between": list(pair), "fields": agreement(labels[pair[0]], labels[pair[1]])} for pair in pairs],
    }


def _finished(found: Mapping[str, Label]) -> list[dict[str, Any]]:
    return [label.model_dump(mode="json", by_alias=True) for label in found.values() if label.complete]


def _unfinished(found: Mapping[str, Label]) -> list[str]:
    return [trial for trial, label in found.items() if not label.complete]
