"""The four command-line agents in containers, as a user starts them: real programs, a scripted model on loopback."""

from __future__ import annotations

import json
import lzma
from io import BytesIO
from pathlib import Path
from typing import Any

import psutil
import pytest
from docker_lab import client, images_removed, none_left
from model_references import ReferenceScripts
from model_requests import Request
from model_script import Script, edit, hang, say, shell
from model_server import ModelServer
from sessions import Session
from small_items import ItemFolder
from test_real_agents import PREFIX, known

from pytest_paranoia.environments.docker.provider import PROVIDER
from requirements import require

HARNESSES = ("claude-code", "codex", "opencode", "hermes")
DOCKER = "--paranoia-environment=docker"
GATE = """
from pytest_paranoia.gates.base import Decision

class NoForbidden:
    name = "no-forbidden"
    version = "1"

    def decide(self, request, view):
        return Decision("forbidden" not in str(request.arguments), "nothing forbidden here")
"""
FIX = edit("src/tiny/__init__.py", "    return 'Hello ' + name", "    return 'Hello ' + name + '!'")
SCRIPTS: dict[str, Script] = {
    "denied": [shell("touch forbidden.txt"), FIX, say("Done.")],
    "late": [shell("setsid sleep 9171 > /dev/null 2>&1 & echo on"), hang()],
    "killed": [shell("kill -KILL $PPID; sleep 30"), say("Done.")],
    "endless": [shell(f"echo {number}") for number in range(40)],
}
CALLS = 12
"""What a trial may ask of its model; more than any of the scripts but the endless one needs."""


@pytest.fixture(autouse=True)
def _docker() -> None:
    require("docker")


@pytest.fixture(params=HARNESSES)
def harness(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    require(name)
    return name


def models(harness: str, server: ModelServer, names: list[str]) -> str:
    return ",".join(f"{harness}:{PREFIX.get(harness, '')}{name}@{server.url}/v1" for name in names)


def gate(pytester: pytest.Pytester) -> str:
    pytester.path.joinpath("mygates.py").write_text(GATE)
    return "--paranoia-gate=mygates:NoForbidden"


def test_a_real_agent_in_a_container(pytester: pytest.Pytester, items: ItemFolder, harness: str) -> None:
    """A pair, and a scenario of three user messages in one session: the numbers of the scripted agents."""
    items.pair()
    items.scenario("coding/retries", self_built=True, insist=True)
    some = ["-k", "Eplus and minimal or Eminus and paranoid or retries", "-n2"]
    with images_removed("tiny"):
        scripted = Session(pytester, items, "--model=minimal,paranoid", "--paranoia-run=scripted", *some)
        with ModelServer(ReferenceScripts(items.folder)) as server:
            session = Session(
                pytester, items, DOCKER, "--model", models(harness, server, ["ref-minimal", "ref-paranoid"]), *some,
                gate(pytester), "--paranoia-run=real", "--paranoia-timeout=600", seconds=1500,
            )  # fmt: skip
    found = known(session, "real")
    assert found == known(scripted, "scripted"), session.text
    assert len(found) == 4
    run = session.folder / "reports/real"
    assert none_left("real")
    for record in session.records(run).values():
        assert record["status"] == "scored"
        assert record["tampering"] == []  # transcript and wire log agree, and no process was left
        assert record["environment"]["image"]
        assert record["usage"]["requests"] >= 3
        assert record["usage"]["input_tokens"] > 0
        assert record["intervention"]["allowed"] >= (1 if "minimal" in record["trial"] else 2)
        assert record["intervention"]["denied"] == 0
    for folder in run.glob("trials/*"):
        calls = lzma.decompress((folder / "wire.jsonl.xz").read_bytes()).splitlines()
        record = json.loads((folder / "record.json").read_text())
        assert len(calls) >= record["usage"]["requests"]
    # Whoever resumes a session knows what was said before.
    steps = items.folder / "tasks/accusations/coding/retries/steps"
    said = [_flat((steps / f"{name}.md").read_text()) for name in ("work", "accuse", "insist")]
    assert sum(all(text in request for text in said) for request in _asked(server)) >= 2


def _asked(server: ModelServer) -> list[str]:
    """The user's words of each request."""
    return [_flat(" ".join(one.request.users)) for one in server.main]


def _flat(text: str) -> str:
    return " ".join(text.split())


def test_denials_limits_and_ends(pytester: pytest.Pytester, items: ItemFolder, harness: str) -> None:
    """A call that a gate withholds; a trial that is cut by a cap, one by its time; a program that is killed."""
    items.pair()

    def play(server: ModelServer, *names: str, run: str, more: str) -> tuple[Session, dict[str, Any]]:
        session = Session(
            pytester, items, DOCKER, "--model", models(harness, server, list(names)), gate(pytester), "-k", "Eplus",
            "-n2", f"--paranoia-run={run}", more, seconds=1500,
        )  # fmt: skip
        assert none_left(run)
        found = session.records(session.folder / "reports" / run).values()
        return session, {record["agent"]["model"].rpartition("-")[2]: record for record in found}

    def script(request: Request) -> Script:
        return SCRIPTS[request.model.rpartition("-")[2]]

    with images_removed("tiny"), ModelServer(script) as server:
        cap = f"--paranoia-trial-requests={CALLS}"
        session, records = play(server, "denied", "endless", "killed", run="ends", more=cap)
        # Long enough for the program to get to its first command, however busy the machine is.
        seconds = max(20.0, records["denied"]["timing"]["agent"])
        cut, late = play(server, "late", run="late", more=f"--paranoia-timeout={seconds}")
    assert not [one for one in psutil.process_iter(["cmdline"]) if "sleep 917" in " ".join(one.info["cmdline"] or ())]
    assert session.code == cut.code == pytest.ExitCode.TESTS_FAILED
    denied = records.pop("denied")
    assert (denied["status"], denied["message"], denied["tampering"]) == ("scored", "", []), session.text
    assert denied["oracle"]["passed"]
    assert denied["intervention"]["denied"] == 1
    assert "forbidden.txt" not in (_trial(session, "denied") / "frozen.json").read_text()
    records |= late
    ends = {name: (record["status"], record["reason"], record["limits"]) for name, record in records.items()}
    assert ends == {
        "endless": ("unscored", "cap-requests", ["requests"]),
        "killed": ("unscored", "harness-failed", []),
        "late": ("unscored", "wall-clock", ["wall-clock"]),
    }, session.text + cut.text
    assert "was ended by SIGKILL" in records["killed"]["message"]
    assert all(record["oracle"] is None and record["verdict"] is None for record in records.values())
    # What was done until then is kept, and what it cost.
    for name, record in records.items():
        trajectory = json.loads((_trial(session, name) / "trajectory.json").read_text())
        made = [call for step in trajectory["steps"] for call in step.get("tool_calls") or ()]
        assert made, name
        assert 1 <= record["usage"]["requests"] <= CALLS
    assert records["endless"]["usage"]["requests"] == CALLS


def _trial(session: Session, name: str) -> Path:
    [folder] = [path for path in (session.folder / "reports").glob("*/trials/*") if f"{name}-run1" in path.name]
    return folder


def test_an_agent_in_python_runs_with_the_interpreter_of_the_base(pytester: pytest.Pytester, items: ItemFolder) -> None:
    """Hermes is a virtual environment of this machine's interpreter, and the base has its own somewhere else."""
    require("hermes")
    items.pair()
    base = PROVIDER.base()
    python, version = base.facts.python, base.facts.version
    moved = [
        "mkdir -p /opt/elsewhere/bin /opt/elsewhere/lib",
        f"cp -a {python} /opt/elsewhere/bin/python{version}",
        f"cp -a $(dirname $(dirname {python}))/lib/python{version} /opt/elsewhere/lib/",
        f"ln -s python{version} /opt/elsewhere/bin/python3",
        f"rm {python}",
    ]
    recipe = f"FROM {base.pinned}\nUSER 0\nRUN {' && '.join(moved)}\nENV PATH=/opt/elsewhere/bin:/usr/bin:/bin\n"
    for line in client(120).build(
        fileobj=BytesIO(recipe.encode()), tag="paranoia-tests/moved:1", decode=True, rm=True, forcerm=True,
        network_mode="none",
    ):  # fmt: skip
        assert "error" not in line, line
    try:
        with images_removed("tiny"), ModelServer(ReferenceScripts(items.folder)) as server:
            session = Session(
                pytester, items, DOCKER, "--paranoia-docker-base=paranoia-tests/moved:1", "-k", "Eplus",
                "--model", models("hermes", server, ["ref-minimal"]), "--paranoia-timeout=600", seconds=1500,
            )  # fmt: skip
        [record] = session.records().values()
        found = (record["status"], record["message"], record["tampering"])
        assert found == ("scored", "", []), session.text
        assert record["oracle"]["passed"]
    finally:
        client().remove_image("paranoia-tests/moved:1", force=True)
