"""Shared by all tests: a prepared-repository cache of their own, and small items that need no network."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from small_items import ItemFolder

from pytest_paranoia.workspaces.cache import cache_root

if TYPE_CHECKING:
    from relay_lab import Lab

    from pytest_paranoia.judging.case import Case

pytest_plugins = ["pytester"]

# On a busy machine any example may take longer than the 200 ms that Hypothesis allows one.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One cache for all workers of a test session: preparing safely at the same time is what it is made for."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if base.name.startswith("popen-") else base) / "paranoia-cache"
    folder.mkdir(exist_ok=True)
    # The command-line agents and rewardkit of this machine: too large to install once more.
    for kind in ("agents", "rewardkit"):
        if (there := cache_root() / kind).is_dir():
            with suppress(FileExistsError):
                (folder / kind).symlink_to(there)
    yield folder
    # Trials that ran in this very process: what they keep for the next one is kept until the process says so.
    if spares := sys.modules.get("pytest_paranoia.workspaces.spares"):
        spares.SPARES.close()


@pytest.fixture
def items(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> ItemFolder:
    """An empty folder for items, in an environment that uses the tests' cache."""
    monkeypatch.setenv("PARANOIA_CACHE", str(cache))
    return ItemFolder(tmp_path / "bench")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A running relay with an upstream behind it."""
    from relay_lab import laboratory  # few tests need it, and it brings a web server along

    with laboratory(tmp_path_factory.mktemp("wire")) as running:
        yield running


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> dict[str, Case]:
    """The archived reference runs of every kind of small item, by trial: made once, judged many times."""
    from judge_scripts import archived_cases

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARANOIA_CACHE", str(cache))
        return archived_cases(tmp_path_factory.mktemp("judged"))
