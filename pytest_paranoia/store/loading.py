"""Reading trials back. Nothing that lies in a run directory is passed over in silence."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_paranoia.schema.problems import first_problem
from pytest_paranoia.schema.record import RECORD_SCHEMA, Record
from pytest_paranoia.store.names import trial_folder_name
from pytest_paranoia.store.trials import NEW, OLD, RECORD_FILE, TRIALS, WORK, target_name

Identity = tuple[str, str, str, str, int]
_LOOKS = 20


@dataclass(frozen=True)
class Problem:
    """Something on disk that is no usable record. ``trial`` is its key where that could still be read."""

    path: Path
    reason: str
    trial: str | None = None


@dataclass(frozen=True)
class LoadResult:
    """All records of a run in a stable order (kind, item, agent, variant, run), and what could not be used."""

    records: tuple[Record, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class DoneTrials:
    """What a resumed run may skip.

    ``done``: keys of trials that have an outcome (scored, and invalid: a self-built state that was not established is
    a result). ``stale``: keys that had one, but of an item whose content has changed since. ``unscored``: keys with a
    record but no outcome. All but ``done`` are made again.
    """

    done: frozenset[str]
    stale: frozenset[str]
    unscored: frozenset[str]
    problems: tuple[Problem, ...]


def identity(record: Record) -> Identity:
    """Return what a trial is, apart from its key: kind, item, agent, variant and run."""
    return (record.kind, record.item, record.subject, record.variant or "", record.run)


def load(run: Path) -> LoadResult:
    """Read every trial below *run*, also while others write to it. Never raises for what it finds."""
    problems: list[Problem] = []
    found: list[tuple[Path, Record]] = []
    for folder in _folders(run, problems):
        outcome = _read(folder) or _read_moved(run, folder)
        if isinstance(outcome, Problem):
            problems.append(outcome)
        else:
            found.append((folder, outcome))
    # The folder that bears the name of its key goes first, so a copy beside it is the duplicate.
    found.sort(key=lambda entry: (entry[0].name != trial_folder_name(entry[1].trial), entry[0].name))
    unique = _without_repeats(found, lambda record: record.trial, "key", problems)
    unique = _without_repeats(unique, identity, "item, agent, variant and run", problems)
    records = sorted((record for _, record in unique), key=lambda record: (*identity(record), record.trial))
    return LoadResult(tuple(records), tuple(problems))


def done_trials(result: LoadResult, items: Mapping[str, str] | None) -> DoneTrials:
    """Sort the records of *result* for a resumed run. *items* maps items to their hashes now; absent ones are kept."""
    done, stale, unscored = set(), set(), set()
    for record in result.records:
        if record.status == "unscored":
            unscored.add(record.trial)
        elif items is not None and items.get(record.item, record.item_hash) != record.item_hash:
            stale.add(record.trial)
        else:
            done.add(record.trial)
    return DoneTrials(frozenset(done), frozenset(stale), frozenset(unscored), result.problems)


def _folders(run: Path, problems: list[Problem]) -> list[Path]:
    """List what is, or should be, a trial. A trial that is being replaced lies under ``.work`` for a moment.

    It is there at least in one of three looks: before the move, during it, after it.
    """
    first = _entries(run / TRIALS, problems)
    # A copy of a run often lacks hidden and empty folders; no work folder means no work in flight.
    work = _entries(run / WORK, problems) if (run / WORK).is_dir() else []
    trials = sorted({*first, *_entries(run / TRIALS, [])}, key=os.fspath)  # paths compare far slower than their texts
    folders: list[Path] = []
    for entry in trials:
        if entry.is_symlink() or (entry.exists() and not entry.is_dir()):
            if not entry.name.startswith("."):  # such as .DS_Store
                problems.append(Problem(entry, "not a trial folder"))
        else:
            folders.append(entry)
    names = {folder.name for folder in folders}
    for entry in work:
        if entry.name.startswith(OLD) and target_name(entry.name) not in names:
            folders.append(entry)  # killed between the two renames of a replacement
        elif entry.name.startswith(NEW) and entry.exists():
            problems.append(Problem(entry, "half-written: its writer was killed, or is still at work"))
    return folders


def _entries(folder: Path, problems: list[Problem]) -> list[Path]:
    try:
        return sorted(folder.iterdir(), key=os.fspath)
    except OSError as error:
        problems.append(Problem(folder, f"cannot be listed: {error.strerror or error}"))
        return []


def _read_moved(run: Path, folder: Path) -> Record | Problem:
    """Read a trial that was moved, because it is being replaced, since it was listed."""
    name = folder.name if folder.parent.name == TRIALS else target_name(folder.name)
    for _ in range(_LOOKS):
        for place in (run / TRIALS / name, *(run / WORK).glob(f"{OLD}{name}.*")):
            if (outcome := _read(place)) is not None:
                return outcome
    return Problem(folder, "removed while it was read")


def _read(folder: Path) -> Record | Problem | None:
    """Read one trial folder; None where there is no such folder (any more)."""
    path = folder / RECORD_FILE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Problem(folder, f"half-written: no {RECORD_FILE}") if folder.is_dir() else None
    except OSError as error:
        return Problem(path, f"cannot be read: {error.strerror or error}")
    try:
        return Record.model_validate_json(content)
    except ValidationError as error:
        return _explain(path, content, error)


def _explain(path: Path, content: bytes, error: ValidationError) -> Problem:
    """Say why a record is unusable: empty, truncated, of another version, or the first field that is wrong."""
    if not content.strip():
        return Problem(path, "empty")
    try:
        raw: Any = json.loads(content)
    except (ValueError, RecursionError) as broken:
        return Problem(path, f"truncated or no JSON: {broken}")
    if not isinstance(raw, dict):
        return Problem(path, f"no record: JSON of type {type(raw).__name__}")
    key = raw.get("trial") if isinstance(raw.get("trial"), str) else None
    if raw.get("schema") != RECORD_SCHEMA:
        version = json.dumps(raw.get("schema"))
        return Problem(path, f"record schema {version}, but this version of pytest-paranoia reads {RECORD_SCHEMA}", key)
    return Problem(path, f"not a valid record: {first_problem(error)}", key)


def _without_repeats(
    found: Iterable[tuple[Path, Record]],
    of: Callable[[Record], object],
    what: str,
    problems: list[Problem],
) -> list[tuple[Path, Record]]:
    first: dict[object, Path] = {}
    kept: list[tuple[Path, Record]] = []
    for folder, record in found:
        earlier = first.setdefault(of(record), folder)
        if earlier is folder:
            kept.append((folder, record))
        else:
            problems.append(Problem(folder, f"duplicate: same {what} as {earlier.name}, ignored", record.trial))
    return kept
