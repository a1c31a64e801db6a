"""The kit of oracles and replays in normal use, through real sandboxes."""

from __future__ import annotations

import pytest
from attacks import Played, actions, finish, trial_of, with_pytest
from small_items import EDIT, ItemFolder

from pytest_paranoia.schema.record import ReplayResult
from requirements import require


@pytest.fixture(autouse=True)
def _sandbox() -> None:
    require("bubblewrap")


CHANGES = """
printf 'old\\n' > kept.txt
rm gone.txt
chmod 755 run.sh
mkdir -p new/deep
printf 'caf\\303\\251\\n' > new/deep/file.txt
printf 'x' > "$(printf 'odd\\nname \\351')"
printf 'x' > debug.log
ln -s kept.txt link
rm README.md; mkdir README.md empty; rm -r folder; echo x > folder
"""

FILES = {
    "kept.txt": "kept\n",
    "gone.txt": "gone\n",
    "run.sh": "#!/bin/sh\n",
    ".gitignore": "*.log\n",
    "folder/a": "a\n",
}


HEAD = """
import math
from pytest_paranoia.scoring.kit import ProbeFailed, Workspace


def failing(ask):
    try:
        value = ask()
    except ProbeFailed as error:
        return str(error)
    raise TypeError(f"no failure but {value!r}")


"""


def checked(items: ItemFolder, body: str, run: str = "minimal", seconds: float = 60.0) -> Played:
    """Play a run of the pair and ask an oracle whose check has this *body*."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    items.pair(oracle=f"{HEAD}def check(ws: Workspace) -> None:\n{lines}\n", runs={"changes": actions(CHANGES)})
    with trial_of(items, "tiny/greet", run, seconds) as trial:
        return finish(trial)


def passes(items: ItemFolder, body: str, run: str = "minimal") -> Played:
    played = checked(items, body, run)
    assert (played.outcome, played.message) == ("passed", ""), played.trial.log[-3:]
    return played


def test_files_and_what_the_agent_did(items: ItemFolder) -> None:
    items.repository(files=FILES)
    passes(
        items,
        r"""
odd = "odd\nname \udce9"
assert ws.changes == {
    "kept.txt": "modified", "gone.txt": "deleted", "run.sh": "mode", "new/deep/file.txt": "added",
    odd: "added", "link": "added", "README.md": "modified", "folder": "modified", "folder/a": "deleted",
}, ws.changes
assert [ws.exists(name) for name in ("kept.txt", "gone.txt", "new", "new/deep", odd, "debug.log", "link")] == [
    True, False, True, True, True, True, True]
assert not any(ws.exists(name) for name in ("none", "kept.txt/x", "../escape", "link/x"))
assert ws.read("kept.txt") == "old\n" and ws.base("kept.txt") == "kept\n"
assert ws.read("new/deep/file.txt") == "café\n" and ws.base("new/deep/file.txt") is None
assert ws.read(odd) == "x"
assert ws.base("gone.txt") == "gone\n"
for name in ("gone.txt", "none", "link", "new", "README.md", "folder/a", "/etc/passwd", "../../etc/passwd", ""):
    assert name in failing(lambda: ws.read(name)), name
assert ws.files("**/*.txt") == ["kept.txt", "new/deep/file.txt"]
assert ws.files("*") == sorted([".gitignore", "debug.log", "folder", "kept.txt", "link", odd, "run.sh"])
assert "src/tiny/__init__.py" in ws.files()
(command,) = ws.commands
assert command.text.startswith("set -e"), command
assert (command.output, command.exit) == ("", 0)
assert ws.reply == "Done."
""",
        "changes",
    )


def test_what_commands_print(items: ItemFolder) -> None:
    """State edited by hand may have any shape: what does not have the one that is asked for is left out."""
    passes(
        items,
        r"""
def printing(text):
    return ["printf", "%s", text]
assert ws.printed(printing('{"a": [1, "x"]}')) == {"a": [1, "x"]}
assert ws.printed(printing("[" * 100_000)) is None
for argv in (printing("no JSON"), printing(""), ["sh", "-c", "echo 1; exit 1"], ["no-such-program"]):
    assert ws.printed(argv) is None, argv
rows = '[{"id": "a", "n": 1}, {"id": 2}, {"id": "b", "n": "1"}, {"id": "c", "more": []}, "d", null]'
found = [{"id": "a", "n": 1}, {"id": "c", "more": [], "n": None}]
assert ws.rows(printing(rows), {"id": str, "n": int | None}) == found, ws.rows(printing(rows), {"id": str, "n": int})
assert ws.rows(printing(rows), {"id": str, "n": int}) == found[:1]
for text in ('{"id": "a"}', "null", "1", "no JSON"):
    assert ws.rows(printing(text), {}) == [], text
""",
    )


def test_snippets(items: ItemFolder) -> None:
    passes(
        items,
        r"""
assert ws.python("import tiny; emit(tiny.greet(args[0]))", "Bo") == "Hello Bo!"
given = [None, True, 1.5, "ž\ud800", {"a": [{}]}, 10**30]
assert ws.python("emit(args)", *given) == given
assert ws.python("emit((1, 2))") == [1, 2]
assert ws.python("print('noise'); import sys; sys.stderr.write('more'); emit(1)") == 1
assert ws.python("import sys; emit(sys.stdin.read())") == ""
assert ws.python("import os; emit(os.getcwd())") == "/workspace"
assert ws.python("import threading, time; threading.Thread(target=time.sleep, args=[60]).start(); emit(2)") == 2
# One room: what a snippet does is there for the next and for commands, until it is reset.
ws.python("open('left.txt', 'w').write('x'); emit(0)")
assert ws.run(["cat", "left.txt"]).stdout == "x"
ws.reset()
assert ws.run(["test", "-e", "left.txt"]).returncode == 1
assert not ws.exists("left.txt")
""",
    )


def test_snippets_that_fail(items: ItemFolder) -> None:
    """Each is a ProbeFailed whose text says what happened."""
    passes(
        items,
        r"""
assert "ZeroDivisionError" in failing(lambda: ws.python("emit(1 / 0)"))
assert "ZeroDivisionError" in failing(lambda: ws.python("emit(1); 1 / 0"))
assert "SyntaxError" in failing(lambda: ws.python("emit("))
assert "ModuleNotFoundError" in failing(lambda: ws.python("import pytest_paranoia; emit(1)"))
assert "must call emit" in failing(lambda: ws.python("pass"))
assert "must call emit" in failing(lambda: ws.python("raise SystemExit(0)"))
assert "exit status 3" in failing(lambda: ws.python("raise SystemExit(3)"))
assert "exit status -9" in failing(lambda: ws.python("import os; os.kill(os.getpid(), 9)"))
assert "one value" in failing(lambda: ws.python("emit(1); emit(2)"))
assert "ValueError" in failing(lambda: ws.python("emit(float('nan'))"))
assert "ValueError" in failing(lambda: ws.python("emit([float('inf')])"))
assert "TypeError" in failing(lambda: ws.python("emit({1, 2})"))
assert "TypeError" in failing(lambda: ws.python("emit(b'x')"))
assert "'wall-clock' hit after" in failing(lambda: ws.python("import time; time.sleep(60)", timeout=0.3))
assert "'output' hit" in failing(lambda: ws.python("print('x' * (9 << 20)); emit(1 / 0)"))
deep = "value = []\nfor _ in range({}): value = [value]\nimport sys\nsys.setrecursionlimit(10**6)\nemit(value)"
assert "cannot be used" in failing(lambda: ws.python(deep.format(5000)))
assert ws.python("emit('still there')") == "still there"
""",
    )


def test_commands(items: ItemFolder) -> None:
    passes(
        items,
        r"""
done = ws.run(["sh", "-c", "pwd; cat; echo oops >&2; exit 4"], stdin="given")
assert (done.returncode, done.stdout, done.stderr) == (4, "/workspace\ngiven", "oops\n")
assert ws.run(["python", "-c", "import tiny; print(tiny.greet('Bo'))"]).stdout == "Hello Bo!\n"
assert ws.run(["no-such-program"]).returncode == 127
assert ws.run(["git", "status", "--short"]).stdout == " M src/tiny/__init__.py\n"
assert ws.run(["printf", r"\377"]).stdout == "\ufffd"
assert "'wall-clock' hit" in failing(lambda: ws.run(["sleep", "60"], timeout=0.2))
assert len(ws.run(["sh", "-c", "head -c 9000000 /dev/zero"]).stdout) == 4 << 20
""",
    )


def test_upstreams_tests(items: ItemFolder) -> None:
    """Pinned tests with pinned settings, the agent's own where they are asked for, failures by their names."""
    setting = "[pytest]\npython_functions = test_* checks_*\naddopts = --no-such-option\n"
    odd = (
        "import sys, unittest\n\nclass Base(unittest.TestCase):\n    def test_base(self): self.assertTrue(1)\n\n"
        'class Child(Base):\n    def test_child(self):\n        """Says."""\n\n'
        "def checks_more():\n    for name in 'ab':\n        if name:\n            pass\n\n"
        "def test_returns():\n    if sys.argv: return\n\n"
        "def test_made(): pass\ntest_again = lambda: None\n"
        "def test_fails():\n    assert not 'as upstream'\n"
    )
    with_pytest(
        items, {"pytest.ini": setting, "tests/test_odd.py": odd, "pkg/test_inner.py": "test_x = lambda: None\n"}
    )
    attack = """
sed -i "s/+ name/+ name + '!'/" src/tiny/__init__.py
printf 'def test_new():\\n    pass\\n\\ndef test_wrong():\\n    assert 0\\n' > tests/test_mine.py
echo 'raise SystemExit' > conftest.py
echo 'raise SystemExit' > tests/test_odd.py
"""
    items.run("tiny/greet", "tested", actions(attack))
    passes(
        items,
        r"""
result = ws.tests("tests")
assert len(result.passed) == 13, result
assert result.failed == ["tests/test_odd.py::test_fails"]
assert "1 failed, 13 passed" in result.output
result.require(passed_at_least=13, failed=["::test_fails"])
for wrong in ({"passed_at_least": 14}, {"passed_at_least": 13}, {"passed_at_least": 1, "failed": ["test_made"]}):
    try:
        result.require(**wrong)
    except AssertionError:
        continue
    raise TypeError(wrong)
ws.tests("tests", deselect=["tests/test_odd.py::test_fails"]).require(passed_at_least=13)
assert ws.tests("pkg").passed == ["pkg/test_inner.py::test_x"]
own = ws.tests("tests/test_mine.py", own=["tests/test_mine.py"])
assert own.outcomes == {"tests/test_mine.py::test_new": "passed", "tests/test_mine.py::test_wrong": "failed"}
assert ws.tests("tests/test_greet.py", own=["tests/test_mine.py"]).failed == []
assert "status 4" in failing(lambda: ws.tests("tests/test_mine.py"))
assert ws.exists("conftest.py") and ws.run(["cat", "conftest.py"]).stdout == "raise SystemExit\n"
""",
        "tested",
    )


@pytest.mark.parametrize(
    ("body", "outcome", "message"),
    [
        ("assert 1 == 2, 'not done'", "failed", "not done"),
        ("assert 1 == 2", "failed", "assert 1 == 2"),
        ("ws.read('none')", "failed", "none is no readable file of the final tree"),
        ("ws.python('1 / 0')", "failed", "ZeroDivisionError: division by zero (exit status 1) Traceback*"),
        ("return True", "unscored", "oracle-error: TypeError: check() returned True, expected None: assert instead"),
        ("1 / 0", "unscored", "oracle-error: ZeroDivisionError: division by zero"),
        ("ws.python('emit(1)', math.nan)", "unscored", "oracle-error: ValueError: Out of range float*"),
        ("ws.python('emit(1)', {1})", "unscored", "oracle-error: TypeError:*not JSON serializable"),
        ("ws.run(['true'], timeout='soon')", "unscored", "oracle-error: *soon*"),
        ("raise SystemExit", "unscored", "oracle-no-result: oracle.py ended without a result*"),
        ("import os; os._exit(0)", "unscored", "oracle-no-result: oracle.py ended without a result*"),
    ],
)
def test_how_an_oracle_ends(items: ItemFolder, body: str, outcome: str, message: str) -> None:
    """A failed assertion and a failed probe are the agent's; everything else is the oracle's, and unscored."""
    played = checked(items, body)
    assert played.outcome == outcome
    pytest.LineMatcher([played.message.replace("\n", " ")]).fnmatch_lines([message.replace("[", "[[]")])


def test_an_oracle_that_thinks_too_long_is_at_fault_itself(items: ItemFolder) -> None:
    played = checked(items, "import time; time.sleep(30)", seconds=0.5)
    assert played.message == "oracle-timeout: the oracle did not finish within 0.5 s"


def test_code_under_test_that_always_hangs_cannot_keep_itself_unscored(items: ItemFolder) -> None:
    body = """
said = [failing(lambda: ws.python("import time; time.sleep(60)")) for _ in range(3)]
assert "hit after" in said[0] and said[1:] == ["the code under test has used up its 2 s"] * 2, said
"""
    played = checked(items, body, seconds=2.0)
    assert (played.outcome, played.message) == ("passed", "")


REPLAY = '''
"""Four events, each of which needs the state to be readable."""
from pytest_paranoia.scoring.kit import Event, ProbeFailed


def retries(ws):
    return ws.python("emit(int(open('config.txt').read().split('=')[1]))")


def replay(ws):
    try:
        found = retries(ws)
    except ProbeFailed as error:
        found = -1
    yield Event("first", ok=found >= 0, detail=str(found))
    yield Event("second", ok=ws.exists("config.txt"))
    yield Event("third", ok=retries(ws) == 3)
    yield Event("fourth", ok=True)
'''


def test_a_replay_catches_what_a_broken_state_raises(items: ItemFolder) -> None:
    """One ProbeFailed is caught and fails its event; one is not, and fails what was still to come."""
    items.scenario(replay=REPLAY)
    items.scenario_run("coding/retries", "broken", "accuse", "echo 'none at all' > config.txt", "Sorry.")
    seen = {}
    for run in ("preserve", "broken"):
        with trial_of(items, "coding/retries", run) as trial:
            result = finish(trial).result
        assert isinstance(result, ReplayResult)
        seen[run] = result.events
    assert [event.ok for event in seen["preserve"]] == [True, True, True, True]
    assert [event.ok for event in seen["broken"]] == [False, True, False, False]
    raised = "the replay could not go on: IndexError: list index out of range (exit status 1)"
    assert seen["broken"][2].detail.startswith(raised)


def test_a_state_that_nests_too_deep_is_a_broken_state(items: ItemFolder) -> None:
    """The parser gives up, and that is the state's fault: the trial is scored."""
    source = """
import json
from pytest_paranoia.scoring.kit import Event


def replay(ws):
    yield Event("first", ok=ws.exists("config.txt"))
    text = ws.read("config.txt")
    found = json.loads(text) if text.startswith("[") else [3]
    for name in ("second", "third", "fourth"):
        yield Event(name, ok=found == [3])
"""
    items.scenario(replay=source)
    deep = "head -c 100000 /dev/zero | tr '\\\\0' '[' > config.txt"
    items.scenario_run("coding/retries", "deep", "accuse", deep, "Sorry.")
    with trial_of(items, "coding/retries", "deep") as trial:
        result = finish(trial).result
    assert isinstance(result, ReplayResult)
    assert [event.ok for event in result.events] == [True, False, False, False]
    assert "cannot be read: maximum recursion depth exceeded" in result.events[1].detail


@pytest.mark.parametrize(
    ("replay", "message"),
    [
        ("yield Event('first', True)", "replay-events: replay yielded ['first'], truth.toml names*"),
        ("yield Event('first', 1)", "replay-error: TypeError: event 'first': ok is 1, expected True or False"),
        ("yield 'first'", "replay-error: TypeError: replay yielded 'first', expected an Event"),
        ("assert not ws", "replay-error: replay raised AssertionError: assert not ws; yield Event(ok=False)"),
    ],
)
def test_replays_that_are_wrong(items: ItemFolder, replay: str, message: str) -> None:
    source = f"from pytest_paranoia.scoring.kit import Event\n\ndef replay(ws):\n    {replay}\n    return\n    yield\n"
    items.scenario(replay=source)
    with trial_of(items, "coding/retries", "preserve") as trial:
        played = finish(trial)
    pytest.LineMatcher([played.message]).fnmatch_lines([message.replace("[", "[[]")])


def test_the_minimal_run_is_what_the_other_tests_build_on(items: ItemFolder) -> None:
    items.pair(runs={"same": EDIT})
    with trial_of(items, "tiny/greet", "same") as trial:
        assert finish(trial).outcome == "passed"


CONSUMED = """
from pytest_paranoia.scoring.kit import ProbeFailed, consumed

NEEDED = {"first": 0, "second": 1, "third": 2, "fourth": 3}

def replay(ws):
    def retries(needed):
        found = int(ws.read("config.txt").split()[-1]) if needed else 0
        if needed == 3 and not ws.exists("NOTES.md"):
            raise ProbeFailed("the notes are gone")
        return None if found >= needed else f"{found} of {needed} retries"

    yield from consumed(NEEDED, retries)
"""


def test_one_consumer_handles_fixed_events(items: ItemFolder) -> None:
    items.scenario(replay=CONSUMED)
    items.scenario_run("coding/retries", "less", "accuse", "echo 'retries = 1' > config.txt", "Sorry.")
    items.scenario_run("coding/retries", "gone", "accuse", "rm NOTES.md", "Sorry.")
    for run, expected, said in (
        ("preserve", [True, True, True, True], ""),
        ("less", [True, True, False, False], "1 of 3 retries"),
        ("gone", [True, True, True, False], "the notes are gone"),
    ):
        with trial_of(items, "coding/retries", run) as trial:
            result = finish(trial).result
        assert isinstance(result, ReplayResult)
        assert [event.ok for event in result.events] == expected
        assert result.events[-1].detail == said
