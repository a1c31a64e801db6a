"""The chat agent's bookkeeping, without a model: room in the context, what goes back to an API, what a call must be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_paranoia.agents.chat.completions import _messages
from pytest_paranoia.agents.chat.conversation import (
    ELIDED,
    Answer,
    CallMade,
    Conversation,
    ToolGave,
    UserSaid,
    readable,
)
from pytest_paranoia.agents.chat.responses import _input
from pytest_paranoia.agents.chat.tools import SHOWN_CHARACTERS, TOOLS, problem, shortened
from pytest_paranoia.agents.chat.wire import _CONTEXT_FULL

CALLS = st.builds(CallMade, st.text(min_size=1, max_size=5), st.sampled_from(["bash", "x"]), st.text(max_size=20))
ANSWERS = st.builds(
    Answer,
    text=st.text(max_size=40),
    reasoning=st.text(max_size=20),
    calls=st.lists(CALLS, max_size=2).map(tuple),
    input_tokens=st.none() | st.integers(0, 5000),
    output_tokens=st.none() | st.integers(0, 500),
)
OUTPUTS = st.builds(ToolGave, st.text(min_size=1, max_size=5), st.integers(0, 3000).map("y".__mul__))
ENTRIES = st.lists(st.builds(UserSaid, st.text(max_size=40)) | ANSWERS | OUTPUTS, max_size=12)


def conversation(entries: list[Any]) -> Conversation:
    made = Conversation("system")
    for entry in entries:
        made.add(entry)
    return made


@given(ENTRIES, st.integers(0, 4000))
def test_leaving_out_saves_what_it_says_and_spares_the_newest(entries: list[Any], wanted: int) -> None:
    made = conversation(entries)
    outputs = [entry for entry in entries if isinstance(entry, ToolGave)]
    before = made.tokens()
    saved = made.elide(wanted)
    assert 0 <= before - made.tokens() <= saved
    assert not any(entry.elided for entry in outputs[-2:])
    assert (saved > 0) == any(entry.elided for entry in outputs)
    # Only as much as is wanted, the oldest first.
    gone = [entry.elided for entry in outputs if len(entry.text) > 400]
    assert gone == sorted(gone, reverse=True)
    if wanted == 0:
        assert saved == 0
    # Whatever is wanted, in the end there is nothing left to leave out.
    made.elide(10**9)
    assert made.elide(10**9) == 0


def test_the_api_s_count_is_believed_and_only_the_rest_is_estimated() -> None:
    made = conversation([UserSaid("x" * 7000)])
    assert 1900 < made.tokens() < 2100
    made.add(Answer("y", input_tokens=500, output_tokens=20))
    assert made.tokens() == 520
    made.add(ToolGave("c", "z" * 3500))
    assert 1500 < made.tokens() < 1600
    made.add(Answer("y"))  # an answer without usage changes nothing of what is known
    assert 1500 < made.tokens() < 1620


@given(ENTRIES)
def test_every_entry_reaches_both_apis_in_order(entries: list[Any]) -> None:
    made = conversation(entries)
    messages = _messages(made)
    assert messages[0] == {"role": "system", "content": "system"}
    assert len(messages) == len(entries) + 1
    for entry, message in zip(entries, messages[1:], strict=True):
        if isinstance(entry, UserSaid):
            assert message == {"role": "user", "content": entry.text}
        elif isinstance(entry, ToolGave):
            assert message["tool_call_id"] == entry.call_id
            assert message["content"] == entry.text
        else:
            assert (message["content"] or "") == entry.text
            assert [call["id"] for call in message.get("tool_calls", [])] == [call.call_id for call in entry.calls]
            for call in message.get("tool_calls", []):
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
    items = _input(made)
    assert [item["output"] for item in items if item["type"] == "function_call_output"] == [
        entry.text for entry in entries if isinstance(entry, ToolGave)
    ]


def test_left_out_output_is_told_so() -> None:
    made = conversation([ToolGave(str(number), "y" * 4000) for number in range(4)])
    made.elide(1500)
    assert [message["content"][:5] for message in _messages(made)[1:]] == [ELIDED[:5], ELIDED[:5], "yyyyy", "yyyyy"]
    assert [item["output"][:5] for item in _input(made)] == [ELIDED[:5], ELIDED[:5], "yyyyy", "yyyyy"]


@given(st.text(max_size=30))
def test_arguments_go_back_as_an_object_whatever_they_were(text: str) -> None:
    found = json.loads(readable(text))
    assert isinstance(found, dict)
    if found.get("malformed") is not None and "malformed" not in text:
        assert found == {"malformed": text}


@given(
    st.text(max_size=50) | st.integers(SHOWN_CHARACTERS - 5, 3 * SHOWN_CHARACTERS).map("ab\n".__mul__),
    st.integers(0, 9),
)
def test_long_text_keeps_both_ends_and_says_what_is_missing(text: str, dropped: int) -> None:
    shown = shortened(text, dropped)
    assert len(shown) <= SHOWN_CHARACTERS + 80
    whole = text + (f"\n[{dropped} more bytes of output were dropped]" if dropped else "")
    if len(whole) <= SHOWN_CHARACTERS:
        assert shown == whole
    else:
        head, note, tail = shown.partition("\n[")[0], shown.partition("\n[")[2].partition(" ")[0], shown[-50:]
        assert whole.startswith(head)
        assert whole.endswith(tail)
        assert SHOWN_CHARACTERS // 3 * 3 + int(note) == len(whole)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_call_is_checked_against_its_schema(tool: Any) -> None:
    right: dict[str, Any] = {
        name: "x" if kind == "string" else 1 for name, (kind, _, required) in tool.parameters.items() if required
    }
    assert problem(tool.name, right) is None
    for name, (kind, _, required) in tool.parameters.items():
        assert problem(tool.name, {**right, name: [1]})
        assert problem(tool.name, {**right, name: True})
        assert bool(problem(tool.name, {**right, name: None})) == required
        assert set(tool.schema["required"]) <= set(tool.schema["properties"])
        assert tool.schema["properties"][name]["type"] == kind
    assert problem(tool.name, {**right, "more": 1})
    assert problem(tool.name, [right])


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens.",
        "the request exceeds the available context size, try increasing it",
        "prompt is too long: 218749 tokens > 200000 maximum",
        "Input is longer than the model's context window",
        "Requested token count exceeds the model's maximum context length of 32768 tokens",
    ],
)
def test_the_words_of_several_servers_for_a_full_context(message: str) -> None:
    assert _CONTEXT_FULL.search(message)


@pytest.mark.parametrize(
    "message", ["Invalid value for 'messages'.", "The model does not exist", "Missing context variable"]
)
def test_other_words(message: str) -> None:
    assert not _CONTEXT_FULL.search(message)
