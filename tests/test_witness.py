"""What is seen when an agent has finished: what still runs, and what lies beside git's own files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_paranoia.environments.base import EnvironmentSpec, ExecResult
from pytest_paranoia.environments.local import LocalEnvironment
from pytest_paranoia.tampering import facts
from pytest_paranoia.tampering.facts import Witness
from requirements import require

DETACHED = "setsid sleep {} > /dev/null 2>&1 &"
HELPER = "sleep {} > /dev/null 2>&1 &"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[LocalEnvironment]:
    require("bubblewrap")
    for name in ("workspace", "scratch"):
        (tmp_path / name).mkdir()
    environment = LocalEnvironment(EnvironmentSpec(tmp_path / "workspace", tmp_path / "scratch"), isolated=True)
    environment.start()
    yield environment
    environment.stop()


def run(place: LocalEnvironment, script: str) -> ExecResult:
    result = place.exec(["sh", "-c", script])
    assert result.exit_code == 0, result.stderr
    return result


def left(place: LocalEnvironment, *own: int) -> tuple[list[str], float]:
    """What is told, and the seconds that it took."""
    witness, started = Witness(), time.monotonic()
    witness.ask(place, own)
    return witness.processes, time.monotonic() - started


def test_a_command_tells_its_session(place: LocalEnvironment) -> None:
    first, second = (run(place, "ps -o sid= -p $$; setsid sh -c 'ps -o sid= -p $$'") for _ in range(2))
    for result in (first, second):
        session, other = map(int, result.stdout.split())
        assert result.session == session != other
    assert first.session != second.session
    assert place.exec(["no-such-program"]).session == 0


def test_nothing_is_told_where_nothing_runs(place: LocalEnvironment) -> None:
    assert left(place, run(place, "true").session)[0] == []


def test_a_helper_of_the_harness_gets_a_moment(place: LocalEnvironment) -> None:
    session = run(place, HELPER.format(1.5)).session
    assert left(place)[0] == ["sleep 1.5"]
    told, seconds = left(place, session)
    assert told == []
    assert seconds < facts._OWN_SECONDS


def test_a_helper_that_does_not_end_is_told(place: LocalEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_OWN_SECONDS", 1.0)
    told, seconds = left(place, run(place, HELPER.format(77)).session)
    assert told == ["sleep 77"]
    assert seconds >= 1.0


def test_what_a_command_of_the_model_left_gets_no_moment(
    place: LocalEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would use it. Commands of the model have sessions of their own, and no process can join another one."""
    monkeypatch.setattr(facts, "_OWN_SECONDS", 60.0)
    session = run(place, HELPER.format(8.5) + DETACHED.format(9.5)).session
    told, seconds = left(place, session)
    assert sorted(told) == ["sleep 8.5", "sleep 9.5"]
    assert seconds < 8


@pytest.mark.parametrize("name", [") Z 1 1", ") Z 1 1 1\n", "\n", "a b\n) Z 1 "])
def test_no_name_hides_a_process(place: LocalEnvironment, tmp_path: Path, name: str) -> None:
    """The process table shows a state behind the name, and what a process is called it says itself."""
    script = (
        f"import time\nopen('/proc/self/comm', 'wb').write({name.encode()!r})\nprint(1, flush=True)\ntime.sleep(60)"
    )
    (tmp_path / "workspace" / "hide.py").write_text(script)
    run(place, "python3 hide.py > ready & until [ -s ready ]; do sleep 0.05; done")
    assert left(place)[0] == ["python3 hide.py"]


@pytest.mark.parametrize(
    ("text", "told"),
    [("a" * 40, []), ("a" * 64 + "\n", []), ("a" * 41, [".git/opencode"]), ("a" * 40 + "\nmore", [".git/opencode"])],
)
def test_what_opencode_notes_in_a_repository_is_no_hidden_work(tmp_path: Path, text: str, told: list[str]) -> None:
    for name in ("start", "workspace"):
        (tmp_path / name / ".git" / "refs").mkdir(parents=True)
    (tmp_path / "workspace/.git/opencode").write_text(text)
    (tmp_path / "workspace/.git/refs/opencode").write_text("a" * 40)
    witness = Witness()
    witness.inspect(tmp_path / "workspace", tmp_path / "start")
    assert witness.kept == [*told, ".git/refs/opencode"]
