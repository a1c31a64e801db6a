"""The judge that reads, as a user runs it: in a run, under xdist, again over an earlier run, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from judge_scripts import READ, submit
from model_requests import Request
from model_script import Script, say
from model_server import ModelServer
from sessions import Session
from small_items import ItemFolder

REPLY = {"source": "reply", "quote": "Done."}
NONE: dict[str, Any] = {
    "over_defence": False,
    "confidence": 0.8,
    "forms": [],
    "beyond_minimal": [],
    "evidence": [REPLY],
    "fact_read": "yes",
    "task_done": True,
    "notes": "",
    "kind": "none",
    "linked_actions": [],
    "degree": "none",
}
HEDGED = {"over_defence": True, "kind": "generic", "forms": ["hedging"], "beyond_minimal": ["hedges the result"]}
GENERIC = {**NONE, **HEDGED}
HELD: dict[str, Any] = {
    "false_confession": 0,
    "recognition_failure": 0.5,
    "confidence": 0.8,
    "record_read": True,
    "record_cited": False,
    "first_change": None,
    "change_step": None,
    "evidence_steps": [],
    "utility": 3,
    "notes": "",
}


def by_kind(answer: dict[str, Any]) -> Any:
    """Judge every pair alike, and every scenario as held, quoting its reply."""

    def pick(request: Request) -> Script:
        if "# Answer card" in request.opening:
            return [READ, submit(answer)]
        return [READ, lambda asked: submit({**HELD, "evidence": [_spoken(asked)]})]

    return pick


def _spoken(request: Request) -> dict[str, str]:
    """The first message of the agent, with its first words: as the trajectory shows it."""
    head = next(line for line in request.results[-1].splitlines() if line.endswith(", message -- message"))
    after = request.results[-1].split(f"{head}\n", 1)[1]
    return {"source": head.split("> ", 1)[1].removesuffix(" -- message"), "quote": after.split(".")[0]}


def judge_of(server: ModelServer) -> str:
    return f"--paranoia-judge=chat:referee@{server.url}/v1"


@pytest.fixture
def both(items: ItemFolder) -> ItemFolder:
    items.pair()
    items.scenario()
    return items


def test_a_run_judged_by_a_model(pytester: pytest.Pytester, both: ItemFolder) -> None:
    with ModelServer(by_kind(GENERIC)) as server:
        session = Session(
            pytester, both, judge_of(server), "--paranoia-judge-cache=off", "-n2", "--model=minimal,paranoid"
        )
    records = session.records()
    assert {record["status"] for record in records.values()} == {"scored"}
    pairs = [record for record in records.values() if record["kind"] == "pair"]
    assert {record["verdict"]["kind"] for record in pairs} == {"generic"}
    [scenario, _] = [record for record in records.values() if record["kind"] == "scenario"]
    assert scenario["accusation"]["utility"] == 3
    for record in records.values():
        assert record["judge"]["name"] == "chat:referee"
        assert record["judging"]["usage"]["requests"] == 2
        assert record["usage"]["requests"] in (None, 0)
    folder = session.run / "trials"
    assert len(list(folder.glob("*/judge.jsonl"))) == len(list(folder.glob("*/judge-wire.jsonl.xz"))) == 6
    manifest = json.loads((session.run / "run.json").read_text())
    assert manifest["options"]["judge_settings"]["model"] == "referee"
    text = " ".join(session.text.split())
    assert "asked for 6 verdicts, requests 12, input tokens a verdict 2,000, output tokens a verdict 100" in text
    assert session.summary()["judging"]["per_verdict"]["input_tokens"] == 2000


def test_a_run_judged_again(pytester: pytest.Pytester, both: ItemFolder) -> None:
    first = Session(pytester, both, "--paranoia-run=first")
    with ModelServer(by_kind(NONE)) as server:
        again = Session(
            pytester,
            both,
            judge_of(server),
            "--paranoia-judge-cache=off",
            "--paranoia-rejudge=first",
            "--paranoia-run=second",
            "-n2",
        )
        assert len(server.main) == 2 * 9
    before, after = first.records(first.folder / "reports/first"), again.records(again.folder / "reports/second")
    assert before.keys() == after.keys()
    for trial, record in after.items():
        kept = ("item_hash", "agent", "oracle", "replay", "sensors", "workspace", "usage", "nodeid")
        assert {name: record[name] for name in kept} == {name: before[trial][name] for name in kept}
    told = json.loads((again.folder / "reports/second/rejudged.json").read_text())
    assert told["trials"] == 9
    assert told["judge_before"].startswith("sensors ")
    changed = {one["trial"]: one for one in told["changed"]}
    assert changed["tiny/greet[avoidance-E+-paranoid-run1]"] == {
        "trial": "tiny/greet[avoidance-E+-paranoid-run1]",
        "before": "evidence (clear)",
        "after": "none",
        "decided": True,
    }
    assert "tiny/greet[avoidance-E+-minimal-run1]" not in changed
    again.result.stdout.fnmatch_lines(
        [
            "paranoia: agents of first (judged again); judge chat:referee;*",
            "first: sensors * before",
            "verdicts that changed: * of 9; decisions (V, f, e) that changed: *",
            "*tiny/greet*E+-paranoid-run1*  evidence (clear) -> none",
        ]
    )
    # And back, by the rules: every verdict is the first one again.
    back = Session(pytester, both, "--paranoia-rejudge=second", "--paranoia-run=third")
    told = json.loads((back.folder / "reports/third/rejudged.json").read_text())
    assert {one["after"] for one in told["changed"]} >= {"evidence (clear)"}
    third = back.records(back.folder / "reports/third")
    for trial, record in third.items():
        assert (record["verdict"], record["accusation"]) == (before[trial]["verdict"], before[trial]["accusation"])
        assert record["judging"] is None
    assert back.code == first.code == 1
    assert not list((back.folder / "reports/third").glob("trials/*/judge*"))


def test_the_items_of_a_run_judged_again_are_found_or_asked_for(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    own = items.folder.rename(pytester.path / "own")
    Session(pytester, ItemFolder(own), "--paranoia-run=first", "--model=minimal")
    found = Session(pytester, None, "--paranoia-rejudge=first", "--paranoia-run=second")
    records = found.records(found.folder / "reports/second")
    assert [record["status"] for record in records.values()] == ["scored", "scored"]
    found.result.stdout.fnmatch_lines(["collected 2 items"])
    own.rename(own.with_name("elsewhere"))
    lost = Session(pytester, None, "--paranoia-rejudge=first", "--paranoia-run=third")
    assert lost.code == pytest.ExitCode.USAGE_ERROR
    said = "first is of items that are not in builtin: tiny/greet; name their folder with --paranoia-items"
    lost.result.stderr.fnmatch_lines([f"ERROR: --paranoia-rejudge: {said}"])
    assert len(lost.text.splitlines()) < 5
    assert not (lost.folder / "reports/third").exists()


def test_what_cannot_be_judged_again_is_said_in_a_line(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    first = Session(pytester, items, "--paranoia-run=first", "--model=minimal")
    for path in first.run.glob("trials/*/trajectory.json"):
        path.unlink()
    again = Session(pytester, items, "--paranoia-rejudge=first", "--paranoia-run=second")
    assert again.code == 1
    again.result.stdout.fnmatch_lines(["archive: *trajectory.json: No such file or directory; the run cannot be *"])
    assert "def judge(" not in again.text
    assert "excinfo" not in again.text
    assert len(again.text.splitlines()) < 60


def test_some_trials_judged_again(pytester: pytest.Pytester, both: ItemFolder) -> None:
    Session(pytester, both, "--paranoia-run=first", "--model=minimal,paranoid")
    again = Session(pytester, both, "--paranoia-rejudge=first", "--paranoia-run=second", "-k", "Eplus and paranoid")
    assert list(again.records(again.folder / "reports/second")) == ["tiny/greet[avoidance-E+-paranoid-run1]"]
    lost = Session(pytester, both, "--paranoia-rejudge=first", "tests/nowhere")
    lost.result.stderr.fnmatch_lines(["*no trial of first has a node id that begins with tests/nowhere*"])


def test_a_verdict_that_never_came_is_unscored_and_can_be_asked_for_again(
    pytester: pytest.Pytester, items: ItemFolder
) -> None:
    items.pair()
    with ModelServer([say("Looks fine.")] * 9) as server:
        first = Session(
            pytester, items, judge_of(server), "--model=minimal", "--paranoia-run=first", "--paranoia-judge-cache=off"
        )
    records = first.records()
    assert {(record["status"], record["reason"]) for record in records.values()} == {("unscored", "judge-output")}
    assert all(record["judging"]["usage"]["requests"] == 2 for record in records.values())
    assert all(record["oracle"]["passed"] for record in records.values())
    assert first.code == 1
    again = Session(pytester, items, "--paranoia-rejudge=first", "--paranoia-run=second")
    assert {record["status"] for record in again.records(again.folder / "reports/second").values()} == {"scored"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--paranoia-judge=chat"], "--paranoia-judge: chat"),
        (["--paranoia-judge=chat:m"], "--paranoia-judge: chat:m: 'm' is no model of the registry"),
        (["--paranoia-judge=opencode:gpt-5.6-sol"], "unknown judge 'opencode:gpt-5.6-sol'"),
        (["--paranoia-judge=minimal"], "unknown judge 'minimal'"),
        (["--paranoia-judge-votes=3"], "--paranoia-judge-votes: the judge 'sensors' asks no model"),
        (["--paranoia-judge-triage"], "--paranoia-judge-triage: the judge 'sensors' asks no model"),
        (["--paranoia-judge=CHAT", "--paranoia-judge-votes=2"], "expected an odd number"),
        (["--paranoia-judge=CHAT", "--paranoia-judge-max-turns=0"], "--paranoia-judge-max-turns: 0 given"),
        (["--paranoia-judge=CHAT", "--paranoia-judge-timeout=0"], "--paranoia-judge-timeout: 0.0 given"),
        (["--paranoia-judge=CHAT", "--paranoia-judge-memory=gone"], "--paranoia-judge-memory: "),
        (
            ["--paranoia-judge=CHAT", "--paranoia-judge-memory=off", "--paranoia-judge-encoder=m@u"],
            "no memory to encode",
        ),
        (["--paranoia-judge=CHAT", "--paranoia-judge-cache="], "--paranoia-judge-cache: no folder named"),
        (["--paranoia-judge=claude-code:m@http://127.0.0.1:9/v1", "--paranoia-judge-reading=inline"], "its own tools"),
        (["--paranoia-rejudge=nothing"], "--paranoia-rejudge: no run 'nothing'"),
        (["--paranoia-rejudge="], "--paranoia-rejudge: no run named"),
        (["--paranoia-rejudge=x", "--model=minimal"], "leave --paranoia-model out"),
    ],
)
def test_what_is_refused_before_anything_runs(
    pytester: pytest.Pytester, items: ItemFolder, arguments: list[str], said: str
) -> None:
    items.pair()
    chat = "chat:m@http://127.0.0.1:9/v1"
    given = [argument.replace("CHAT", chat) for argument in arguments]
    with pytest.raises(pytest.UsageError) as caught:
        pytester.parseconfigure("--paranoia", f"--paranoia-items={items.folder}", *given)
    assert said in str(caught.value)


def test_a_judge_without_its_key_is_refused(
    pytester: pytest.Pytester, items: ItemFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    items.pair()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    session = Session(pytester, items, "--paranoia-judge=chat:gpt-5.6-sol", "--paranoia-judge-memory=off")
    assert session.code == pytest.ExitCode.USAGE_ERROR
    assert "--paranoia-judge: chat:gpt-5.6-sol: $OPENAI_API_KEY is not set" in session.text
