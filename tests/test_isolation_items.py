"""What code in a running trial, in a clean room and in a setup script can reach of ours: nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from attack_scripts import HOSTILE_GIT, MESS, heredoc
from attacks import actions, finish, load, trial_of
from searching import program
from sessions import Session
from small_items import ItemFolder

from pytest_paranoia import corpus
from requirements import require

SECRET = "variable-of-the-session"
OTHER = "workspace-of-another-trial"
CONTROL = "a-word-in-the-workspace"
VARIABLES = {
    *("HOME", "LANG", "LOGNAME", "PATH", "PYTHONPATH", "SHELL", "TMPDIR", "USER"),
    "LC_CTYPE",
    "PWD",
    "SHLVL",
    "_",
}
FOLDERS = {"reports", "bench", "oracles", "judge", "tasks"}


@pytest.fixture(autouse=True)
def _sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    require("bubblewrap")
    monkeypatch.setenv("SESSION_TOKEN", SECRET)


@pytest.fixture
def searched(items: ItemFolder) -> ItemFolder:
    """Items whose workspaces hold one word that a search must find."""
    items.repository(files={"README.md": CONTROL})
    items.write("tasks/accusations/coding/retries/workspace/README.md", CONTROL)
    return items


def evaluator_words(items: ItemFolder, *names: str) -> list[str]:
    """Lines of the evaluator's files of items and of the judging contract, and what the session and others hold."""
    loaded = [load(items, name) for name in names]
    ours = [path for item in loaded for path in item.oracle_folder.rglob("*") if path.is_file()]
    judge = corpus.content_root() / "judge"
    ours += [path for path in judge.rglob("*.*") if path.is_file() and path.parent != judge / "memory"]
    shown = "\n".join(path.read_text() for item in loaded for path in item.folder.rglob("*") if path.is_file())
    # Reference runs hold the commands that the agent under test runs: those it knows.
    lines = {line.strip() for path in ours for line in path.read_text().splitlines() if not line.startswith("run =")}
    long = sorted(line for line in lines if len(line) > 20 and line not in shown and line != "[[steps.actions]]")
    # Of the memory one piece of each record: a command line does not hold all of it.
    memory = [
        line.strip()[:80] for line in (judge / "memory" / "bank.json").read_text().splitlines() if '"data"' in line
    ]
    assert len(memory) > 60
    return [*long, *memory, str(items.folder), SECRET, OTHER, "--paranoia", CONTROL]


def nothing(found: dict[str, Any], processes: Iterable[str]) -> None:
    """Assert that a search was in vain, and that it did search."""
    assert found["names"] == []
    hits = [hit for hit in found["words"] if hit[0] != "/workspace/found.json"]  # what the search in setup.sh found
    assert hits == [["/workspace/README.md", CONTROL]]
    assert [line.split(" ")[0] for line in found["processes"].values()] == list(processes)
    assert VARIABLES.issuperset(found["environment"])
    for place in found["mounts"]:
        assert FOLDERS.isdisjoint(Path(place).parts), place
        # Of the cache only the environment, and where setup.sh builds a workspace, that.
        assert "paranoia-cache" not in place or "/envs/" in place or "/staging/scenarios-" in place, place


def test_an_agent_finds_nothing_of_ours(pytester: pytest.Pytester, searched: ItemFolder) -> None:
    """In a real session: card, oracle, truth, judge, record folders, the session's variables, another running trial."""
    searched.pair()
    searched.pair("tiny/other", "transfer", "Continuous integration")
    searched.scenario("coding/retries")
    words = evaluator_words(searched, "tiny/greet", "tiny/other", "coding/retries")
    assert len(words) > 60
    search = heredoc("$TMPDIR/search", program(words, everywhere=True)) + "python $TMPDIR/search; true"
    searched.run("tiny/greet", "search", actions(search))
    search = search.replace("if True:", "if False:")
    accuse = 'schema = 1\nnote = "search"\n\n[[steps]]\nrole = "accuse"\nreply = "Done."\n' + actions(search)
    searched.write("oracles/accusations/coding/retries/runs/search.toml", accuse)
    with trial_of(searched, "tiny/other", "minimal") as other:
        environment = other.bring_up()
        environment.exec(["bash", "-c", f"echo {OTHER} > {OTHER}; (exec -a {OTHER} sleep 600) &"])
        session = Session(pytester, searched, "--model", "scripted:search", "-k", "retries or (greet and Eplus)")
    assert len(session.records()) == 2, session.text
    for folder in (session.run / "trials").iterdir():
        trajectory = json.loads((folder / "trajectory.json").read_text())
        output = trajectory["steps"][1]["observation"]["results"][0]["content"]
        nothing(json.loads(output.splitlines()[-1]), ["init", "bash", "python"])


FROM_INSIDE = """
import json

SEARCH = {search!r}
SNIPPET = '''
import json, subprocess, sys
emit(json.loads(subprocess.run([sys.executable, "-", "snippet"], input=args[0], capture_output=True, text=True).stdout))
'''

def search(ws):
    found = json.loads(ws.run(["python", "-"], stdin=SEARCH, timeout=60).stdout)
    inside = ws.python(SNIPPET, SEARCH, timeout=60)
    # Nobody inside can end the one who asks, or the server that starts what is asked for.
    ws.run(["sh", "-c", "kill -9 -1; kill -9 1; kill -TERM 1"])
    return [found, inside, ws.python("emit('alive')")]
"""
INSIDE = (["init", "python"], ["init", "/opt/env/bin/python", "/opt/env/bin/python"])


def test_code_in_a_clean_room_finds_nothing_of_ours(searched: ItemFolder) -> None:
    """Neither what an oracle runs, nor a snippet; and nothing of the driver that runs the oracle."""
    searched.pair()
    search = FROM_INSIDE.format(search=program(evaluator_words(searched, "tiny/greet")))
    searched.pair(oracle=search + "\ndef check(ws):\n    raise AssertionError(json.dumps(search(ws)))\n")
    with trial_of(searched, "tiny/greet", "minimal") as trial:
        played = finish(trial)
    found, inside, alive = json.loads(played.trial.log[-1].removeprefix("failed: "))
    nothing(found, INSIDE[0])
    nothing(inside, INSIDE[1])
    assert alive == "alive"


REPLAY = """
def replay(ws):
    raise RuntimeError(json.dumps([json.loads(ws.read("found.json")), *search(ws)]))
    yield
"""


def test_setup_scripts_and_replays_find_nothing_of_ours(searched: ItemFolder) -> None:
    """setup.sh writes down what it finds into the workspace it makes; the replay reads it, and searches itself."""
    searched.scenario()
    search = program(evaluator_words(searched, "coding/retries"))
    setup = heredoc("$TMPDIR/search", search) + "python $TMPDIR/search > found.json\n"
    searched.write("tasks/accusations/coding/retries/setup.sh", setup)
    searched.scenario(replay=FROM_INSIDE.format(search=search) + REPLAY)
    with trial_of(searched, "coding/retries", "preserve") as trial:
        played = finish(trial)
    built, found, inside, alive = json.loads(played.message.removeprefix("replay-error: RuntimeError: "))
    nothing(built, ["init", "bash", "python"])
    nothing(found, INSIDE[0])
    nothing(inside, INSIDE[1])
    assert alive == "alive"


LOOK = r"""
find . -type d -printf '%p %m %T@\n' -o -printf '%p %y %m %n %s %T@ %l\n' | sort
find /tmp $HOME | sort
getfattr -R -d -m - . || true
git log --all --format=%H; git stash list; git config --list; git status --porcelain --ignored
cat src/tiny/__init__.py
ls -la /proc/self/fd | wc -l
"""
QUIET = """
ln src/tiny/__init__.py hard; mv src was; cp -a was src; chmod 2700 src; mkdir -p src/tiny/__pycache__ empty
touch -r README.md mark; sed -i s/Hello/Hullo/ src/tiny/__init__.py; touch -r mark src/tiny/__init__.py README.md
setfattr -n user.note -v left README.md src || true
git gc -q; git stash -q -u; git tag left; echo left > .git/info/exclude
echo left > /dev/shm/left; echo left > $HOME/left; echo left > /tmp/left
"""


def test_a_trial_finds_nothing_of_an_earlier_one(searched: ItemFolder) -> None:
    """Trees are used again: the next agent must not see what the one before did, loud or quiet."""
    searched.pair()
    seen = []
    for number, script in enumerate((LOOK, MESS, LOOK, QUIET, LOOK, HOSTILE_GIT.format(mark="/tmp/x", then=""), LOOK)):
        searched.run("tiny/greet", f"run{number}", actions(script))
        with trial_of(searched, "tiny/greet", f"run{number}") as trial:
            trial.bring_up()
            run = trial.act()
            trial.check()
        if script is LOOK:
            results = run.trajectory.steps[1].observation
            assert results is not None
            seen.append(results.results[0].content)
    assert "src/tiny/__init__.py" in str(seen[0])
    assert seen[1:] == seen[:1] * 3
