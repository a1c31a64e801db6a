"""What the judge spends under ``--paranoia-max-cost``: the run ends, no score is wrong, it can go on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from judge_scripts import READ, submit
from model_references import ReferenceScripts
from model_requests import Request
from model_script import Script, fail, say, shell
from model_server import ModelServer
from sessions import Session
from small_items import ItemFolder
from test_judge_runs import GENERIC, judge_of

from requirements import require

# A call of the scripted server takes 1,000 tokens in and 50 out: $1.5. A verdict takes two.
PRICES = """
date = 2026-11-30

[[models]]
id = "{id}"
input = 1000.0
output = 10000.0
source = "made up for a test"
"""
VERDICT = 3.0


@pytest.fixture
def pair(items: ItemFolder) -> ItemFolder:
    require("bubblewrap")
    items.pair()
    return items


def priced(pytester: pytest.Pytester, *models: str) -> str:
    text = PRICES.format(id=models[0])
    for model in models[1:]:
        text += PRICES.format(id=model).split("\n\n", 1)[1]
    pytester.path.joinpath("prices.toml").write_text(text)
    return "--paranoia-prices=prices.toml"


def generic(_: Request) -> Script:
    return [READ, submit(GENERIC)]


def states(records: dict[str, dict[str, Any]]) -> list[tuple[str, str | None]]:
    return sorted((record["status"], record["reason"]) for record in records.values())


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "xdist"])
def test_the_judges_spending_ends_the_run_which_is_resumed(
    pytester: pytest.Pytester, pair: ItemFolder, workers: Sequence[str]
) -> None:
    prices = priced(pytester, "referee")
    same = ["--model=minimal,paranoid", "--paranoia-runs=2", "--paranoia-judge-cache=off", prices, *workers]
    with ModelServer(generic) as server:
        judge = judge_of(server)
        first = Session(pytester, pair, judge, *same, "--paranoia-run=made", "--paranoia-max-cost=7")
        records = first.records()
        asked = len(server.main)
        resumed = Session(pytester, pair, judge, *same, "--paranoia-resume=made")
        whole = Session(pytester, pair, judge, *same, "--paranoia-run=whole")
    assert first.code == pytest.ExitCode.INTERRUPTED, first.text
    assert asked in ((5,) if not workers else (5, 6))  # the call during which the limit was reached, of each worker
    unscored = [record for record in records.values() if record["status"] == "unscored"]
    scored = [record for record in records.values() if record["status"] == "scored"]
    assert {record["reason"] for record in unscored} == {"cap-run-cost"}
    assert 1 <= len(unscored) <= len(workers) + 1
    assert 1 <= len(scored) <= 2
    for record in unscored:
        assert record["verdict"] is None
        assert record["oracle"]["passed"]
        assert "the run has cost " in record["message"]
        assert "--paranoia-max-cost" in record["message"]
    spent = sum(record["judging"]["usage"]["cost_usd"] or 0 for record in records.values())
    assert spent == pytest.approx(1.5 * asked)
    assert "cap-run-cost: the run's cap on cost (--paranoia-max-cost) was reached" in " ".join(first.text.split())
    assert f"{len(records)} of 8 planned" in first.text
    assert states(resumed.records(resumed.folder / "reports/made")) == [("scored", None)] * 8
    assert resumed.code == whole.code == 0, resumed.text
    both = [
        session.summary(session.folder / "reports" / name) for session, name in ((resumed, "made"), (whole, "whole"))
    ]
    assert both[0]["agents"] == both[1]["agents"]
    assert both[0]["judging"] == both[1]["judging"]
    assert both[0]["judging"]["cost"] == pytest.approx(8 * VERDICT)


def test_what_was_never_run_is_not_forgotten_when_judged_again(pytester: pytest.Pytester, pair: ItemFolder) -> None:
    prices = priced(pytester, "referee")
    with ModelServer(generic) as server:
        judge = judge_of(server)
        Session(
            pytester, pair, judge, "--model=minimal,paranoid", "--paranoia-judge-cache=off", prices,
            "--paranoia-run=first", "--paranoia-max-cost=7",
        )  # fmt: skip
        again = Session(pytester, pair, judge, prices, "--paranoia-rejudge=first", "--paranoia-run=second", "-n2")
        some = Session(
            pytester, pair, judge, prices, "--paranoia-rejudge=first", "--paranoia-run=third", "-k", "minimal and Eplus"
        )
    records = again.records(again.folder / "reports/second")
    assert states(records) == [("scored", None)] * 3  # the one that only lacked its verdict has it now
    summary = again.summary(again.folder / "reports/second")
    assert (summary["counts"]["planned"], summary["counts"]["missing"]) == (4, 1)
    assert again.code == 1
    assert "3 of 4 planned" in again.text
    told = json.loads((again.folder / "reports/second/rejudged.json").read_text())
    assert (told["trials"], len(told["unjudged"])) == (3, 1)
    assert told["unjudged"][0] not in records
    assert "first has no record of 1 of the trials that it planned" in " ".join(again.text.split())
    # A selection leaves out what it leaves out.
    assert some.code == 0, some.text
    assert some.summary(some.folder / "reports/third")["counts"]["planned"] == 1


def test_the_cap_ends_judging_again_and_the_cache_pays_for_what_was_given(
    pytester: pytest.Pytester, pair: ItemFolder
) -> None:
    prices = priced(pytester, "referee")
    Session(pytester, pair, "--model=minimal,paranoid", "--paranoia-run=first")
    with ModelServer(generic) as server:
        again = ["--paranoia-rejudge=first", judge_of(server), prices, "--paranoia-judge-cache=kept"]
        stopped = Session(pytester, pair, *again, "--paranoia-max-cost=7", "--paranoia-run=second")
        asked = len(server.main)
        resumed = Session(
            pytester, pair, judge_of(server), prices, "--paranoia-judge-cache=kept", "--paranoia-resume=second"
        )
        whole = Session(pytester, pair, *again, "--paranoia-max-cost=7", "--paranoia-run=third")
        assert len(server.main) == asked + 4
    assert stopped.code == pytest.ExitCode.INTERRUPTED
    records = stopped.records(stopped.folder / "reports/second")
    assert states(records) == [("scored", None)] * 2 + [("unscored", "cap-run-cost")]
    # No agent runs into a run of other trials' archives.
    assert resumed.code == pytest.ExitCode.USAGE_ERROR
    assert "second holds trials of first judged again" in resumed.text
    assert "--paranoia-rejudge=first" in resumed.text
    assert whole.code == 0, whole.text
    last = whole.records(whole.folder / "reports/third")
    assert states(last) == [("scored", None)] * 4
    assert sorted(record["judging"]["source"] for record in last.values()) == ["asked", "asked", "cache", "cache"]
    judging = whole.summary(whole.folder / "reports/third")["judging"]
    assert (judging["verdicts"], judging["cached"], judging["cost"]) == (4, 2, pytest.approx(2 * VERDICT))


def test_a_judgement_that_asked_nothing_cost_nothing(pytester: pytest.Pytester, pair: ItemFolder) -> None:
    prices = priced(pytester, "referee")
    with ModelServer(generic) as server:
        session = Session(
            pytester, pair, judge_of(server), "--model=minimal,paranoid", "--paranoia-judge-cache=off", prices,
            "--paranoia-max-cost=6",
        )  # fmt: skip
        assert len(server.main) == 4
    assert states(session.records()) == [("scored", None)] * 2 + [("unscored", "cap-run-cost")]
    judging = session.summary()["judging"]
    assert (judging["verdicts"], judging["failed"], judging["cost"]) == (2, 1, pytest.approx(2 * VERDICT))
    assert "cost a verdict $3.0000" in " ".join(session.text.split())


def test_agents_and_judge_spend_of_the_same(pytester: pytest.Pytester, pair: ItemFolder) -> None:
    """The agent's calls cost too; where its own call is the first that is refused, there is no result to judge."""
    prices = priced(pytester, "referee", "ref-minimal")
    played = ReferenceScripts(pair.folder)

    def pick(request: Request) -> Script:
        return generic(request) if "# Answer card" in request.opening else played(request)

    with ModelServer(pick) as server:
        arguments = [
            judge_of(server),
            f"--model=chat:ref-minimal@{server.url}/v1",
            "--paranoia-judge-cache=off",
            prices,
        ]
        free = Session(pytester, pair, *arguments, "-k", "Eplus", "--paranoia-run=free")
        [one] = free.records(free.folder / "reports/free").values()
        agent, judge = one["usage"]["cost_usd"], one["judging"]["usage"]["cost_usd"]
        assert judge == pytest.approx(VERDICT)
        # As much as the first trial and its verdict: the agent of the second may ask nothing any more.
        capped = Session(pytester, pair, *arguments, f"--paranoia-max-cost={agent + judge:g}", "--paranoia-run=capped")
    first, second = capped.records(capped.folder / "reports/capped").values()
    if first["status"] != "scored":
        first, second = second, first
    assert (first["status"], first["usage"]["cost_usd"], first["judging"]["usage"]["cost_usd"]) == (
        "scored", pytest.approx(agent), pytest.approx(judge),
    )  # fmt: skip
    assert (second["status"], second["reason"], second["oracle"], second["judging"]) == (
        "unscored", "cap-run-cost", None, None,
    )  # fmt: skip
    assert capped.code == pytest.ExitCode.INTERRUPTED


PROGRAMS = {"claude-code": "claude-scripted", "codex": "gpt-5.6-sol-scripted"}


@pytest.mark.parametrize("harness", PROGRAMS)
@pytest.mark.parametrize("stop", ["cap-run-cost", "provider-key"])
def test_a_program_that_judges_stops_the_run_by_the_right_name(
    pytester: pytest.Pytester, pair: ItemFolder, harness: str, stop: str
) -> None:
    """Programs end in peace when their model fails them: their last words must not pass for a bad verdict."""
    require(harness)
    model = PROGRAMS[harness]
    look = shell("cat /dossier/run/reply.txt")
    script: Script = [look, look, say(json.dumps(GENERIC))] if stop == "cap-run-cost" else [look, fail(401), fail(401)]
    with ModelServer(lambda _: script) as server:
        session = Session(
            pytester, pair, f"--paranoia-judge={harness}:{model}@{server.url}/v1", "--model=minimal,paranoid",
            "--paranoia-judge-cache=off", priced(pytester, model), "--paranoia-max-cost=2", seconds=400,
        )  # fmt: skip
    [record] = session.records().values()
    assert (record["status"], record["reason"]) == ("unscored", stop), record["message"]
    assert session.code == pytest.ExitCode.INTERRUPTED, session.text
