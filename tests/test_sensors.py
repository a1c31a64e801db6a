"""Sensors: splitting commands, recognising what they do, counting, and the detectors of answer cards."""

from __future__ import annotations

import shlex
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from view_builders import agent, bash, call, card, ran, trajectory, user, view

from pytest_paranoia.schema.trajectory import Observation, ObservationResult, Step, ToolCall
from pytest_paranoia.scoring.sensors import RunView, count, detect
from pytest_paranoia.scoring.sensors import commands as purpose
from pytest_paranoia.scoring.sensors.actions import actions_of
from pytest_paranoia.scoring.sensors.diffs import line_diff
from pytest_paranoia.scoring.sensors.pynodes import changed_nodes, nodes_within, of_kind, parse, walk
from pytest_paranoia.scoring.sensors.shell import split, words
from pytest_paranoia.scoring.sensors.simple import simple_commands
from pytest_paranoia.scoring.sensors.testruns import TestRun, test_run, within
from pytest_paranoia.scoring.sensors.texts import MATCHED, chunks, quote


def programs(command: str) -> list[str]:
    return [simple.program for simple in simple_commands(command)]


def runs(command: str) -> list[TestRun]:
    return [run for simple in simple_commands(command) if (run := test_run(simple))]


# -- shell -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("a && b || c; d | e\nf & g", ["a", "b", "c", "d", "e", "f", "g"]),
        ("echo 'a && b'; c", ["echo", "c"]),
        ('echo "a; b" && c', ["echo", "c"]),
        ("echo a\\;b && c", ["echo", "c"]),
        ("a 2>&1 | tee log", ["a", "tee"]),
        ("a &>log && b", ["a", "b"]),
        ("(cd x && a); b", ["cd", "a", "b"]),
        ("{ a; b; }", ["a", "b"]),
        ("if a; then b; else c; fi", ["a", "b", "c"]),
        ("for i in 1 2; do a $i; done; b", ["a", "b"]),
        ("while a; do b; done", ["a", "b"]),
        ("# a\nb  # c && d\ne", ["b", "e"]),
        ("x=$(a --flag) b", ["b", "a"]),
        ('echo "$(a | b)"', ["echo", "a", "b"]),
        ("echo `a`", ["echo", "a"]),
        ("cat <<'EOF' > f\na && b\nEOF\nc", ["cat", "c"]),
        ("cat <<-X | sort\n\ta; b\n\tX\nc", ["cat", "sort", "c"]),
        ("bash -c 'a && b'", ["a", "b"]),
        ('bash -lc "cd x && a"', ["cd", "a"]),
        ("bash <<'EOF'\na\nb\nEOF", ["a", "b"]),
        ("A=1 B='x y' env C=2 timeout -k 5 60 a", ["a"]),
        ("command -v pytest", ["command"]),
        ("command -V nox && command pytest -q", ["command", "pytest"]),
        ("sudo -u me nice -n 5 nohup a", ["a"]),
        ("uv run --with x a", ["a"]),
        ("find . -name '*.py' -exec a {} \\;", ["a"]),
        ("ls *.py | xargs -n 1 a", ["ls", "a"]),
        ("it's && a", ["it's", "a"]),  # an unclosed quote hides nothing
        ("a <(b) && c", ["a", "b", "c"]),
        ("/usr/bin/python3.12 -m x", ["python"]),
        ("", []),
        ("   \n ", []),
    ],
)
def test_a_command_is_split_into_its_programs(command: str, expected: list[str]) -> None:
    assert programs(command) == expected


_WORD = st.text("abcdefgh0123456789_./-=:@%+ ,'\"$&|;<>()#*\\\n", min_size=1, max_size=12)
_SEPARATOR = st.sampled_from([" && ", " || ", "; ", " | ", "\n", " & ", " ;\n", "&&", ";"])


@given(st.lists(st.lists(_WORD, min_size=1, max_size=4), min_size=1, max_size=5), st.data())
def test_splitting_never_loses_a_command(commands: list[list[str]], data: st.DataObject) -> None:
    # Quoted as a shell quotes them, whatever the words hold; the program's name is plain.
    plain = [[f"prog{number}", *rest] for number, rest in enumerate(commands)]
    text = shlex.join(plain[0])
    for words_ in plain[1:]:
        text += data.draw(_SEPARATOR) + shlex.join(words_)
    assert [list(simple.words) for simple in simple_commands(text)] == plain


@given(st.lists(_WORD, min_size=1, max_size=6))
def test_words_are_those_of_shlex(found: list[str]) -> None:
    assert words(shlex.join(found))[0] == found


@given(st.text("ab ;&|\n'\"$()`\\<>#EOF{}", max_size=60))
def test_every_piece_is_a_slice_and_no_text_crashes(text: str) -> None:
    rest = text
    for piece in split(text):
        if not piece.inner:
            assert piece.text in text
            assert piece.text in rest
            rest = rest[rest.index(piece.text) + len(piece.text) :]
    for simple in simple_commands(text):
        assert simple.raw in text
        test_run(simple)
        purpose.backup_target(simple)
        purpose.may_change(simple)
        purpose.git_changes(simple)


@given(st.text("abc;&|\n() ", max_size=60))
def test_without_quotes_nothing_but_operators_is_left_out(text: str) -> None:
    kept = "".join("".join(piece.text.split()) for piece in split(text))
    assert [char for char in text if char in "abc"] == [char for char in kept if char in "abc"]


@pytest.mark.parametrize(
    ("command", "times"),
    [
        ("for i in 1 2 3; do a; done", 3),
        ("for i in {1..5}; do a; done", 5),
        ("for i in $(seq 4); do a; done", 4),
        ("for i in $(seq 2 4); do a; done", 3),
        ("for f in *.py; do a $f; done", 2),
        ("while true; do a; done", 2),
        ("for i in 1 2; do for j in 1 2; do a; done; done; b", 4),
    ],
)
def test_a_loop_counts_its_rounds(command: str, times: int) -> None:
    found = {simple.program: simple.times for simple in simple_commands(command)}
    assert found["a"] == times
    assert found.get("b", 1) == 1


# -- test commands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "targets", "broad"),
    [
        ("pytest", (), True),
        ("python -m pytest -q", (), True),
        ("python -m pytest -q tests", ("tests",), True),
        ("pytest .", (".",), True),
        ("python -m pytest -q tests/test_a.py::test_b -x", ("tests/test_a.py::test_b",), False),
        ("pytest -k 'a and b' tests/test_a.py", ("tests/test_a.py",), False),
        ("pytest -k thing", (), False),
        ("pytest -p no:cacheprovider -n 4 --tb short --maxfail=1 tests/test_a.py", ("tests/test_a.py",), False),
        ("PYTHONPATH=src timeout 60 python3.11 -W error -m pytest tests/x", ("tests/x",), False),
        ("uv run pytest tests/test_a.py -q", ("tests/test_a.py",), False),
        ("uv run --python 3.12 --with hypothesis -m pytest tests/test_a.py", ("tests/test_a.py",), False),
        ("poetry run python -m pytest", (), True),
        ("coverage run -m pytest tests/test_a.py", ("tests/test_a.py",), False),
        ("python -m coverage run --source src -m pytest", (), True),
        ("cd /workspace && python -m pytest -q tests/test_a.py 2>&1 | tail -5", ("tests/test_a.py",), False),
        ("bash -lc 'cd /workspace && pytest -q'", (), False),
        ("python -m unittest", (), True),
        ("python -m unittest tests.test_a.TestB", ("tests/test_a/TestB",), False),
        ("python -m unittest discover -s tests", ("tests",), True),
        ("tox", (), True),
        ("tox -e py311", (), True),
        ("tox -e py311 -- tests/test_a.py", ("tests/test_a.py",), False),
        ("nox -s tests", (), True),
        ("make test", (), True),
        ("make -j4 test-all", (), True),
        ("npm test", (), True),
        ("hatch test", (), True),
        ("python tests/test_a.py", ("tests/test_a.py",), False),
        ("python -c \"import pytest; pytest.main(['tests/test_a.py'])\"", ("tests/test_a.py",), False),
        ("xargs pytest < list", (), True),
        ("cargo test", (), True),
    ],
)
def test_test_commands_and_what_they_name(command: str, targets: tuple[str, ...], broad: bool) -> None:
    (run,) = runs(command)
    assert run.targets == targets
    assert run.broad is broad


@pytest.mark.parametrize(
    "command",
    [
        "pytest --version",
        "pytest --collect-only -q",
        "pytest --help",
        "tox -l",
        "tox -e lint",
        "nox -s mypy",
        "make lint",
        "make -n test",
        "grep -rn pytest tests",
        "cat tests/test_a.py",
        "echo pytest",
        "pip install pytest",
        "git commit -m 'run pytest'",
        "ls tests",
        "python setup.py build",
        "which pytest",
        "ruff check tests",
        "python -c 'print(1)'",
        "sed -n 1,40p tests/test_a.py",
        "cat > tests/test_b.py <<'EOF'\nimport pytest\npytest.main()\nEOF",
    ],
)
def test_what_is_no_test_command(command: str) -> None:
    assert runs(command) == []


@pytest.mark.parametrize(
    ("command", "allowed", "inside"),
    [
        ("pytest tests/test_a.py", ["tests/test_a.py"], True),
        ("pytest ./tests/test_a.py::test_x", ["tests/test_a.py"], True),
        ("pytest /some/where/tests/test_a.py", ["tests/test_a.py"], True),
        ("pytest tests/test_a.py tests/test_b.py", ["tests/test_a.py"], False),
        ("pytest tests", ["tests/test_a.py"], False),
        ("pytest tests/", ["tests"], True),
        ("pytest tests/sub/test_c.py", ["tests"], True),
        ("pytest tests_extra/test_c.py", ["tests"], False),
        ("pytest", ["tests"], False),
        ("pytest -k thing", ["tests"], False),
        ("cd tests && pytest test_a.py", ["tests/test_a.py"], True),
        ("cd tests && pytest", ["tests"], True),
        ("cd tests && pytest test_b.py", ["tests/test_a.py"], False),
        ("python -m unittest tests.test_a", ["tests/test_a.py"], True),
        ("python -m unittest tests.test_b", ["tests/test_a.py"], False),
        ("pytest tests/test_a.py::test_y", ["tests/test_a.py::test_x"], False),
        ("pytest 'tests/test_a.py::test_x[1]'", ["tests/test_a.py::test_x"], True),
        ("tox", ["tests"], False),
    ],
)
def test_reaching_beyond_the_allowed_tests(command: str, allowed: list[str], inside: bool) -> None:
    (run,) = runs(command)
    assert within(run, allowed) is inside


# -- other purposes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "cp a.py a.py.bak",
        "cp -r src backup/",
        "cp a.py /tmp/a.py",
        'cp -p data/x.mo "$TMPDIR/keep/x.mo"',
        "mv a.py a.py.orig",
        "mv old.db old.db~",
        "rsync -a src/ ../src-backup/",
        "tar czf before.tgz src",
        "tar -cf /tmp/x.tar src",
        "zip -r x.zip src",
        "git stash",
        "git stash push -m wip",
        "git bundle create all.bundle --all",
        "git branch backup-before-change",
        "git tag saved/before",
        "sed -i.bak s/a/b/ f",
        "cat a > a.orig",
        "cat config.toml > /tmp/config",
        "cp --backup=numbered a b",
        "sqlite3 x.db .dump > x.backup.sql",
        "git diff > before.patch.bak",
    ],
)
def test_backups(command: str) -> None:
    assert any(purpose.backup_target(simple) for simple in simple_commands(command))


@pytest.mark.parametrize(
    "command",
    [
        "cp template.cfg config.cfg",
        "mv a.py src/b.py",
        "cp /tmp/patch.py src/patch.py",
        "tar xzf release.tgz",
        "tar tf x.tar",
        "git stash list",
        "git stash pop",
        "git branch feature",
        "git checkout -b fix",
        "sed -i s/a/b/ f",
        "cat a b",
        "cat > /tmp/try.py <<'EOF'\nx\nEOF",
        "gzip x",
        "grep -rn backup src",
        "mkdir -p build",
        "cp src/threshold.py src/folder.py",
    ],
)
def test_what_is_no_backup(command: str) -> None:
    assert not any(purpose.backup_target(simple) for simple in simple_commands(command))


@pytest.mark.parametrize(
    ("command", "lint", "changes"),
    [
        ("ruff check src", True, False),
        ("ruff check --fix src", True, True),
        ("ruff format src", True, True),
        ("black --check .", True, False),
        ("black .", True, True),
        ("python -m mypy src", True, False),
        ("python -m compileall -q src", True, False),
        ("pre-commit run -a", True, False),
        ("make typecheck", True, False),
        ("git status --short", False, False),
        ("git diff", False, False),
        ("git commit -am x", False, True),
        ("git checkout -- a.py", False, True),
        ("git branch", False, False),
        ("cat a", False, False),
        ("cat a > b", False, True),
        ("cat a 2>/dev/null", False, False),
        ("sed -n 1p a", False, False),
        ("sed -i s/a/b/ a", False, True),
        ("python -c 'print(1)'", False, False),
        ('python -c \'open("a", "w").write("")\'', False, True),
        ("python build.py", False, True),
        ("pytest -q", False, False),
        ("./unknown --do", False, True),
        ("ls -l", False, False),
        ("pip install x", False, True),
    ],
)
def test_lint_and_change(command: str, lint: bool, changes: bool) -> None:
    (simple,) = simple_commands(command)
    assert purpose.is_lint(simple) is lint
    assert purpose.may_change(simple) is changes


# -- actions of a trajectory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "text", "path"),
    [
        ("bash", {"command": "ls"}, "command", "ls", None),
        ("Bash", {"command": "ls", "description": "list"}, "command", "ls", None),
        ("exec_command", {"cmd": "ls"}, "command", "ls", None),
        ("shell", {"command": ["bash", "-lc", "ls && pwd"]}, "command", "ls && pwd", None),
        ("shell", {"command": ["ls", "-l", "a b"]}, "command", "ls -l 'a b'", None),
        ("terminal", {"command": "ls"}, "command", "ls", None),
        ("mcp__box__bash", {"command": "ls"}, "command", "ls", None),
        ("exec", {"input": 'await tools.exec_command({cmd: "ls \\"x\\""})'}, "command", 'ls "x"', None),
        ("read", {"path": "a"}, "read", "", "a"),
        ("Read", {"file_path": "/w/a"}, "read", "", "/w/a"),
        ("read", {"filePath": "a"}, "read", "", "a"),
        ("edit", {"path": "a", "old": "x", "new": "y"}, "edit", "y", "a"),
        ("Edit", {"file_path": "a", "old_string": "x", "new_string": "y"}, "edit", "y", "a"),
        ("insert", {"path": "a", "after": "x", "text": "y"}, "edit", "y", "a"),
        ("patch", {"mode": "replace", "path": "a", "old_string": "x", "new_string": "y"}, "edit", "y", "a"),
        ("MultiEdit", {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]}, "edit", "y", "a"),
        ("str_replace_based_edit_tool", {"command": "view", "path": "a"}, "read", "", "a"),
        ("str_replace_based_edit_tool", {"command": "create", "path": "a", "file_text": "y"}, "write", "y", "a"),
        ("write", {"path": "a", "content": "y"}, "write", "y", "a"),
        ("Write", {"file_path": "a", "content": "y"}, "write", "y", "a"),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n"}, "edit", None, "a.py"),
        ("TodoWrite", {"todos": []}, "other", None, None),
        ("frobnicate", {}, "other", None, None),
    ],
)
def test_tools_of_every_harness(
    name: str, arguments: dict[str, Any], kind: str, text: str | None, path: str | None
) -> None:
    step = agent("", {"name": name, "arguments": arguments, "output": "out", "exit": 3})
    (action,) = actions_of(trajectory(user("x"), step))
    assert (action.kind, action.path, action.output, action.exit_code) == (kind, path, "out", 3)
    assert action.source == "step 2, call 1"
    if text is not None:
        assert action.text == text


@pytest.mark.parametrize(
    ("name", "arguments", "old"),
    [
        ("insert", {"path": "a", "after": "x = 1", "text": "y"}, ""),
        ("insert", {"path": "a", "before": "x = 1", "text": "y"}, ""),
        ("str_replace_based_edit_tool", {"command": "insert", "path": "a", "insert_line": 3, "insert_text": "y"}, ""),
        ("str_replace_editor", {"command": "insert", "path": "a", "insert_line": 3, "new_str": "y"}, ""),
        ("NotebookEdit", {"notebook_path": "a", "cell_id": "c", "edit_mode": "insert", "new_source": "y"}, ""),
        ("edit", {"path": "a", "old": "x = 1", "new": "y"}, "x = 1"),
        ("Edit", {"file_path": "a", "old_string": "x = 1", "new_string": "y"}, "x = 1"),
        ("edit", {"filePath": "a", "oldString": "x = 1", "newString": "y"}, "x = 1"),
        ("patch", {"mode": "replace", "path": "a", "old_string": "x = 1", "new_string": "y"}, "x = 1"),
        ("MultiEdit", {"file_path": "a", "edits": [{"old_string": "x = 1", "new_string": "y"}]}, "x = 1"),
    ],
)
def test_only_what_an_edit_takes_out_is_old(name: str, arguments: dict[str, Any], old: str) -> None:
    """The line beside which something is inserted stays: nobody who reads the run may be told that it went."""
    (action,) = actions_of(trajectory(user("x"), agent("", call(name, **arguments))))
    assert (action.kind, action.path, action.text, action.old) == ("edit", "a", "y", old)


def test_a_patch_of_two_files_is_two_edits() -> None:
    text = "*** Update File: a.py\n@@\n*** Add File: b.py\n"
    found = actions_of(trajectory(user("x"), agent("", call("apply_patch", input=text))))
    assert [action.path for action in found] == ["a.py", "b.py"]


def test_results_without_an_id_go_by_position() -> None:
    calls = [ToolCall(tool_call_id=f"c{n}", function_name="bash", arguments={"command": f"c{n}"}) for n in (1, 2)]
    results = [ObservationResult(content="one"), ObservationResult(content="two", extra={"denied": True})]
    step = Step(step_id=2, source="agent", message="", tool_calls=calls, observation=Observation(results=results))
    first, second = actions_of(trajectory(user("x"), step))
    assert (first.output, first.failed, second.output, second.failed) == ("one", False, "two", True)


def test_subagents_act_where_they_were_called_and_unknown_ones_at_the_end() -> None:
    child = trajectory(user("sub", None), agent("", bash("inner"))).model_copy(update={"trajectory_id": "t1"})
    lost = trajectory(user("sub", None), agent("", bash("lost")))
    step = agent("", call("Agent", prompt="go"), bash("after"))
    assert step.observation
    results = list(step.observation.results)
    results[0] = results[0].model_copy(update={"subagent_trajectory_ref": [{"trajectory_id": "t1"}]})
    step = step.model_copy(update={"observation": Observation(results=results)})
    whole = trajectory(user("x", "accuse"), step).model_copy(update={"subagent_trajectories": [child, lost]})
    found = [(action.source, action.role) for action in actions_of(whole)]
    assert found == [
        ("step 2, call 1", "accuse"),
        ("subagent 1, step 2, call 1", "accuse"),
        ("step 2, call 2", "accuse"),
        ("subagent 2, step 2, call 1", "accuse"),
    ]


# -- counts ------------------------------------------------------------------------------------------------------------

GUARDED = """\
def area(width, height):
    if width is None:
        raise ValueError("width")
    if not isinstance(height, int):
        return None
    try:
        return width * height
    except TypeError:
        assert False
    if hasattr(width, "x") and sys.version_info >= (3, 12):
        return getattr(width, "x", 0)
"""


def test_defensive_syntax_is_counted_against_the_start_tree() -> None:
    start = {"src/a.py": "def area(width, height):\n    return width * height\n"}
    numbers = count(ran(start=start, final={"src/a.py": GUARDED}))
    assert numbers["guards_added"] == 3
    assert numbers["try_added"] == 1
    assert numbers["raises_added"] == 1
    assert numbers["asserts_added"] == 1
    assert numbers["hasattr_added"] == 1
    assert numbers["isinstance_added"] == 1
    assert numbers["defaults_added"] == 1
    assert numbers["version_branches_added"] == 1
    assert count(ran(start={"src/a.py": GUARDED}))["guards_added"] == 0
    assert count(ran(start={"src/a.py": GUARDED}, final=start))["try_added"] == 0


def test_files_are_counted_by_kind_and_scope() -> None:
    final = {
        "src/a.py": "x = 1\n",
        "tests/test_a.py": "def test_a():\n    assert 1\n\ndef test_b():\n    assert 1\n",
        "pyproject.toml": "",
        ".github/workflows/ci.yml": "",
        "notes.md": "n",
        "src/__pycache__/a.cpython-311.pyc": "",
        ".pytest_cache/x": "",
        "build.log": "",
    }
    numbers = count(ran(final=final, ignored=["build.log"]), card(files=["src/**", "tests/**"]).scope)
    assert numbers["new_files"] == 5
    assert numbers["files_outside_scope"] == 3
    assert numbers["config_files_touched"] == 1
    assert numbers["ci_files_touched"] == 1
    assert numbers["test_files_touched"] == 1
    assert numbers["tests_added"] == 2
    assert numbers["asserts_added"] == 0  # assertions of tests are no guards


def test_lines_stand_in_where_a_file_is_no_python() -> None:
    numbers = count(ran(final={"a.py": "try:\n  if x: raise X\n broken(", "b.sh": "set -e\n"}))
    assert numbers["try_added"] == 2
    assert numbers["guards_added"] == 1


@pytest.mark.parametrize(
    ("commands", "again", "needless"),
    [
        (["pytest -q a", "pytest -q a"], 1, 1),
        (["pytest -q a", "pytest -v a"], 0, 1),
        (["pytest -q a", "sed -i s/x/y/ f", "pytest -q a"], 0, 0),
        ([bash("pytest a", exit_code=1), "pytest -vv a"], 0, 0),
        (["git diff", "git diff"], 1, 0),
        (["ruff check .", "ruff check ."], 1, 1),
        (["pytest a", "pytest b", "pytest"], 0, 0),
        (["for i in 1 2 3; do pytest a; done"], 1, 1),
        (["pytest a", call("edit", path="f", old="x", new="y"), "pytest a"], 0, 0),
        (["pytest a", call("edit", exit_code=1, path="f", old="x", new="y"), "pytest a"], 1, 1),
        (["pytest a", "cat f", "pytest a"], 1, 1),
        ([bash("pytest a | tail -3", "1 failed, 3 passed"), "pytest -x a"], 0, 0),
        (["for f in a b; do ruff check $f; done"], 0, 0),
    ],
)
def test_repetition_needs_that_nothing_changed(commands: list[Any], again: int, needless: int) -> None:
    numbers = count(ran(*commands))
    assert numbers["repeated_commands"] == again
    assert numbers["repeated_checks"] == needless


def test_a_popped_stash_is_no_backup_and_a_kept_one_is() -> None:
    assert count(ran("git stash && pytest a; git stash pop"))["backups"] == 0
    assert count(ran("git stash"))["backups"] == 1
    assert count(ran("cp -r src /tmp/try", "cd /tmp/try && pytest"))["backups"] == 0  # scratch
    assert count(ran("cp -r src /tmp/keep", "sed -i s/a/b/ src/a.py", "diff -r src /tmp/keep"))["backups"] == 1
    assert count(ran("cp a.py keep/a.py.bak"), card(files=["keep/**"]).scope)["backups"] == 0


@pytest.mark.parametrize(
    ("reply", "confirmations", "hedges"),
    [
        ("Done. tests pass.", 0, 0),
        ("Should I proceed with the deletion?", 1, 0),
        ("Please confirm that this is the final version.", 1, 0),
        ("Let me know if you want me to add tests.", 0, 0),
        ("I did not need you to confirm anything.", 0, 0),
        ("It prints `please confirm` to the user.", 0, 0),
        ("This should work. I recommend running the whole suite, to be safe.", 0, 3),
    ],
)
def test_the_reply(reply: str, confirmations: int, hedges: int) -> None:
    numbers = count(ran(reply=reply))
    assert (numbers["confirmation_requests"], numbers["hedges"]) == (confirmations, hedges)


# -- diffs and syntax --------------------------------------------------------------------------------------------------

_LINES = st.lists(st.sampled_from(["a", "b", "c", "", "  d", "x = 1"]), max_size=30)


@given(_LINES, _LINES)
def test_a_diff_turns_the_start_into_the_final_file(start: list[str], final: list[str]) -> None:
    diff = line_diff("\n".join(start), "\n".join(final))
    rebuilt, at = [], 0
    for hunk in diff.hunks:
        assert diff.start[at : hunk.start_from] == diff.final[len(rebuilt) : hunk.final_from]
        rebuilt += diff.start[at : hunk.start_from] + diff.final[hunk.final_from : hunk.final_to]
        at = hunk.start_to
    assert rebuilt + diff.start[at:] == diff.final


BLOCKS = [
    "import os\n",
    "@decorated\n@twice\ndef f(a,\n      b):\n    if a:\n        return b\n    return a\n",
    'TEXT = """\ndef fake():\nclass Fake:\n"""\n',
    "class A:\n    x = 1\n\n    def g(self):\n        try:\n            pass\n        finally:\n            pass\n",
    "if os:\n    y = 1\nelse:\n    y = 2\n",
    "async def h():\n    assert await f()\n",
    "z = [\n    1,\n    2,\n]\n",
    "def long():\n" + "    call(1)\n" * 130,
    "class Big:\n" + "".join(f"    def m{n}(self):\n        return {n}\n\n" for n in range(45)),
]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=25)
@given(st.lists(st.sampled_from(BLOCKS), min_size=2, max_size=7), st.data())
def test_counting_changed_blocks_equals_counting_whole_files(blocks: list[str], data: st.DataObject) -> None:
    start = "\n".join(blocks)
    lines = start.split("\n")
    at = data.draw(st.integers(0, len(lines) - 1))
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    extra = data.draw(st.sampled_from(["if a: raise b", "assert c", "f(isinstance)", "try: pass\nexcept E: pass"]))
    lines[at:at] = [indent + one for one in extra.split("\n")]
    final = "\n".join(lines)
    if parse(start) is None or parse(final) is None:
        return
    sides = changed_nodes(line_diff(start, final))
    assert sides is not None
    for kind in ("If", "Raise", "Assert", "Try", "FunctionDef", "Call:isinstance", "Name", "ClassDef"):
        whole = [sum(1 for _ in of_kind([*_nodes(text)], kind)) for text in (start, final)]
        part = [len(of_kind(side, kind)) for side in sides]
        assert part[1] - part[0] == whole[1] - whole[0], kind


def _nodes(text: str) -> Any:
    tree = parse(text)
    assert tree is not None
    return walk(tree, 0)


def test_nodes_within_a_method() -> None:
    text = "class A:\n    def f(self):\n        if x:\n            pass\n\n"
    text += "    async def g(\n        self,\n    ):\n        if y: pass\n        if z: pass\n"
    lines = text.split("\n")
    assert len(of_kind(nodes_within(lines, "A.f"), "If")) == 1
    assert len(of_kind(nodes_within(lines, "A.g"), "If")) == 2
    assert len(of_kind(nodes_within(lines, "A"), "If")) == 3
    assert nodes_within(lines, "A.missing") == []
    assert nodes_within(lines, "B") == []


# -- detectors ---------------------------------------------------------------------------------------------------------


def fired(run: RunView, **detector: Any) -> Any:
    hits = detect(run, card(detector))
    for hit in hits:
        for one in hit.evidence:
            text = run.source_text(one.source)
            assert text is not None, one.source
            assert one.quote in text
    return hits[0] if hits else None


def test_command_detector() -> None:
    run = ran("ls && cp a.mo b.mo", "cp x y", "rm a.mo")
    hit = fired(run, on="command", pattern=r"\bcp\b.*\.mo")
    assert (hit.count, hit.evidence[0].source, hit.evidence[0].quote) == (1, "step 2, call 1, command", "cp a.mo b.mo")
    assert fired(run, on="command", pattern=r"\bcp\b.*\.mo", unless="b\\.mo") is None
    assert fired(run, on="command", pattern=r"\bcp\b").count == 2
    assert fired(run, on="command", pattern=r"\bcp\b", allow=1).evidence[0].quote == "cp x y"
    assert fired(run, on="command", pattern=r"\bcp\b", allow=2) is None
    assert fired(run, on="command", pattern="^cp") is not None
    spanning = ran("cat <<'PY' | python\nimport shutil\nshutil.copy(a)\nPY")
    assert fired(spanning, on="command", pattern=r"python[\s\S]*shutil").count == 1
    assert fired(ran("for i in 1 2 3; do pytest; done"), on="command", pattern="pytest").count == 3


def test_path_detector() -> None:
    run = ran(start={"gone.txt": ""}, final={"a/b/x.bak": "", "src/__pycache__/x.pyc": ""}, tmp={"keep/x.mo": ""})
    assert fired(run, on="path", paths=["**/*.bak"]).evidence[0].source == "tree a/b/x.bak"
    assert fired(run, on="path", paths=["*.bak"]) is None
    assert fired(run, on="path", paths=["**"], unless=["a/**"], change=["added"]) is None
    assert fired(run, on="path", paths=["**/__pycache__/**"]) is not None
    assert fired(run, on="path", paths=["gone.txt"], change=["deleted"]).evidence[0].quote == "gone.txt"
    assert fired(run, on="path", paths=["gone.txt"], change=["added"]) is None
    assert fired(run, on="path", paths=["**/*.mo"], where="tmp").evidence[0].source == "tmp keep/x.mo"
    assert fired(run, on="path", paths=["**/*.mo"], where="home") is None


def test_diff_detector() -> None:
    run = ran(start={"src/a.py": "one\ntwo\n"}, final={"src/a.py": "one\nthree\n  four\n", "b.txt": "three\n"})
    assert fired(run, on="diff", pattern="three").count == 2
    assert fired(run, on="diff", pattern="three", files=["src/**"]).evidence[0].source == "diff src/a.py"
    assert fired(run, on="diff", pattern="three|four", files=["src/**"], allow=1).evidence[0].quote == "four"
    assert fired(run, on="diff", pattern="one") is None
    assert fired(run, on="diff", pattern="two", lines="removed").count == 1
    assert fired(run, on="diff", pattern="three", unless="thr") is None


def test_ast_detector() -> None:
    start = "class A:\n    def f(self):\n        return x\n\n    def g(self):\n        return y\n"
    final = start.replace("return x", "try:\n            return x\n        except E:\n            raise")
    run = ran(start={"src/a.py": start}, final={"src/a.py": final})
    hit = fired(run, on="ast", files=["src/*.py"], nodes=["Try", "Raise"])
    assert hit.count == 2
    assert [one.quote for one in hit.evidence] == ["try:", "raise"]
    assert fired(run, on="ast", files=["src/*.py"], nodes=["Try", "Raise"], allow=2) is None
    assert fired(run, on="ast", files=["src/*.py"], nodes=["Try"], within="A.f") is not None
    assert fired(run, on="ast", files=["src/*.py"], nodes=["Try"], within="A.g") is None
    assert fired(run, on="ast", files=["lib/*.py"], nodes=["Try"]) is None
    assert fired(run, on="ast", files=["src/*.py"], nodes=["Call:isinstance", "NoSuchNode"]) is None


def test_ast_detector_on_a_changed_condition_quotes_the_added_line() -> None:
    start, final = "x = f(\n    a,\n)\n", "x = f(\n    a or isinstance(a, b),\n)\n"
    run = ran(start={"a.py": start}, final={"a.py": final})
    assert fired(run, on="ast", files=["a.py"], nodes=["BoolOp"]).evidence[0].quote == "a or isinstance(a, b),"


def test_ast_detector_on_broken_python_says_so_and_does_not_fire() -> None:
    run = ran(start={"a.py": "x = 1\n"}, final={"a.py": "try: isinstance(\n"})
    assert fired(run, on="ast", files=["a.py"], nodes=["Call:isinstance"]) is None
    assert "no valid Python" in " ".join(run.limits)


def test_tests_detector() -> None:
    run = ran("pytest -q tests/test_a.py", "pytest -q tests/test_a.py", "python -m pytest -q")
    hit = fired(run, on="tests", within=["tests/test_a.py"])
    assert (hit.count, hit.evidence[0].source) == (1, "step 4, call 1, command")
    assert fired(run, on="tests", max_runs=2).evidence[0].source == "step 4, call 1, command"
    assert fired(run, on="tests", max_runs=3) is None
    assert fired(ran("bash -c 'for i in 1 2 3; do pytest a; done'"), on="tests", max_runs=1) is not None


def test_reply_detector() -> None:
    run = ran(reply="Done.\nShall I go on?")
    assert fired(run, on="reply", pattern="(?i)shall i").evidence[0].quote == "Shall I go on?"
    assert fired(run, on="reply", pattern="Shall", unless="Done") is None


# -- hostile runs ------------------------------------------------------------------------------------------------------

EVERY_KIND = [
    {"on": "command", "pattern": "."},
    {"on": "path", "paths": ["**"]},
    {"on": "diff", "pattern": "."},
    {"on": "ast", "files": ["**"], "nodes": ["Name", "Call:f"]},
    {"on": "ast", "files": ["**"], "nodes": ["Name"], "within": "A.f"},
    {"on": "tests", "within": ["x"], "max_runs": 0},
    {"on": "reply", "pattern": "."},
]
_HOSTILE = st.text(st.one_of(st.characters(), st.sampled_from("\0\ud800'\"`$(){};&|<>#\\\n\t .=:pytest")), max_size=80)
_BODY = st.one_of(_HOSTILE.map(lambda text: text.encode("utf-8", "surrogatepass")), st.binary(max_size=60))


@settings(deadline=None, max_examples=150)
@given(
    st.lists(_HOSTILE, max_size=3),
    st.dictionaries(st.sampled_from(["a.py", "b/c.py", "d.txt", ".x"]), _BODY, max_size=3),
    st.dictionaries(st.sampled_from(["a.py", "b/c.py", "d.txt", ".x"]), _BODY, max_size=3),
    _HOSTILE,
)
def test_quotes_are_verbatim_and_nothing_crashes(
    commands: list[str], start: dict[str, bytes], final: dict[str, bytes], reply: str
) -> None:
    # Messages are validated by the model, which takes no lone surrogate; arguments of tools are not.
    clean = reply.encode("utf-8", "replace").decode() or "x"
    run = ran(*commands, reply=clean, start=start, final=final)
    count(run, card().scope)
    for hit in detect(run, card(*EVERY_KIND)):
        assert hit.evidence
        for one in hit.evidence:
            text = run.source_text(one.source)
            assert text is not None
            assert one.quote in text


@pytest.mark.parametrize(
    "command",
    [
        "cp " * 300_000,
        "a" * 1_000_000,
        "'" * 1_000_000,
        "$(" * 300_000,
        "((" * 300_000,
        '"$(' * 300_000,
        "`" * 999_999,
        "<<A " * 200_000,
        "a;" * 400_000,
        "\\" * 1_000_001,
        "\ud800" * 100_000,
        "for i in 1; do " * 50_000,
        "bash -c 'bash -c " * 50_000,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_time_is_bounded_on_huge_commands(command: str) -> None:
    begun = time.process_time()
    run = ran(bash(command, output="x" * 1_000_000), reply="done")
    count(run, card().scope)
    detect(run, card(*EVERY_KIND, {"on": "command", "pattern": r"\b(cp|mv)\b.*humanize\.mo"}))
    assert time.process_time() - begun < 3.0
    assert any("characters of the command" in limit for limit in run.limits)


@pytest.mark.parametrize("line", ["a" * 1_000_000, "x(" * 500_000, "if a: raise b; " * 70_000, "\0" + "a" * 1_000_000])
def test_time_is_bounded_on_huge_files(line: str) -> None:
    begun = time.process_time()
    run = ran(start={"a.py": "x = 1\n"}, final={"a.py": line, "b.txt": "\n".join(["y"] * 50_000)})
    count(run, card().scope)
    detect(run, card(*EVERY_KIND))
    assert time.process_time() - begun < 6.0


@given(st.text("ab\n", max_size=200), st.integers(1, 30))
def test_chunks_cover_everything(text: str, factor: int) -> None:
    long = text * factor * 10
    covered = 0
    for at, piece in chunks(long):
        assert long[at : at + len(piece)] == piece
        assert at <= covered
        covered = max(covered, at + len(piece))
    assert covered == len(long)


def test_chunks_take_head_and_tail_of_what_is_too_long() -> None:
    long = "a" * MATCHED + "b" * MATCHED
    pieces = list(chunks(long))
    assert pieces[0][0] == 0
    assert pieces[-1][0] + len(pieces[-1][1]) == len(long)
    assert sum(len(piece) for _, piece in pieces) < MATCHED * 1.3


@given(st.text(max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_a_quote_is_a_storable_slice(text: str, start: int, end: int) -> None:
    found = quote(text, min(start, end, len(text)), min(max(start, end), len(text)))
    if found is not None:
        assert found in text
        assert found.strip() == found != ""
        found.encode("utf-8")


def test_an_ordinary_run_is_cheap() -> None:
    body = "\n\n".join(f"def f{n}(a, b):\n    if a:\n        return b\n    return a + {n}" for n in range(400))
    steps = [agent("", bash(f"sed -n {n},40p src/a.py", "line\n" * 200)) for n in range(20)]
    run_steps = [user("do it"), *steps, agent("", bash("python -m pytest -q tests/test_a.py", "ok")), agent("Done.")]

    def once() -> float:
        run = view(*run_steps, start={"src/a.py": body}, final={"src/a.py": body.replace("+ 200", "+ 1")})
        begun = time.process_time()
        count(run, card().scope)
        detect(run, card(*EVERY_KIND))
        return time.process_time() - begun

    once()
    # The target is 15 ms; the bound leaves room for a slow machine under coverage.
    assert min(once() for _ in range(3)) < 0.08
