"""What judging took, and how stable it was: sums over the records whose judge may ask a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from pytest_paranoia.schema.record import Judging, Record


@dataclass(frozen=True)
class JudgingTotals:
    """Sums over judgements. A sum is None as soon as one of its parts is not known; where no call of the model was
    answered, nothing was used.

    ``asked``, ``cached`` and ``triaged`` are verdicts by source; ``failed`` are judgements without a verdict.
    ``sent_back`` counts answers that went back to the judge, ``conflicts`` verdicts that contradict other findings.
    ``voted`` counts runs that were judged more than once; ``flips`` is the mean share of their votes that differ from
    the verdict, None without such runs. ``cost`` in US dollars.
    """

    asked: int
    cached: int
    triaged: int
    failed: int
    requests: int | None
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    cost: float | None
    sent_back: int
    conflicts: int
    voted: int
    flips: float | None

    @property
    def verdicts(self) -> int:
        """Verdicts, wherever they come from."""
        return self.asked + self.cached + self.triaged

    def each(self, total: float | None) -> float | None:
        """Return *total* per verdict."""
        return None if total is None or not self.verdicts else total / self.verdicts


def totals(records: Iterable[Record]) -> JudgingTotals | None:
    """Return the totals of *records*, None where no judge may have asked a model."""
    found = [(record, record.judging) for record in records if record.judging is not None]
    if not found:
        return None
    all_of = [judging for _, judging in found]
    scored = [judging for record, judging in found if record.status == "scored"]
    voted = [(record, judging) for record, judging in found if len(judging.votes) > 1 and record.status == "scored"]
    shares = [1 - judging.votes.count(_word(record)) / len(judging.votes) for record, judging in voted]
    return JudgingTotals(
        asked=sum(judging.source == "asked" for judging in scored),
        cached=sum(judging.source == "cache" for judging in scored),
        triaged=sum(judging.source == "triage" for judging in scored),
        failed=len(found) - len(scored),
        requests=_sum(all_of, "requests"),
        input_tokens=_sum(all_of, "input_tokens"),
        cached_tokens=_sum(all_of, "cached_tokens"),
        output_tokens=_sum(all_of, "output_tokens"),
        cost=_sum(all_of, "cost_usd"),
        sent_back=sum(judging.sent_back for judging in all_of),
        conflicts=sum(bool(judging.conflicts) for judging in all_of),
        voted=len(voted),
        flips=fsum(shares) / len(shares) if shares else None,
    )


def _word(record: Record) -> str:
    if record.verdict is not None:
        return record.verdict.kind
    label = record.accusation
    return f"{label.false_confession:g} {label.recognition_failure:g}" if label is not None else ""


def _sum(judged: Sequence[Judging], name: str) -> Any:
    values = [0 if judging.usage.requests == 0 else getattr(judging.usage, name) for judging in judged]
    return None if None in values else sum(values)


def as_data(found: JudgingTotals | None) -> dict[str, Any] | None:
    """Return the totals as plain data for ``summary.json``, with tokens and cost of one verdict."""
    if found is None:
        return None
    per_verdict = {
        name: found.each(getattr(found, name)) for name in ("input_tokens", "cached_tokens", "output_tokens", "cost")
    }
    return {**vars(found), "verdicts": found.verdicts, "per_verdict": per_verdict}


def sentence(found: JudgingTotals) -> str:
    """Return the totals in a sentence, for a summary: what a verdict took, or all in all where there is none."""
    wanted = found.verdicts + found.failed
    parts = [f"{wanted} verdict{'' if wanted == 1 else 's'}"]
    sources = {"from the cache": found.cached, "by triage": found.triaged, "failed": found.failed}
    parts += [f"{number} {name}" for name, number in sources.items() if number]
    requests = "unknown" if found.requests is None else f"{found.requests}"
    parts.append(f"requests {requests}")
    share = "a verdict" if found.verdicts else "in all"
    for name, total in (("input", found.input_tokens), ("output", found.output_tokens)):
        each = found.each(total) if found.verdicts else total
        parts.append(f"{name} tokens {share} {'unknown' if each is None else f'{each:,.0f}'}")
    cost = found.each(found.cost) if found.verdicts else found.cost
    parts.append(f"cost {share} {'unknown' if cost is None else f'${cost:.4f}'}")
    if found.sent_back:
        parts.append(f"sent back {found.sent_back}")
    if found.conflicts:
        parts.append(f"at odds with the oracle {found.conflicts}")
    if found.flips is not None:
        parts.append(f"votes that differ {100 * found.flips:.1f}% over {found.voted} runs")
    return ", ".join(parts)
