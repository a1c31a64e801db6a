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

pytest_plugins = ["crashing", "pytester"]

# On a busy machine any example may take longer than the 200 ms that Hypothesis allows one.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


# Modules that take half a minute or more, with real daemons, real agents, many sessions or a browser.
SLOW = frozenset(
    f"test_{name}.py"
    for name in (
        *("arms", "arms_docs", "bad_input", "chat_small_model", "delegation", "docker_faults", "docker_real_daemon"),
        *("docker_agents", "docker_same_result", "docker_sessions", "faults_machine", "faults_plugins"),
        *("faults_trials", "faults_underfoot", "harbor_docker", "harbor_export"),
        *("harbor_judged", "harbor_tasks", "html_report", "interrupted", "isolation_items", "judge_cli"),
        *("judge_commands", "judge_corpus", "judge_runs", "judge_small_model", "label_page", "real_agents"),
        *("tampering", "transcripts", "validate", "wheel"),
    )
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slow-part",
        metavar="K/N",
        help="of the slow modules (tests/conftest.py) take the Kth of N parts only; all others run (default: all run)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the slow modules of the other parts: what takes too long for every day is spread over several."""
    given = config.getoption("--slow-part")
    if given is None:
        return
    number, _, count = given.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise pytest.UsageError(f"--slow-part: {given!r} given, expected K/N with K from 1 to N")
    there = {item.path.name for item in items}
    left_out = SLOW - set(sorted(SLOW)[int(number) - 1 :: int(count)])
    assert config.args_source.name != "TESTPATHS" or there >= SLOW, f"no such module: {sorted(SLOW - there)}"
    if left := [item for item in items if item.path.name in left_out]:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item.path.name not in left_out]


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
