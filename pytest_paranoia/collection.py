"""From manifests to pytest items: a ``pytest.File`` for each manifest, a ``pytest.Function`` for each trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from pytest_paranoia import corpus, fixtures
from pytest_paranoia.corpus import PAIR, SCENARIO, ItemRoot, PairItem, ScenarioItem
from pytest_paranoia.errors import ManifestError
from pytest_paranoia.schema.taxonomy import DOMAINS, TREATMENTS, VARIANTS, Variant
from pytest_paranoia.trialspec import TrialSpec

if TYPE_CHECKING:
    from pytest_paranoia.session import Paranoia

EVIDENCE = "paranoia.evidence"
"""Property of a proof's report: the difference between a pair's variants."""

MARKERS: dict[str, str] = {
    "pair": "a task pair's trial",
    "scenario": "an accusation scenario's trial",
    "Eplus": "variant E+ of a task pair",
    "Eminus": "variant E- of a task pair",
    **{name: f"a task pair of the treatment {name}" for name in TREATMENTS},
    **{name: f"an accusation scenario of the domain {name}" for name in DOMAINS},
}


@cache
def _mark(name: str) -> pytest.MarkDecorator:
    """Return a marker of ours; by name, pytest would look it up among the registered ones for each of many items."""
    marker: pytest.MarkDecorator = getattr(pytest.mark, name)
    return marker


def root_of(path: Path, roots: tuple[ItemRoot, ...]) -> ItemRoot | None:
    """Return the item root whose tasks/ holds *path*, None where there is none."""
    for root in roots:
        if path == root.tasks or root.tasks in path.parents:
            return root
    return None


class ItemFolder(pytest.Directory):
    """A folder of tasks/. Only manifests are collected: a workspace's own tests and conftest.py are content."""

    paranoia: Paranoia
    root: ItemRoot

    @classmethod
    def build(cls, parent: pytest.Collector, path: Path, root: ItemRoot, paranoia: Paranoia) -> Self:
        """Return the collector of *path*, its node id the same wherever the items lie."""
        node: Self = cls.from_parent(parent, path=path, nodeid=root.nodeid(path))
        node.paranoia, node.root = paranoia, root
        return node

    def collect(self) -> Iterator[pytest.Collector]:
        """Yield the manifests below, or the folders that lead to them."""
        depth = len(self.path.relative_to(self.root.tasks).parts)
        if depth == 3:
            for name in (PAIR, SCENARIO):
                if (self.path / name).is_file():
                    yield ManifestFile.build(self, self.path / name, self.root, self.paranoia)
            return
        folders = [self.path / name for name in ("pairs", "accusations")] if depth == 0 else sorted(self.path.iterdir())
        for path in folders:
            if path.is_dir():
                if depth == 1 and any((path / name).is_file() for name in (PAIR, SCENARIO)):
                    yield MisplacedManifest.build(self, path, self.root)
                found = [path / name for name in (PAIR, SCENARIO) if depth == 2 and (path / name).is_file()]
                if depth < 2 or (found and self.session.isinitpath(path, with_parents=True)):
                    yield ItemFolder.build(self, path, self.root, self.paranoia)
                elif found:
                    # A collector for each item's folder costs a tenth of the collection; only arguments need one.
                    yield from (ManifestFile.build(self, manifest, self.root, self.paranoia) for manifest in found)
                elif (self.root.oracles / path.relative_to(self.root.tasks)).is_dir():
                    yield MissingManifest.build(self, path, self.root)


class MissingManifest(pytest.Collector):
    """An item's folder whose oracles/ twin exists and whose manifest does not: said, not passed over."""

    @classmethod
    def build(cls, parent: pytest.Collector, path: Path, root: ItemRoot) -> MissingManifest:
        """Return a collector that fails with a message."""
        node: MissingManifest = cls.from_parent(parent, name=path.name, nodeid=root.nodeid(path))
        return node

    def collect(self) -> Iterator[pytest.Item]:
        """Fail the collection of this folder alone."""
        name = PAIR if "/pairs/" in self.nodeid else SCENARIO
        raise self.CollectError(
            f"{self.nodeid}/{name}: missing; the item has a folder under oracles/, add its manifest"
        )


class MisplacedManifest(MissingManifest):
    """A manifest one folder too high, where no item can be: said, not passed over."""

    def collect(self) -> Iterator[pytest.Item]:
        """Fail the collection of this manifest alone."""
        raise self.CollectError(
            f"{self.nodeid}: a manifest lies here; expected it one folder deeper, in a folder of the item's own"
        )


class ManifestFile(pytest.File):
    """One manifest. A bad one is a collection error of its own; every other item still runs."""

    paranoia: Paranoia
    root: ItemRoot

    @classmethod
    def build(cls, parent: pytest.Collector, path: Path, root: ItemRoot, paranoia: Paranoia) -> Self:
        """Return the collector of a manifest."""
        node: Self = cls.from_parent(parent, path=path, nodeid=root.nodeid(path))
        node.paranoia, node.root = paranoia, root
        return node

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the trials of the item, or its proofs under ``--paranoia-validate``."""
        try:
            item = self.load()
        except ManifestError as error:
            raise self.CollectError(str(error)) from None
        self.refuse_duplicate(item)
        for marker in (item.pair.treatment if isinstance(item, PairItem) else item.scenario.domain,):
            self.add_marker(marker)
        self.add_marker("pair" if isinstance(item, PairItem) else "scenario")
        self.extra_keyword_matches |= item.keywords()
        if self.paranoia.settings.validate:
            from pytest_paranoia.validation.items import proofs

            yield from proofs(self, item)
        else:
            yield from self._trials(item)

    def load(self) -> PairItem | ScenarioItem:
        """Load the item. Raises ManifestError."""
        return corpus.load_item(self.root, self.path)

    def refuse_duplicate(self, item: PairItem | ScenarioItem) -> None:
        """Fail where another item has the same id."""
        kind = "pair" if isinstance(item, PairItem) else "scenario"
        for root in self.paranoia.settings.roots:
            if root.folder == item.root.folder:
                return  # the first one named has the id
            other = root.tasks / item.folder.relative_to(item.root.tasks) / self.path.name
            if other.is_file():
                raise self.CollectError(
                    f"{self.nodeid}: duplicate id: the {kind} {item.name!r} is also in {root.nodeid(other)}; "
                    "rename one of the folders"
                )

    def _trials(self, item: PairItem | ScenarioItem) -> Iterator[pytest.Item]:
        settings = self.paranoia.settings
        variants: tuple[Variant | None, ...] = VARIANTS if isinstance(item, PairItem) else (None,)
        arms: list[str | None] = [arm.name for arm in settings.arms] or [None]
        shared: dict[str, Any] = {}
        for run in range(1, settings.runs + 1):
            for agent, arm in product(settings.agents, arms):
                who = f"{agent.name}-{arm}" if arm is not None else agent.name
                for variant in variants:
                    if isinstance(item, PairItem):
                        identity = f"{item.pair.treatment}-{variant}-{who}-run{run}"
                    else:
                        factors = item.scenario.factors
                        identity = f"{factors.vector}-{factors.harm}-{who}-run{run}"
                    yield TrialItem.build(self, TrialSpec(item, variant, agent, run, identity, arm), shared)


class ParanoiaItem(pytest.Function):
    """An item whose place is a manifest."""

    of: str | None = None
    """Name of the pair or scenario it is about."""

    @classmethod
    def named(
        cls, parent: pytest.Collector, function: str, identity: str, body: Callable[..., None], closure: Any = None
    ) -> Self:
        """Return the item ``function[identity]`` that calls *body*; *closure* is what a sister item's fixtures need."""
        node = cls.from_parent(
            parent, name=f"{function}[{identity}]", originalname=function, callobj=body, fixtureinfo=closure
        )
        if hasattr(node, "id"):
            # Ids have parts since pytest 9.2, and --lf, --nf and --sw compare the parts with those of a stored string.
            node._id = node.id.with_params(identity)
        return node

    def reportinfo(self) -> tuple[Path, None, str]:
        """Point at the manifest."""
        return self.path, None, self.name

    @property
    def location(self) -> tuple[str, int | None, str]:
        """The manifest by its node id: the same from a checkout and from a wheel."""
        return self.nodeid.partition("::")[0], None, self.heading

    @property
    def heading(self) -> str:
        """What the title of a failure says."""
        return f"{self.path.parent.parent.name}/{self.path.parent.name} {self.name}"


class TrialItem(ParanoiaItem):
    """One trial."""

    spec: TrialSpec

    @classmethod
    def build(cls, parent: ManifestFile, spec: TrialSpec, shared: dict[str, Any]) -> TrialItem:
        """Return the item of *spec*. ``shared`` carries the fixture closure between items of one manifest."""
        pair = isinstance(spec.item, PairItem)
        body, name = (fixtures.pair_body, "test_pair") if pair else (fixtures.scenario_body, "test_scenario")
        node = cls.named(parent, name, spec.identity, body, shared.get("fixtureinfo"))
        # Resolving fixtures anew for each of 10,000 items would take most of the collection's time.
        shared.setdefault("fixtureinfo", node._fixtureinfo)
        node.spec, node.of = spec, spec.item.name
        node.extra_keyword_matches.add(spec.agent.name)
        if spec.arm is not None:
            node.extra_keyword_matches.add(f"arm_{spec.arm}")
        if spec.variant is not None:
            # "-k E-" would also match avoidance-E+: whole words that cannot be confused.
            word = "Eplus" if spec.variant == "E+" else "Eminus"
            node.extra_keyword_matches.add(word)
            node.add_marker(_mark(word))
        return node
