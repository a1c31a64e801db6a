"""Harbor task directories as pytest collectors: one for each task, also for those that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_paranoia.collection import ItemFolder, ManifestFile, MissingManifest
from pytest_paranoia.corpus import PAIR, SCENARIO, ItemRoot, PairItem, ScenarioItem
from pytest_paranoia.harbor.items import TASK, HarborRoot, load_task, manifests, task_folders

if TYPE_CHECKING:
    from pytest_paranoia.session import Paranoia


class HarborFolder(ItemFolder):
    """A folder of Harbor tasks, at any depth. Nothing in a task is collected as Python tests."""

    def collect(self) -> Iterator[pytest.Collector]:
        """Yield each task below, and each folder that looks like one and has no ``task.toml``."""
        below = [path for path in sorted(self.path.iterdir()) if path.is_dir()]
        # A collector for each folder would only cost time, but where one of them was named on the command line.
        named = [path for path in below if self.session.isinitpath(path, with_parents=True)]
        if (self.path / TASK).is_file():
            named = []
        for folder in task_folders(self.path):
            if any(folder.is_relative_to(path) for path in named):
                continue
            if (folder / TASK).is_file():
                yield HarborFile.build(self, folder / TASK, self.root, self.paranoia)
            else:
                yield MissingTask.build(self, folder, self.root)
        yield from (HarborFolder.build(self, path, self.root, self.paranoia) for path in named)


class MissingTask(MissingManifest):
    """A folder with the parts of a task and without its manifest: said, not passed over."""

    root: ItemRoot

    @classmethod
    def build(cls, parent: pytest.Collector, path: Path, root: ItemRoot) -> MissingTask:
        """Return a collector that fails with a message."""
        node: MissingTask = cls.from_parent(parent, name=path.name, nodeid=root.nodeid(path))
        node.root = root
        return node

    def collect(self) -> Iterator[pytest.Item]:
        """Fail the collection of this folder alone."""
        folder = self.root.folder / self.nodeid.removeprefix(self.root.prefix)
        there = ", ".join(sorted(path.name for path in folder.iterdir()))
        raise self.CollectError(f"{self.nodeid}/{TASK}: missing; the folder holds {there}: add the task's manifest")


class HarborFile(ManifestFile):
    """One ``task.toml``. A bad one is a collection error of its own; every other task still runs."""

    def load(self) -> ScenarioItem:
        """Load the task. Raises ManifestError."""
        return load_task(self.root, self.path)

    def refuse_duplicate(self, item: PairItem | ScenarioItem) -> None:
        """Fail where another item has the same name: records and ids could not tell the two apart."""
        for root in self.paranoia.settings.roots:
            for other in _places(root, item.name):
                if other == self.path:
                    return  # the first one named has the id
                raise self.CollectError(
                    f"{self.nodeid}: duplicate id: the item {item.name!r} is also in {root.nodeid(other)}; rename one "
                    "of the folders"
                )


def _places(root: ItemRoot, name: str) -> Iterator[Path]:
    if isinstance(root, HarborRoot):
        yield from (path for path in manifests(root) if f"{path.parent.parent.name}/{path.parent.name}" == name)
        return
    for kind, manifest in (("pairs", PAIR), ("accusations", SCENARIO)):
        if (path := root.tasks / kind / name / manifest).is_file():
            yield path


def folder(parent: pytest.Collector, path: Path, root: ItemRoot, paranoia: Paranoia) -> ItemFolder:
    """Return the collector of a folder of items."""
    kind = HarborFolder if isinstance(root, HarborRoot) else ItemFolder
    return kind.build(parent, path, root, paranoia)


def file(parent: pytest.Collector, path: Path, root: ItemRoot, paranoia: Paranoia) -> ManifestFile | None:
    """Return the collector of a manifest that was named on its own, None for any other file."""
    if isinstance(root, HarborRoot):
        return HarborFile.build(parent, path, root, paranoia) if path.name == TASK else None
    return ManifestFile.build(parent, path, root, paranoia) if path.name in (PAIR, SCENARIO) else None
