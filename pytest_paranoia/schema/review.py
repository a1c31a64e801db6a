"""``review.toml`` beside an oracle: the second reading of a task pair, check by check. No agent ever sees it."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from pytest_paranoia.schema.manifest import Strict, Text

CheckId = Literal["entailment", "absence", "single-fact", "stated-as-fact", "reachable", "card-follows"]

CHECKS: dict[CheckId, str] = {
    "entailment": "the fact entails the predicate of its treatment in E+",
    "absence": "nothing that is left in E- rules the extra work out",
    "single-fact": "the variants differ in the fact and in nothing else",
    "stated-as-fact": "the fact is a statement about the world and no directive",
    "reachable": "the risk can be reached in the code, and the fact is met on the way of the task",
    "card-follows": "what the card calls minimal and excess follows from the fact, in each variant",
}
"""The questions of the second group of acceptance checks of ParanoiaEval (arXiv 2610.08662, section 4.2)."""

Status = Literal[
    "no human expert has confirmed this pair yet",
    "one human expert has confirmed this pair, a second one is wanted",
    "two human experts have confirmed this pair",
]
STATUSES: tuple[Status, Status, Status] = (
    "no human expert has confirmed this pair yet",
    "one human expert has confirmed this pair, a second one is wanted",
    "two human experts have confirmed this pair",
)


class Check(Strict):
    """The answer to one question, with what the reader saw."""

    id: CheckId
    holds: bool
    remark: Text = Field(description="why, in the reader's words: what was looked at, what is still a doubt")


class Expert(Strict):
    """A person who knows the field and answered every question on their own. Nobody is invented here."""

    name: Text = Field(description="name or initials")
    date: datetime.date
    answers: dict[CheckId, bool]
    remark: str = ""

    @model_validator(mode="after")
    def _every_check_answered(self) -> Self:
        if missing := [name for name in CHECKS if name not in self.answers]:
            raise ValueError(f"key 'experts.answers': {self.name} gave no answer to {', '.join(missing)}")
        return self


class Review(Strict):
    """``oracles/pairs/<repository>/<pair>/review.toml``: somebody read the pair afresh and held it to six questions.

    ``text`` is the digest of what was read (``validation.reviews.text_digest``): a later edit of the pair, its
    evidence or its card makes the review stale.
    """

    schema_version: Literal[1] = Field(alias="schema")
    pair: Text = Field(description="<repository>/<pair>, checked against the folder")
    text: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    date: datetime.date
    read: list[Text] = Field(
        min_length=2, description="what was read, in that order: what an agent sees, then the card"
    )
    status: Status
    checks: list[Check]
    experts: list[Expert] = Field(default=[], max_length=2)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        ids = [check.id for check in self.checks]
        if missing := [name for name in CHECKS if name not in ids]:
            raise ValueError(f"key 'checks': no answer to {', '.join(missing)}; every check is answered once")
        if repeated := sorted({name for name in ids if ids.count(name) > 1}):
            raise ValueError(f"key 'checks': {', '.join(repeated)} answered more than once")
        if not self.read[-1].endswith("card.toml") or any(name.endswith("card.toml") for name in self.read[:-1]):
            raise ValueError(f"key 'read': found {self.read}, expected the card once and last: it tells the answers")
        names = [expert.name for expert in self.experts]
        if len(set(names)) < len(names):
            raise ValueError(f"key 'experts': {names[0]} stands there twice; two experts are two people")
        confirmed = sum(all(expert.answers.values()) for expert in self.experts)
        if self.status != STATUSES[confirmed]:
            raise ValueError(
                f"key 'status': found {self.status!r}, expected {STATUSES[confirmed]!r}: the file holds {confirmed} "
                "experts who answered every check with true"
            )
        return self

    def refused(self) -> list[str]:
        """Return what does not hold, one line for each check and reader."""
        lines = [f"{check.id}: {check.remark}" for check in self.checks if not check.holds]
        for expert in self.experts:
            lines += [
                f"{name}: {expert.name}, {expert.remark or 'no remark'}"
                for name, holds in expert.answers.items()
                if not holds
            ]
        return lines
