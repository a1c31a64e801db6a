"""The benchmark that measures Harbor beside ours: what it refuses, and that no failed trial counts as a fast one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import docker  # noqa: F401 -- the benchmark needs it
import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import harbor_trials

    return harbor_trials


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_option_names_what_is_missing_before_anything_is_measured(tmp_path: Path) -> None:
    old = program(tmp_path / "python", "echo '[[3, 11], null]'")
    argv = [sys.executable, str(BENCHMARKS / "docker_overhead.py"), "--harbor", str(old)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith(f"error: --harbor: {old} is Python 3.11; Harbor needs 3.12 or newer\n")


@pytest.mark.parametrize(
    ("python", "client", "said"),
    [
        ("echo '[[3, 13], null]'", "exit 0", "has no Harbor; install it there: "),
        ("echo '[[4, 0], \"1.0\"]'", "exit 1", "docker has no compose plugin"),
        ("echo '[[3, 13], \"1.0\"]'", None, "no docker on PATH"),
        ("echo oh >&2; echo no >&2; exit 1", "exit 0", "is no Python that can be asked for Harbor; it said: no"),
        ("true", "exit 0", "it said: nothing"),
    ],
)
def test_what_is_missing(
    trials: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    python: str,
    client: str | None,
    said: str,
) -> None:
    asked = program(tmp_path / "python", python)
    path = tmp_path / "bin"
    path.mkdir()
    if client is not None:
        program(path / "docker", client)
    monkeypatch.setenv("PATH", str(path))
    with pytest.raises(trials.Missing) as caught:
        trials.version(asked)
    assert said in str(caught.value)
    program(path / "docker", "exit 0")
    assert trials.version(program(asked, "echo '[[3, 12], \"0.26.0\"]'")) == "0.26.0"
    with pytest.raises(trials.Missing, match="there cannot be run"):
        trials.version(tmp_path / "there")


def finished(job: Path, second: int, reward: str | None = "1\n", exception: dict[str, Any] | None = None) -> None:
    folder = job / f"touch__{second}"
    (folder / "verifier").mkdir(parents=True)
    ends = f"2026-03-01T10:00:{second:02}.500000Z"
    (folder / "result.json").write_text(json.dumps({"finished_at": ends, "exception_info": exception}))
    if reward is not None:
        (folder / "verifier" / "reward.txt").write_text(reward)


def test_the_time_of_a_job_begins_with_the_first_end_of_each_worker(trials: ModuleType, tmp_path: Path) -> None:
    for second in (20, 10, 11, 26, 40):
        finished(tmp_path, second)
    assert trials.seconds_per_trial(tmp_path, 5, 1) == pytest.approx(30 / 4)
    assert trials.seconds_per_trial(tmp_path, 5, 2) == pytest.approx(29 / 3)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"reward": None}, "the trial touch__13 did not succeed"),
        ({"reward": "0\n"}, "the trial touch__13 did not succeed"),
        ({"exception": {"exception_message": "the daemon said no"}}, "the daemon said no"),
    ],
)
def test_a_trial_that_failed_ends_the_benchmark(
    trials: ModuleType, tmp_path: Path, wrong: dict[str, Any], said: str
) -> None:
    for second in (10, 11, 12):
        finished(tmp_path, second)
    assert trials.seconds_per_trial(tmp_path, 3, 1) == pytest.approx(1.0)
    with pytest.raises(SystemExit, match="3 trials have a result, expected 4"):
        trials.seconds_per_trial(tmp_path, 4, 1)
    finished(tmp_path, 13, **wrong)
    with pytest.raises(SystemExit, match=said):
        trials.seconds_per_trial(tmp_path, 4, 1)
