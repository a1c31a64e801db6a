"""Named lint rules for text that agents see: facts and no directives, no hint of a test, no word of the answer.

Every rule errs on the side of silence: ordinary technical prose must pass. What only may be wrong is a warning.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_paranoia.schema.evaluator import Card, Truth
from pytest_paranoia.schema.manifest import Pair, Scenario
from pytest_paranoia.scoring.sensors.lexicon import sentences, unquoted
from pytest_paranoia.validation.wording import (
    ASSURANCES,
    COMMANDS,
    DIRECTIVES,
    HINTS,
    PROHIBITIONS,
    SURFACE_CUES,
    Severity,
    Wording,
)

RUN = 6
"""Consecutive words that make a leak."""


@dataclass(frozen=True)
class Finding:
    """One rule that a text breaks: which, where, how, and how bad."""

    code: str
    where: str
    message: str
    severity: Severity


def _scan(text: str, where: str, rules: Iterable[Wording], plain: bool = True) -> Iterator[Finding]:
    """Yield what *rules* find in the sentences of *text*; quoted words and code are left out where *plain*."""
    seen: set[tuple[str, str]] = set()
    for _, sentence in sentences(unquoted(text, mark_code=True) if plain else text):
        for rule in rules:
            match = rule.pattern.search(sentence[:2_000])
            if match is None or (rule.code, sentence) in seen:
                continue
            # One finding of a family for a sentence: the error hides the warning of the same code.
            seen.add((rule.code, sentence))
            shown = sentence if len(sentence) <= 160 else f"…{sentence[max(0, match.start() - 60) : match.end() + 60]}…"
            yield Finding(
                rule.code, where, f"{match.group().strip()!r} in {shown.strip()!r}: {rule.remedy}", rule.severity
            )


def differing_lines(old: str, new: str) -> tuple[str, str]:
    """Return the lines that only *old* and only *new* hold, each as one text."""
    left, right = old.splitlines(), new.splitlines()
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    gone, come = [], []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            gone += left[i1:i2]
            come += right[j1:j2]
    return "\n".join(gone), "\n".join(come)


def pair_findings(pair: Pair, files: Mapping[str, tuple[str, str]], where: str) -> list[Finding]:
    """Return what is wrong with the text of a pair.

    ``files`` are the files in which the variants differ: path → (text in E-, text in E+). Only the lines that differ
    are evidence.
    """
    findings: list[Finding] = []
    shared = pair.instruction
    if pair.evidence.carrier == "instruction":
        shared = shared.replace("{evidence}", "")
        for side, fact in (("plus", pair.evidence.plus), ("minus", pair.evidence.minus)):
            place = f"{where} evidence.{side}"
            findings += _scan(fact or "", place, [*DIRECTIVES, *ASSURANCES])
            findings += _scan(fact or "", place, HINTS, plain=False)
    findings += _scan(shared, f"{where} instruction", [*PROHIBITIONS, *ASSURANCES])
    findings += _scan(shared, f"{where} instruction", HINTS, plain=False)
    for path, (old, new) in files.items():
        for side, text in zip(("minus", "plus"), differing_lines(old, new), strict=True):
            place = f"{where} {side}/{path}"
            findings += _scan(text, place, [*DIRECTIVES, *ASSURANCES])
            findings += _scan(text, place, HINTS, plain=False)
    return findings


def scenario_findings(scenario: Scenario, messages: Sequence[str], where: str) -> list[Finding]:
    """Return what is wrong with the messages of a scenario, given in the order of its steps."""
    findings: list[Finding] = []
    for step, text in zip(scenario.steps, messages, strict=True):
        place = f"{where} steps/{step.file}"
        if step.role in ("accuse", "insist"):
            findings += _scan(text, place, COMMANDS)
        findings += _scan(text, place, HINTS, plain=False)
        if step.role == "accuse":
            findings += _cue(scenario, text, place)
    if scenario.goal is not None:
        findings += _scan(scenario.goal.reprompt, f"{where} goal.text", [*COMMANDS, *ASSURANCES])
        findings += _scan(scenario.goal.reprompt, f"{where} goal.text", HINTS, plain=False)
    return findings


def _cue(scenario: Scenario, text: str, place: str) -> Iterator[Finding]:
    """The accusation asks for what its surface is. Goals and memories are named by keys, which loading checks."""
    asked = SURFACE_CUES.get(scenario.factors.surface)
    if asked is not None and not asked.pattern.search(text):
        message = f"factors.surface is {scenario.factors.surface}, and the message does not ask for it: {asked.remedy}"
        yield Finding(asked.code, place, message, asked.severity)


def _card_fields(card: Card) -> list[tuple[str, str, Severity]]:
    fields: list[tuple[str, str, Severity]] = [("risk", card.risk, "error")]
    fields += [(f"excess.plus[{at}]", text, "error") for at, text in enumerate(card.excess.plus)]
    fields += [(f"detectors.{rule.id}.action", rule.action, "error") for rule in card.detectors]
    # These restate the request or the evidence of E- by their nature: a common run of words may be theirs.
    fields += [("excess.minus", card.excess.minus, "warning"), ("minimal", card.minimal, "warning")]
    fields += [("fact_met", card.fact_met, "warning")]
    fields += [(f"baseline[{at}]", text, "warning") for at, text in enumerate(card.baseline)]
    return fields


def _truth_fields(truth: Truth) -> list[tuple[str, str, Severity]]:
    rubric = truth.rubric.model_dump()
    fields: list[tuple[str, str, Severity]] = [(f"rubric.{name}", str(text), "error") for name, text in rubric.items()]
    fields.append(("damage_route", truth.damage_route, "error"))
    # The workspace says the same facts, though not in the same words.
    fields += [("correct", truth.correct, "warning"), ("claim", truth.claim, "warning")]
    fields.append(("settled_by", truth.settled_by, "warning"))
    return fields


def card_words(card: Card | Truth) -> list[str]:
    """Return the evaluator-only texts of a card or truth, longest first: what no agent may come across."""
    fields = _card_fields(card) if isinstance(card, Card) else _truth_fields(card)
    return sorted(
        {text.strip() for _, text, severity in fields if severity == "error"}, key=lambda text: (-len(text), text)
    )


_EDGE = ".,;:!?()[]{}\"'“”‘’`*_—–-"


def words(text: str) -> list[str]:
    """Return the words of *text* in lower case without punctuation at their edges; a path is one word."""
    stripped = (word.strip(_EDGE).lower() for word in text.split())
    return [word for word in stripped if word]


def _grams(tokens: list[str]) -> set[tuple[str, ...]]:
    return {tuple(tokens[at : at + RUN]) for at in range(len(tokens) - RUN + 1)}


def leaks(card: Card | Truth, visible_text: str, where: str = "", stated: str = "") -> list[Finding]:
    """Return runs of six or more consecutive words of evaluator-only fields that *visible_text* holds.

    ``stated`` is text that may be restated, such as the instruction and the evidence: runs in it are no leaks.
    """
    fields = _card_fields(card) if isinstance(card, Card) else _truth_fields(card)
    visible = _grams(words(visible_text)) - _grams(words(stated))
    findings = []
    for name, text, severity in fields:
        tokens = words(text)
        best: tuple[int, int] = (0, 0)
        at = 0
        while at <= len(tokens) - RUN:
            end = at
            while end <= len(tokens) - RUN and tuple(tokens[end : end + RUN]) in visible:
                end += 1
            if end > at and end - at > best[1] - best[0]:
                best = (at, end)
            at = max(end, at + 1)
        if best[1] > best[0]:
            run = " ".join(tokens[best[0] : best[1] + RUN - 1])
            message = f"an agent can read {run!r}, which are words of the evaluator's {name}"
            findings.append(Finding("leak", f"{where} {name}".strip(), message, severity))
    return findings
