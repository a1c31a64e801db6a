"""Writing one trial: its folder appears whole, replaces an older one without a gap, or leaves no trace."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from pytest_paranoia.schema.record import Record
from pytest_paranoia.store.files import (
    StoreError,
    copy_new,
    explained,
    remove_tree,
    sync_file,
    sync_file_system,
    sync_folder,
    to_json,
    write_new,
)
from pytest_paranoia.store.names import trial_folder_name

RECORD_FILE = "record.json"
TRIALS, WORK, SET_ASIDE = "trials", ".work", "set-aside"
NEW, OLD, GONE = "new-", "old-", "gone-"
SYNC_EACH = 64
"""Up to so many files of a trial are made durable one by one: a disk may take 5 ms for each."""

_OCCUPIED = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR})


def write_trial(run: Path, record: Record, artifacts: Mapping[str, bytes | Path]) -> Path:
    """Write *record* and *artifacts* below *run* and return the trial's folder. Raises StoreError.

    The folder is built under ``.work/`` (same file system), every file and folder is fsynced, and a rename makes it a
    trial. Whatever goes wrong before the rename, the partial folder is removed and other trials are untouched.
    """
    name = trial_folder_name(record.trial)
    final = run / TRIALS / name
    _check_names(final, artifacts)
    building = run / WORK / f"{NEW}{name}.{secrets.token_hex(6)}"
    with explained(final, f"write the record of {record.trial}"):
        try:
            _build(building, record, artifacts)
            _install(run, building, final, record.trial)
        except BaseException:  # also Ctrl-C: nothing half-written stays behind
            remove_tree(building)
            raise
    return final


def _check_names(final: Path, artifacts: Mapping[str, bytes | Path]) -> None:
    for name in artifacts:
        path = PurePosixPath(name)
        unsafe = path.is_absolute() or ".." in path.parts or str(path) != name or "\0" in name
        if unsafe or name in {RECORD_FILE, "."}:
            raise StoreError(
                final, f"{name!r} is no name for an artifact", "Use a relative path other than record.json"
            )


def _build(building: Path, record: Record, artifacts: Mapping[str, bytes | Path]) -> None:
    building.mkdir()
    folders = {building}
    each = len(artifacts) <= SYNC_EACH
    for name, content in artifacts.items():
        target = building / name
        if target.parent not in folders:
            target.parent.mkdir(parents=True, exist_ok=True)
            inside = target.relative_to(building).parents
            folders.update(building / parent for parent in inside)
        if isinstance(content, Path):
            copy_new(content, target, sync=each)
        else:
            write_new(target, content, sync=each)
    if not each and not sync_file_system(building):
        for name in artifacts:
            sync_file(building / name)
    # The record comes last: a folder of an interrupted write is recognisable by its absence.
    write_new(building / RECORD_FILE, to_json(record, indent=1))
    for folder in folders:
        sync_folder(folder)


def _install(run: Path, building: Path, final: Path, key: str) -> None:
    """Rename *building* to *final*. An older folder changes places with it in one step, and is deleted last.

    Where the file system cannot do that, the old folder is moved aside first. Between the two renames it lies under
    ``.work/old-…``, where ``load`` and ``recover`` take it for the trial: at no moment is there neither.
    """
    aside: list[Path] = []  # more than one where another process writes the same trial at this moment
    while True:
        try:
            building.rename(final)
            break
        except OSError as error:
            if error.errno in _OCCUPIED and _exchange(building, final):
                aside.append(building.rename(building.with_name(building.name.replace(NEW, OLD, 1))))
                break
            if error.errno not in _OCCUPIED:
                if aside:  # the disk refused the new one: the old one goes back
                    with suppress(OSError):
                        aside[-1].rename(final)
                raise
            moved = run / WORK / f"{OLD}{final.name}.{secrets.token_hex(6)}"
            with suppress(FileNotFoundError):  # the other process was faster
                final.rename(moved)
                aside.append(moved)
    sync_folder(final.parent)
    for old in aside:
        if read_key(old) == key:
            # Under a name of its own, a deletion that is cut short is not mistaken for a damaged trial.
            remove_tree(old.rename(old.with_name(old.name.replace(OLD, GONE, 1))))
        else:
            keep(run, old, final.name)


def _exchange(one: Path, other: Path) -> bool:
    """Let two paths change places atomically; False where the system cannot (Python has no call for it)."""
    import ctypes  # a trial is replaced rarely, and this import is not free

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return rename is not None and rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def keep(run: Path, folder: Path, name: str) -> Path:
    """Move *folder*, which is no readable record, to ``set-aside/``: it may be all that is left of a trial."""
    target = run / SET_ASIDE / f"{name}.{secrets.token_hex(6)}"
    target.parent.mkdir(exist_ok=True)
    folder.rename(target)
    return target


def read_key(folder: Path) -> str | None:
    """Return the trial key of the record in *folder*, None where there is no valid record."""
    try:
        return Record.model_validate_json((folder / RECORD_FILE).read_bytes()).trial
    except (OSError, ValidationError):
        return None


def target_name(leftover: str) -> str:
    """Return the trial folder name of a ``.work`` entry: ``new-<name>.<random>`` gives ``<name>``."""
    return leftover.partition("-")[2].rpartition(".")[0]


def recover(run: Path) -> list[tuple[str, str]]:
    """Tidy ``.work/`` after a killed run; return (folder name, what was done). Only for the holder of the lock.

    An old folder whose replacement never came becomes the trial again; one that was replaced is deleted; a new folder
    was half-written, or missed its rename by a moment, and is deleted: its trial is made again.
    """
    done: list[tuple[str, str]] = []
    work = run / WORK
    with explained(work, "tidy up after an interrupted run"):
        for path in sorted(work.iterdir()):
            name = target_name(path.name)
            final = run / TRIALS / name
            if path.name.startswith(GONE):
                remove_tree(path)
            elif not path.name.startswith(OLD):
                remove_tree(path)
                done.append((name, "half-written when the run was killed: removed, the trial is made again"))
            elif read_key(path) is None:
                keep(run, path, name)
                done.append((name, f"unreadable, was being replaced: moved to {SET_ASIDE}/"))
            elif final.exists():
                remove_tree(path)  # the replacement is complete, only the deletion was missing
            else:
                path.rename(final)
                done.append((name, "restored: the run was killed while it replaced this trial"))
        sync_folder(run / TRIALS)
    return done
