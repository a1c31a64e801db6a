"""Judge files of Harbor's rewardkit: likert scales of three points become the rubric of our judge, 1/2/3 to 0/.5/1."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pytest_paranoia.corpus import load
from pytest_paranoia.errors import ManifestError
from pytest_paranoia.schema.evaluator import Rubric

CONFESSION, RECOGNITION = "c2_false_confession", "c3_recognition"
POINTS = 3
_LEVEL = re.compile(r"(?m)^[ \t]*([123])[ \t]*[=:]")


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Judge(_Table):
    """``[judge]``: which model would judge, and how; our own judge takes its place."""

    judge: str = ""
    model: str | None = None
    version: str | None = None
    files: list[str] = []
    mode: str = "batched"
    timeout: int = 300
    reasoning_effort: str | None = None
    isolated: bool = False
    cwd: str | None = None
    reference: str | None = None
    atif_trajectory: str | None = Field(default=None, alias="atif-trajectory")
    mcp_servers: list[dict[str, Any]] = []
    weight: float = 1.0
    prompt_template: str | None = None
    samples: int = 1
    guard: str = "off"


class Criterion(_Table):
    """``[[criterion]]``: one question with its scale."""

    description: str
    type: Literal["binary", "likert", "numeric", "rubric"] = "binary"
    name: str | None = None
    id: str | None = None
    points: int = 5
    levels: list[str] = []
    min: float = 0.0
    max: float = 1.0
    weight: float = 1.0
    files: list[str] = []
    negate: bool = False
    optional: bool = False
    annotations: dict[str, Any] = {}


class Scoring(_Table):
    """``[scoring]``: how several criteria become one number."""

    aggregation: str = "weighted-mean"
    threshold: float = 0.5


class JudgeFile(_Table):
    """A judge file as a whole."""

    judge: Judge = Judge()
    criterion: list[Criterion] = Field(min_length=1)
    scoring: Scoring = Scoring()


def judge_files(folders: Sequence[Path], shown: Mapping[Path, str]) -> dict[str, JudgeFile]:
    """Return the judge files below *folders* by the dimension they score: the folder's name, or the file's own.

    A later folder comes before an earlier one. *shown* names the folders in errors. Raises ManifestError.
    """
    found: dict[str, JudgeFile] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.toml")):
            name = f"{shown[folder]}/{path.relative_to(folder).as_posix()}"
            if not _is_judge_file(path, name):
                continue
            dimension = path.relative_to(folder).parts[0] if path.parent != folder else path.stem
            found[dimension] = load(path, JudgeFile, name)
    return found


def _is_judge_file(path: Path, name: str) -> bool:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ManifestError(f"{name}: not readable as TOML in UTF-8: {error}") from None
    return "judge" in data or "criterion" in data


def rubric(files: Mapping[str, JudgeFile], shown: str) -> Rubric | None:
    """Return what f and e of 0, .5 and 1 look like, None where the task has no scales. Raises ManifestError."""
    if CONFESSION not in files and RECOGNITION not in files:
        return None
    f, e = (_levels(files.get(name), name, shown) for name in (CONFESSION, RECOGNITION))
    return Rubric(f0=f[0], f05=f[1], f1=f[2], e0=e[0], e05=e[1], e1=e[2])


def _levels(file: JudgeFile | None, name: str, shown: str) -> tuple[str, str, str]:
    if file is None:
        raise ManifestError(f"{shown}: no judge file {name}, though there is one for the other scale; add it")
    if len(file.criterion) != 1 or file.criterion[0].type != "likert" or file.criterion[0].points != POINTS:
        scales = ", ".join(f"{one.type} of {one.points} points" for one in file.criterion)
        raise ManifestError(
            f"{shown}: key 'criterion' of {name}: found {scales}, expected one likert criterion of {POINTS} points"
        )
    description = file.criterion[0].description
    parts = _LEVEL.split(description)
    texts = {int(number): text.strip() for number, text in zip(parts[1::2], parts[2::2], strict=True)}
    if sorted(texts) != [1, 2, 3]:
        # A scale in other words stays whole: cut in the wrong place it would say something else.
        texts = {
            number: f"Level {number} of 3 (1 is best, 3 is worst) on this scale:\n{description}" for number in (1, 2, 3)
        }
    else:
        texts = {number: f"{parts[0].strip()}\n{text}".strip() for number, text in texts.items()}
    return texts[1], texts[2], texts[3]
