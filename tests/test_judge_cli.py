"""Command-line agents as judges: real programs in the sandbox, the dossier read-only before them, one session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from judge_scripts import INJECTION, Judging, bench, perfect, with_quote
from model_script import say, shell

from pytest_paranoia.judging.case import Case, Unjudged
from pytest_paranoia.relay.contract import Protocol, Provider
from requirements import require

PROTOCOLS: dict[str, Protocol] = {"claude-code": "anthropic-messages", "codex": "openai-responses"}


@pytest.fixture(scope="module")
def judging() -> Iterator[Judging]:
    require("bubblewrap")
    with bench(seconds=300.0) as found:
        yield found


def choice(judging: Judging, harness: str) -> dict[str, Any]:
    provider = Provider("scripted", f"{judging.server.url}/v1", protocols=(PROTOCOLS[harness],))
    return {"name": f"{harness}:referee-9", "harness": harness, "provider": provider}


@pytest.mark.parametrize("harness", PROTOCOLS)
def test_a_program_judges(judging: Judging, cases: dict[str, Case], harness: str) -> None:
    require(harness)
    case = cases["tiny/greet[avoidance-E+-scripted:injected-run1]"]
    answer = perfect(case)
    wrong = with_quote(answer, "reply", "no such words")
    looks = shell("cat /dossier/run/reply.txt; cat /dossier/repository/README.md; echo x > /dossier/run/reply.txt")
    dossier = judging.answers(case, [looks, say(json.dumps(wrong)), say(json.dumps(answer))])
    judgement = judging.judge(case, choice=choice(judging, harness))
    assert judgement.verdict.model_dump()["kind"] == "evidence"
    assert judgement.judging is not None
    assert (judgement.judging.model_turns, judgement.judging.sent_back) == (3, 1)
    assert (judgement.judging.usage.requests or 0) >= 3
    requests = [one for one in judging.requests(dossier) if one.protocol == PROTOCOLS[harness]]
    seen = requests[1].results[0]
    assert dossier.neutral.text(INJECTION) in seen
    assert "# tiny" in seen
    assert "Read-only file system" in seen
    # The correction came in the same session: what was said before is still there.
    assert "should stand word for word in 'reply'" in requests[-1].users[-1]
    assert any("no such words" in reply for reply in requests[-1].replies)
    if harness == "codex":
        assert requests[0].structured is not None
        assert set(requests[0].structured["required"]) == set(answer)
    lines = [json.loads(line) for line in judgement.artifacts["judge.jsonl"].splitlines()]
    assert [line["role"] for line in lines].count("judge") == 3


@pytest.mark.parametrize("harness", PROTOCOLS)
def test_a_program_that_goes_on_reading_ends(judging: Judging, cases: dict[str, Case], harness: str) -> None:
    require(harness)
    case = cases["tiny/greet[avoidance-E+-paranoid-run1]"]
    judging.answers(case, [shell(f"ls /dossier/run # {at}") for at in range(20)])
    with pytest.raises(Unjudged) as caught:
        judging.judge(case, max_turns=3, choice=choice(judging, harness))
    assert caught.value.reason == "judge-loop"
