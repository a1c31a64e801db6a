"""A run that waits in the middle: two pairs, and the minimal run of the second goes on when a hold is taken away."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from live_sessions import LiveSession, Place, eventually
from small_items import COPY, EDIT, ItemFolder

from pytest_paranoia import corpus
from pytest_paranoia.schema.manifest import Repository
from pytest_paranoia.workspaces.prepare import prepare_repository

AGENTS = "--model=minimal,paranoid"
PLANNED = 8
EARLY = {f"tiny/early[avoidance-{v}-{agent}-run1]" for v in ("E+", "E-") for agent in ("minimal", "paranoid")}
HELD = {f"tiny/held[avoidance-{v}-minimal-run1]" for v in ("E+", "E-")}
SOON = 60.0
"""Seconds within which what was killed or interrupted must be gone."""


@contextmanager
def held_place(base: Path, cache: Path) -> Iterator[Place]:
    """Two pairs in *base*; the minimal run of the second waits while the hold is there."""
    # Where residue of tools may come and go without anybody counting the files of the environment.
    hold = f"__pycache__/hold-{secrets.token_hex(4)}"
    wait = f"d=$(dirname $(command -v python))/..; while [ -e $d/{hold} ]; do sleep 0.1; done"
    items = ItemFolder(base / "bench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARANOIA_CACHE", str(cache))
        items.pair("tiny/early")
        items.pair("tiny/held", runs={"minimal": f"[[steps.actions]]\nrun = '{wait}'\n{EDIT}", "excess": COPY + EDIT})
        manifest = items.folder / "tasks/pairs/tiny/repository.toml"
        prepared = prepare_repository(manifest.parent, corpus.load(manifest, Repository, "repository.toml"))
        (prepared.python_env / hold).parent.mkdir(exist_ok=True)
        yield Place(base / "place", items.folder, cache, prepared.python_env / hold)


def start_held(place: Place, run: str, *arguments: str) -> LiveSession:
    """Start a run and return when the trials before the held ones are on disk and a held one waits."""
    place.hold.touch()
    session = place.start(AGENTS, f"--paranoia-run={run}", *arguments)

    def waiting() -> bool:
        assert session.process.poll() is None, session.text
        return place.records(run).keys() >= EARLY and bool(place.held())

    eventually(waiting, f"the held trials of {run}")
    return session
