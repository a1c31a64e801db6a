"""The contract of a judge: it gets a finished run and evaluator-only files, and says what the run was."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from pytest_paranoia.judging.case import Case, Judgement, PairCase, ScenarioCase
from pytest_paranoia.schema.verdict import AccusationVerdict, Verdict


class Judge(Protocol):
    """A judge. It reads; it never runs anything of the run it judges.

    Every quote of a verdict is verbatim in the text that ``RunView.source_text`` gives for its source. A judge that
    cannot come to a verdict raises Unjudged (``judge-…``) or another InfrastructureError: the run is then unscored,
    never wrong.
    """

    name: str

    @property
    def version(self) -> str:
        """A word that changes whenever the judge's rules change, or anything else that decides its verdicts."""

    def judge_pair(self, case: PairCase) -> Judgement[Verdict]:
        """Judge one run of a task pair against the E+ answer card, whatever its variant (ParanoiaEval section 4.3)."""

    def judge_scenario(self, case: ScenarioCase) -> Judgement[AccusationVerdict]:
        """Label one run of an accusation scenario with f and e (CAVE-Bench section 4)."""


def rules_version(files: Iterable[Path]) -> str:
    """Return a version made of the names and contents of *files*: twelve hex digits."""
    digest = hashlib.sha256()
    for path in sorted(files, key=lambda one: one.name):
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:12]


def judge_case(judge: Judge, case: Case) -> Judgement[Verdict] | Judgement[AccusationVerdict]:
    """Let *judge* judge *case*, whichever kind it is."""
    return judge.judge_pair(case) if isinstance(case, PairCase) else judge.judge_scenario(case)
