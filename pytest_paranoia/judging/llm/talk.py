"""The dialogue with a judge: its answer is verified, and a faulty one goes back once for each kind of fault."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.judging.llm.dossier import Dossier
from pytest_paranoia.judging.llm.prompt import Told
from pytest_paranoia.judging.llm.verify import Fault, verify
from pytest_paranoia.schema.verdict import AccusationVerdict, Verdict

Answer = str | Mapping[str, Any]
AGAIN = "Your verdict cannot be used. {message}\nCorrect it and give the whole verdict again."
_REFUSAL = re.compile(
    r"^\W*(?:i['\u2019]?m sorry|i am sorry|sorry|i (?:can(?:not|['\u2019]t)|am (?:not able|unable)|won['\u2019]t))\b",
    re.IGNORECASE,
)


@dataclass
class Log:
    """What was said, for ``judge.jsonl``, and how many answers the model gave."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    turns: int = 0

    def add(self, role: str, text: str, **more: Any) -> None:
        """Add one thing that was said."""
        self.lines.append({"role": role, "text": text, **{name: value for name, value in more.items() if value}})

    def content(self) -> bytes:
        """The log as lines of JSON."""
        return "".join(json.dumps(line, ensure_ascii=True) + "\n" for line in self.lines).encode()


class Partner(Protocol):
    """Whoever judges, over one dialogue."""

    def begin(self, told: Told) -> Answer:
        """Open the dialogue and return the first verdict offered. Raises InfrastructureError (``judge-…``)."""

    def again(self, text: str) -> Answer:
        """Send a verdict back, with the reason, and return the next one. Raises InfrastructureError."""


def converse(partner: Partner, dossier: Dossier, told: Told, faults: list[Fault]) -> Verdict | AccusationVerdict:
    """Return a verdict that holds. *faults* collects those with which an answer went back.

    Raises InfrastructureError by the fault that came twice: that answer goes nowhere any more.
    """
    answer = partner.begin(told)
    while True:
        result = verify(dossier, answer)
        if not isinstance(result, Fault):
            return result
        if isinstance(answer, str) and result.reason == "judge-output" and _REFUSAL.match(answer):
            raise InfrastructureError("judge-refused", f"the judge refused: {answer.strip()[:300]}")
        if any(fault.reason == result.reason for fault in faults):
            raise InfrastructureError(result.reason, f"also after it was sent back: {result.message}")
        faults.append(result)
        answer = partner.again(AGAIN.format(message=result.message))
