"""Which runs people should label for a memory bank (ParanoiaEval Appendix G.3), drawn by the predictions of a judge.

An initial judge without memory predicts both variants of each task; of each treatment two tasks are drawn from each
of the four patterns. What was drawn, from what and by which seed is kept in the run directory, ``calibration.json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_paranoia.judging.memory.building import PATTERNS, PER_PATTERN, Pattern, pattern_of, sample
from pytest_paranoia.schema.problems import first_problem
from pytest_paranoia.schema.record import Record
from pytest_paranoia.schema.taxonomy import TREATMENTS, Treatment
from pytest_paranoia.store.files import StoreError, to_json, write_atomic

CALIBRATION: Final = "calibration.json"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Drawn(_Strict):
    """A task that was drawn: its pattern of predictions and the two trials to label."""

    treatment: Treatment
    pattern: Pattern
    task: str
    plus: str
    minus: str


class Missing(_Strict):
    """A pattern of a treatment with too few tasks: how many were wanted and how many there were."""

    treatment: Treatment
    pattern: Pattern
    wanted: int
    found: int


class Calibration(BaseModel):
    """``calibration.json``: whose predictions, of which agent and run, by which seed, and what was drawn."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    judge: str
    judge_version: str
    agent: str
    run: Annotated[int, Field(ge=1)]
    seed: int
    per_pattern: Annotated[int, Field(ge=1)]
    candidates: int = Field(description="tasks with a prediction of both variants")
    drawn: list[Drawn]
    missing: list[Missing]
    left_out: dict[str, str] = Field(description="tasks without a prediction of both variants, and why")


class NotCalibrated(StoreError):
    """The run directory has no usable ``calibration.json``."""


def calibrate(
    records: Iterable[Record], agent: str, run: int, seed: int, per_pattern: int = PER_PATTERN
) -> Calibration:
    """Draw tasks by the verdicts in *records* on *agent*'s run number *run*.

    Raises ValueError where verdicts were made with a memory, by several judges, or where there are none.
    """
    trials: dict[str, dict[str, Record]] = {}
    reasons: dict[str, str] = {}
    for record in records:
        if record.kind != "pair" or record.agent.name != agent or record.run != run:
            continue
        assert record.variant is not None
        sides = trials.setdefault(record.item, {})
        if record.status == "scored" and record.verdict is not None:
            sides[record.variant] = record
        else:
            reasons[record.item] = f"{record.variant}: {record.status} ({record.reason})"
    scored = [record for sides in trials.values() for record in sides.values()]
    if not scored:
        raise ValueError(f"there is no verdict on a task pair of agent {agent!r}, run {run}")
    if remembered := sorted(one.trial for one in scored if one.judging is not None and one.judging.exemplars):
        raise ValueError(
            f"{len(remembered)} verdicts were made with exemplars ({remembered[0]}, …): the first judge has no memory; "
            "judge again with --paranoia-rejudge RUN --paranoia-judge-memory off"
        )
    judges = sorted({(one.judge.name, one.judge.version) for one in scored if one.judge is not None})
    if len(judges) != 1:
        raise ValueError(f"the verdicts are of {len(judges)} judges: {', '.join(name for name, _ in judges)}")
    candidates: dict[Treatment, dict[Pattern, list[str]]] = {}
    both = {task: sides for task, sides in trials.items() if {"E+", "E-"} <= set(sides)}
    for task, sides in both.items():
        flags = [one.verdict is not None and one.verdict.kind == "evidence" for one in (sides["E+"], sides["E-"])]
        treatment = sides["E+"].treatment
        assert treatment is not None
        candidates.setdefault(treatment, {}).setdefault(pattern_of(*flags), []).append(task)
    drawn = [
        Drawn(
            treatment=treatment, pattern=pattern, task=task, plus=both[task]["E+"].trial, minus=both[task]["E-"].trial
        )
        for treatment, pattern, task in sample(candidates, seed, per_pattern)
    ]
    return Calibration(
        judge=judges[0][0],
        judge_version=judges[0][1],
        agent=agent,
        run=run,
        seed=seed,
        per_pattern=per_pattern,
        candidates=len(both),
        drawn=drawn,
        missing=_missing(drawn, per_pattern),
        left_out={task: reasons.get(task, "only one variant was run") for task in sorted(set(trials) - set(both))},
    )


def _missing(drawn: Sequence[Drawn], per_pattern: int) -> list[Missing]:
    found = []
    for treatment in TREATMENTS:
        for pattern in PATTERNS:
            there = sum((one.treatment, one.pattern) == (treatment, pattern) for one in drawn)
            if there < per_pattern:
                found.append(Missing(treatment=treatment, pattern=pattern, wanted=per_pattern, found=there))
    return found


def write(folder: Path, calibration: Calibration) -> Path:
    """Write *calibration* into the run directory *folder*. Raises StoreError."""
    path = folder / CALIBRATION
    write_atomic(path, to_json(calibration, indent=1) + b"\n")
    return path


def read(folder: Path) -> Calibration:
    """Return the calibration of the run directory *folder*. Raises NotCalibrated."""
    path = folder / CALIBRATION
    try:
        return Calibration.model_validate_json(path.read_bytes())
    except OSError as error:
        remedy = "Draw the trials first: paranoia judge calibrate RUN"
        raise NotCalibrated(path, f"cannot be read ({error.strerror})", remedy) from None
    except ValidationError as error:
        raise NotCalibrated(
            path,
            f"is not as it must be ({first_problem(error)})",
            "Draw the trials anew: paranoia judge calibrate RUN",
        ) from None


def drawn(folder: Path) -> frozenset[str]:
    """Return the keys of the trials that were drawn in the run directory *folder*. Raises NotCalibrated."""
    return frozenset(key for one in read(folder).drawn for key in (one.plus, one.minus))
