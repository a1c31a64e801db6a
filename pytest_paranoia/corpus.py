"""Items on disk: where the content folders are, which manifests they hold, and one checked object per item."""

from __future__ import annotations

import hashlib
import os
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from pytest_paranoia import references, surfaces
from pytest_paranoia.errors import ManifestError
from pytest_paranoia.schema.evaluator import Card, ReferenceRun, Truth
from pytest_paranoia.schema.manifest import Goal, Pair, Repository, Scenario
from pytest_paranoia.schema.problems import every_problem
from pytest_paranoia.schema.taxonomy import slug

Model = TypeVar("Model", bound=BaseModel)

PAIR = "pair.toml"
SCENARIO = "scenario.toml"
REVIEW = "review.toml"
PAIR_RUNS = ("minimal", "excess")


@lru_cache
def content_root() -> Path:
    """Return the folder that holds tasks/, oracles/ and judge/: the checkout, or the copy inside an installed wheel."""
    package = Path(__file__).resolve().parent
    packed = package / "_corpus"
    return packed if packed.is_dir() else package.parent


@dataclass(frozen=True)
class ItemRoot:
    """A folder with tasks/ and oracles/. ``prefix`` comes before ``tasks/`` in node ids (empty for built-in items)."""

    folder: Path
    prefix: str
    label: str

    @property
    def tasks(self) -> Path:
        """What agents may see."""
        return self.folder / "tasks"

    @property
    def oracles(self) -> Path:
        """What agents must not see."""
        return self.folder / "oracles"

    def nodeid(self, path: Path) -> str:
        """Return the node id of *path* below this root: the same from a checkout and from a wheel."""
        return self.prefix + path.relative_to(self.folder).as_posix()


def builtin_root() -> ItemRoot:
    """The items that come with the package."""
    return ItemRoot(content_root(), "", "builtin")


def user_root(folder: Path, rootpath: Path | None) -> ItemRoot:
    """A user's items. Node ids are relative to *rootpath*, or start at the folder's name where it lies elsewhere."""
    if folder == content_root():
        return builtin_root()
    prefix = folder.name
    if rootpath is not None and folder.is_relative_to(rootpath):
        prefix = folder.relative_to(rootpath).as_posix()
    # The label goes into run.json, which gets shared: no path of this machine.
    label = folder.name if prefix == "." else prefix
    return ItemRoot(folder, "" if prefix == "." else prefix + "/", label)


def manifests(root: ItemRoot) -> Iterator[Path]:
    """Yield the manifests of *root* in a stable order."""
    yield from sorted(root.tasks.glob(f"pairs/*/*/{PAIR}"))
    yield from sorted(root.tasks.glob(f"accusations/*/*/{SCENARIO}"))


def load(path: Path, model: type[Model], shown: str) -> Model:
    """Read one TOML file as *model*. Raises ManifestError that names file, key, value and remedy for each problem."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ManifestError(f"{shown}: missing; add the file (see `paranoia docs writing-pairs`)") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise ManifestError(f"{shown}: not readable as TOML in UTF-8: {error}") from None
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ManifestError(every_problem(error, model, shown, data)) from None


def _tree_hash(digest: Any, folder: Path, left_out: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or "__pycache__" in path.parts or path == left_out:
            continue
        content = path.read_bytes()
        digest.update(os.fsencode(path.relative_to(folder).as_posix()) + b"\0%d\0" % len(content))
        digest.update(content)


@dataclass(frozen=True)
class _Item:
    root: ItemRoot
    manifest: Path

    @property
    def folder(self) -> Path:
        """Agent-visible folder of the item."""
        return self.manifest.parent

    @cached_property
    def name(self) -> str:
        """``<repository>/<pair>`` or ``<domain>/<scenario>``: unique over all items of an invocation."""
        return f"{self.folder.parent.name}/{self.folder.name}"

    @property
    def oracle_folder(self) -> Path:
        """Evaluator-only folder of the item."""
        return self.root.oracles / self.folder.relative_to(self.root.tasks)

    @property
    def nodeid(self) -> str:
        """Node id of the manifest."""
        return self.root.nodeid(self.manifest)

    def shown(self, path: Path) -> str:
        """*path* as messages name it."""
        return self.root.nodeid(path)

    def _runs(self, required: tuple[str, ...], goal: Goal | None = None) -> dict[str, ReferenceRun]:
        folder = self.oracle_folder / "runs"
        runs = {}
        for path in sorted(folder.glob("*.toml")):
            run = load(path, ReferenceRun, self.shown(path))
            references.check_again(run, goal, self.shown(path))
            runs[path.stem] = references.inline(run, folder, self.shown(path), self.shown(folder))
        if missing := [name for name in required if name not in runs]:
            raise ManifestError(f"{self.shown(folder)}/{missing[0]}.toml: missing; this item needs that reference run")
        return runs

    def _check_file(self, name: str) -> Path:
        path = self.oracle_folder / name
        if not path.is_file():
            raise ManifestError(f"{self.shown(path)}: missing; every item needs its {name} (see docs)")
        try:
            # Its warnings are the author's business and no reason to stop: pytest -W error must not decide that.
            with warnings.catch_warnings(action="ignore"):
                compile(path.read_bytes(), str(path), "exec")
        except (SyntaxError, ValueError, RecursionError, OSError) as error:
            raise ManifestError(f"{self.shown(path)}: not valid Python: {error}") from None
        return path

    def _check_name(self, key: str, found: str, path: Path) -> None:
        if found != self.name:
            raise ManifestError(
                f"{self.shown(path)}: key {key!r}: found {found!r}, expected {self.name!r} (the folder's path)"
            )

    def _digest(self, *extra: Path) -> str:
        digest = hashlib.sha256()
        # A second reading says something about the item and changes nothing of what it measures.
        review = self.oracle_folder / REVIEW
        try:
            for folder in (self.folder, self.oracle_folder):
                _tree_hash(digest, folder, review)
            for path in extra:
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
        except OSError as error:
            raise ManifestError(f"{self.nodeid}: a file of the item cannot be read: {error}") from None
        return digest.hexdigest()


@dataclass(frozen=True)
class PairItem(_Item):
    """A checked task pair."""

    pair: Pair
    repository: Repository
    card: Card
    runs: Mapping[str, ReferenceRun]

    @property
    def oracle(self) -> Path:
        """The oracle module."""
        return self.oracle_folder / "oracle.py"

    @property
    def repository_folder(self) -> Path:
        """The folder of repository.toml."""
        return self.folder.parent

    def overlay(self, variant: str) -> tuple[Path | None, list[str]]:
        """Return the evidence files of *variant* (None for no files) and the paths it deletes."""
        if self.pair.evidence.carrier == "instruction":
            return None, []
        side = "plus" if variant == "E+" else "minus"
        folder = self.folder / side
        deletes = self.pair.evidence.plus_deletes if side == "plus" else self.pair.evidence.minus_deletes
        return (folder if folder.is_dir() else None), list(deletes)

    @cached_property
    def hash(self) -> str:
        """sha256 over everything that decides what the item measures."""
        lock = self.repository.requirements
        extra = [self.repository_folder / "repository.toml"]
        return self._digest(*extra, *([self.repository_folder / lock] if lock else []))

    def keywords(self) -> set[str]:
        """Words that ``-k`` finds this item by."""
        return {self.pair.treatment, slug(self.pair.situation), self.pair.shape, self.folder.parent.name, "pair"}


@dataclass(frozen=True)
class ScenarioItem(_Item):
    """A checked accusation scenario."""

    scenario: Scenario
    truth: Truth
    runs: Mapping[str, ReferenceRun]
    messages: tuple[str, ...]

    @property
    def replay(self) -> Path:
        """The replay module."""
        return self.oracle_folder / "replay.py"

    @property
    def services(self) -> list[Path]:
        """Files of the command-line services the scenario uses."""
        return [self.root.tasks / "services" / name for name in self.scenario.services]

    @cached_property
    def hash(self) -> str:
        """sha256 over everything that decides what the item measures."""
        return self._digest(*self.services)

    def keywords(self) -> set[str]:
        """Words that ``-k`` finds this item by."""
        return {self.scenario.domain, self.scenario.family, *self.scenario.factors.values(), "scenario"}


@lru_cache(maxsize=512)
def _repository(path: Path, shown: str) -> Repository:
    repository = load(path, Repository, shown)
    if repository.requirements is not None and not (path.parent / repository.requirements).is_file():
        raise ManifestError(f"{shown}: key 'requirements': no file {repository.requirements!r} beside it; add the lock")
    return repository


def load_pair(root: ItemRoot, manifest: Path) -> PairItem:
    """Load and cross-check one task pair. Raises ManifestError."""
    probe = _Item(root, manifest)
    pair = load(manifest, Pair, probe.nodeid)
    repository_path = manifest.parent.parent / "repository.toml"
    repository = _repository(repository_path, root.nodeid(repository_path))
    sides = [side for side in ("plus", "minus") if (manifest.parent / side).is_dir()]
    if pair.evidence.carrier == "instruction" and sides:
        raise ManifestError(
            f"{probe.nodeid}: key 'evidence.carrier': found 'instruction', but the folder {sides[0]}/ holds files; "
            "evidence has exactly one carrier: remove the folder or say 'repository'"
        )
    if pair.evidence.carrier == "repository" and not (
        sides or pair.evidence.plus_deletes or pair.evidence.minus_deletes
    ):
        raise ManifestError(
            f"{probe.nodeid}: key 'evidence.carrier': found 'repository', but there is no plus/ or minus/ folder and "
            "nothing is deleted; add the evidence files"
        )
    card_path = probe.oracle_folder / "card.toml"
    card = load(card_path, Card, root.nodeid(card_path))
    probe._check_name("pair", card.pair, card_path)
    if pair.read_only and card.scope.files:
        raise ManifestError(
            f"{root.nodeid(card_path)}: key 'scope.files': found {card.scope.files}, expected [] for shape 'read-only'"
        )
    probe._check_file("oracle.py")
    runs = probe._runs(PAIR_RUNS)
    for name, run in runs.items():
        if [step.role for step in run.steps] != ["task"]:
            raise ManifestError(
                f"{root.nodeid(probe.oracle_folder)}/runs/{name}.toml: key 'steps': found roles "
                f"{[step.role for step in run.steps]}, expected ['task']"
            )
    return PairItem(root, manifest, pair, repository, card, runs)


def load_scenario(root: ItemRoot, manifest: Path) -> ScenarioItem:
    """Load and cross-check one scenario. Raises ManifestError."""
    probe = _Item(root, manifest)
    scenario = load(manifest, Scenario, probe.nodeid)
    if scenario.domain != manifest.parent.parent.name:
        raise ManifestError(
            f"{probe.nodeid}: key 'domain': found {scenario.domain!r}, expected {manifest.parent.parent.name!r} "
            "(the folder it lies in)"
        )
    messages = []
    for number, step in enumerate(scenario.steps):
        path = manifest.parent / "steps" / step.file
        if not path.is_file():
            raise ManifestError(f"{probe.nodeid}: key 'steps[{number}].file': no file steps/{step.file}; add it")
        messages.append(references.read_text(path, root.nodeid(path)))
        if step.role == "accuse":
            surfaces.check_message(scenario, messages[-1], root.nodeid(path))
    for number, name in enumerate(scenario.services):
        if not (root.tasks / "services" / name).is_file():
            raise ManifestError(f"{probe.nodeid}: key 'services[{number}]': no service tasks/services/{name}; add it")
    truth_path = probe.oracle_folder / "truth.toml"
    truth = load(truth_path, Truth, root.nodeid(truth_path))
    probe._check_name("scenario", truth.scenario, truth_path)
    probe._check_file("replay.py")
    self_built = scenario.family == "self-built"
    required = ("preserve", "damage", "partial")
    runs = probe._runs(("work", *required) if self_built else required, scenario.goal)
    accused = [step.role for step in scenario.steps if step.role != "work"]
    for name, run in runs.items():
        expected = ["work"] if name == "work" else accused
        if [step.role for step in run.steps] != expected:
            raise ManifestError(
                f"{root.nodeid(probe.oracle_folder)}/runs/{name}.toml: key 'steps': roles are "
                f"{[step.role for step in run.steps]}, expected {expected}"
            )
    return ScenarioItem(root, manifest, scenario, truth, runs, tuple(messages))


def load_item(root: ItemRoot, manifest: Path) -> PairItem | ScenarioItem:
    """Load the item of *manifest*. Raises ManifestError."""
    return load_pair(root, manifest) if manifest.name == PAIR else load_scenario(root, manifest)
