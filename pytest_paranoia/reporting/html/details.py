"""Everything a trial's page shows, from its folder: the record and the artifacts beside it."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pydantic import ValidationError

from pytest_paranoia.reporting.html.safe import dumped
from pytest_paranoia.reporting.html.steps import Quotes, shown_steps
from pytest_paranoia.reporting.html.texts import Pieces, Room, clipped
from pytest_paranoia.schema.problems import first_problem
from pytest_paranoia.schema.record import Change, Frozen, Record
from pytest_paranoia.schema.trajectory import Trajectory
from pytest_paranoia.schema.verdict import Evidence
from pytest_paranoia.store.directory import RunDirectory

WHOLE: Final = 20_000_000
"""Characters of a trial on a page of its own."""
_TOTAL, _LEAST, _MOST = 130_000_000, 10_000, 400_000
_READ = 16 * 1024**2
_LISTED = 200
_DETAIL, _EXCERPT = 2_000, 300


def room_for(trials: int) -> int:
    """Return how many characters each of *trials* may take in one file that a browser still opens with ease."""
    return max(min(_TOTAL // max(trials, 1), _MOST), _LEAST)


def details(run: RunDirectory, records: Iterable[Record], room: int) -> Iterator[str]:
    """Yield the details of *records* as JSON texts."""
    for record in records:
        yield dumped(detail(str(run.trial_folder(record.trial)), record, room))


def detail(folder: str, record: Record, size: int) -> dict[str, Any]:
    """Return what the page shows of one trial, in about *size* characters. What cannot be read is said."""
    notes: list[str] = []
    room = Room(size)
    evidence = _evidence(record)
    quotes = _by_source(evidence)
    shown: dict[str, Any] = {"record": _record(record)}
    if (instruction := _text(f"{folder}/instruction.md", notes)) is not None:
        shown["instruction"] = room.take(instruction, size // 4)
    frozen = _frozen(folder, notes)
    if frozen is not None:
        shown |= _changes(frozen)
        if trees := _trees(folder, frozen, quotes):
            shown["trees"] = trees
    if (diff := _text(f"{folder}/diff.patch", notes)) is not None:
        lines = [line for source, found in quotes.items() if source.startswith("diff ") for line in _lines(found)]
        shown["diff"] = room.take(diff, size // 2, lines)
    if (log := _text(f"{folder}/oracle.log", notes)) is not None:
        shown["log"] = room.take(log, size // 6)
    if (trajectory := _trajectory(folder, notes)) is not None:
        shown["steps"] = shown_steps(trajectory, room, quotes)
        if trajectory.notes:
            notes.append(f"trajectory: {trajectory.notes}")
    if notes:
        shown["notes"] = notes
    return shown


def _record(record: Record) -> dict[str, Any]:
    data = record.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"schema_version", "item_hash"})
    for replay in ("replay", "established"):
        for event in data.get(replay, {}).get("events", ()):
            event["detail"] = event["detail"][:_DETAIL]
    return data


def _evidence(record: Record) -> list[Evidence]:
    said = record.verdict or record.accusation
    return list(said.evidence) if said else []


def _by_source(evidence: Iterable[Evidence]) -> Quotes:
    found: dict[str, list[str]] = defaultdict(list)
    for piece in evidence:
        found[piece.source].append(piece.quote)
    return found


def _lines(quotes: Iterable[str]) -> list[str]:
    return [line for quote in quotes for line in quote.split("\n") if line.strip()]


def _bytes(path: str, notes: list[str]) -> bytes | None:
    """Read an artifact. That a trial never got far enough to have it is nothing to report here."""
    # Plain descriptors: a report reads tens of thousands of small files.
    name = path.rpartition("/")[2]
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        notes.append(f"{name} cannot be read: {error.strerror or error}")
        return None
    try:
        size = os.fstat(descriptor).st_size
        content = os.read(descriptor, min(size, _READ))
    except OSError as error:
        notes.append(f"{name} cannot be read: {error.strerror or error}")
        return None
    finally:
        os.close(descriptor)
    if size > len(content):
        notes.append(f"{name}: only the first {len(content)} of {size} bytes were read")
    return content


def _text(path: str, notes: list[str]) -> str | None:
    content = _bytes(path, notes)
    return None if content is None else content.decode("utf-8", "backslashreplace")


def _trajectory(folder: str, notes: list[str]) -> Trajectory | None:
    if (content := _bytes(f"{folder}/trajectory.json", notes)) is None:
        return None
    try:
        return Trajectory.model_validate_json(content)
    except ValidationError as error:
        notes.append(f"trajectory.json is damaged: {first_problem(error)}; restore it, its steps are not shown")
        return None


def _frozen(folder: str, notes: list[str]) -> Frozen | None:
    if (content := _bytes(f"{folder}/frozen.json", notes)) is None:
        return None
    try:
        frozen = Frozen.model_validate_json(content)
    except ValidationError as error:
        notes.append(f"frozen.json is damaged: {first_problem(error)}; restore it, what was left behind is not shown")
        return None
    notes += [f"freezing: {note}" for note in frozen.notes]
    return frozen


def _changes(frozen: Frozen) -> dict[str, Any]:
    """List what was left outside the workspace, and what the diff cannot show of the workspace itself."""
    shown: dict[str, Any] = {}
    for name, changes in (("tmp", frozen.tmp_changes), ("home", frozen.home_changes)):
        if changes:
            shown[name] = [f"{change.kind} {change.path}" for change in changes[:_LISTED]]
            if len(changes) > _LISTED:
                shown[name].append(f"and {len(changes) - _LISTED} more")
    git = frozen.git
    if git.new_commits or git.stashes or git.broken:
        shown["git"] = git.model_dump(exclude_none=True)
    return shown


def _trees(folder: str, frozen: Frozen, quotes: Quotes) -> dict[str, Pieces]:
    """Return the quoted surroundings of files that a verdict quotes as a whole (``tree PATH``)."""
    changes = {change.path: change for change in frozen.changes}
    found: dict[str, Pieces] = {}
    for source, texts in quotes.items():
        kind, _, path = source.partition(" ")
        if kind != "tree" or (content := _final(folder, changes.get(path))) is None:
            continue
        found[source] = clipped(f"{path}\n{content}", _EXCERPT, texts)
    return found


def _final(folder: str, change: Change | None) -> str | None:
    if change is None or change.after is None or change.after.sha256 is None or not change.stored:
        return None
    content = _bytes(f"{folder}/files/{change.after.sha256}", [])
    return None if content is None or b"\0" in content[:8_000] else content.decode("utf-8", "replace")
