"""Used trees that are put right: whatever an agent did to one, the next trial finds the start tree."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sessions import Session
from small_items import EDIT, ItemFolder

from pytest_paranoia.workspaces.freezing import snapshot
from pytest_paranoia.workspaces.spares import KEEP, Loan, Spares


@pytest.fixture
def start(tmp_path: Path) -> Path:
    """A tree with a bit of everything, older than any change to a copy of it."""
    tree = tmp_path / "start"
    for name in ("README.md", "src/one.py", "src/two.py", "src/deep/er/three.py", "docs/index.md", ".git/HEAD"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(f"content of {name}\n")
    (tree / "run.sh").write_text("exit 0\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("src/one.py")
    (tree / "empty").mkdir()
    for path in (tree, *tree.rglob("*")):
        os.utime(path, (1_600_000_000, 1_600_000_000), follow_symlinks=False)
    return tree


@pytest.fixture
def spares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Spares]:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    found = Spares()
    yield found
    found.close()
    assert list((tmp_path / "tmp").iterdir()) == []


def look(tree: Path) -> dict[bytes, tuple[object, ...]]:
    """All that an agent would see of a tree."""
    found: dict[bytes, tuple[object, ...]] = {}
    for path, entry in snapshot(tree).items():
        full = tree / os.fsdecode(path)
        content: object = None
        if entry.kind == "file":
            content = full.read_bytes()
        elif entry.kind == "symlink":
            content = full.readlink()
        found[path] = (entry.kind, entry.mode, entry.mtime, content)
    info = tree.stat()
    return {**found, b".": (info.st_mode, info.st_mtime_ns)}


def lent(spares: Spares, start: Path, target: Path) -> Loan:
    return spares.take("agent", start, target)


def rewrite(tree: Path, name: str, content: str, times: tuple[int, int] = (1_600_000_000, 1_600_000_000)) -> None:
    """Change a file and set its times as if nobody had."""
    (tree / name).write_text(content)
    os.utime(tree / name, times)


def replace_folder_by_link(tree: Path) -> None:
    subprocess.run(["rm", "-r", tree / "src"], check=True)
    (tree / "src").symlink_to("/etc")


def same_size_in_place(tree: Path) -> None:
    rewrite(tree, "README.md", "CONTENT of README.md\n")


def inner_folder_became_file(tree: Path) -> None:
    subprocess.run(["rm", "-r", tree / "src/deep"], check=True)
    (tree / "src/deep").write_text("no folder")


def file_became_folder(tree: Path) -> None:
    (tree / "README.md").unlink()
    (tree / "README.md" / "x").mkdir(parents=True)
    (tree / "README.md" / "x" / "y").write_text("y")


def moved_about(tree: Path) -> None:
    (tree / "src").rename(tree / "source")
    (tree / "docs").rename(tree / "src")


def swapped(tree: Path) -> None:
    (tree / "src/one.py").rename(tree / "x")
    (tree / "src/two.py").rename(tree / "src/one.py")
    (tree / "x").rename(tree / "src/two.py")


def hard_link(tree: Path) -> None:
    os.link(tree / "src/one.py", tree / "also-one.py")
    (tree / "src/two.py").unlink()
    os.link(tree / "src/one.py", tree / "src/two.py")


def special_files(tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    (tree / "README.md").unlink()
    os.mkfifo(tree / "README.md")


def modes(tree: Path) -> None:
    tree.chmod(0o777)
    (tree / "src").chmod(0o700)
    (tree / "run.sh").chmod(0o600)
    (tree / "src/one.py").chmod(0o4755)


def added(tree: Path) -> None:
    (tree / "src/__pycache__").mkdir()
    (tree / "src/__pycache__/one.pyc").write_text("x")
    (tree / "empty/now/not/any/more").mkdir(parents=True)
    (tree / os.fsdecode(b"not \xff utf-8\n")).write_text("x")


def another_link(tree: Path) -> None:
    (tree / "link").unlink()
    (tree / "link").symlink_to("src/two.py")


def all_gone(tree: Path) -> None:
    for entry in tree.iterdir():
        subprocess.run(["rm", "-r", entry], check=True)


@pytest.mark.parametrize(
    "change",
    [
        same_size_in_place,
        replace_folder_by_link,
        inner_folder_became_file,
        file_became_folder,
        moved_about,
        swapped,
        hard_link,
        special_files,
        modes,
        added,
        another_link,
        all_gone,
    ],
)
def test_a_changed_tree_is_put_right(
    spares: Spares, start: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    expected = look(start)
    first = lent(spares, start, tmp_path / "first")
    assert look(first.folder) == expected
    identity = first.folder.stat().st_ino
    change(first.folder)
    assert look(first.folder) != expected
    spares.give_back(first)
    second = lent(spares, start, tmp_path / "second")
    assert second.folder.stat().st_ino == identity, "it was copied anew"
    assert look(second.folder) == expected
    assert look(start) == expected
    assert all(entry == second.state[path] for path, entry in snapshot(second.folder).items())


def test_a_link_that_leads_out_is_not_followed(spares: Spares, start: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "one.py").write_text("mine")
    loan = lent(spares, start, tmp_path / "first")
    subprocess.run(["rm", "-r", loan.folder / "src"], check=True)
    (loan.folder / "src").symlink_to(outside)
    spares.give_back(loan)
    assert [path.read_text() for path in outside.iterdir()] == ["mine"]
    assert not lent(spares, start, tmp_path / "second").folder.joinpath("src").is_symlink()


def test_a_tree_goes_to_the_same_use_and_start_only(spares: Spares, start: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["cp", "-a", start, other], check=True)
    loan = lent(spares, start, tmp_path / "a")
    mark = loan.folder.stat().st_ino
    spares.give_back(loan)
    assert spares.take("check", start, tmp_path / "b").folder.stat().st_ino != mark
    assert spares.take("agent", other, tmp_path / "c").folder.stat().st_ino != mark
    assert spares.take("agent", start, tmp_path / "d").folder.stat().st_ino == mark


def test_what_cannot_be_put_right_stays_to_be_deleted(spares: Spares, start: Path, tmp_path: Path) -> None:
    loan = lent(spares, start, tmp_path / "first")
    try:
        os.setxattr(loan.folder / "src", "user.note", b"x")
    except OSError as error:
        pytest.skip(f"no extended attributes here: {error}")
    spares.give_back(loan)
    assert loan.folder.is_dir()
    assert look(lent(spares, start, tmp_path / "second").folder) == look(start)


@pytest.mark.parametrize("gone", ["replaced", "removed"])
def test_a_workspace_that_is_none_any_more(spares: Spares, start: Path, tmp_path: Path, gone: str) -> None:
    loan = lent(spares, start, tmp_path / "first")
    loan.folder.rename(tmp_path / "away")
    if gone == "replaced":
        loan.folder.symlink_to(tmp_path / "away")
    before = look(tmp_path / "away")
    spares.give_back(loan)
    assert look(tmp_path / "away") == before
    assert look(lent(spares, start, tmp_path / "second").folder) == look(start)


def test_few_are_kept_and_none_after_the_end(spares: Spares, start: Path, tmp_path: Path) -> None:
    loans = [lent(spares, start, tmp_path / f"tree-{number}") for number in range(KEEP + 2)]
    for loan in loans:
        spares.give_back(loan)
    (folder,) = (path for path in (tmp_path / "tmp").iterdir() if path.is_dir())
    assert len(list(folder.iterdir())) == KEEP
    spares.close()
    assert not folder.exists()
    assert look(lent(spares, start, tmp_path / "again").folder) == look(start)


def test_a_spare_that_somebody_removed_is_copied_anew(spares: Spares, start: Path, tmp_path: Path) -> None:
    spares.give_back(lent(spares, start, tmp_path / "first"))
    (folder,) = (path for path in (tmp_path / "tmp").iterdir() if path.is_dir())
    for tree in folder.iterdir():
        subprocess.run(["rm", "-r", tree], check=True)
    assert look(lent(spares, start, tmp_path / "second").folder) == look(start)


_NAMES = st.sampled_from(["README.md", "src", "src/one.py", "src/deep", "src/deep/er/three.py", "link", "empty", "new"])
_ACTIONS = st.tuples(st.sampled_from(["write", "remove", "mkdir", "link", "chmod", "touch", "move"]), _NAMES, _NAMES)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_ACTIONS, min_size=1, max_size=8))
def test_any_series_of_changes(
    start: Path, tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, str, str]]
) -> None:
    base = tmp_path_factory.mktemp("series")
    spares = Spares()
    try:
        loan = lent(spares, start, base / "first")
        for action, name, other in actions:
            path, second = loan.folder / name, loan.folder / other
            script = {
                "write": ["sh", "-c", 'echo changed > "$1"', "sh", path],
                "remove": ["rm", "-rf", path],
                "mkdir": ["mkdir", "-p", path],
                "link": ["ln", "-sfn", other, path],
                "chmod": ["chmod", "0711", path],
                "touch": ["touch", "-h", "-d", "2001-01-01", path],
                "move": ["mv", path, second],
            }[action]
            subprocess.run(script, capture_output=True, check=False)
        spares.give_back(loan)
        assert look(lent(spares, start, base / "second").folder) == look(start)
    finally:
        spares.close()


def test_every_trial_starts_from_the_start(pytester: pytest.Pytester, items: ItemFolder) -> None:
    """Each leaves what would end the next one at its first command."""
    items.pair()
    command = (
        'test ! -e mark && test $(git rev-list --all | wc -l) = 1 && test -z "$(git status --porcelain)" && '
        "touch mark README.md && chmod 700 src && git add mark && git commit -qm more && git stash list && "
        "test $(stat -c %a src) = 700"
    )
    items.run("tiny/greet", "minimal", f"[[steps.actions]]\nrun = {command!r}\n" + EDIT)
    session = Session(pytester, items, "--model", "minimal", "--paranoia-runs", "3")
    session.result.assert_outcomes(passed=6)
