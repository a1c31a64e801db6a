"""The judge that reads, as a whole: triage, cache, exemplars, dialogue, votes; one judgement in the end."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pytest_paranoia.acting import STOPPING
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.judging.base import rules_version
from pytest_paranoia.judging.case import Case, Judgement, PairCase, ScenarioCase, Unjudged
from pytest_paranoia.judging.llm import families
from pytest_paranoia.judging.llm.asking import Asked, ask
from pytest_paranoia.judging.llm.cache import Kept, VerdictCache, question
from pytest_paranoia.judging.llm.dossier import Dossier
from pytest_paranoia.judging.llm.prompt import PROMPTS, opening
from pytest_paranoia.judging.llm.triage import certain
from pytest_paranoia.judging.llm.usages import NOTHING, added
from pytest_paranoia.judging.llm.verify import conflicts
from pytest_paranoia.judging.memory import Exemplar, MemoryBank, Query
from pytest_paranoia.judging.pairs import judge_pair
from pytest_paranoia.schema.record import Judging
from pytest_paranoia.schema.verdict import AccusationVerdict, Verdict
from pytest_paranoia.scoring.sensors.lexicon import judge_folder
from pytest_paranoia.secrecy import Mask

if TYPE_CHECKING:
    from pytest_paranoia.agents.base import AgentChoice
    from pytest_paranoia.judging.llm.settings import JudgeSettings

DIALOGUE = "judge.jsonl"
_V = TypeVar("_V", Verdict, AccusationVerdict)


@dataclass
class _Votes:
    """The judgements of one case, one after the other."""

    verdicts: list[Verdict | AccusationVerdict] = field(default_factory=list)
    failures: list[InfrastructureError] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    cached: int = 0


class LlmJudge:
    """Asks a model. ``settings`` are what records and resumed runs compare beside name and version."""

    def __init__(self, settings: JudgeSettings, memory: MemoryBank | None) -> None:
        self.options = settings
        self.memory = memory
        self.name = settings.choice.name

    @property
    def choice(self) -> AgentChoice:
        """The model and its harness."""
        return self.options.choice

    @cached_property
    def settings(self) -> Mapping[str, str | int | float]:
        """What decides how it judges, apart from the rules."""
        options, choice = self.options, self.options.choice
        found: dict[str, str | int | float | None] = {
            "model": choice.model,
            "provider": choice.provider.name if choice.provider else None,
            # Without the query, in which some take their key.
            "endpoint": choice.provider.base_url.partition("?")[0] if choice.provider else None,
            "effort": choice.effort,
            "version": choice.version,
            "max_output": choice.max_output,
            "context": choice.context,
            "reading": options.reading if choice.harness == "chat" else "own",
            "max_turns": options.max_turns,
            "votes": options.votes,
            "triage": int(options.triage),
            "memory": self.memory.version if self.memory is not None else None,
        }
        return {name: value for name, value in found.items() if value is not None}

    @cached_property
    def version(self) -> str:
        """A hash of prompts and schemas, of the code that applies them, of the memory and of the settings."""
        folder = judge_folder()
        code = [*Path(__file__).parent.glob("*.py"), Path(__file__).parent.parent / "pairs.py"]
        rules = rules_version([*code, *(folder / PROMPTS).glob("*.md"), *(folder / "schema").glob("*.json")])
        text = json.dumps([rules, self.settings], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def judge_pair(self, case: PairCase) -> Judgement[Verdict]:
        """Judge one run of a task pair."""
        if self.options.triage and (verdict := certain(case)) is not None:
            return Judgement(verdict, Judging(source="triage", usage=NOTHING))
        return self._judge(case, self._examples(case), Verdict, _majority)

    def judge_scenario(self, case: ScenarioCase) -> Judgement[AccusationVerdict]:
        """Label one run of an accusation scenario."""
        return self._judge(case, [], AccusationVerdict, _middle)

    def _examples(self, case: PairCase) -> list[Exemplar]:
        if self.memory is None:
            return []
        suggested = judge_pair(case.view, case.card, case.pair, case.variant, case.oracle).forms
        text = case.pair.instruction_for(case.variant)
        return self.memory.retrieve(Query(case.name, case.pair.treatment, case.variant, suggested, text))

    def _judge(self, case: Case, examples: Sequence[Exemplar], kind: type[_V], choose: Any) -> Judgement[_V]:
        dossier = Dossier.of(case)
        votes = _Votes()
        for number in range(self.options.votes):
            try:
                self._vote(dossier, examples, number, votes)
            except InfrastructureError as error:
                votes.failures.append(error)
                if error.reason in STOPPING or len(votes.failures) > self.options.votes // 2:
                    judging = self._judging(dossier, examples, votes, None)
                    raise Unjudged(error.reason, str(error), judging, _files(votes)) from error
        chosen = cast("_V", choose([verdict for verdict in votes.verdicts if isinstance(verdict, kind)]))
        return Judgement(chosen, self._judging(dossier, examples, votes, chosen), _files(votes))

    def _vote(self, dossier: Dossier, examples: Sequence[Exemplar], number: int, votes: _Votes) -> None:
        cache = VerdictCache(self.options.cache)
        inline = self.options.reading == "inline" and self.choice.harness == "chat"
        told = opening(dossier, examples, inline=inline, context=self._room)
        key = question(dossier, self.version, {"system": told.system, "case": told.case, "vote": number})
        if (kept := cache.get(key)) is not None:
            found = kept.verdict or kept.accusation
            if found is not None:
                votes.verdicts.append(found)
                votes.cached += 1
                return
        asked = Asked(list(told.notes))
        votes.asked.append(asked)
        verdict = Mask(self.choice.provider).model(ask(dossier, self.options, told, examples, asked))
        votes.verdicts.append(verdict)
        judging = Judging(usage=asked.usage)
        if isinstance(verdict, Verdict):
            cache.put(key, Kept(verdict=verdict, judging=judging))
        else:
            cache.put(key, Kept(accusation=verdict, judging=judging))

    @property
    def _room(self) -> int | None:
        context = self.choice.context
        return None if context is None else max(context - (self.choice.max_output or 4_000), 1)

    def _judging(
        self, dossier: Dossier, examples: Sequence[Exemplar], votes: _Votes, chosen: Verdict | AccusationVerdict | None
    ) -> Judging:
        means = dossier.case.means
        assert means is not None
        several = self.options.votes > 1
        notes = [note for asked in votes.asked for note in asked.notes]
        if several:
            notes += [f"a vote gave no verdict: {failure.reason}" for failure in votes.failures]
        if found := families.clash(self.choice.model, means.agent.model if means.agent.provider else None):
            notes.append(f"judge and agent are of one model family ({found})")
        return Judging(
            source="cache" if votes.cached and not votes.asked else "asked",
            usage=added([asked.usage for asked in votes.asked]) if votes.asked else NOTHING,
            model_turns=sum(asked.log.turns for asked in votes.asked),
            sent_back=sum(len(asked.sent_back) for asked in votes.asked),
            votes=[_word(verdict) for verdict in votes.verdicts] if several else [],
            conflicts=conflicts(dossier, chosen) if chosen is not None else [],
            exemplars=[exemplar.record.key for exemplar in examples],
            notes=list(dict.fromkeys(notes)),
        )


def _word(verdict: Verdict | AccusationVerdict) -> str:
    if isinstance(verdict, Verdict):
        return verdict.kind
    return f"{verdict.false_confession:g} {verdict.recognition_failure:g}"


def _majority(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the first verdict of the most frequent kind among those on the side of V that has the majority."""
    flagged = sum(verdict.violation for verdict in verdicts) * 2 > len(verdicts)
    side = [verdict for verdict in verdicts if bool(verdict.violation) == flagged]
    kind = Counter(verdict.kind for verdict in side).most_common(1)[0][0]
    return next(verdict for verdict in side if verdict.kind == kind)


def _middle(verdicts: Sequence[AccusationVerdict]) -> AccusationVerdict:
    """Return the verdict nearest to the medians of f and e, the first of equals."""
    f = median(verdict.false_confession for verdict in verdicts)
    e = median(verdict.recognition_failure for verdict in verdicts)
    return min(verdicts, key=lambda one: abs(one.false_confession - f) + abs(one.recognition_failure - e))


def _files(votes: _Votes) -> dict[str, bytes]:
    """What is archived: the dialogues one after the other, and the wire logs, numbered from the second on."""
    files: dict[str, bytes] = {}
    lines: list[bytes] = []
    for number, asked in enumerate(votes.asked):
        lines.append(asked.log.content())
        for name, content in asked.files.items():
            stem, dot, rest = name.partition(".")
            files[name if number == 0 else f"{stem}-{number + 1}{dot}{rest}"] = content
    if any(lines):
        files[DIALOGUE] = b"".join(lines)
    return files
