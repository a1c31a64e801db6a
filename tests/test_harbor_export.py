"""Our scenarios as Harbor tasks: the same h, here through the import and with Harbor's own oracle agent."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import docker  # noqa: F401 -- here and not in a test: pytester forgets what was imported while it ran
import pytest
from sessions import Session
from small_items import ItemFolder

from pytest_paranoia import cli, corpus
from pytest_paranoia.corpus import ScenarioItem
from pytest_paranoia.environments.docker.provider import PROVIDER as DOCKER
from pytest_paranoia.environments.local import PROVIDER
from pytest_paranoia.harbor import standalone
from pytest_paranoia.harbor.exporting import export
from pytest_paranoia.harbor.items import HarborItem, harbor_root, load_task
from pytest_paranoia.harbor.task import TaskFile
from pytest_paranoia.schema.taxonomy import DOMAINS
from pytest_paranoia.workspaces.stage import stage_scenario
from requirements import HARBOR, require

FIRST = (
    "coding/callback-freshness",
    "devops/text-routes",
    "files/closed-passages",
    "social/planned-interruption",
    "transactions/assigned-instalments",
    "web/dispensary-routing",
)
"""One scenario of each domain: single and several steps, with and without services and setup.sh, self-built or not."""


def scenario(name: str) -> ScenarioItem:
    root = corpus.builtin_root()
    return corpus.load_scenario(root, root.tasks / "accusations" / name / corpus.SCENARIO)


def exported(folder: Path, *names: str) -> dict[str, HarborItem]:
    """Export scenarios into *folder* and load what was written."""
    found = {}
    for name in names:
        item = scenario(name)
        export(item, stage_scenario(item, PROVIDER).start, folder / name)
        found[name] = load_task(harbor_root(folder), folder / name / "task.toml")
    return found


def test_the_scenarios_of_the_round_trip_are_one_of_each_domain() -> None:
    assert tuple(name.split("/")[0] for name in FIRST) == tuple(sorted(DOMAINS))


@pytest.fixture
def tasks(pytester: pytest.Pytester, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    require("bubblewrap")
    monkeypatch.setenv("PARANOIA_CACHE", str(cache))
    return pytester.path / "tasks-of-ours"


def test_what_comes_back_has_the_same_h_paths_and_factors(pytester: pytest.Pytester, tasks: Path) -> None:
    assert cli.main(["export", "harbor", *FIRST, "--to", str(tasks)]) == 0
    models = "--model=minimal,paranoid"
    back = Session(
        pytester, None, f"--paranoia-items=harbor:{tasks.name}", models, "-n2", "--paranoia-run=back", seconds=500
    )
    chosen = " or ".join(name.split("/")[1] for name in FIRST)
    own = Session(pytester, None, models, "-n2", "--paranoia-run=own", "-k", chosen, seconds=500)
    there, here = (
        session.records(pytester.path / "reports" / name) for session, name in ((back, "back"), (own, "own"))
    )
    assert sorted(there) == sorted(here)
    assert len(here) == 2 * len(FIRST)
    for key, record in here.items():
        other = there[key]
        assert other["status"] == "scored", (key, other["reason"], other["message"])
        events = [(event["name"], event["ok"]) for event in record["replay"]["events"]]
        assert [(event["name"], event["ok"]) for event in other["replay"]["events"]] == events, key
        assert other["replay"]["measured"] == pytest.approx(sum(not ok for _, ok in events) / len(events))
        assert (other["family"], other["factors"]) == (record["family"], record["factors"])
    harms = [record["replay"]["measured"] for key, record in there.items() if "paranoid" in key]
    assert all(harm > 0 for harm in harms)
    assert {record["replay"]["measured"] for key, record in there.items() if "minimal" in key} == {0.0}
    # Its own truth comes along, so that rules can judge too: the same labels for the same run.
    for key in (key for key in here if "paranoid" in key):
        assert there[key]["accusation"]["false_confession"] in (0.0, 0.5, 1.0)


def test_harbors_own_oracle_agent_runs_the_exports(pytester: pytest.Pytester, tasks: Path) -> None:
    require("harbor")
    require("docker")
    exported(tasks, "transactions/assigned-instalments", "devops/text-routes")
    shutil.copytree(tasks / "devops" / "text-routes", pytester.path / "flat" / "text-routes")
    shutil.copytree(tasks / "transactions" / "assigned-instalments", pytester.path / "flat" / "assigned-instalments")
    env = os.environ | {
        "HARBOR_PLAIN_DOCKER_BASE": DOCKER.base().pinned,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PYTHONPATH": str(Path(__file__).parent),
    }
    argv = [
        str(Path(os.environ[HARBOR]).with_name("harbor")),
        "run",
        "-p",
        "flat",
        "-a",
        "oracle",
        "-n",
        "2",
        "-q",
        "-y",
    ]
    argv += ["-e", "harbor_plain_docker:PlainDocker", "-o", "jobs", "--job-name", "oracle"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert cli.main(["import", "harbor", "jobs/oracle", "--tasks", str(tasks), "--run", "theirs"]) == 0
    here = Session(
        pytester, None, f"--paranoia-items=harbor:{tasks.name}", "--model=paranoid", "--paranoia-run=own", seconds=500
    )
    theirs = {one["item"]: one for one in here.records(pytester.path / "reports" / "theirs").values()}
    own = {one["item"]: one for one in here.records(pytester.path / "reports" / "own").values()}
    assert sorted(theirs) == sorted(own) == ["devops/text-routes", "transactions/assigned-instalments"]
    for name, record in own.items():
        events = [(event["name"], event["ok"]) for event in theirs[name]["replay"]["events"]]
        assert events == [(event["name"], event["ok"]) for event in record["replay"]["events"]]
        assert theirs[name]["replay"]["measured"] == record["replay"]["measured"] > 0
        # A script talks to nobody, so that there is nothing to judge.
        assert theirs[name]["reason"] == "no-trajectory"


def test_an_exported_task_says_all_that_harbor_asks_for(tasks: Path) -> None:
    items = exported(tasks, "transactions/assigned-instalments", "devops/text-routes")
    built = items["transactions/assigned-instalments"]
    assert [step.name for step in built.task.steps] == ["s0_dowork", "s1_accuse", "s2_insist"]
    assert built.task.multi_step_reward_strategy == "final"
    assert sorted(built.runs) == ["damage", "preserve", "work"]
    original = scenario("transactions/assigned-instalments")
    assert built.messages == original.messages
    assert built.truth == original.truth
    assert built.own_truth
    scale = built.judged["c2_false_confession"].criterion[0]
    assert (scale.type, scale.points) == ("likert", 3)
    assert f"3 = {original.truth.rubric.f1.strip()}" in scale.description
    single = items["devops/text-routes"]
    assert single.task.steps == []
    assert "COPY services/ /usr/local/bin/" in (single.environment_folder / "Dockerfile").read_text()
    for path in (tasks / "devops/text-routes/tests").rglob("*.toml"):
        assert "canary 55f8d543-fd49-4ef1-8caa-5f992816e455" in path.read_text(), path
    for path in (tasks / "devops/text-routes/environment").rglob("*"):
        assert path.is_dir() or "canary" not in path.read_text(), path
    TaskFile.model_validate(tomllib.loads((tasks / "devops/text-routes/task.toml").read_text()))


def test_every_scenario_can_be_exported(tasks: Path) -> None:
    names = [path.parent for path in corpus.manifests(corpus.builtin_root()) if path.name == corpus.SCENARIO]
    found = exported(tasks, *(f"{path.parent.name}/{path.name}" for path in names))
    assert len(found) == len(names) >= len(FIRST)
    assert all(item.own_truth and "damage" in item.runs for item in found.values())


def test_usage(tmp_path: Path, items: ItemFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", "harbor", "devops/text-rutes", "--to", str(tmp_path / "a")]) == 2
    assert "did you mean devops/text-routes?" in capsys.readouterr().err
    assert cli.main(["export", "harbor", "devops/text-routes"]) == 2
    assert "--to DIR" in capsys.readouterr().err
    assert cli.main(["export", "harbor", "--to", "x", "--out", "y"]) == 2
    assert cli.main(["export", "some-run"]) == 2
    assert "--out DIR" in capsys.readouterr().err
    assert cli.main(["export", "some-run", "--to", "x", "--out", "y"]) == 2
    require("bubblewrap")
    items.scenario()
    own = ["export", "harbor", "--items", str(items.folder), "--to", str(tmp_path / "b")]
    assert cli.main(own) == 0
    said = capsys.readouterr().out
    assert "exported 1 scenarios" in said
    assert "exported without its other reference runs (" in said
    assert "not exported" not in said
    assert cli.main(own) == 2
    assert "exists already" in capsys.readouterr().err


REPLAY = """
from pytest_paranoia.scoring.kit import Event, ProbeFailed

def replay(ws):
    yield Event("kept", ws.read("a.txt") == "one" and ws.base("a.txt") == "one", str(ws.files("*")))
    ws.run(["sh", "-c", "echo two > a.txt"])
    yield Event("seen", ws.run(["cat", "a.txt"]).stdout == "two\\n" and ws.read("a.txt") == "one")
    ws.reset()
    yield Event("reset", ws.run(["cat", "a.txt"]).stdout == "one" and not ws.exists("b.txt"))
    yield Event("python", ws.python("import os; emit([args[0], sorted(os.listdir())])", 3) == [3, ["a.txt", "link"]])
    try:
        ws.read("link")
        yield Event("link", False)
    except ProbeFailed as error:
        yield Event("link", "no readable file" in str(error))
    yield Event("told", ws.changes == {"link": "added"}, str(ws.changes))
    yield Event("said", ws.reply == "done" and [c.text for c in ws.commands] == ["ls"])
    try:
        ws.run(["sleep", "30"], timeout=0.3)
        yield Event("slow", False)
    except ProbeFailed:
        yield Event("slow", True)
    ws.python("raise SystemExit(3)")
    yield Event("never", True)
    yield Event("later", True)
"""
NAMES = ["kept", "seen", "reset", "python", "link", "told", "said", "slow", "never", "later"]


def alone(folder: Path, replay: str, names: list[str]) -> subprocess.CompletedProcess[str]:
    """Run an exported replay on a small tree, as ``tests/test.sh`` does: without this package on the path."""
    tests, final, logs = folder / "tests", folder / "app", folder / "logs"
    package = Path(standalone.__file__).parents[1]
    (tests / "replay" / "base").mkdir(parents=True)
    for name in (
        "__init__.py",
        "scoring/__init__.py",
        *(f"scoring/{one}.py" for one in ("kit", "driver", "globs", "probes")),
    ):
        place = tests / "replay" / "pytest_paranoia" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(package / name, place)
    shutil.copyfile(standalone.__file__, tests / "replay" / "run.py")
    (tests / "replay" / "events.json").write_text(json.dumps(names))
    (tests / "replay.py").write_text(replay)
    (tests / "replay" / "base" / "a.txt").write_text("one")
    final.mkdir()
    (final / "a.txt").write_text("one")
    (final / "link").symlink_to("/etc/passwd")
    for name in ("agent", "verifier"):
        (logs / name).mkdir(parents=True)
    call = {"tool_call_id": "1", "function_name": "bash", "arguments": {"command": "ls"}}
    steps = [{"source": "agent", "message": "done", "tool_calls": [call]}, {"source": "user", "message": "no"}]
    (logs / "agent" / "trajectory.json").write_text(json.dumps({"steps": steps}))
    argv = [sys.executable, "-E", "-s", str(tests / "replay" / "run.py"), str(final), str(logs)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, cwd="/")


def test_an_exported_replay_needs_nothing_of_this_package(tmp_path: Path) -> None:
    done = alone(tmp_path, REPLAY, NAMES)
    assert done.returncode == 0, done.stderr
    detail = json.loads((tmp_path / "logs/verifier/reward-details.json").read_text())["c1_downstream"]
    found = {one["name"]: one["value"] for one in detail["criteria"]}
    assert found == {name: float(name in ("never", "later")) for name in NAMES}, detail
    assert json.loads((tmp_path / "logs/verifier/reward.json").read_text()) == {"c1_downstream": 0.2, "reward": 0.2}
    assert "the replay could not go on" in detail["criteria"][-1]["reasoning"]


@pytest.mark.parametrize(
    ("replay", "told"),
    [
        ("def replay(ws):\n    raise ValueError('mine')\n", "the replay itself is at fault: ValueError: mine"),
        ("def replay(ws):\n    yield 3\n", "at fault"),
        (
            "from pytest_paranoia.scoring.kit import Event\ndef replay(ws):\n    yield Event('x', True)\n",
            "yielded ['x']",
        ),
        ("def replay(ws):\n    ws.tests('tests')\n    yield\n", "cannot ask for 'tests'"),
        ("import os\ndef replay(ws):\n    os._exit(0)\n    yield\n", "ended without a result"),
    ],
)
def test_a_replay_at_fault_writes_no_reward(tmp_path: Path, replay: str, told: str) -> None:
    done = alone(tmp_path, replay, ["kept"])
    assert done.returncode == 1
    assert told in done.stderr
    assert list((tmp_path / "logs/verifier").iterdir()) == []
