"""Is a judge right? Its verdicts against labels that two people agreed on, on tasks that its memory does not hold.

Sources: ParanoiaEval section 4.3 and Appendix G (accuracy and Cohen's kappa of V on held-out consensus labels; memory
and validation share no task); CAVE-Bench B.2 (exact agreement and weighted kappa of f and e).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.labelling.agreeing import ORDERS
from pytest_paranoia.labelling.labels import Label
from pytest_paranoia.metrics.agreement import rater_agreement
from pytest_paranoia.metrics.permutations import Significance, sign_flip
from pytest_paranoia.metrics.resampling import RESAMPLES, SEED, generator
from pytest_paranoia.schema.record import JudgeInfo, Record

VALIDATION_SCHEMA: Final = 1
_SHARE: Final = ("treatment", "variant", "form", "agent")


class Overlap(ParanoiaError):
    """Memory and validation share tasks: what came out would not be held out."""


class Unusable(ParanoiaError):
    """There is nothing that could be validated."""


@dataclass(frozen=True)
class Unit:
    """One labelled trial with its verdict."""

    record: Record
    label: Label

    @property
    def judged(self) -> bool:
        """V of the judge."""
        return self.record.verdict is not None and self.record.verdict.kind == "evidence"

    @property
    def labelled(self) -> bool:
        """V of the people."""
        return bool(self.label.flagged)

    @property
    def error(self) -> float:
        """V of the judge minus V of the people: +1 flagged wrongly, -1 missed."""
        return float(self.judged) - float(self.labelled)


@dataclass(frozen=True)
class Material:
    """What is compared: labelled trials with verdicts by one judge, and what was left out, by reason."""

    judge: JudgeInfo
    pairs: tuple[Unit, ...]
    scenarios: tuple[Unit, ...]
    left_out: Mapping[str, int]


def gather(records: Sequence[Record], labels: Mapping[str, Label], memory: Collection[str] | None) -> Material:
    """Bring adjudicated *labels* and the verdicts in *records* together.

    *memory* are the tasks that the judge's memory holds; None for a judge without one. Raises Overlap where one of
    them was labelled, Unusable where no trial has both, or several judges' verdicts are mixed.
    """
    known = {record.trial: record for record in records}
    shared = sorted({known[key].item for key in labels if key in known} & set(memory or ()))
    if shared:
        raise Overlap(
            f"{len(shared)} labelled tasks are in the judge's memory ({', '.join(shared[:5])}"
            f"{', …' if shared[5:] else ''}): such labels are not held out. Label other tasks, or "
            "judge with a memory that lacks these"
        )
    left: dict[str, int] = {}
    units: list[Unit] = []
    for key, label in labels.items():
        record = known.get(key)
        if record is None:
            reason = "the run has no such trial"
        elif not label.complete:
            reason = "its label is not finished"
        elif record.status != "scored":
            reason = f"{record.status} ({record.reason})"
        else:
            units.append(Unit(record, label))
            continue
        left[reason] = left.get(reason, 0) + 1
    judges = {(unit.record.judge.name, unit.record.judge.version) for unit in units if unit.record.judge}
    if not units:
        said = "; ".join(f"{count} × {reason}" for reason, count in left.items()) or "there are no adjudicated labels"
        raise Unusable(f"no trial has both a verdict and an adjudicated label: {said}")
    if len(judges) != 1:
        raise Unusable(
            f"the verdicts are of {len(judges)} judges ({', '.join(sorted(f'{n} {v}' for n, v in judges))}): judge the "
            "run again with one of them (--paranoia-rejudge)"
        )
    [(name, version)] = judges
    return Material(
        JudgeInfo(name=name, version=version),
        tuple(unit for unit in units if unit.record.kind == "pair"),
        tuple(unit for unit in units if unit.record.kind == "scenario"),
        left,
    )


def validation(found: Material, *, resamples: int = RESAMPLES, seed: int = SEED) -> dict[str, Any]:
    """Return the validation of a judge as JSON data: agreement, confusion by group, bias.

    Shares and kappas are 1 at full agreement; intervals resample whole tasks; an undefined value is None.
    """
    data: dict[str, Any] = {
        "schema": VALIDATION_SCHEMA,
        "judge": {"name": found.judge.name, "version": found.judge.version},
        "resamples": resamples,
        "seed": seed,
        "left_out": dict(found.left_out),
        "pairs": len(found.pairs),
        "scenarios": len(found.scenarios),
        "tasks": len({unit.record.item for unit in (*found.pairs, *found.scenarios)}),
        "agreement": {},
        "confusion": {},
        "bias": {},
    }
    fields: dict[str, tuple[Sequence[Unit], Callable[[Unit], Any], Callable[[Unit], Any]]] = {
        "flagged": (found.pairs, lambda unit: unit.judged, lambda unit: unit.labelled),
        "label": (found.pairs, lambda unit: _verdict(unit).kind, lambda unit: unit.label.label),
        "degree": (found.pairs, lambda unit: _verdict(unit).degree, _degree),
        "task_done": (found.pairs, lambda unit: "yes" if _verdict(unit).task_done else "no", _task_done),
        "fact_seen": (found.pairs, lambda unit: _verdict(unit).fact_read, lambda unit: unit.label.fact_seen),
        "false_confession": (
            found.scenarios,
            lambda unit: _accusation(unit).false_confession,
            lambda unit: unit.label.false_confession,
        ),
        "recognition_failure": (
            found.scenarios,
            lambda unit: _accusation(unit).recognition_failure,
            lambda unit: unit.label.recognition_failure,
        ),
    }
    for name, (units, judged, labelled) in fields.items():
        if units:
            data["agreement"][name] = _agreement(name, units, judged, labelled, resamples, seed)
    if found.pairs:
        data["confusion"] = {"all": _confusion(found.pairs), **{name: _grouped(found.pairs, name) for name in _SHARE}}
        data["bias"] = {
            "variant": _variant_bias(found.pairs, resamples, seed),
            "agent": _agent_bias(found.pairs, resamples, seed),
        }
    return data


def _verdict(unit: Unit) -> Any:
    return unit.record.verdict


def _accusation(unit: Unit) -> Any:
    return unit.record.accusation


def _degree(unit: Unit) -> Any:
    return unit.label.degree if unit.label.label == "evidence" else "none"


def _task_done(unit: Unit) -> Any:
    # A judge has no "unclear" here, so such labels have nothing to be compared with.
    return None if unit.label.task_done == "unclear" else unit.label.task_done


def _agreement(
    name: str,
    units: Sequence[Unit],
    judged: Callable[[Unit], Any],
    labelled: Callable[[Unit], Any],
    resamples: int,
    seed: int,
) -> dict[str, Any]:
    order = ORDERS[name][1]
    table = rater_agreement(
        [judged(unit) for unit in units],
        [labelled(unit) for unit in units],
        categories=order,
        groups=[unit.record.item for unit in units],
        resamples=resamples,
        seed=seed,
    )
    rows = table.to_dict(orient="records")
    return {
        str(row["measure"]): {name: _number(row[name]) for name in ("value", "lo", "hi")} | _counts(row) for row in rows
    }


def _counts(row: Mapping[Any, Any]) -> dict[str, int]:
    return {name: int(row[name]) for name in ("units", "dropped")}


def _number(value: Any) -> float | None:
    return None if math.isnan(float(value)) else round(float(value), 6)


def _confusion(units: Sequence[Unit]) -> dict[str, int]:
    """Return how often each combination of V occurs: ``false_alarm`` of the judge alone, ``miss`` of people alone."""
    return {
        "units": len(units),
        "hit": sum(unit.judged and unit.labelled for unit in units),
        "false_alarm": sum(unit.judged and not unit.labelled for unit in units),
        "miss": sum(not unit.judged and unit.labelled for unit in units),
        "quiet": sum(not unit.judged and not unit.labelled for unit in units),
    }


def _grouped(units: Sequence[Unit], by: str) -> dict[str, dict[str, int]]:
    groups: dict[str, list[Unit]] = {}
    for unit in units:
        for name in _names(unit, by):
            groups.setdefault(name, []).append(unit)
    return {name: _confusion(groups[name]) for name in sorted(groups)}


def _names(unit: Unit, by: str) -> list[str]:
    if by == "form":
        # Of what people marked; where they marked nothing, of what the judge found: a false alarm has a form too.
        return list(unit.label.forms) or list(_verdict(unit).forms) or ["(none)"]
    if by == "agent":
        return [unit.record.agent.name]
    return [str(getattr(unit.record, by))]


def _variant_bias(units: Sequence[Unit], resamples: int, seed: int) -> dict[str, Any]:
    """Does the judge err to one side in E+ and to the other in E-? Errors are paired within task, agent and run."""
    sides: dict[tuple[str, str, int], dict[str, float]] = {}
    for unit in units:
        record = unit.record
        sides.setdefault((record.item, record.agent.name, record.run), {})[str(record.variant)] = unit.error
    tasks: dict[str, list[float]] = {}
    for (task, _, _), both in sides.items():
        if len(both) == 2:
            tasks.setdefault(task, []).append(both["E+"] - both["E-"])
    means = [float(np.mean(values)) for values in tasks.values()]
    significance = sign_flip(means, permutations=resamples, rng=generator(seed, "bias", "variant"))
    return {
        "mean_error": {name: _mean([u.error for u in units if u.record.variant == name]) for name in ("E+", "E-")},
        "difference": _mean(means),
        "tasks": len(means),
        **_significance(significance),
    }


def _agent_bias(units: Sequence[Unit], resamples: int, seed: int) -> dict[str, Any]:
    """Does the judge favour an agent? Errors are shuffled within a variant; the statistic is the spread of means."""
    names = sorted({unit.record.agent.name for unit in units})
    means = {name: _mean([unit.error for unit in units if unit.record.agent.name == name]) for name in names}
    if len(names) < 2:
        return {"mean_error": means, "agents": len(names), "p": None, "method": "undefined"}
    errors = np.array([unit.error for unit in units])
    agents = np.array([names.index(unit.record.agent.name) for unit in units])
    strata = np.array([str(unit.record.variant) for unit in units])
    sizes = np.bincount(agents, minlength=len(names)).astype(np.float64)
    rng = generator(seed, "bias", "agent")
    observed = _spread(errors[None], agents, sizes)[0]
    # Errors are shuffled instead of agents: the same thing, and the groups stay where they are.
    shuffled = np.repeat(errors[None], resamples, axis=0)
    for stratum in np.unique(strata):
        columns = np.flatnonzero(strata == stratum)
        shuffled[:, columns] = rng.permuted(shuffled[:, columns], axis=1)
    reached = int((_spread(shuffled, agents, sizes) >= observed - 1e-9).sum())
    p = 1.0 if not np.any(errors) else (reached + 1) / (resamples + 1)
    return {"mean_error": means, "agents": len(names), "p": round(p, 6), "method": "monte-carlo"}


def _spread(errors: Any, agents: Any, sizes: Any) -> Any:
    """Return the sum of squares between agents of each row of *errors*."""
    sums = np.stack([errors[:, agents == one].sum(axis=1) for one in range(len(sizes))], axis=1)
    overall = errors.mean(axis=1, keepdims=True)
    return (sizes * (sums / sizes - overall) ** 2).sum(axis=1)


def _mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 6) if values else None


def _significance(found: Significance) -> dict[str, Any]:
    return {"p": None if math.isnan(found.p) else round(found.p, 6), "method": found.method}
