"""Arms: ``--paranoia-arm NAME=PART+PART`` read into what each arm adds to an agent. Every usage error is told here."""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from pytest_paranoia.acting import Instructions
from pytest_paranoia.gates.chain import GateChoice

OPTION: Final = "--paranoia-arm"
NONE: Final = "none"
RULES: Final = ("evidence", "proportionality")
GATES: Final = {
    "irreversible": "pytest_paranoia.gates.irreversible:Irreversible",
    "live-signal": "pytest_paranoia.gates.live_signal:LiveSignal",
}
_DRY: Final = "?dry"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_FORMS: Final = (
    "rule:FILE, rule:evidence, rule:proportionality, instructions:FILE, gate:irreversible, gate:live-signal, "
    "gate:MODULE:CLASS (each gate also with ?dry), none"
)


@dataclass(frozen=True)
class Text:
    """A text for the agent: an instruction file under test, or a rule that is added to its instructions."""

    kind: Literal["instructions", "rule"]
    name: str
    text: str

    @property
    def part(self) -> str:
        """The text as the command line names it."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True)
class Arm:
    """What one arm adds. An arm without texts and gates is the baseline that the others are compared with."""

    name: str
    instructions: Text | None = None
    rules: tuple[Text, ...] = ()
    gates: tuple[GateChoice, ...] = ()

    @property
    def baseline(self) -> bool:
        """Whether the arm adds nothing."""
        return not (self.instructions or self.rules or self.gates)

    @property
    def parts(self) -> list[str]:
        """What the arm adds, in the order in which it takes effect: instruction file, rules, gates."""
        texts = [*([self.instructions] if self.instructions else []), *self.rules]
        gates = [f"gate:{gate.name}{_DRY if gate.dry else ''}" for gate in self.gates]
        return [*(text.part for text in texts), *gates]

    def as_json(self) -> dict[str, Any]:
        """What the run manifest keeps of it: enough to tell whether another session's arm is the same."""
        added = combined(None, self)
        return {
            "parts": self.parts,
            "instructions": added.sha256 if added else None,
            "gates": [gate.shown for gate in self.gates],
            "baseline": self.baseline,
        }


def combined(common: Instructions | None, arm: Arm | None) -> Instructions | None:
    """Return the instructions of an agent in *arm*: the instruction file first, then the rules in the order given.

    The arm's own instruction file takes the place of the *common* one of ``--paranoia-instructions``.
    """
    if arm is None or not (arm.instructions or arm.rules):
        return common
    first = [(arm.instructions.name, arm.instructions.text)] if arm.instructions else []
    if not first and common is not None:
        first = [(common.name, common.text)]
    pieces = [*first, *((f"rule:{rule.name}", rule.text) for rule in arm.rules)]
    text = "\n\n".join(text.strip() for _, text in pieces) + "\n"
    return Instructions(" + ".join(name for name, _ in pieces), text, hashlib.sha256(text.encode()).hexdigest())


def parse(given: Sequence[str], base: Path, only_scripted: bool) -> tuple[Arm, ...]:
    """Return the arms of *given*, the baseline first. Raises ``pytest.UsageError``.

    Files are relative to *base*. *only_scripted*: no agent of the session reads instructions.
    """
    arms = [_arm(text, base) for text in given]
    seen: dict[str, str] = {}
    for arm in arms:
        if (other := seen.setdefault(arm.name.casefold(), arm.name)) != arm.name or [one.name for one in arms].count(
            arm.name
        ) > 1:
            raise pytest.UsageError(f"{OPTION}: {other} and {arm.name}: two arms of one name (-k ignores case)")
    baselines = [arm.name for arm in arms if arm.baseline]
    if len(baselines) > 1:
        raise pytest.UsageError(f"{OPTION}: {', '.join(baselines)} all add nothing; keep one as the baseline")
    for arm in arms:
        if only_scripted and not arm.baseline and not arm.gates:
            raise pytest.UsageError(
                f"{OPTION}: {arm.name}: the scripted agents read no instructions, so the arm would seem to change "
                "nothing; name a real agent with --model, or add a gate to the arm"
            )
    if arms and not baselines:
        if NONE in seen:
            raise pytest.UsageError(
                f"{OPTION}: {seen[NONE]} is the name of the baseline and adds something here; choose another name"
            )
        return (Arm(NONE), *arms)
    return tuple(sorted(arms, key=lambda arm: not arm.baseline))


def _arm(given: str, base: Path) -> Arm:
    name, separator, rest = given.partition("=")
    if not (separator and _NAME.fullmatch(name) and rest):
        raise pytest.UsageError(
            f"{OPTION}: {given!r} given, expected NAME=PART or NAME=PART+PART; a name has letters, digits, '.', '_' "
            f"and '-' (at most 40), a part is one of {_FORMS}"
        )
    instructions: Text | None = None
    rules: list[Text] = []
    gates: list[GateChoice] = []
    parts = rest.split("+")
    for part in parts:
        kind, _, value = part.partition(":")
        if part == NONE and len(parts) == 1:
            continue
        if kind == "rule" and value in RULES:
            rules.append(Text("rule", value, shipped_rule(value)))
        elif kind in ("rule", "instructions") and value:
            text = Text("rule" if kind == "rule" else "instructions", Path(value).name, _read(name, value, base))
            if text.kind == "rule":
                rules.append(text)
            elif instructions is not None:
                raise pytest.UsageError(f"{OPTION}: {name}: two instruction files; an agent has one, make it rule:FILE")
            else:
                instructions = text
        elif kind == "gate" and value:
            gates.append(gate_choice(value, base, f"{OPTION}: {name}"))
        else:
            raise pytest.UsageError(f"{OPTION}: {name}: {part!r} is no part of an arm, expected one of {_FORMS}")
    named = [f"{gate.name}" for gate in gates]
    if doubled := sorted({gate for gate in named if named.count(gate) > 1}):
        raise pytest.UsageError(f"{OPTION}: {name}: gate {', '.join(doubled)} named twice")
    return Arm(name, instructions, tuple(rules), tuple(gates))


def shipped_rule(name: str) -> str:
    """Return the text of a rule that comes with the package (``RULES``)."""
    return (files("pytest_paranoia.interventions") / "rules" / f"{name}.md").read_text(encoding="utf-8")


def _read(arm: str, name: str, base: Path) -> str:
    path = base / name
    if not path.is_file():
        found = "is no file" if path.exists() else "does not exist"
        raise pytest.UsageError(f"{OPTION}: {arm}: {name} {found}; shipped rules are {', '.join(RULES)}")
    return read_text(path, f"{OPTION}: {arm}: {name}")


def read_text(path: Path, shown: str) -> str:
    """Return a text for an agent. Raises ``pytest.UsageError`` where it is none, or empty."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise pytest.UsageError(f"{shown} cannot be read as text in UTF-8: {error}") from None
    if not text.strip():
        raise pytest.UsageError(f"{shown} is empty")
    return text


def gate_choice(given: str, base: Path, shown: str) -> GateChoice:
    """Return the gate *given* as a name of ``GATES`` or MODULE:CLASS, with ``?dry`` or without.

    MODULE is imported with *base* on ``sys.path``. Raises ``pytest.UsageError`` that begins with *shown*.
    """
    text, dry = (given.removesuffix(_DRY), True) if given.endswith(_DRY) else (given, False)
    module, separator, name = GATES.get(text, text).partition(":")
    if not (module and separator and name):
        raise pytest.UsageError(
            f"{shown}: {given!r} given, expected {', '.join(GATES)} or MODULE:CLASS, or one with ?dry"
        )
    if str(base) not in sys.path:
        sys.path.insert(0, str(base))
    try:
        gate = getattr(importlib.import_module(module), name)
        made = gate()
    except Exception as error:
        raise pytest.UsageError(f"{shown}: {text} cannot be made: {error!r}") from error
    lacking = [part for part in ("name", "version") if not isinstance(getattr(gate, part, None), str)]
    lacking += [] if callable(getattr(made, "decide", None)) else ["decide"]
    if not isinstance(gate, type) or lacking:
        raise pytest.UsageError(
            f"{shown}: {text} is no gate: expected a class with the texts name and version (of the class "
            "itself: records name it before it is made) and decide(request, view)"
            + (f"; it lacks {', '.join(lacking)}" if lacking else "")
        )
    make: Callable[[], Any] = partial(_made, gate)
    return GateChoice(gate.name, gate.version, make, dry)  # type: ignore[attr-defined]


def _made(gate: type[Any]) -> Any:
    return gate()
