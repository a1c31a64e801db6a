"""The run directory: created once, opened by workers, by a resumed session and by reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from pydantic import BaseModel, ValidationError

from pytest_paranoia.schema.problems import first_problem
from pytest_paranoia.schema.record import Record
from pytest_paranoia.schema.variants import PairVariants
from pytest_paranoia.store import loading, trials
from pytest_paranoia.store.files import (
    StoreError,
    explained,
    printable,
    remove_tree,
    sync_folder,
    to_json,
    write_atomic,
)
from pytest_paranoia.store.lock import RunLock
from pytest_paranoia.store.manifest import RUN_SCHEMA, Plan, RunManifest, default_run_name, describe_path
from pytest_paranoia.store.names import RUN_NAME, trial_folder_name, variants_file_name

if TYPE_CHECKING:
    from pytest_paranoia.metrics.gates import Gate
    from pytest_paranoia.store.summary import RunSummary

RUN_FILE, PLAN_FILE, EVIDENCE = "run.json", "plan.json", "evidence"
_ATTEMPTS = 20
_Model = TypeVar("_Model", bound=BaseModel)


class RunDirectory:
    """All records of one invocation. Every method that writes raises StoreError where it cannot.

    ``path`` is the folder, ``manifest`` what ``run.json`` says, ``recovered`` what was tidied up when a session
    resumed it: (folder name, what was done).
    """

    def __init__(self, path: Path, manifest: RunManifest, lock: RunLock | None = None) -> None:
        self.path = path
        self.manifest = manifest
        self.recovered: tuple[tuple[str, str], ...] = ()
        self._lock = lock

    @classmethod
    def create(cls, base: Path, manifest: RunManifest, name: str | None = None) -> RunDirectory:
        """Make a new run below *base* and lock it. *name* is by default the UTC time and six random digits.

        The folder is made exclusively: two runs never share one. Raises StoreError where *name* exists or cannot be a
        folder name.
        """
        if name is not None and not RUN_NAME.fullmatch(name):
            raise StoreError(
                base / printable(name).replace("/", "\\"),
                f"{name!r} is no name for a run",
                "Use letters, digits, dot, hyphen and underscore, at most 100, beginning with a letter or digit",
            )
        with explained(base, "create the folder of all runs"):
            base.mkdir(parents=True, exist_ok=True)
        path = _make_folder(base, name)
        try:
            with explained(path, "create the run"):
                lock = RunLock(path)
                (path / trials.TRIALS).mkdir()
                (path / trials.WORK).mkdir()
                named = manifest.model_copy(update={"run": path.name})
                write_atomic(path / RUN_FILE, to_json(named, indent=1))
                sync_folder(base)
        except BaseException:
            remove_tree(path)
            raise
        return cls(path, named, lock)

    @classmethod
    def open(cls, path: Path, *, exclusive: bool = False) -> RunDirectory:
        """Open an existing run. Raises StoreError where it is none, is damaged, or is of another version.

        By default nothing is written or locked: for workers and reports. With *exclusive* (a resumed session) the run
        is locked, and what a killed session left half-done is tidied up.
        """
        run = cls(path, _read(path / RUN_FILE, RunManifest, path))
        if exclusive:
            run._lock = RunLock(path)
            # Another session may have gone on with the run, and ended, since that was read.
            run.manifest = _read(path / RUN_FILE, RunManifest, path)
            with explained(path, "reopen the run"):
                for name in (trials.TRIALS, trials.WORK):
                    (path / name).mkdir(exist_ok=True)
            run.recovered = tuple(trials.recover(path))
        return run

    def close(self) -> None:
        """Release the lock; records can still be read and written. More than once does nothing."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def discard(self) -> None:
        """Remove the run's folder: for a session that selected nothing. Raises StoreError where it cannot."""
        self.close()
        with explained(self.path, "remove the empty run"):
            remove_tree(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def extend(self, session: RunManifest) -> None:
        """Note in ``run.json`` that *session* goes on with this run, with its agents, items, versions and options."""
        extended = self.manifest.extended(session)
        write_atomic(self.path / RUN_FILE, to_json(extended, indent=1))
        self.manifest = extended

    def trial_folder(self, key: str) -> Path:
        """Return the folder of the trial *key*, whether it exists or not."""
        return self.path / trials.TRIALS / trial_folder_name(key)

    def write_trial(self, record: Record, artifacts: Mapping[str, bytes | Path]) -> Path:
        """Write one trial, atomically and durably; return its folder. Safe in any number of processes at once.

        *artifacts* maps relative names (``trajectory.json``, ``files/<sha256>``) to contents or to regular files that
        are copied. A complete trial of the same key is replaced without a moment in which neither exists; an
        unreadable one is moved to ``set-aside/``. Raises StoreError; ``full`` is True where the disk is full.
        """
        return trials.write_trial(self.path, record, artifacts)

    def has_variants(self, item: str, item_hash: str) -> bool:
        """Return whether what the variants of this pair, in this content, differ in is archived."""
        return (self.path / EVIDENCE / variants_file_name(item, item_hash)).is_file()

    def write_variants(self, variants: PairVariants) -> None:
        """Archive what the variants of a pair differ in. Safe in any number of processes at once. Raises StoreError."""
        path = self.path / EVIDENCE / variants_file_name(variants.item, variants.item_hash)
        with explained(path, "archive the evidence"):
            path.parent.mkdir(exist_ok=True)
        write_atomic(path, to_json(variants, indent=1))

    def variants(self, item: str, item_hash: str) -> PairVariants | None:
        """Return what is archived of a pair's variants, None where nothing is. Raises StoreError where damaged."""
        path = self.path / EVIDENCE / variants_file_name(item, item_hash)
        try:
            return PairVariants.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            found = (
                f"cannot be read: {error.strerror or error}"
                if isinstance(error, OSError)
                else f"damaged ({first_problem(error)})"
            )
            raise StoreError(
                path, found, "Restore it; until then reports leave the evidence of this pair out"
            ) from error

    def plan(self, keys: Iterable[str]) -> None:
        """Add *keys* to the trials the run means to make.

        A resumed run adds to the plan, so that a trial outside its selection does not vanish from "missing". Several
        processes may call this with the same keys.
        """
        planned = list(dict.fromkeys([*(self.planned() or ()), *keys]))
        write_atomic(self.path / PLAN_FILE, to_json(Plan(trials=planned), indent=0))

    def planned(self) -> tuple[str, ...] | None:
        """Return the planned trial keys in order, None where collection never got that far."""
        if not (self.path / PLAN_FILE).exists():
            return None
        return tuple(_read(self.path / PLAN_FILE, Plan, self.path).trials)

    def records(self) -> loading.LoadResult:
        """Read every trial from disk. What is half-written, damaged, of another version or doubled is a problem."""
        return loading.load(self.path)

    def scored_keys(self, items: Mapping[str, str] | None = None) -> loading.DoneTrials:
        """Return what a resumed run may skip. *items* maps each item to its present hash."""
        return loading.done_trials(self.records(), items)

    def summary(self, gates: Sequence[Gate] = ()) -> RunSummary:
        """Aggregate from disk, without writing anything."""
        from pytest_paranoia.store.summary import summarise

        return summarise(self.path, self.manifest, self.records(), self.planned(), gates, self.recovered)

    def finish(self, gates: Sequence[Gate] = ()) -> RunSummary:
        """Aggregate from disk and write ``results.jsonl``, ``results.csv`` and ``summary.json``, each atomically."""
        summary = self.summary(gates)
        self.write_results(summary)
        return summary

    def write_results(self, summary: RunSummary) -> None:
        """Write the result files of *summary*, for callers that go on with it where the disk takes no more."""
        from pytest_paranoia.store import results

        results.write(summary)


def _make_folder(base: Path, name: str | None) -> Path:
    for _ in range(_ATTEMPTS):
        path = base / (name or default_run_name())
        with explained(path, "create the run"):
            try:
                path.mkdir()
            except FileExistsError:
                if name is not None:
                    raise StoreError(
                        path,
                        f"the run exists already ({describe_path(path)})",
                        "Choose another name, or go on with that run with --paranoia-resume",
                    ) from None
            else:
                return path
    raise StoreError(base, f"no free name for a run in {_ATTEMPTS} attempts", "Give the run a name")


def _read(path: Path, model: type[_Model], run: Path) -> _Model:
    """Read a file of the run itself; say what is wrong with it and what to do."""
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(
            run,
            f"no run directory: {path.name} is missing, the path {describe_path(run)}",
            f"Give the folder of a run, one that holds {RUN_FILE}",
        ) from None
    except OSError as error:
        raise StoreError(path, f"cannot be read: {error.strerror or error}", "Check its owner and mode") from error
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        version = _schema_of(content)
        if version is not None and version != RUN_SCHEMA:
            raise StoreError(
                path,
                f"written by another version (schema {version!r}, this one reads {RUN_SCHEMA})",
                "Use the version of pytest-paranoia that wrote it, or start a new run",
            ) from error
        raise StoreError(
            path,
            f"damaged ({first_problem(error)})",
            "Its trials are intact; "
            + (
                "remove it, and the next session plans anew"
                if path.name == PLAN_FILE
                else "start a new run, or restore it"
            ),
        ) from error


def _schema_of(content: bytes) -> object:
    import json

    try:
        raw = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return raw.get("schema", "none") if isinstance(raw, dict) else None
