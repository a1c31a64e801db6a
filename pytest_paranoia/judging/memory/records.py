"""What a memory bank holds on disk: ``bank.json``, one record for each variant of a task, with its vector."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Annotated, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from pytest_paranoia.errors import ManifestError
from pytest_paranoia.schema.evaluator import Card
from pytest_paranoia.schema.problems import first_problem
from pytest_paranoia.schema.taxonomy import Degree, Form, Kind, Treatment, Variant

BANK_FILE: Final = "bank.json"
LabelSource = Literal["construction", "consensus"]
Text = Annotated[str, Field(min_length=1)]


def _vector(value: str) -> str:
    try:
        raw = base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"is no base64: {error}") from None
    if not raw or len(raw) % 4:
        raise ValueError(f"holds {len(raw)} bytes, expected a multiple of four (32-bit floats, little endian)")
    found = np.frombuffer(raw, dtype="<f4")
    norm = float(np.linalg.norm(found.astype(np.float64)))
    if not np.isfinite(norm) or abs(norm - 1) > 1e-3:
        raise ValueError(f"has the length {norm:.4f}, expected 1 (L2-normalised)")
    return value


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Vector(_Strict):
    """A description's embedding: which encoder made it, and its 32-bit floats (little endian) as base64; length 1."""

    encoder: Text
    data: Annotated[str, AfterValidator(_vector)]

    @classmethod
    def of(cls, encoder: str, values: NDArray[np.float32]) -> Self:
        """Return *values*, which *encoder* made, as it is kept on disk."""
        return cls(encoder=encoder, data=base64.b64encode(values.astype("<f4").tobytes()).decode())

    @property
    def values(self) -> NDArray[np.float32]:
        """The floats."""
        return np.frombuffer(base64.b64decode(self.data), dtype="<f4").astype(np.float32)


class CardSummary(_Strict):
    """The part of an answer card that an example needs; M(t) itself is the record's ``minimal_action``."""

    fact: Text
    risk: Text
    baseline: list[Text]
    excess: list[Text]

    @classmethod
    def of(cls, card: Card) -> Self:
        """Return the summary of *card*."""
        return cls(fact=card.fact, risk=card.risk, baseline=card.baseline, excess=card.excess.plus)


class NotedAction(_Strict):
    """One action beyond M(t): what it is, its form, whether it is evidence-linked, and where the record shows it."""

    action: Text
    form: Form
    linked: bool
    source: Text
    quote: Text


class ExemplarRecord(_Strict):
    """One labelled run. ``label`` is the trajectory's kind; ``degree`` that of its strongest evidence-linked action.

    ``label_source`` says where the label comes from: ``construction`` (a reference run whose label is known because it
    was written to have it; no human label) or ``consensus`` (two people, adjudicated). ``rationale`` gives the reason.
    """

    task: Text = Field(description="<repository>/<pair>")
    treatment: Treatment
    condition_role: Variant
    task_description: Text
    answer_card: CardSummary
    minimal_action: Text
    label: Kind
    degree: Degree
    forms: list[Form]
    actions: list[NotedAction]
    rationale: Text
    label_source: LabelSource
    embedding: Vector

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        linked = any(action.linked for action in self.actions)
        if (self.label == "evidence") != linked:
            raise ValueError(
                f"{self.key}: label is {self.label!r} but linked actions are {'there' if linked else 'missing'}"
            )
        if (self.label == "none") == bool(self.actions):
            raise ValueError(f"{self.key}: label is {self.label!r} with {len(self.actions)} actions beyond M(t)")
        if (self.degree == "none") != (self.label != "evidence"):
            raise ValueError(f"{self.key}: degree is {self.degree!r} but label is {self.label!r}")
        if missing := sorted({action.form for action in self.actions} - set(self.forms)):
            raise ValueError(f"{self.key}: forms lack {missing}, which its actions have")
        return self

    @property
    def key(self) -> str:
        """Task and variant."""
        return f"{self.task}[{self.condition_role}]"

    @property
    def flagged(self) -> bool:
        """Whether V = 1: the run is labelled ``evidence``."""
        return self.label == "evidence"


class BankFile(BaseModel):
    """``bank.json``. ``note`` says in words where the labels come from; ``seed`` is that of the choice of tasks."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    comment: str = Field(alias="$comment")
    schema_version: Literal[1] = Field(default=1, alias="schema")
    note: Text
    seed: int
    encoder: Text
    records: list[ExemplarRecord]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        keys = [record.key for record in self.records]
        if repeated := sorted({key for key in keys if keys.count(key) > 1}):
            raise ValueError(f"records repeat: {', '.join(repeated)}")
        foreign = [record.key for record in self.records if record.embedding.encoder != self.encoder]
        if foreign:
            raise ValueError(
                f"the bank's encoder is {self.encoder!r}, but another made the vectors of {', '.join(foreign)}"
            )
        return self

    def text(self) -> str:
        """Return the file's content."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"


def read(folder: Path) -> tuple[BankFile, bytes]:
    """Return the bank in *folder* and its bytes. Raises ManifestError (a file that is missing or not as it must be)."""
    path = folder / BANK_FILE
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ManifestError(f"{path}: cannot be read ({reason}); build one with `paranoia judge memory RUN`") from None
    try:
        return BankFile.model_validate_json(content), content
    except ValidationError as error:
        raise ManifestError(f"{path}: {first_problem(error)}; build it anew with `paranoia judge memory RUN`") from None
