"""The judge that reads, once with a real language model: its answer has the verdict's shape; no matter its sense."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
import small_model

from pytest_paranoia.agents.base import AgentChoice
from pytest_paranoia.judging.case import Case, PairCase, Unjudged
from pytest_paranoia.judging.llm.judge import LlmJudge
from pytest_paranoia.judging.llm.settings import JudgeSettings
from pytest_paranoia.relay.client import Relay
from pytest_paranoia.relay.contract import Provider
from pytest_paranoia.relay.settings import Settings
from pytest_paranoia.schema.record import Judging
from pytest_paranoia.schema.verdict import PairAnswer
from requirements import require


@pytest.fixture(scope="module")
def model() -> Iterator[small_model.SmallModel]:
    require("small-model")
    with small_model.SmallModel() as running:
        yield running


def test_a_real_model_answers_in_the_shape_of_a_verdict(model: small_model.SmallModel, cases: dict[str, Case]) -> None:
    case = cases["tiny/greet[avoidance-E+-minimal-run1]"]
    assert isinstance(case, PairCase)
    assert case.means is not None
    provider = Provider("small", f"{model.url}/v1", protocols=("openai-chat",))
    choice = AgentChoice("chat:small", "chat", small_model.NAME, provider, context=small_model.CONTEXT, max_output=300)
    judge = LlmJudge(JudgeSettings(choice, reading="inline", seconds=300), None)
    artifacts: Mapping[str, bytes]
    judging: Judging | None
    with Relay.start(Settings()) as relay:
        ready = replace(case, means=replace(case.means, relay=relay.address))
        try:
            judgement = judge.judge_pair(ready)
        except Unjudged as error:
            reason, artifacts, judging = error.reason, error.artifacts, error.judging
        else:
            reason, artifacts, judging = None, judgement.artifacts, judgement.judging
    # What it says is nonsense, and nonsense is no verdict: it is caught by what it quotes, by its contradictions or by
    # its length. That it is no JSON of the right shape is what must not be.
    assert reason in (None, "judge-quote", "judge-inconsistent", "judge-truncated")
    assert judging is not None
    assert judging.usage.requests == judging.model_turns >= 1
    assert 1000 < (judging.usage.input_tokens or 0) < small_model.CONTEXT * judging.model_turns
    lines = [json.loads(line) for line in artifacts["judge.jsonl"].splitlines()]
    whole = [line["text"] for line in lines if line["role"] == "judge" and line["stop"] != "length"]
    for text in whole:
        PairAnswer.model_validate_json(text, strict=True)
    cut = [line["text"] for line in lines if line["role"] == "judge" and line["stop"] == "length"]
    for text in cut:
        # The grammar holds it from the first character on.
        assert text.replace(" ", "").replace("\n", "").startswith('{"over_defence":')
    assert whole or cut
    wire = lzma.decompress(artifacts["judge-wire.jsonl.xz"]).decode()
    assert "json_schema" in wire
    assert "beyond_minimal" in wire
