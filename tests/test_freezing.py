"""Freezing hostile trees: links, special files, huge and odd names, caps that are said."""

from __future__ import annotations

import base64
import os
import stat
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_paranoia.schema.record import Change, Frozen
from pytest_paranoia.workspaces import freezing, laying
from pytest_paranoia.workspaces.freezing import FrozenTree
from pytest_paranoia.workspaces.snapshots import snapshot


@pytest.fixture
def start(tmp_path: Path) -> Path:
    tree = tmp_path / "start"
    (tree / "src").mkdir(parents=True)
    (tree / "src" / "a.py").write_text("one = 1\n")
    (tree / "src" / "b.py").write_text("two = 2\n")
    (tree / "run.sh").write_text("#!/bin/sh\n")
    (tree / ".gitignore").write_text("*.log\n")
    git = ["git", "-C", str(tree), "-c", "user.name=T", "-c", "user.email=t@localhost"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "base"], check=True)
    return tree


class Copy:
    def __init__(self, start: Path, folder: Path) -> None:
        self.start = start
        self.tree = folder / "work"
        subprocess.run(["cp", "-a", str(start), str(self.tree)], check=True)
        self.before = snapshot(self.tree, skip=frozenset({b".git"}))

    def freeze(self) -> FrozenTree:
        return freezing.freeze(self.tree, self.start, self.before, with_git=False)


@pytest.fixture
def copy(start: Path, tmp_path: Path) -> Copy:
    return Copy(start, tmp_path)


def kinds(tree: FrozenTree) -> dict[str, str]:
    return {change.path: change.kind for change in tree.frozen.changes}


def only(tree: FrozenTree) -> Change:
    (change,) = tree.frozen.changes
    return change


def test_an_untouched_copy_has_no_changes(copy: Copy) -> None:
    assert copy.freeze().frozen == Frozen()


def test_changes_by_kind_with_their_diff(copy: Copy) -> None:
    (copy.tree / "src" / "a.py").write_text("one = 11\n")
    (copy.tree / "src" / "b.py").unlink()
    (copy.tree / "run.sh").chmod(0o755)
    (copy.tree / "new.txt").write_text("no newline at the end")
    frozen = copy.freeze()
    assert kinds(frozen) == {"src/a.py": "modified", "src/b.py": "deleted", "run.sh": "mode", "new.txt": "added"}
    assert "-one = 1\n+one = 11\n" in frozen.diff
    assert "mode of run.sh: 0644 -> 0755" in frozen.diff
    assert "\\ No newline at end of file" in frozen.diff


def test_a_rewrite_with_the_same_content_is_no_change(copy: Copy) -> None:
    (copy.tree / "src" / "a.py").write_text("one = 1\n")
    assert copy.freeze().frozen.changes == []


def test_same_size_and_restored_times_do_not_hide_a_change(copy: Copy) -> None:
    path = copy.tree / "src" / "a.py"
    info = path.stat()
    path.write_text("one = 7\n")
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert kinds(copy.freeze()) == {"src/a.py": "modified"}


def test_ignored_files_are_listed_and_marked(copy: Copy) -> None:
    (copy.tree / "debug.log").write_text("x")
    change = only(copy.freeze())
    assert (change.path, change.ignored) == ("debug.log", True)


def test_symlinks_are_never_followed(copy: Copy) -> None:
    (copy.tree / "passwd").symlink_to("/etc/passwd")
    (copy.tree / "etc").symlink_to("/etc")
    (copy.tree / "src" / "a.py").unlink()
    (copy.tree / "src" / "a.py").symlink_to("/etc/hostname")
    frozen = copy.freeze()
    targets = {change.path: change.after.target for change in frozen.frozen.changes if change.after}
    assert targets == {"passwd": "/etc/passwd", "etc": "/etc", "src/a.py": "/etc/hostname"}
    assert b"root:" not in b"".join(frozen.contents.values())
    assert "symbolic link to /etc/passwd" in frozen.diff


def test_a_fifo_does_not_block_and_is_laid_again(copy: Copy, start: Path, tmp_path: Path) -> None:
    os.mkfifo(copy.tree / "pipe")
    frozen = copy.freeze()
    change = only(frozen)
    assert change.after is not None
    assert change.after.type == "fifo"
    target = tmp_path / "laid"
    subprocess.run(["cp", "-a", str(start), str(target)], check=True)
    assert laying.apply(frozen.frozen.changes, frozen.contents, target) == []
    assert (target / "pipe").is_fifo()


def test_a_sparse_file_of_5_gb_is_described_and_not_read(copy: Copy) -> None:
    with (copy.tree / "huge.bin").open("wb") as stream:
        stream.truncate(5 * 1024**3)
    frozen = copy.freeze()
    change = only(frozen)
    assert change.after is not None
    assert (change.after.size, change.after.sha256, change.stored) == (5 * 1024**3, None, False)
    assert frozen.frozen.notes == ["huge.bin: content not kept: 5368709120 bytes, the limit is 4194304"]
    assert frozen.contents == {}


def test_the_total_is_capped_and_said(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freezing, "TOTAL_CAP", 10)
    (copy.tree / "a").write_bytes(b"12345678")
    (copy.tree / "b").write_bytes(b"abcdefgh")
    frozen = copy.freeze()
    assert [change.stored for change in frozen.frozen.changes] == [True, False]
    assert "together reach the limit of 10 bytes" in frozen.frozen.notes[0]


def test_odd_names_survive_and_are_printable(copy: Copy) -> None:
    names = [b"new\nline.txt", b"caf\xe9.txt", "žluť.txt".encode(), b"tab\tname", b"esc\x1b[31m.txt"]
    for name in names:
        (copy.tree / os.fsdecode(name)).write_bytes(b"x")
    changes = copy.freeze().frozen.changes
    assert {freezing.real_path(change) for change in changes} == set(names)
    assert all(change.path.isprintable() for change in changes)
    again = Frozen.model_validate_json(Frozen(changes=changes).model_dump_json())
    assert {freezing.real_path(change) for change in again.changes} == set(names)
    raw = next(change for change in changes if "caf" in change.path)
    assert base64.b64decode(raw.raw_path or "") == b"caf\xe9.txt"


def test_binary_content_is_kept_and_not_shown(copy: Copy) -> None:
    (copy.tree / "data.bin").write_bytes(b"\0\xff" * 100)
    frozen = copy.freeze()
    assert b"\0\xff" * 100 in frozen.contents.values()
    assert "(binary or too large for a diff, 200 bytes)" in frozen.diff


def test_closed_folders_and_files_are_opened_and_cleaned_up(copy: Copy) -> None:
    (copy.tree / "closed").mkdir()
    (copy.tree / "closed" / "inner.txt").write_text("x")
    (copy.tree / "closed" / "inner.txt").chmod(0)
    (copy.tree / "closed").chmod(0)
    assert "closed/inner.txt" in kinds(copy.freeze())
    (copy.tree / "closed").chmod(0)
    laying.remove_tree(copy.tree)
    assert not copy.tree.exists()


CLOSED = {"closed/inner.txt": 0, "listed/inner.txt": 0o200, "closed": 0, "listed": 0o400}


def freeze_closed(folder: Path) -> None:
    """Freeze a tree with closed files and folders, as whoever runs this."""
    (folder / "start").mkdir()
    copy = Copy(folder / "start", folder)
    for name in ("closed", "listed"):
        (copy.tree / name).mkdir()
        (copy.tree / name / "inner.txt").write_text(name)
    for name, mode in CLOSED.items():
        (copy.tree / name).chmod(mode)
    frozen = copy.freeze()
    assert kinds(frozen) == {"closed/inner.txt": "added", "listed/inner.txt": "added"}
    assert set(frozen.contents.values()) == {b"closed", b"listed"}
    assert [stat.S_IMODE((copy.tree / name).stat().st_mode) for name in ("closed", "listed")] == [0, 0o400]


def test_another_user_opens_what_is_closed_and_closes_it_again() -> None:
    """Root needs no rights; anybody else does, and an agent that works on afterwards must not find them changed."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        os.chown(name, 65534, 65534)
        warnings.simplefilter("ignore")  # a fork of a process with threads
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                freeze_closed(Path(name))
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_names_too_deep_to_ask_for_are_told(copy: Copy) -> None:
    deep = "import os\nfor _ in range(1500):\n    os.mkdir('n' * 20)\n    os.chdir('n' * 20)\n"
    subprocess.run([sys.executable, "-c", deep], cwd=copy.tree, check=True)
    frozen = copy.freeze()
    assert "left out, File name too long" in frozen.frozen.notes[0]
    laying.remove_tree(copy.tree)
    assert not copy.tree.exists()


def test_a_workspace_that_is_gone_is_all_deleted(copy: Copy, tmp_path: Path) -> None:
    laying.remove_tree(copy.tree)
    for _ in range(2):
        frozen = copy.freeze()
        assert set(kinds(frozen).values()) == {"deleted"}
        assert "src/a.py" in kinds(frozen)
        assert frozen.frozen.notes == ["the workspace itself is gone: everything counts as deleted"]
        copy.tree.unlink(missing_ok=True)
        copy.tree.symlink_to(tmp_path)


def test_the_starts_ignore_rules_count_and_a_pipe_in_their_place_does_not_block(copy: Copy) -> None:
    (copy.tree / ".gitignore").unlink()
    os.mkfifo(copy.tree / ".gitignore")
    (copy.tree / "src" / ".gitignore").write_text("*\n")
    for name in ("debug.log", "src/debug.log", "src/new.py"):
        (copy.tree / name).write_text("x")
    ignored = {change.path: change.ignored for change in copy.freeze().frozen.changes}
    assert ignored == {
        ".gitignore": False,
        "src/.gitignore": False,
        "debug.log": True,
        "src/debug.log": True,
        "src/new.py": False,
    }


def test_nothing_is_laid_through_a_link(copy: Copy, start: Path, tmp_path: Path) -> None:
    """Changes that do not fit the tree they are laid over: no file outside is written, replaced or removed."""
    (copy.tree / "src" / "a.py").write_text("one = 7\n")
    (copy.tree / "src" / "b.py").unlink()
    (copy.tree / "src" / "new" / "deep").mkdir(parents=True)
    (copy.tree / "src" / "new" / "deep" / "c.py").write_text("new")
    frozen = copy.freeze()
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("a.py", "b.py"):
        (outside / name).write_text("kept")
    target = tmp_path / "laid"
    subprocess.run(["cp", "-a", str(start), str(target)], check=True)
    laying.remove_tree(target / "src")
    (target / "src").symlink_to(outside)
    missing = laying.apply(frozen.frozen.changes, frozen.contents, target)
    assert {line.split(":")[0] for line in missing} == {"src/a.py", "src/new/deep/c.py"}
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"a.py": "kept", "b.py": "kept"}


def test_planted_bytecode_is_listed_but_never_laid(copy: Copy, start: Path, tmp_path: Path) -> None:
    cache = copy.tree / "src" / "__pycache__"
    cache.mkdir()
    (cache / "a.cpython-311.pyc").write_bytes(b"planted")
    frozen = copy.freeze()
    assert kinds(frozen) == {"src/__pycache__/a.cpython-311.pyc": "added"}
    assert frozen.contents == {}
    target = tmp_path / "laid"
    subprocess.run(["cp", "-a", str(start), str(target)], check=True)
    laying.apply(frozen.frozen.changes, frozen.contents, target)
    assert not (target / "src" / "__pycache__").exists()


def test_a_hostile_git_configuration_starts_nothing(copy: Copy, tmp_path: Path) -> None:
    mark = tmp_path / "started"
    hook = copy.tree / ".git" / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    with (copy.tree / ".git" / "config").open("a") as stream:
        stream.write(f'[core]\n\tfsmonitor = {hook}\n[filter "x"]\n\tclean = {hook}\n\tsmudge = {hook}\n')
    (copy.tree / ".gitattributes").write_text("* filter=x\n")
    (copy.tree / "debug.log").write_text("x")
    copy.freeze()
    assert not mark.exists()


def test_a_folder_replaced_by_a_file_and_back(copy: Copy, start: Path, tmp_path: Path) -> None:
    subprocess.run(["rm", "-r", str(copy.tree / "src")], check=True)
    (copy.tree / "src").write_text("now a file")
    (copy.tree / "run.sh").unlink()
    (copy.tree / "run.sh").mkdir()
    (copy.tree / "run.sh" / "inner").write_text("x")
    (copy.tree / "empty").mkdir()
    frozen = copy.freeze()
    target = tmp_path / "laid"
    subprocess.run(["cp", "-a", str(start), str(target)], check=True)
    assert laying.apply(frozen.frozen.changes, frozen.contents, target) == []
    done = subprocess.run(["diff", "-r", "--no-dereference", "-x", ".git", str(copy.tree), str(target)], check=False)
    assert done.returncode == 0
    assert (target / "empty").is_dir()


NAMES = st.sampled_from(["a", "b", "dir/x", "dir/y", "dir/sub/z", "run.sh", "src/a.py", "src/b.py", "src"])
EDITS = st.lists(
    st.tuples(NAMES, st.sampled_from(["write", "delete", "link", "mkdir", "mode"]), st.binary(max_size=6)), max_size=12
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS)
def test_laying_the_frozen_changes_rebuilds_the_final_tree(
    start: Path, tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, str, bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("property")
    copy = Copy(start, folder)
    for name, kind, data in edits:
        path = copy.tree / name
        try:
            if kind == "write":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            elif kind == "delete":
                subprocess.run(["rm", "-rf", "--", str(path)], check=True)
            elif kind == "link":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(os.fsdecode(data.replace(b"\0", b"").replace(b"\xff", b"") or b"t"))
            elif kind == "mkdir":
                path.mkdir(parents=True)
            else:
                path.chmod(0o711)
        except (OSError, UnicodeError):
            continue
    frozen = copy.freeze()
    target = folder / "laid"
    subprocess.run(["cp", "-a", str(start), str(target)], check=True)
    assert laying.apply(frozen.frozen.changes, frozen.contents, target) == []
    left, right = (snapshot(tree, skip=frozenset({b".git"})) for tree in (copy.tree, target))
    described = [
        {path: (entry.kind, entry.mode, entry.size if entry.kind == "file" else 0) for path, entry in tree.items()}
        for tree in (left, right)
    ]
    assert described[0] == described[1]
