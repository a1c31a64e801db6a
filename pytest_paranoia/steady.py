"""What a trial rests on must still be what it was: the files of its item, and what was prepared for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_paranoia.errors import InfrastructureError, ManifestError
from pytest_paranoia.workspaces.cache import count_files

if TYPE_CHECKING:
    from pytest_paranoia.corpus import PairItem, ScenarioItem
    from pytest_paranoia.workspaces.stage import Stage


def note(stage: Stage) -> None:
    """Note how much there is of what was prepared, before a trial uses it."""
    for folder in _folders(stage):
        _noted(folder)


def refuse_altered(item: PairItem | ScenarioItem, begun: str | None, stage: Stage) -> None:
    """Raise InfrastructureError where an ended trial cannot be scored because something gave way under it.

    *begun* is the hash of the item when the session began, None where nobody knows: an item edited since was
    collected in one content and checked in another (``item-changed``). Prepared files that somebody removed were
    missing to the agent, or to its check (``source``).
    """
    expected = begun or item.hash
    try:
        found = replace(item).hash
    except ManifestError as error:
        raise InfrastructureError("item-changed", f"{item.name} cannot be read any more: {error}") from error
    if not expected == item.hash == found:
        raise InfrastructureError(
            "item-changed",
            f"files of {item.name} were edited while the session ran, so nothing tells which content was measured; "
            "go on with --paranoia-resume, which makes its trials again",
        )
    for folder in _folders(stage):
        now = count_files(folder)
        if now < _noted(folder):
            raise InfrastructureError(
                "source",
                f"{folder} had {_noted(folder)} files when the trial began and has {now} now: somebody removed "
                "prepared files; go on with --paranoia-resume, which prepares them again",
            )


def _folders(stage: Stage) -> Iterator[Path]:
    yield from (stage.start, stage.python_env)


@cache
def _noted(folder: Path) -> int:
    return count_files(folder)
