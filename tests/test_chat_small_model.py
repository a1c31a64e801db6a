"""The chat agent once against a real language model: real streaming, real structured output; no matter its sense."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import small_model
from cli_sessions import Bench, agent_steps

from pytest_paranoia.agents.chat import HARNESS
from pytest_paranoia.relay.contract import Provider
from requirements import require


@pytest.fixture(scope="module")
def model() -> Iterator[small_model.SmallModel]:
    require("small-model")
    with small_model.SmallModel() as running:
        yield running


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    require("bubblewrap")
    made = Bench(HARNESS, tmp_path)
    yield made
    made.close()


def start(bench: Bench, model: small_model.SmallModel, **choice: Any) -> Any:
    provider = Provider("small", f"{model.url}/v1", protocols=("openai-chat",))
    options: dict[str, Any] = {"max_output": 48, "context": small_model.CONTEXT, **choice}
    run = bench.start([], model=small_model.NAME, provider=provider, files={"a.txt": "one\n"}, seconds=300, **options)
    run.context.model_url = model.url
    return run


def test_a_conversation(bench: Bench, model: small_model.SmallModel) -> None:
    run = start(bench, model)
    run.say("Say hello.")
    trajectory = run.say("And now say goodbye.")
    steps = agent_steps(trajectory)
    assert len(steps) >= 2
    for step in steps:
        extra = step.extra or {}
        assert step.text or step.tool_calls
        assert extra["finish"] in ("stop", "length", "tool-calls")
        # The real server's own count of the real prompt, by the last chunk of the stream.
        assert 20 < extra["tokens"]["input"] < small_model.CONTEXT
        assert 0 < extra["tokens"]["output"] <= 48
    assert (steps[-1].extra or {})["tokens"]["input"] > (steps[0].extra or {})["tokens"]["input"]
    assert set(run.context.limits) <= {"output-tokens"}


def test_structured_output(bench: Bench, model: small_model.SmallModel) -> None:
    """Asked with a schema, the server's grammar keeps the words within it, piece by piece as they are streamed."""
    schema = {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["none", "generic"]},
            "reason": {"type": "string", "maxLength": 60},
        },
        "required": ["kind", "reason"],
        "additionalProperties": False,
    }
    run = start(bench, model, max_output=200)
    session = HARNESS.open(run.context)
    form = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": schema}}
    session._wire.optional["response_format"] = form
    run._session = session
    trajectory = run.say("Give a verdict on this run.")
    assert session._wire.optional["response_format"] == form  # the server took it
    verdict = json.loads(trajectory.reply)
    assert set(verdict) == {"kind", "reason"}
    assert verdict["kind"] in ("none", "generic")
    (step,) = agent_steps(trajectory)
    assert (step.extra or {})["finish"] == "stop"


def test_a_message_that_its_context_cannot_hold(bench: Bench, model: small_model.SmallModel) -> None:
    """The server's own words for it are understood: a declared end, as there is no tool output to leave out."""
    run = start(bench, model, context=None)
    run.say("word " * 2 * small_model.CONTEXT)
    assert run.context.limits == ["context"]
