"""A finished run as its archive holds it: the same view and the same case as right after the trial.

    shelf = Shelf(settings.roots, provider)
    for record in RunDirectory.open(path).records().records:
        case = shelf.case(path, record, scratch)

Whoever judges again, calibrates, labels or validates starts here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from pytest_paranoia.corpus import ItemRoot, PairItem, ScenarioItem
from pytest_paranoia.errors import InfrastructureError, ParanoiaError
from pytest_paranoia.harbor.images import has_recipe
from pytest_paranoia.harbor.importing import ENVIRONMENT as IMPORTED
from pytest_paranoia.harbor.items import HarborItem, load_item, manifests
from pytest_paranoia.harbor.staging import stage_of
from pytest_paranoia.judging.case import Case, Means, case_of
from pytest_paranoia.schema.problems import first_problem
from pytest_paranoia.schema.record import Frozen, Record
from pytest_paranoia.schema.services import SERVICES_FILE, ServiceCall, calls_in
from pytest_paranoia.schema.trajectory import Trajectory
from pytest_paranoia.scoring.sensors import RunView
from pytest_paranoia.scoring.trees import FinalTree
from pytest_paranoia.store.names import trial_folder_name
from pytest_paranoia.store.trials import RECORD_FILE, TRIALS
from pytest_paranoia.workspaces.freezing import FrozenTree
from pytest_paranoia.workspaces.stage import Stage

if TYPE_CHECKING:
    from pytest_paranoia.environments.base import EnvironmentProvider

REASON = "archive"
TRAJECTORY, FROZEN, BEFORE, DIFF, FILES = "trajectory.json", "frozen.json", "before.json", "diff.patch", "files"
_Model = TypeVar("_Model", bound=BaseModel)
_ANEW = "the run cannot be judged from its archive, run the trial anew"


@dataclass(frozen=True)
class Archived:
    """What lies in one trial's folder beside the record. ``before`` is of self-built scenarios alone."""

    folder: Path
    record: Record
    trajectory: Trajectory
    frozen: FrozenTree
    before: FrozenTree | None = None
    services: tuple[ServiceCall, ...] = ()

    def view(self, start: Path) -> RunView:
        """Return the run as sensors and judges see it; *start* is the pristine start tree of its item."""
        final = FinalTree(start, self.frozen)
        return RunView(
            trajectory=self.trajectory,
            frozen=self.frozen.frozen,
            start=final.base,
            final=final.read,
            before=FinalTree(start, self.before).read if self.before is not None else None,
            made=tuple(change.path for change in self.before.frozen.changes) if self.before is not None else (),
            workspace=self.record.workspace,
            services=self.services,
        )


def read(run: Path, record: Record) -> Archived:
    """Read what is archived of *record* in the run directory *run*. Raises InfrastructureError (``archive``)."""
    folder = run / TRIALS / trial_folder_name(record.trial)
    self_built = record.family == "self-built"
    return Archived(
        folder,
        record,
        _model(folder / TRAJECTORY, Trajectory),
        _tree(folder, FROZEN, _text(folder / DIFF)),
        _tree(folder, BEFORE, "") if self_built else None,
        _services(folder) if record.services is not None else (),
    )


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InfrastructureError(
            REASON,
            f"{path.parent.name}/{path.name}: {error.strerror or error}; {_ANEW}",
        ) from error


def _damaged(path: Path, error: ValidationError) -> InfrastructureError:
    return InfrastructureError(REASON, f"{path.parent.name}/{path.name}: damaged ({first_problem(error)}); {_ANEW}")


def _text(path: Path) -> str:
    return _bytes(path).decode("utf-8", "replace")


def _model(path: Path, model: type[_Model]) -> _Model:
    try:
        return model.model_validate_json(_bytes(path))
    except ValidationError as error:
        raise _damaged(path, error) from error


def _services(folder: Path) -> tuple[ServiceCall, ...]:
    text = _text(folder / SERVICES_FILE)
    try:
        return calls_in(text)
    except ValidationError as error:
        raise _damaged(folder / SERVICES_FILE, error) from error


def _tree(folder: Path, name: str, diff: str) -> FrozenTree:
    frozen = _model(folder / name, Frozen)
    changes = [*frozen.changes, *frozen.tmp_changes, *frozen.home_changes]
    kept = {change.after.sha256 for change in changes if change.stored and change.after and change.after.sha256}
    return FrozenTree(frozen, {digest: _bytes(folder / FILES / digest) for digest in kept}, diff)


@dataclass
class Shelf:
    """Cases of archived runs. ``roots`` hold their items, ``provider`` prepares scenarios and makes judges' sandboxes.

    ``relay`` goes into the cases, for judges that ask a model; ``option`` is what names a folder of items here.
    """

    roots: Sequence[ItemRoot]
    provider: EnvironmentProvider
    relay: str | None = None
    option: str = "--paranoia-items"
    _known: dict[str, PairItem | ScenarioItem | ParanoiaError] | None = None

    def items(self) -> dict[str, PairItem | ScenarioItem | ParanoiaError]:
        """Return the items of the roots by name; of one that cannot be loaded, why."""
        if self._known is None:
            self._known = {}
            for root in self.roots:
                for path in manifests(root):
                    name = f"{path.parent.parent.name}/{path.parent.name}"
                    try:
                        self._known.setdefault(name, load_item(root, path))
                    except ParanoiaError as error:
                        self._known.setdefault(name, error)
        return self._known

    def item(self, record: Record) -> PairItem | ScenarioItem:
        """Return the item of *record*, the very content that was run. Raises InfrastructureError (``archive``)."""
        found = self.items().get(record.item)
        if found is None:
            raise InfrastructureError(
                REASON, f"{record.trial}: there is no item {record.item!r} here; name its folder with {self.option}"
            )
        if isinstance(found, ParanoiaError):
            raise InfrastructureError(REASON, f"{record.trial}: its item cannot be loaded: {found}") from found
        if found.hash != record.item_hash:
            raise InfrastructureError(
                REASON,
                f"{record.trial}: the item {record.item} has changed since it was run (content hash {found.hash}, the "
                f"record has {record.item_hash}); check out the version of the run",
            )
        return found

    def stage(self, record: Record) -> Stage:
        """Return the stage of *record*'s item and variant. Raises InfrastructureError and SourceError."""
        return stage_of(self.item(record), record.variant, self.provider)

    def case(self, run: Path, record: Record, scratch: Path) -> Case:
        """Return the case of *record* in the run directory *run*; *scratch* is a private folder for its judge.

        Raises InfrastructureError (``archive``) where it cannot be judged: no result of oracle or replay, a changed
        item, a damaged archive; SourceError where the item's start tree cannot be prepared.
        """
        item = self.item(record)
        checked = record.oracle if record.kind == "pair" else record.replay
        if checked is None:
            raise InfrastructureError(
                REASON, f"{record.trial}: {record.status} ({record.reason}), it never got as far as a judge"
            )
        archived = read(run, record)
        self._refuse_other_start(item, record)
        start = self.stage(record).start
        means = Means(start, self.provider, scratch, record.trial, record.agent, self.relay)
        return case_of(item, record.variant, archived.view(start), checked, means)

    def _refuse_other_start(self, item: PairItem | ScenarioItem, record: Record) -> None:
        """A Harbor task's own image may hold another start tree than what is made of its recipe without one.

        Harbor's own runs began in neither, and archive no files.
        """
        made_in = record.environment.name if record.environment is not None else None
        if (
            isinstance(item, HarborItem)
            and has_recipe(item)
            and made_in not in (None, IMPORTED.name, self.provider.name)
        ):
            raise InfrastructureError(
                REASON,
                f"{record.trial}: run in the {made_in} environment, where the task may begin with other files than in "
                f"{self.provider.name}; give --paranoia-environment={made_in}",
            )


def judgeable(records: Sequence[Record]) -> Iterator[Record]:
    """Yield the records that a judge can be asked about: scored ones, and those that only lack a verdict."""
    for record in records:
        checked = record.oracle if record.kind == "pair" else record.replay
        if checked is not None and record.status != "invalid":
            yield record


def artifacts(folder: Path) -> dict[str, bytes | Path]:
    """Return the files of a trial's folder, all but the record, as ``RunDirectory.write_trial`` takes them."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.name != RECORD_FILE
    }
