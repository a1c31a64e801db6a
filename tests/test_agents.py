"""A third party's agent: found by entry point, isolated or refused, and never near an evaluator's file."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import Session
from small_items import ItemFolder

import requirements

AGENT = '''
"""An agent as a third party writes it: one command per message, then a reply."""
import os
import time

import pytest

from pytest_paranoia.agents.base import AgentChoice, shown
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.schema.record import AgentInfo


class Session:
    def __init__(self, context):
        self.context = context

    def message(self, message):
        context = self.context
        assert not context.references, "evaluator files reached a real agent"
        if context.agent.model == "crash":
            raise RuntimeError("the model server is gone")
        command = {
            "edit": "sed -i \\"s/+ name/+ name + '!'/\\" src/tiny/__init__.py",
            "slow": "sleep 60",
            "look": "cat /proc/self/mountinfo; env; id -u",
        }[context.agent.model]
        result = context.environment.exec(["sh", "-c", command], timeout=max(0.1, context.deadline - time.monotonic()))
        context.recorder.call("bash", {"command": command}, *shown(result))
        if result.limit == "wall-clock":
            context.limits.append(result.limit)
            raise InfrastructureError(result.limit, "the agent ran out of time")
        context.recorder.reply("Done.")

    def close(self):
        pass


class Harness:
    name = "third"
    scripted = False
    calls_from = None
    protocols = ()

    def choose(self, model):
        if model not in ("edit", "slow", "look", "crash"):
            raise pytest.UsageError(f"--model: third has no model {model!r}")
        return AgentChoice(name=f"third-{model}", harness="third", model=model)

    def info(self, choice):
        return AgentInfo(name=choice.name, harness="third", model=choice.model, version="7")

    def missing(self, choice):
        return None

    def mounts(self, choice):
        return ()

    def open(self, context):
        return Session(context)


HARNESS = Harness()
'''


@pytest.fixture
def third(items: ItemFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ItemFolder:
    """One pair, and an installed distribution that brings the agent ``third``."""
    site = tmp_path / "site"
    (site / "third-7.dist-info").mkdir(parents=True)
    (site / "third_agent.py").write_text(AGENT)
    (site / "third-7.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: third\nVersion: 7\n")
    points = "[pytest_paranoia.agents]\nthird = third_agent:HARNESS\n"
    (site / "third-7.dist-info" / "entry_points.txt").write_text(points)
    monkeypatch.setenv("PYTHONPATH", str(site))
    items.pair()
    return items


def test_it_runs_isolated_and_is_judged(pytester: pytest.Pytester, third: ItemFolder) -> None:
    requirements.require("bubblewrap")
    session = Session(pytester, third, "--model", "third:edit", "-n", "2")
    assert session.code == 0
    records = session.records()
    assert sorted(records) == ["tiny/greet[avoidance-E+-third-edit-run1]", "tiny/greet[avoidance-E--third-edit-run1]"]
    for record in records.values():
        told = {name: value for name, value in record["agent"].items() if value is not None}
        assert told == {"name": "third-edit", "harness": "third", "model": "edit", "version": "7"}
        assert (record["status"], record["verdict"]["kind"], record["oracle"]["passed"]) == ("scored", "none", True)
        assert record["environment"] == {"name": "local", "isolated": True, "image": None}


def test_it_is_refused_without_isolation_before_anything_starts(
    pytester: pytest.Pytester, third: ItemFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARANOIA_NO_BUBBLEWRAP", "1")
    session = Session(pytester, third, "--model", "third:edit", "--model", "minimal")
    assert session.code == pytest.ExitCode.USAGE_ERROR
    assert "third-edit cannot run without isolation" in session.text
    assert session.runs == []


def test_scripted_agents_run_unisolated_and_the_header_says_so(
    pytester: pytest.Pytester, items: ItemFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARANOIA_NO_BUBBLEWRAP", "1")
    items.pair()
    items.scenario("devops/limits", self_built=True)
    session = Session(pytester, items, "-n", "2")
    session.result.stdout.fnmatch_lines(["paranoia: NOT ISOLATED: *bubblewrap*", "*NOT ISOLATED*rights of this user*"])
    records = session.records()
    assert len(records) == 9
    assert all(record["status"] == "scored" for record in records.values())
    assert all(record["environment"]["isolated"] is False for record in records.values())
    agents = session.summary()["agents"]
    rates = {name: agent["pairs"]["excess"]["all"]["vr"]["mean"] for name, agent in agents.items()}
    assert rates == {"minimal": 0.0, "responsive": 0.0, "paranoid": 100.0}


def test_time_out_is_unscored_by_its_name_and_the_partial_record_stays(
    pytester: pytest.Pytester, third: ItemFolder
) -> None:
    requirements.require("bubblewrap")
    session = Session(pytester, third, "--model", "third:slow", "--paranoia-timeout", "1", "-k", "Eplus")
    assert session.code == 1
    (record,) = session.records().values()
    assert (record["status"], record["reason"], record["limits"]) == ("unscored", "wall-clock", ["wall-clock"])
    (folder,) = (session.run / "trials").iterdir()
    assert "sleep 60" in (folder / "trajectory.json").read_text()
    session.result.stdout.fnmatch_lines(["wall-clock: the agent ran out of time", "*1 unscored*"])


def test_an_agent_that_breaks_is_unscored(pytester: pytest.Pytester, third: ItemFolder) -> None:
    requirements.require("bubblewrap")
    session = Session(pytester, third, "--model", "third:crash", "-k", "Eplus")
    assert session.code == 1
    (record,) = session.records().values()
    assert (record["status"], record["reason"]) == ("unscored", "error-RuntimeError")
    assert "the model server is gone" in session.text


def test_what_it_sees_names_no_evaluator_and_no_secret(
    pytester: pytest.Pytester, third: ItemFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirements.require("bubblewrap")
    monkeypatch.setenv("SOME_API_KEY", "sk-very-secret")
    session = Session(pytester, third, "--model", "third:look", "-k", "Eplus")
    (folder,) = (session.run / "trials").iterdir()
    seen = (folder / "trajectory.json").read_text()
    assert "sk-very-secret" not in seen
    assert "oracles" not in seen
    assert "SOME_API_KEY" not in seen


def test_one_that_does_not_keep_the_contract_is_refused_by_name(
    pytester: pytest.Pytester, third: ItemFolder, tmp_path: Path
) -> None:
    agent = tmp_path / "site" / "third_agent.py"
    agent.write_text(agent.read_text().replace("    calls_from = None\n", "").replace("def mounts", "def mount"))
    session = Session(pytester, third, "--model", "third:edit")
    assert session.code == pytest.ExitCode.USAGE_ERROR
    assert "agent 'third' (third_agent:HARNESS) is no harness: it lacks calls_from, mounts" in session.text
    assert not session.runs
