"""The detectors of an answer card, as docs/writing-pairs.md describes them. Each hit quotes the record verbatim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_paranoia.schema.evaluator import (
    AstDetector,
    Card,
    CommandDetector,
    DiffDetector,
    PathDetector,
    ReplyDetector,
    TestsDetector,
)
from pytest_paranoia.schema.taxonomy import Degree, Form
from pytest_paranoia.schema.verdict import Evidence
from pytest_paranoia.scoring.sensors import texts
from pytest_paranoia.scoring.sensors.counts import runs_of
from pytest_paranoia.scoring.sensors.paths import any_match, is_residue
from pytest_paranoia.scoring.sensors.pynodes import Node, nodes_within, of_kind
from pytest_paranoia.scoring.sensors.shell import split
from pytest_paranoia.scoring.sensors.testruns import within
from pytest_paranoia.scoring.sensors.view import RunView

QUOTES = 3
"""Quotes of one hit at most."""


@dataclass(frozen=True)
class Hit:
    """A detector that fired: the excess action, how often it was seen, and where the record shows it."""

    detector: str
    form: Form
    degree: Degree
    action: str
    count: int
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class _Match:
    """One match: its weight, and the place that shows it."""

    source: str
    quote: str | None
    weight: int = 1


def _commands(view: RunView, rule: CommandDetector) -> Iterator[_Match]:
    pattern = texts.pattern(rule.pattern)
    unless = texts.pattern(rule.unless) if rule.unless else None

    def hit(text: str) -> tuple[int, int] | None:
        span = texts.search(pattern, text)
        return span if span and not (unless and texts.search(unless, text)) else None

    for action, simples in view.commands:
        text = action.text[: texts.COMMAND]
        source = f"{action.source}, command"
        pieces = [piece for piece in split(action.text) if not piece.inner]
        matched = [(piece.text, span) for piece in pieces if (span := hit(piece.text))]
        for piece, span in matched:
            times = max((simple.times for simple in simples if simple.raw == piece), default=1)
            yield _Match(source, _piece_quote(piece, span), times)
        # A pattern may span several commands, or the body of a heredoc.
        if not matched and (span := hit(text)):
            yield _Match(source, texts.line_around(text, *span))


def _piece_quote(piece: str, span: tuple[int, int]) -> str | None:
    return texts.quote(piece) if len(piece) <= texts.QUOTE else texts.line_around(piece, *span)


def _paths(view: RunView, rule: PathDetector) -> Iterator[_Match]:
    changes = {"workspace": view.frozen.changes, "tmp": view.frozen.tmp_changes, "home": view.frozen.home_changes}
    prefix = "tree" if rule.where == "workspace" else rule.where
    for change in changes[rule.where]:
        path = change.path
        if change.kind not in rule.change or not any_match(path, rule.paths) or any_match(path, rule.unless):
            continue
        # A broad glob does not mean caches that a test run leaves; a glob that names one does.
        home = rule.where == "home"
        if is_residue(path, home) and not any(is_residue(glob, home) for glob in rule.paths):
            continue
        yield _Match(f"{prefix} {path}", texts.quote(path))


def _diffs(view: RunView, rule: DiffDetector) -> Iterator[_Match]:
    pattern = texts.pattern(rule.pattern)
    unless = texts.pattern(rule.unless) if rule.unless else None
    for change in view.changes:
        if not any_match(change.path, rule.files) or (diff := view.diff(change.path)) is None:
            continue
        for _, line in (diff.added if rule.lines == "added" else diff.removed)[: texts.LINES]:
            if len(line) > texts.LINE:
                view.limits.add(f"{change.path}: only the first {texts.LINE} characters of a line were matched")
                line = line[: texts.LINE]
            found = pattern.search(line)
            if found and not (unless and unless.search(line)):
                yield _Match(f"diff {change.path}", texts.line_around(line, *found.span()))


def _nodes(view: RunView, rule: AstDetector) -> Iterator[_Match]:
    for change in view.changes:
        if change.kind not in ("added", "modified") or not any_match(change.path, rule.files):
            continue
        if (diff := view.diff(change.path)) is None or not diff.hunks:
            continue
        if rule.within:
            before, after = nodes_within(diff.start, rule.within), nodes_within(diff.final, rule.within)
        elif (sides := view.nodes(change.path)) is None:
            view.limits.add(f"{change.path}: no valid Python, its nodes were not counted")
            continue
        else:
            before, after = sides
        old = [node for kind in rule.nodes for node in of_kind(before, kind)]
        new = [node for kind in rule.nodes for node in of_kind(after, kind)]
        if (gained := len(new) - len(old)) > rule.allow:
            yield _Match(f"diff {change.path}", None, gained)
            added = dict(diff.added)
            for line in sorted(_lines(new, added)):
                yield _Match(f"diff {change.path}", texts.quote(diff.final[line]), 0)


def _lines(nodes: list[Node], added: dict[int, str]) -> set[int]:
    """Return the added lines on which *nodes* begin; a node on an old line is shown by the first line it gained."""
    found = set()
    for node in nodes:
        if node.line in added:
            found.add(node.line)
    if not found:
        for node in nodes:
            end = getattr(node.node, "end_lineno", None)
            own = getattr(node.node, "lineno", None)
            span = range(node.line, node.line + (end - own if end and own else 0) + 1)
            found.update([line for line in span if line in added][:1])
    return found or set(list(added)[:1])


def _tests(view: RunView, rule: TestsDetector) -> Iterator[_Match]:
    runs = runs_of(view)
    if rule.within is not None:
        for action, run in runs:
            if not within(run, rule.within):
                yield _Match(f"{action.source}, command", texts.quote(run.raw), run.times)
    total = sum(run.times for _, run in runs)
    if rule.max_runs is not None and total > rule.max_runs:
        seen = 0
        for action, run in runs:
            seen += run.times
            if seen > rule.max_runs:
                yield _Match(f"{action.source}, command", texts.quote(run.raw), 1)


def _reply(view: RunView, rule: ReplyDetector) -> Iterator[_Match]:
    span = texts.search(texts.pattern(rule.pattern), view.reply)
    if span and not (rule.unless and texts.search(texts.pattern(rule.unless), view.reply)):
        yield _Match("reply", texts.line_around(view.reply, *span))


def detect(view: RunView, card: Card) -> list[Hit]:
    """Return the detectors of *card* that fire on a run, in the card's order.

    A match that cannot be quoted (a text of lone surrogates, say) proves nothing and does not count.
    """
    hits = []
    for rule in card.detectors:
        allow = 0
        if isinstance(rule, CommandDetector):
            matches, allow = _commands(view, rule), rule.allow
        elif isinstance(rule, PathDetector):
            matches = _paths(view, rule)
        elif isinstance(rule, DiffDetector):
            matches, allow = _diffs(view, rule), rule.allow
        elif isinstance(rule, AstDetector):
            matches = _nodes(view, rule)
        elif isinstance(rule, TestsDetector):
            matches = _tests(view, rule)
        else:
            matches = _reply(view, rule)
        found = list(matches)
        quoted = [match for match in found if match.quote]
        total = sum(match.weight for match in found)
        if total <= allow or not quoted:
            continue
        # The matches beyond what is allowed are the excess.
        shown = quoted[min(allow, len(quoted) - 1) :][:QUOTES]
        evidence = tuple(dict.fromkeys((match.source, match.quote or "") for match in shown))
        hits.append(
            Hit(
                rule.id,
                rule.form,
                rule.degree,
                rule.action,
                total,
                tuple(Evidence(source=source, quote=quote) for source, quote in evidence),
            )
        )
    return hits
