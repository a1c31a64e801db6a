"""Judges that read where trials run in containers: live, again over an earlier run, our tool loop and real programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from docker_lab import images_removed, none_left
from judge_scripts import READ, submit
from model_references import ReferenceScripts
from model_requests import Request
from model_script import Script, say, shell, tool
from model_server import ModelServer
from sessions import Session
from small_items import ItemFolder
from test_judge_runs import GENERIC, HELD, _spoken, judge_of

from requirements import require

DOCKER = "--paranoia-environment=docker"
MODELS = ["--model=minimal,paranoid", "--paranoia-judge-cache=off"]
LOOKS = [
    tool("list_files", {"path": "repository"}),
    tool("search", {"regex": "def greet|retries = ", "path": ""}),
    tool("git_show", {"object": "HEAD:README.md"}),
    tool("diff", {}),
]


@pytest.fixture(autouse=True)
def _docker() -> None:
    require("docker")


@pytest.fixture
def both(items: ItemFolder) -> ItemFolder:
    items.pair()
    items.scenario()
    return items


def looking(request: Request) -> Script:
    """Use every tool, then find every pair generic and every scenario held."""
    if "# Answer card" in request.opening:
        return [*LOOKS, READ, submit(GENERIC)]
    return [*LOOKS[:2], READ, lambda asked: submit({**HELD, "evidence": [_spoken(asked)]})]


def seen(server: ModelServer) -> dict[str, list[str]]:
    """What the tools gave, by the first words of each dialogue, in the order in which they were asked."""
    found: dict[str, list[str]] = {}
    for exchange in server.main:
        found[exchange.request.opening] = list(exchange.request.results)
    return found


def judgements(session: Session, run: str) -> dict[str, Any]:
    """What the judge said of each trial and what that took."""
    kept = ("status", "reason", "verdict", "accusation", "judge")
    return {
        trial: {**{name: record[name] for name in kept}, "requests": record["judging"]["usage"]["requests"]}
        for trial, record in session.records(session.folder / "reports" / run).items()
    }


def test_a_model_judges_in_containers_as_elsewhere(pytester: pytest.Pytester, both: ItemFolder) -> None:
    runs: dict[str, dict[str, list[str]]] = {}
    for place, options in {"local": [], "docker": [DOCKER, "-n2"]}.items():
        with images_removed("tiny"), ModelServer(looking) as server:
            session = Session(
                pytester, both, judge_of(server), *MODELS, f"--paranoia-run={place}", *options, seconds=300
            )
            runs[place] = seen(server)
            assert {record["status"] for record in judgements(session, place).values()} == {"scored"}, session.text
    assert none_left("docker")
    assert len(runs["docker"]) == 6
    # The judge was shown the very same: it cannot tell where the trials ran.
    assert runs["docker"] == runs["local"]
    pairs = [results for opening, results in runs["docker"].items() if "# Answer card" in opening]
    for listed, found, shown, diff, _ in pairs:
        assert "repository/src/" in listed
        assert "repository/src/tiny/__init__.py:1:def greet(name):" in found
        assert "# tiny" in shown
        assert "+    return 'Hello ' + name + '!'" in diff
    ours, theirs = (
        {trial: {**one, "judge": one["judge"]["name"]} for trial, one in judgements(session, place).items()}
        for place in ("local", "docker")
    )
    assert theirs == ours


@pytest.mark.parametrize("place", [[], [DOCKER]], ids=["local", "docker"])
def test_a_run_of_containers_is_judged_again(pytester: pytest.Pytester, both: ItemFolder, place: list[str]) -> None:
    with images_removed("tiny"):
        first = Session(pytester, both, DOCKER, "--model=minimal,paranoid", "--paranoia-run=first", seconds=300)
        with ModelServer(looking) as server:
            again = Session(
                pytester,
                both,
                judge_of(server),
                "--paranoia-judge-cache=off",
                "--paranoia-rejudge=first",
                "--paranoia-run=second",
                "-n2",
                *place,
                seconds=300,
            )
    before = first.records(first.folder / "reports/first")
    after = again.records(again.folder / "reports/second")
    assert before.keys() == after.keys()
    assert {record["status"] for record in after.values()} == {"scored"}, again.text
    for trial, record in after.items():
        kept = ("environment", "oracle", "replay", "sensors", "usage", "workspace", "item_hash", "tampering")
        assert {name: record[name] for name in kept} == {name: before[trial][name] for name in kept}
        assert record["judge"]["name"] == "chat:referee"
    manifests = [json.loads((again.folder / f"reports/{run}/run.json").read_text()) for run in ("first", "second")]
    assert manifests[1]["environment"] == manifests[0]["environment"]
    assert manifests[1]["environment"]["name"] == "docker"
    assert none_left("first")
    assert none_left("second")


PROTOCOLS = {"claude-code": "claude-scripted", "codex": "gpt-5.6-sol-scripted"}


@pytest.mark.parametrize("harness", PROTOCOLS)
def test_a_program_judges_in_a_container(pytester: pytest.Pytester, items: ItemFolder, harness: str) -> None:
    require(harness)
    items.pair()
    look = shell(
        "cat /dossier/run/reply.txt /dossier/repository/README.md; touch /dossier/run/x; id -u; ls -A /dossier"
    )
    judged = ReferenceScripts(items.folder)

    def pick(request: Request) -> Script:
        return [look, say(json.dumps(GENERIC))] if "# Answer card" in request.opening else judged(request)

    with images_removed("tiny"), ModelServer(pick) as server:
        session = Session(
            pytester,
            items,
            DOCKER,
            f"--paranoia-judge={harness}:{PROTOCOLS[harness]}@{server.url}/v1",
            f"--model=chat:ref-paranoid@{server.url}/v1",
            "--paranoia-judge-cache=off",
            "--paranoia-run=made",
            "-n2",
            seconds=400,
        )
    records = session.records()
    assert {(record["status"], record["reason"]) for record in records.values()} == {("scored", None)}, session.text
    assert {record["verdict"]["kind"] for record in records.values()} == {"generic"}
    results = [
        result
        for exchange in server.main
        if "# Answer card" in exchange.request.opening
        for result in exchange.request.results
    ]
    assert len(results) == 2
    for result in results:
        assert "Done." in result
        assert "# tiny" in result
        assert "Read-only file system" in result
    assert none_left("made")
    for folder in (session.run / "trials").iterdir():
        lines = _lines(folder / "judge.jsonl")
        roles = [line["role"] for line in lines]
        assert (roles[0], roles[-1], roles.count("judge"), "tool" in roles) == ("user", "judge", 2, True)


def _lines(path: Path) -> list[dict[str, Any]]:
    loads: Callable[[str], dict[str, Any]] = json.loads
    return [loads(line) for line in path.read_text().splitlines()]
