"""ATIF in and out: lossless for what the format allows, tolerant of what producers add, plain about the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_paranoia.errors import ManifestError
from pytest_paranoia.schema import atif
from pytest_paranoia.scoring.sensors.actions import actions_of

words = st.text(max_size=12)
numbers = st.integers(0, 2**40)
leaves = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | words
)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3))
extras = st.dictionaries(words, values, max_size=3)
stamps = st.sampled_from(["2026-10-18T10:11:12Z", "2026-10-18T10:11:12.345+02:00"])


def some(**fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with any subset of *fields*: ATIF has no null, only absent keys."""
    return st.fixed_dictionaries({}, optional=fields)


parts = st.fixed_dictionaries({"type": st.just("text"), "text": words}) | st.fixed_dictionaries(
    {"type": st.just("image"), "source": st.just({"media_type": "image/png", "path": "a.png"})}
)
messages = words | st.lists(parts, max_size=2)
metrics = some(
    prompt_tokens=numbers, completion_tokens=numbers, cached_tokens=numbers, cost_usd=st.floats(0, 9), extra=extras
)


@st.composite
def steps(draw: st.DrawFn, number: int, children: list[str]) -> dict[str, Any]:
    source = draw(st.sampled_from(["user", "system", "agent"]))
    step = {
        "step_id": number,
        "source": source,
        "message": draw(messages),
        **draw(some(timestamp=stamps, extra=extras)),
    }
    if source != "agent":
        return step
    calls = draw(
        st.lists(
            st.fixed_dictionaries({"function_name": words, "arguments": extras}, optional={"extra": extras}), max_size=3
        )
    )
    step |= draw(some(model_name=words, reasoning_content=words, metrics=metrics, reasoning_effort=words))
    if calls:
        step["tool_calls"] = [{"tool_call_id": f"call {at}", **call} for at, call in enumerate(calls)]
        results = []
        for at in range(len(calls)):
            result = {"source_call_id": f"call {at}", **draw(some(content=messages, extra=extras))}
            if children and draw(st.booleans()):
                result["subagent_trajectory_ref"] = [{"trajectory_id": draw(st.sampled_from(children))}]
            results.append(result)
        step["observation"] = {"results": results}
    return step


@st.composite
def trajectories(draw: st.DrawFn, depth: int = 1) -> dict[str, Any]:
    children = draw(st.lists(words.filter(bool), max_size=2, unique=True)) if depth else []
    count = draw(st.integers(1, 4))
    whole = {
        "schema_version": draw(st.sampled_from(atif.VERSIONS)),
        "agent": {"name": draw(words), "version": draw(words), **draw(some(model_name=words, extra=extras))},
        "steps": [draw(steps(at, children)) for at in range(1, count + 1)],
        **draw(some(session_id=words, notes=words, extra=extras)),
    }
    if children:
        whole["subagent_trajectories"] = [{**draw(trajectories(0)), "trajectory_id": name} for name in children]
    return whole


@settings(max_examples=200, deadline=None)
@given(trajectories())
def test_a_round_trip_loses_nothing(data: dict[str, Any]) -> None:
    text = json.dumps(data)
    trajectory = atif.parse(text, "t.json")
    assert atif.dump(trajectory) == json.loads(text)
    assert atif.parse(atif.dump(trajectory), "again") == trajectory


@settings(max_examples=100, deadline=None)
@given(
    trajectories(),
    st.text("abcdefgh_", min_size=1, max_size=8).map("x_".__add__),
    values.filter(lambda v: v is not None),
)
def test_foreign_keys_anywhere_are_kept(data: dict[str, Any], name: str, value: Any) -> None:
    data["steps"][0][name] = value
    data["agent"][name] = value
    trajectory = atif.parse(data, "t.json")
    kept = trajectory.steps[0].extra or {}
    assert kept[name] == value
    assert (trajectory.agent.extra or {})[name] == value
    assert atif.dump(trajectory)["steps"][0]["message"] == data["steps"][0]["message"]


def _file(**step: Any) -> dict[str, Any]:
    return {
        "schema_version": "ATIF-v1.7",
        "agent": {"name": "claude-code", "version": "2.0"},
        "steps": [{"step_id": 1, "source": "agent", "message": "", **step}],
    }


def test_what_real_files_add() -> None:
    call = {"tool_call_id": "c", "function_name": "Bash", "arguments": {"command": "ls", "timeout": None}}
    data = _file(
        is_sidechain=False,
        tool_calls=[{**call, "caller": {"type": "direct"}}],
        observation={
            "results": [
                {"source_call_id": "c", "content": [{"type": "text", "text": "a", "cache": 1}], "is_error": True}
            ],
            "note": "seen",
        },
    )
    trajectory = atif.parse(data, "t.json")
    step = trajectory.steps[0]
    assert step.extra == {"is_sidechain": False, "unknown_keys": {"observation.note": "seen"}}
    assert step.tool_calls is not None
    assert step.tool_calls[0].extra == {"caller": {"type": "direct"}}
    assert step.tool_calls[0].arguments == {"command": "ls", "timeout": None}
    assert step.observation is not None
    assert step.observation.results[0].extra == {"is_error": True, "unknown_keys": {"content.0.cache": 1}}
    [action] = actions_of(trajectory)
    assert (action.kind, action.text, action.failed) == ("command", "ls", True)


def test_a_foreign_key_does_not_replace_what_extra_says() -> None:
    step = atif.parse(_file(mark=1, extra={"mark": 2}), "t.json").steps[0]
    assert step.extra == {"mark": 2, "unknown_keys": {"mark": 1}}


def test_a_single_reference_of_the_first_versions() -> None:
    data = _file(observation={"results": [{"subagent_trajectory_ref": {"session_id": "s"}}]})
    step = atif.parse(data, "t.json").steps[0]
    assert step.observation is not None
    assert step.observation.results[0].subagent_trajectory_ref == [{"session_id": "s"}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not readable as JSON"),
        ("[]", "found list, expected a JSON object"),
        (
            json.dumps({**_file(), "schema_version": "ATIF-v2.0"}),
            "found 'ATIF-v2.0', expected one of ATIF-v1.0 to ATIF-v1.8",
        ),
        (json.dumps(_file(step_id=2)), "not sequential"),
        (
            json.dumps(_file(source="tool")),
            "key 'steps[0].source': found 'tool', expected 'system', 'user' or 'agent'; mend the file, or leave it out",
        ),
        (json.dumps({**_file(), "subagent_trajectories": [_file()]}), "trajectory_id of its own"),
        (json.dumps(_file(observation={"results": [{"source_call_id": "x"}]})), "names no tool call"),
    ],
)
def test_what_cannot_be_read_is_said(content: str, message: str) -> None:
    with pytest.raises(ManifestError, match=r"^t\.json: ") as raised:
        atif.parse(content, "t.json")
    assert message in str(raised.value)
