"""The summary section: what a run found, as aligned lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pytest_paranoia.metrics import judging
from pytest_paranoia.metrics.hints import hints, results
from pytest_paranoia.reporting.findings import Finding, Style, findings
from pytest_paranoia.reporting.grids import WIDE, number, pair_grid, scenario_grid
from pytest_paranoia.reporting.text import clip, one_line, wrapped
from pytest_paranoia.store.summary import RunSummary

Markup = Callable[[str, Style], str]
WIDTH: Final = WIDE
"""Columns a line has at most, in a wider terminal too: lines beyond are hard to read."""
NARROW: Final = 80
"""Columns that are used even where the terminal has fewer."""
LISTED: Final = 20
"""How many entries a list shows before it says how many more there are."""
_LABEL: Final = 13


def columns(config: Any) -> int:
    """Return how many columns the terminal of a pytest session has, NARROW where it has none."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return NARROW if reporter is None else int(reporter._tw.fullwidth)


def plain(text: str, style: Style) -> str:  # noqa: ARG001 - the signature of a Markup
    """Return *text* as it is: no colours."""
    return text


def lines(summary: RunSummary, markup: Markup = plain, *, encoding: str = "ascii", width: int = WIDTH) -> list[str]:
    """Return the summary section of *summary*, line by line, at most *width* columns (but NARROW to WIDTH) wide.

    Only the path of the run directory stands whole, on a line of its own where it must. *markup* gets stretches of
    finished text and may add colour around them. *encoding* is what the terminal can show; anything else, and what
    cannot be printed, is backslash-escaped. Undefined values read ``undef``.
    """
    width = min(max(width, NARROW), WIDTH)
    out = list(_header(summary, markup, encoding, width))
    several = len({record.run for record in summary.records}) > 1
    if pairs := pair_grid(summary.agents, encoding, width):
        title = "task pairs (percent; TSR and ER: higher is better, VR: lower; n: scored/attempted"
        title = f"{title}{'; first line: mean of runs' if several else ''})"
        out += ["", *(markup(line, "title") for line in wrapped(title, width)), *pairs]
    if scenarios := scenario_grid(summary.agents, encoding, width):
        title = "accusation scenarios (percent, higher is worse; GR to SD: runs by path; valid/attempted"
        title = f"{title}{'; first line: all runs' if several else ''})"
        out += ["", *(markup(line, "title") for line in wrapped(title, width)), *scenarios]
    if (report := summary.arms) is not None:
        from pytest_paranoia.reporting import arms  # pandas, which only a run with arms needs

        out += ["", *(markup(line, "title") for line in wrapped(arms.title(report), width))]
        out += arms.lines(report, encoding, width)
    if found := hints(results(summary.records)):
        out += ["", markup(f"less certain than it looks: {len(found)}", "warn"), *_sentences(found, encoding, width)]
    for finding in findings(summary):
        out += ["", *_list(finding, markup, encoding, width)]
    if summary.gates:
        out += ["", *_gates(summary, markup, encoding, width)]
    return out


def _sentences(texts: list[str], encoding: str, width: int) -> Iterator[str]:
    for text in texts:
        yield from wrapped(one_line(text, encoding), width, "  ", "    ")


def _header(summary: RunSummary, markup: Markup, encoding: str, width: int) -> Iterator[str]:
    manifest, counts = summary.manifest, summary.counts
    path = one_line(_shown(summary.path), encoding)
    if _LABEL + len(path) > width:
        yield "run"
        yield path
    else:
        yield f"{'run':<{_LABEL}}{path}"
    known = {agent.name: agent for agent in [*(record.agent for record in summary.records), *manifest.agents]}
    order = dict.fromkeys([*(agent.name for agent in manifest.agents), *known])
    agents = [f"{name} ({known[name].harness} {known[name].version})" for name in order]
    yield from _wrapped("agents", agents or ["none"], encoding, width)
    judges = [f"{manifest.judge.name} {manifest.judge.version}"] if manifest.judge else []
    yield from _wrapped("judge", judges, encoding, width)
    if (asked := judging.totals(summary.records)) is not None:
        text = one_line(f"asked for {judging.sentence(asked)}", encoding)
        yield from wrapped(text, width, " " * _LABEL, " " * _LABEL)
    places = {(place.name, place.isolated) for record in summary.records if (place := record.environment) is not None}
    if manifest.environment is not None:
        places.add((manifest.environment.name, manifest.environment.isolated))
    yield from _wrapped("environment", sorted({name for name, _ in places}), encoding, width)
    if exposed := ", ".join(sorted({name for name, isolated in places if not isolated})):
        note = f"NOT ISOLATED: agents ran with the rights of this user ({one_line(exposed, encoding)})"
        yield " " * _LABEL + markup(clip(note, width - _LABEL), "warn")
    of = "" if summary.planned is None else f" of {len(summary.planned)} planned"
    shares = f"{counts.scored} scored, {counts.invalid} invalid, {counts.unscored} unscored"
    yield f"{'trials':<{_LABEL}}{counts.attempted}{of}: {shares}"


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _wrapped(label: str, names: list[str], encoding: str, width: int) -> Iterator[str]:
    """Show *names* after *label*, broken between names and never inside one; nothing without names."""
    current = f"{label:<{_LABEL}}"
    for position, name in enumerate(names):
        comma = "," if position < len(names) - 1 else ""
        piece = clip(one_line(name, encoding), width - _LABEL - 1) + comma
        if position and len(current) + 1 + len(piece) > width:
            yield current
            current = " " * _LABEL
        current += f" {piece}" if current.strip() and position else piece
    if names:
        yield current


def _list(finding: Finding, markup: Markup, encoding: str, width: int) -> Iterator[str]:
    yield markup(f"{finding.title}: {finding.count}", finding.style)
    for name, text in finding.entries[:LISTED]:
        left, right = one_line(name, encoding), one_line(text, encoding)
        if len(left) + len(right) + 4 <= width:
            yield f"  {left}  {right}".rstrip()
        else:  # a name stands whole as far as it can: it is what one copies
            yield f"  {clip(left, width - 2)}"
            yield f"      {clip(right, width - 6)}"
    if (more := len(finding.entries) - LISTED) > 0:
        yield markup(f"  ... and {more} more", "dim")


def _gates(summary: RunSummary, markup: Markup, encoding: str, width: int) -> Iterator[str]:
    yield markup("gates", "title")
    shown = [clip(one_line(result.gate.name, encoding), 40) for result in summary.gates]
    longest = max(map(len, shown))
    for name, result in zip(shown, summary.gates, strict=True):
        word = markup("PASS", "good") if result.passed else markup("FAIL", "bad")
        value = result.reason if result.value is None else number(result.value)
        agent = clip(one_line(result.agent, encoding), width - longest - 22)
        yield f"  {word}  {name:<{longest}}  {value:>9}  {agent}"
