"""Reading from a folder that an agent can write to: whatever it puts there, nothing outside is read or made."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pytest_paranoia.agents.cli import foreign


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").write_text("secret")
    inside = tmp_path / "inside"
    (inside / "sub").mkdir(parents=True)
    (inside / "sub/a.txt").write_text("fine")
    return inside


def test_a_file_and_none(folder: Path) -> None:
    assert foreign.text(folder, "sub/a.txt") == "fine"
    assert foreign.text(folder, "sub/b.txt") is None
    assert foreign.text(folder, "nowhere/b.txt") is None


def test_links_and_what_is_no_file_are_refused(folder: Path) -> None:
    (folder / "link").symlink_to(folder.parent / "outside/secret.txt")
    (folder / "folder-link").symlink_to(folder.parent / "outside")
    (folder / "dangling").symlink_to(folder.parent / "outside/new")
    os.mkfifo(folder / "pipe")
    for name in ("link", "folder-link/secret.txt", "dangling", "pipe", "sub"):
        with pytest.raises(ValueError, match=name.split("/")[0]):
            foreign.text(folder, name)
        with pytest.raises(ValueError, match=name.split("/")[0]), foreign.database(folder, name):
            pass
    assert sorted(path.name for path in (folder.parent / "outside").iterdir()) == ["secret.txt"]


def test_too_large_a_file_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "LARGEST", 3)
    with pytest.raises(ValueError, match="at most 3 bytes, found 4"):
        foreign.text(folder, "sub/a.txt")


def test_a_data_base_with_its_log(folder: Path) -> None:
    """What a killed program had not moved from its log into the data base is read as well."""
    with closing(sqlite3.connect(folder / "x.db")) as writer:
        writer.execute("pragma journal_mode = wal")
        writer.execute("pragma wal_autocheckpoint = 0")
        writer.execute("create table t (a)")
        writer.execute("insert into t values (7)")
        writer.commit()
        assert (folder / "x.db-wal").stat().st_size > 0
        before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
        with foreign.database(folder, "x.db") as database:
            assert database is not None
            assert database.execute("select a from t").fetchall() == [(7,)]
        assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    with foreign.database(folder, "y.db") as database:
        assert database is None


def test_what_is_no_data_base(folder: Path) -> None:
    (folder / "x.db").write_text("nonsense " * 1000)
    with pytest.raises(ValueError, match=r"x\.db: not a data base"), foreign.database(folder, "x.db") as database:
        _select(database)


def _select(database: sqlite3.Connection | None) -> None:
    assert database is not None
    database.execute("select a from t")
