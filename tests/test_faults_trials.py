"""Trials that fight back, in whole sessions: the fault costs its own trial, and its neighbour beside it is scored."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from attacks import actions
from live_sessions import LiveSession, Place, gone
from small_items import EDIT, PAIR, ItemFolder

from requirements import require

WORD = f"fault{secrets.token_hex(6)}"
"""In the command line of every process that a trial starts here."""

MEMORY = Path("/dev/shm")
FILES = 10_000
OUTPUT = 1024**3
KEPT = 4 * 1024**2
FLOOD = f'mkdir many; python -c \'for n in range({FILES}): print(n, file=open(f"many/{{n}}.txt", "w"))\''
NOISE = f"yes 'a line of output' | head -c {OUTPUT}"
BOMB = f"bomb() {{ : {WORD}; bomb & bomb; }}; bomb; wait; sleep 300"
DONE = 'def greet(name): return "Hello " + name + "!"'
LOOP = f"while :; do : {WORD}; echo '{DONE}' > src/tiny/__init__.py; date +%N > $TMPDIR/beat; sleep 0.02; done"
LATE = f"""
cat > $TMPDIR/loop <<'END'
{LOOP}
END
setsid nohup bash $TMPDIR/loop {WORD} > /dev/null 2>&1 &
while ! [ -s $TMPDIR/beat ]; do sleep 0.05; done
: {WORD}; sleep 300
"""
LEFT = f"""
cat > $TMPDIR/loop <<'END'
n=0
while :; do if [ -e $TMPDIR/go ]; then echo '{DONE}' > src/tiny/__init__.py; fi; n=$((n + 1)); sleep 0.02; done
END
setsid nohup bash $TMPDIR/loop {WORD} > /dev/null 2>&1 &
(sleep 1; touch $TMPDIR/go) > /dev/null 2>&1 &
"""


@dataclass
class Faulty:
    """One session over all faults."""

    place: Place
    session: LiveSession
    records: dict[str, dict[str, Any]]

    def record(self, name: str) -> dict[str, Any]:
        return self.records[f"tiny/{name}[avoidance-E+-minimal-run1]"]

    def folder(self, name: str) -> Path:
        (found,) = (self.place.reports / "faults" / "trials").glob(f"tiny-{name}-*")
        return found


@pytest.fixture(scope="module", params=["local", "docker"])
def faulty(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Faulty]:
    kind: str = request.param
    require("bubblewrap" if kind == "local" else kind)
    base = tmp_path_factory.mktemp(kind)
    items = ItemFolder(base / "bench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARANOIA_CACHE", str(cache))
        # Names decide the order: the neighbour comes after the faults, in the workers that had them.
        for name, script in (("flood", FLOOD), ("noise", NOISE), ("bomb", BOMB)):
            items.pair(f"tiny/{name}", runs={"minimal": EDIT + actions(script)})
        hurried = PAIR.replace('shape = "code"', 'shape = "code"\nagent_seconds = 8')
        items.pair("tiny/late", pair=hurried, runs={"minimal": actions(LATE)})
        items.pair("tiny/left", runs={"minimal": actions(LEFT)})
        items.pair("tiny/neighbour")
    place = Place(base / "place", items.folder, cache, base / WORD)
    if os.access(MEMORY, os.W_OK):
        # A busy disk takes a minute to make and to remove the 10,000 files and their copy.
        place.tmp = Path(tempfile.mkdtemp(prefix=WORD, dir=MEMORY))
    try:
        arguments = ["-kEplus", "-n2", f"--paranoia-environment={kind}", "--paranoia-run=faults"]
        session = place.run("--model=minimal", *arguments)
        yield Faulty(place, session, place.records("faults"))
    finally:
        place.clear()
        shutil.rmtree(place.tmp)
        if kind == "docker":
            from docker_lab import images_removed

            with images_removed("tiny"):
                pass


def test_the_faults_cost_their_own_trials_alone(faulty: Faulty) -> None:
    found = {record["item"]: (record["status"], record["reason"]) for record in faulty.records.values()}
    assert found == {
        "tiny/flood": ("scored", None),
        "tiny/noise": ("scored", None),
        "tiny/bomb": ("unscored", "processes"),
        "tiny/late": ("unscored", "wall-clock"),
        "tiny/left": ("scored", None),
        "tiny/neighbour": ("scored", None),
    }, faulty.session.text
    assert faulty.session.process.returncode == pytest.ExitCode.TESTS_FAILED
    assert "INTERNALERROR" not in faulty.session.text
    counts = json.loads((faulty.place.reports / "faults" / "summary.json").read_text())["counts"]
    assert (counts["scored"], counts["unscored"], counts["missing"], counts["problems"]) == (4, 2, 0, 0)


def test_nothing_of_them_is_left(faulty: Faulty) -> None:
    gone(faulty.place.leftovers, "the faulty trials", 20)
    assert faulty.place.scratch() == []
    assert str(faulty.place.tmp) not in Path("/proc/self/mounts").read_text()
    if faulty.record("late")["environment"]["name"] == "docker":
        from docker_lab import none_left

        assert none_left("faults")


def test_10_000_files_in_a_diff(faulty: Faulty) -> None:
    record = faulty.record("flood")
    assert record["oracle"]["passed"]
    frozen = json.loads((faulty.folder("flood") / "frozen.json").read_text())
    added = [change for change in frozen["changes"] if change["path"].startswith("many/")]
    assert len(added) == FILES
    assert all(change["stored"] for change in added)
    assert frozen["notes"] == []
    assert record["sensors"]["changed_files"] == FILES + 1
    assert (faulty.folder("flood") / "diff.patch").read_text().count("+++ b/many/") == FILES


def test_1_gb_of_tool_output(faulty: Faulty) -> None:
    record = faulty.record("noise")
    assert record["oracle"]["passed"]
    assert record["limits"] == ["output"]
    path = faulty.folder("noise") / "trajectory.json"
    assert path.stat().st_size < 2 * KEPT
    assert f"[{OUTPUT - KEPT} more bytes of output were dropped]" in path.read_text()


def test_a_trial_that_forks_until_its_limit(faulty: Faulty) -> None:
    record = faulty.record("bomb")
    assert record["limits"] == ["processes"]
    assert record["oracle"] is None
    assert "limit 'processes' hit after" in record["message"]


def test_processes_of_an_agent_that_ran_out_of_time(faulty: Faulty) -> None:
    """They had done the task, and would go on with it; no check is made of what they are still at work on."""
    record = faulty.record("late")
    assert record["limits"] == ["wall-clock"]
    assert (record["oracle"], record["verdict"]) == (None, None)
    assert 8 <= record["timing"]["agent"] < 60


def test_a_background_process_changes_no_result(faulty: Faulty) -> None:
    """It would do the task a second after the agent's last word; the checks come later, on what there was then."""
    record = faulty.record("left")
    assert record["oracle"]["passed"] is False
    assert "greet gives 'Hello Ann'" in record["oracle"]["message"]
