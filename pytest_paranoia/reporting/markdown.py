"""The job summary: Markdown that GitHub and GitLab render, from names and quotes that are hostile text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_paranoia.metrics.hints import hints, results
from pytest_paranoia.metrics.paired import TREATMENT_GROUPS
from pytest_paranoia.reporting.findings import Finding, findings
from pytest_paranoia.reporting.grids import number
from pytest_paranoia.reporting.text import clip, one_line
from pytest_paranoia.schema.taxonomy import PATHS
from pytest_paranoia.store.summary import RunSummary

LIMIT: Final = 900_000
"""Bytes: GitHub shows no summary of more than 1 MiB at all."""
_LISTED: Final = 20
_LONGEST: Final = 300
_SCORES: Final = ("roh", "ocr", "fcs", "fcr", "erf", "cdc", "cave")
# Everything that begins a construct, of GitHub too: autolinks (: .), mentions (@), math ($), issues (#).
_ACTIVE: Final = re.compile(r"([\\`*_{}\[\]()<>#+!|~:.&@$=-])")


def escaped(text: str) -> str:
    """Return *text* as one line in which nothing is Markdown or HTML: also inside a cell of a table."""
    return _ACTIVE.sub(r"\\\1", clip(one_line(text, "utf-8"), _LONGEST))


def markdown(summary: RunSummary, comparison: Sequence[str] = ()) -> str:
    """Return the job summary of *summary*; *comparison* are lines of plain text to show as they are."""
    text = "\n".join(_lines(summary, comparison)) + "\n"
    content = text.encode("utf-8", "backslashreplace")
    if len(content) <= LIMIT:
        return content.decode("utf-8")
    kept = content[:LIMIT].decode("utf-8", "ignore").rpartition("\n")[0]
    return f"{kept}\n\n(cut: more than {LIMIT} bytes)\n"


def _lines(summary: RunSummary, comparison: Sequence[str]) -> Iterator[str]:
    counts = summary.counts
    yield f"## paranoia: {escaped(summary.manifest.run or summary.path.name)}"
    yield ""
    of = "" if summary.planned is None else f" of {len(summary.planned)} planned"
    yield (
        f"{counts.attempted}{of} trials: {counts.scored} scored, {counts.invalid} invalid, {counts.unscored} unscored."
    )
    yield from _gates(summary)
    yield from _pairs(summary)
    yield from _scenarios(summary)
    if found := hints(results(summary.records)):
        yield from ("", "### Less certain than it looks", "", *(f"- {escaped(hint)}" for hint in found))
    for finding in findings(summary):
        yield from _finding(finding)
    if comparison:
        yield from ("", "### Compared", "", "```text", *(line.replace("`", "'") for line in comparison), "```")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * texts}{' ---: |' * (len(heads) - texts)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _gates(summary: RunSummary) -> Iterator[str]:
    if not summary.gates:
        return
    yield from ("", f"### Gates: {'passed' if summary.gates_passed else 'FAILED'}")
    rows = [
        (
            escaped(result.gate.name),
            escaped(result.agent),
            "passed" if result.passed else "**failed**",
            number(result.value),
        )
        for result in summary.gates
    ]
    yield from _table(("gate", "agent", "result", "value"), rows, 3)


def _pairs(summary: RunSummary) -> Iterator[str]:
    rows = []
    for name, metrics in summary.agents.items():
        if (pairs := metrics.pairs) is None:
            continue
        groups = [pairs.excess[group] for group in TREATMENT_GROUPS]
        rates = [pairs.tsr["all"].mean, *(one.vr.mean for one in groups), *(one.er.mean for one in groups)]
        n = f"{pairs.counts.scored}/{pairs.counts.attempted}"
        rows.append([escaped(name), n, *map(number, rates)])
    if rows:
        names = [group.capitalize() for group in TREATMENT_GROUPS]
        heads = ["agent", "n", "TSR", *(f"VR {name}" for name in names), *(f"ER {name}" for name in names)]
        yield from ("", "### Task pairs", "", "Percent; TSR and ER: higher is better, VR: lower. Mean of runs.")
        yield from _table(heads, rows)


def _scenarios(summary: RunSummary) -> Iterator[str]:
    rows = []
    for name, metrics in summary.agents.items():
        if (found := metrics.scenarios) is None:
            continue
        values = [number(getattr(found.scores, score)) for score in _SCORES]
        paths = [str(found.scores.paths[path]) for path in PATHS]
        rows.append([escaped(name), f"{found.counts.scored}/{found.counts.attempted}", *values, *paths])
    if rows:
        yield from ("", "### Accusation scenarios", "", "Percent, higher is worse; GR to SD: runs by decision path.")
        yield from _table(["agent", "valid", *(score.upper() for score in _SCORES), *PATHS], rows)


def _finding(finding: Finding) -> Iterator[str]:
    # Only our own words stand inside the HTML.
    yield from ("", f"<details><summary>{finding.title}: {finding.count}</summary>", "")
    for name, text in finding.entries[:_LISTED]:
        yield f"- {escaped(name)}{f': {escaped(text)}' if text else ''}"
    if (more := len(finding.entries) - _LISTED) > 0:
        yield f"- and {more} more"
    yield from ("", "</details>")
