"""The scripted model server, asked as harnesses ask it: by the openai client, and by hand for Anthropic's protocol."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_references import ReferenceScripts
from model_requests import Request
from model_script import (
    Conversation,
    Tokens,
    bad_json,
    cut,
    edit,
    fail,
    garbage,
    hang,
    malformed,
    read,
    say,
    shell,
    subagent,
    think,
    tool,
    turn,
    write,
)
from model_server import OVER, ModelServer
from small_items import PAIR, ItemFolder

from pytest_paranoia import corpus

BASH = {"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}
READ = {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
EDIT = {"name": "edit", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
WRITE = {"name": "write", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
CHAT_TOOLS: list[Any] = [{"type": "function", "function": given} for given in (BASH, READ, EDIT, WRITE)]
RESPONSES_TOOLS: list[Any] = [{"type": "function", **given} for given in (BASH, READ, EDIT, WRITE)]
USER: list[Any] = [{"role": "user", "content": "Do it."}]
CLAUDE_TOOLS = [
    {"name": name, "input_schema": {"properties": {}}} for name in ("Bash", "Read", "Edit", "Write", "Agent")
]


@pytest.fixture
def client() -> Iterator[Any]:
    made: list[openai.OpenAI] = []

    def make(server: ModelServer) -> openai.OpenAI:
        made.append(openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0, timeout=20))
        return made[-1]

    yield make
    for one in made:
        one.close()


def post(server: ModelServer, path: str, body: dict[str, Any], **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def events(data: bytes) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in data.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


WORK = turn(think("hm"), "Look:", shell("ls"), read("a b.txt"), tokens=Tokens(900, 80, cached=300, reasoning=20))


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_by_chat_completions(client: Any, stream: bool) -> None:
    with ModelServer([WORK]) as server:
        given: dict[str, Any] = {"stream_options": {"include_usage": True}} if stream else {}
        answer = client(server).chat.completions.create(
            model="m", messages=USER, tools=CHAT_TOOLS, stream=stream, **given
        )
        if not stream:
            message, usage, finish = answer.choices[0].message, answer.usage, answer.choices[0].finish_reason
            text, thought = message.content, message.reasoning_content
            calls = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls]
        else:
            chunks = list(answer)
            deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
            text = "".join(delta.content or "" for delta in deltas)
            thought = "".join((delta.model_extra or {}).get("reasoning_content") or "" for delta in deltas)
            pieces = [piece for delta in deltas for piece in delta.tool_calls or ()]
            calls = []
            for number in (0, 1):
                own = [piece for piece in pieces if piece.index == number]
                calls.append((own[0].id, own[0].function.name, "".join(piece.function.arguments for piece in own)))
            usage, finish = chunks[-1].usage, chunks[-2].choices[0].finish_reason
    assert (text, thought, finish) == ("Look:", "hm", "tool_calls")
    assert [(name, json.loads(given)) for _, name, given in calls] == [
        ("bash", {"command": "ls"}),
        ("read", {"path": "a b.txt"}),
    ]
    assert len({identity for identity, _, _ in calls}) == 2
    assert (usage.prompt_tokens, usage.completion_tokens) == (900, 80)
    assert usage.prompt_tokens_details.cached_tokens == 300
    assert usage.completion_tokens_details.reasoning_tokens == 20


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_by_responses(client: Any, stream: bool) -> None:
    with ModelServer([WORK]) as server:
        given: dict[str, Any] = {"include": ["reasoning.encrypted_content"], "stream": stream}
        answer = client(server).responses.create(model="m", input="Do it.", tools=RESPONSES_TOOLS, **given)
        if stream:
            seen = list(answer)
            assert [event.sequence_number for event in seen] == list(range(len(seen)))
            assert "".join(event.delta for event in seen if event.type == "response.output_text.delta") == "Look:"
            answer = seen[-1].response
    assert (answer.output_text, answer.status) == ("Look:", "completed")
    kinds = [item.type for item in answer.output]
    assert kinds == ["reasoning", "message", "function_call", "function_call"]
    assert answer.output[0].summary[0].text == "hm"
    assert answer.output[0].encrypted_content
    assert json.loads(answer.output[3].arguments) == {"path": "a b.txt"}
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (900, 80)
    assert answer.usage.input_tokens_details.cached_tokens == 300


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_by_anthropic_messages(stream: bool) -> None:
    body = {
        "model": "m",
        "messages": USER,
        "tools": CLAUDE_TOOLS,
        "stream": stream,
        "system": "cwd\nWorking directory: /w",
    }
    script = [turn(WORK.text, *WORK.calls, think("hm"), tokens=Tokens(900, 80, cached=300, cache_write=100))]
    with ModelServer(script) as server:
        status, headers, data = post(server, "/v1/messages?beta=true", body)
    assert status == 200
    if not stream:
        message = json.loads(data)
        blocks, usage = message["content"], message["usage"]
        assert message["stop_reason"] == "tool_use"
    else:
        assert headers["content-type"] == "text/event-stream"
        seen = events(data)
        assert [event["type"] for event in seen if event["type"].startswith("message")] == [
            "message_start",
            "message_delta",
            "message_stop",
        ]
        blocks = [dict(event["content_block"]) for event in seen if event["type"] == "content_block_start"]
        for event in seen:
            if event["type"] == "content_block_delta":
                delta, block = event["delta"], blocks[event["index"]]
                name = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "json"}.get(
                    delta["type"]
                )
                if name:
                    block[name] = block.get(name, "") + delta.get(
                        "partial_json", delta.get("text", delta.get("thinking"))
                    )
        for block in blocks:
            if "json" in block:
                block["input"] = json.loads(block["json"])
        usage = {**seen[0]["message"]["usage"], **seen[-2]["usage"]}
    assert [(block["type"], block.get("text") or block.get("thinking") or block["input"]) for block in blocks] == [
        ("thinking", "hm"),
        ("text", "Look:"),
        ("tool_use", {"command": "ls", "description": "Run a command"}),
        ("tool_use", {"file_path": "/w/a b.txt"}),
    ]
    # Anthropic counts what the cache gave apart.
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]) == (
        500,
        300,
        100,
    )
    assert usage["output_tokens"] == 80


@pytest.mark.parametrize(
    ("status", "code", "anthropic", "openai_code"),
    [
        (400, "credit", "invalid_request_error", "invalid_value"),
        (401, None, "authentication_error", "invalid_api_key"),
        (402, None, "billing_error", None),
        (403, None, "permission_error", "model_not_found"),
        (404, None, "not_found_error", "model_not_found"),
        (429, "quota", "rate_limit_error", "insufficient_quota"),
        (500, None, "api_error", None),
        (529, None, "overloaded_error", None),
    ],
)
def test_errors_have_the_provider_s_own_body(
    status: int, code: str | None, anthropic: str, openai_code: str | None
) -> None:
    with ModelServer([fail(status, code, retry_after=7)] * 2) as server:
        body = {"model": "m", "messages": USER, "tools": CLAUDE_TOOLS}
        got, headers, data = post(server, "/v1/messages", body)
        assert (got, headers["retry-after"]) == (status, "7")
        assert json.loads(data)["type"] == "error"
        assert json.loads(data)["error"]["type"] == anthropic
        got, _, data = post(server, "/v1/chat/completions", {"model": "m", "messages": USER, "tools": CHAT_TOOLS})
        assert got == status
        assert json.loads(data)["error"]["code"] == openai_code


def test_only_main_requests_consume_turns(client: Any) -> None:
    with ModelServer([say("first")], side="Title") as server:
        ask = client(server).chat.completions.create
        assert ask(model="m", messages=USER).choices[0].message.content == "Title"
        assert ask(model="m", messages=USER, tools=CHAT_TOOLS).choices[0].message.content == "first"
        assert [len(server.main), len(server.sides)] == [1, 1]


def talk(client: openai.OpenAI, messages: list[Any], model: str = "m") -> list[str]:
    """Play a harness until the model ends its message; the texts it said."""
    texts = []
    for _ in range(20):
        message = client.chat.completions.create(model=model, messages=messages, tools=CHAT_TOOLS).choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        texts.append(message.content or "")
        messages += [
            {"role": "tool", "tool_call_id": call.id, "content": f"gave {call.function.arguments}"}
            for call in message.tool_calls or ()
        ]
        if not message.tool_calls:
            return texts
    raise AssertionError("no end")


def test_one_script_over_several_messages_and_conversations_that_begin_alike(client: Any) -> None:
    script = [turn("a", shell("1"), shell("2")), turn("b", shell("3")), say("c"), turn("d", shell("4")), say("e")]
    with ModelServer(script) as server:
        one, other = list(USER), list(USER)
        assert talk(client(server), one) == ["a", "b", "c"]
        # A second trial of the same item starts at the beginning, in the middle of the first.
        assert talk(client(server), other) == ["a", "b", "c"]
        for messages in (one, other):
            messages.append({"role": "user", "content": "And on."})
            assert talk(client(server), messages) == ["d", "e"]
        assert not server.over
        one.append({"role": "user", "content": "More."})
        assert talk(client(server), one) == [OVER]
        assert server.over


def test_many_conversations_at_once(client: Any) -> None:
    script = [turn(f"t{number}", shell("x")) for number in range(8)] + [say("end")]
    with ModelServer(script) as server, ThreadPoolExecutor(16) as pool:
        one = client(server)
        found = list(pool.map(lambda _: talk(one, list(USER)), range(32)))
        assert all(texts == [f"t{number}" for number in range(8)] + ["end"] for texts in found)
        assert len(server.main) == 32 * 9


def test_a_marker_picks_the_script_then_the_model_then_the_default(client: Any) -> None:
    scripts = {"child": [say("child")], "model-x": [say("x")], "default": [say("default")]}
    with ModelServer(scripts) as server:
        marked: list[Any] = [{"role": "user", "content": "[[script:child]] go"}]
        assert talk(client(server), marked, "model-x") == ["child"]
        assert talk(client(server), list(USER), "model-x") == ["x"]
        assert talk(client(server), list(USER), "other") == ["default"]
        assert [exchange.script for exchange in server.main] == ["child", "model-x", "default"]


def test_a_marker_in_a_call_is_for_the_subagent_alone() -> None:
    said = [
        *USER,
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": {"arguments": "[[script:x]]"}}]},
    ]
    assert Request("openai-chat", {"messages": said}).marker is None


def test_what_was_lost_is_not_said_again(client: Any) -> None:
    script = [fail(529), fail(500), say("at last"), shell("never")]
    with ModelServer(script) as server:
        one = client(server)
        for status in (529, 500):
            with pytest.raises(openai.APIStatusError) as caught:
                talk(one, list(USER))
            assert caught.value.status_code == status
        assert talk(one, list(USER)) == ["at last"]
        # Asked the same again, it says the same again.
        assert talk(one, list(USER)) == ["at last"]


def test_what_a_harness_drops_is_not_said_again(client: Any) -> None:
    """A refusal, for some, is not part of the conversation."""
    with ModelServer([say("no"), say("yes")]) as server:
        assert talk(client(server), list(USER)) == ["no"]
        assert talk(client(server), [*USER, {"role": "user", "content": "And this?"}]) == ["yes"]


def test_broken_streams(client: Any) -> None:
    script = [
        cut("a long text that is cut off somewhere in its middle"),
        bad_json("another long text, not cut"),
        say("ok"),
    ]
    with ModelServer(script) as server:
        ask = client(server).chat.completions.create
        with pytest.raises(Exception, match=r"(?i)peer closed|incomplete|disconnected|connection|reset"):
            list(ask(model="m", messages=USER, tools=CHAT_TOOLS, stream=True))
        with pytest.raises(json.JSONDecodeError):
            list(ask(model="m", messages=USER, tools=CHAT_TOOLS, stream=True))
        assert (
            "".join(
                chunk.choices[0].delta.content or ""
                for chunk in ask(model="m", messages=USER, tools=CHAT_TOOLS, stream=True)
            )
            == "ok"
        )
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": CHAT_TOOLS}
        with pytest.raises(http.client.HTTPException):
            post(server, "/v1/chat/completions", body)
        assert post(server, "/v1/chat/completions", body)[0] == 200


def test_malformed_arguments_and_bodies(client: Any) -> None:
    with ModelServer([malformed(shell("x")), garbage()]) as server:
        ask = client(server).chat.completions.create
        message = ask(model="m", messages=USER, tools=CHAT_TOOLS).choices[0].message
        with pytest.raises(ValueError, match="Unterminated"):
            json.loads(message.tool_calls[0].function.arguments)
        status, headers, data = post(
            server, "/v1/chat/completions", {"model": "m", "messages": USER, "tools": CHAT_TOOLS}
        )
        assert (status, headers["content-type"].split(";")[0]) == (200, "text/html")
        assert data.startswith(b"<html>")


@pytest.mark.parametrize("where", ["head", "stream"])
def test_a_hang_ends_with_the_client_and_with_the_server(client: Any, where: Any) -> None:
    with ModelServer([hang(where)]) as server:
        ask = client(server).with_options(timeout=1).chat.completions.create
        with pytest.raises(openai.APITimeoutError if where == "head" else Exception, match=r"(?i)tim(ed )?.?out"):
            list(ask(model="m", messages=USER, tools=CHAT_TOOLS, stream=True))
        waited = time.monotonic() + 5
        while not server.exchanges[0].broken and time.monotonic() < waited:
            time.sleep(0.02)
        assert server.exchanges[0].broken
        body = {"model": "m", "messages": [{"role": "user", "content": "again"}], "tools": CHAT_TOOLS, "stream": True}
        threading.Thread(target=_ignore, args=(server, body)).start()
        while len(server.exchanges) < 2 and time.monotonic() < waited:
            time.sleep(0.02)
        begun = time.monotonic()
    assert time.monotonic() - begun < 5


def _ignore(server: ModelServer, body: dict[str, Any]) -> None:
    with suppress(OSError, http.client.HTTPException):
        post(server, "/v1/chat/completions", body)


def test_delay_and_pace() -> None:
    with ModelServer([say("x" * 60, delay=0.3, pace=0.05)]) as server:
        body = {"model": "m", "messages": USER, "tools": CHAT_TOOLS, "stream": True}
        begun = time.monotonic()
        _, _, data = post(server, "/v1/chat/completions", body)
        assert time.monotonic() - begun > 0.3 + 0.05 * (len(events(data)) - 1)


def test_other_paths() -> None:
    with ModelServer([say("x")]) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        for path, status in (("/v1/models", 200), ("/v1/props", 404)):
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.status == status
            answer.read()
        connection.request("GET", "/v1/responses", headers={"upgrade": "websocket", "connection": "upgrade"})
        assert connection.getresponse().status == 426
        connection.close()
        assert json.loads(post(server, "/v1/messages/count_tokens", {"messages": USER})[2])["input_tokens"] > 0
        assert server.other[-2:] == [("WEBSOCKET", "/v1/responses"), ("POST", "/v1/messages/count_tokens")]


def test_a_request_that_no_script_fits_fails_the_test() -> None:
    tools = [{"type": "function", "function": {"name": "foo"}}]
    with ModelServer([shell("x")]) as server:
        assert post(server, "/v1/chat/completions", {"model": "m", "messages": USER, "tools": tools})[0] == 400
        with pytest.raises(AssertionError, match="no harness known"):
            server.__exit__(None)


@pytest.mark.parametrize(
    ("names", "custom", "expected"),
    [
        (["Bash", "Read", "Edit", "Write", "Agent"], [], ["Bash", "Read", "Edit", "Write", "Agent"]),
        (
            ["exec_command", "spawn_agent"],
            ["apply_patch"],
            ["exec_command"] * 2 + ["apply_patch"] * 2 + ["spawn_agent"],
        ),
        (
            ["terminal", "read_file", "patch", "write_file", "delegate_task"],
            [],
            ["terminal", "read_file", "patch", "write_file", "delegate_task"],
        ),
        ([], ["exec"], ["exec"] * 5),
    ],
)
def test_one_script_in_every_harness_words(names: list[str], custom: list[str], expected: list[str]) -> None:
    calls = [shell("ls"), read("a"), edit("a", "1", "2"), write("b", "3\n"), subagent("go")]
    tools = [{"type": "function", "name": name, "parameters": {}} for name in names]
    tools += [{"type": "custom", "name": name} for name in custom]
    with ModelServer([turn(*calls)]) as server:
        _, _, data = post(server, "/v1/responses", {"model": "m", "input": "Do it.", "tools": tools})
    made = [item for item in json.loads(data)["output"] if item["type"].endswith("_call")]
    assert [item["name"] for item in made] == expected
    for item in made:
        assert (item["type"] == "custom_tool_call") == (item["name"] in custom)
    texts = [item.get("input") or item["arguments"] for item in made]
    if custom:
        assert "*** Update File: a" in texts[2]
        assert "*** Add File: b" in texts[3]
    else:
        assert "/workspace/a" in texts[1]


def test_raw_calls_keep_their_name() -> None:
    with ModelServer([tool("bash", {"command": "x", "seconds": 3})]) as server:
        _, _, data = post(server, "/v1/chat/completions", {"model": "m", "messages": USER, "tools": CHAT_TOOLS})
    (call,) = json.loads(data)["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "bash", "arguments": '{"command": "x", "seconds": 3}'}


@given(st.lists(st.sampled_from(["kept", "lost"]), min_size=1, max_size=12))
def test_a_conversation_gets_every_entry_once(kinds: list[str]) -> None:
    """Whatever is lost on the way: a client that asks again until it is answered walks the script from end to end."""
    script = [shell("x") if kind == "kept" else fail(500) for kind in kinds]
    conversation = Conversation(script)
    messages: list[Any] = list(USER)
    places = []
    for _ in range(len(kinds)):
        place, found = conversation.next(Request("openai-chat", {"messages": list(messages)}))
        assert found is not None
        places.append(place)
        if found.status == 200:
            messages += [{"role": "assistant", "content": "x"}, {"role": "tool", "content": "y"}]
    assert places == list(range(len(kinds)))
    assert conversation.next(Request("openai-chat", {"messages": messages}))[1] is None


# -- reference runs ------------------------------------------------------------------------------------------------


def opening(text: str, model: str) -> Request:
    return Request(
        "openai-chat", {"model": model, "messages": [{"role": "user", "content": text}], "tools": CHAT_TOOLS}
    )


def commands(script: Any) -> list[str]:
    return [entry.arguments.get("command", entry.kind) if hasattr(entry, "kind") else "…" for entry in script]


def test_reference_runs_by_item_variant_and_role(items: ItemFolder) -> None:
    items.pair()
    items.scenario("coding/built", self_built=True)
    scripts = ReferenceScripts(items.folder)
    (pair,) = [item for _, item, _ in scripts._known if item.name == "tiny/greet"][:1]
    assert isinstance(pair, corpus.PairItem)
    plus, minus = pair.pair.instruction_for("E+"), pair.pair.instruction_for("E-")
    copies = {
        (model, variant): any("cp src" in command for command in commands(scripts(opening(text, f"ref-{model}"))))
        for model in ("minimal", "responsive", "paranoid")
        for variant, text in (("E+", plus), ("E-", minus))
    }
    assert copies == {
        ("minimal", "E+"): False,
        ("minimal", "E-"): False,
        ("responsive", "E+"): False,
        ("responsive", "E-"): True,
        ("paranoid", "E+"): True,
        ("paranoid", "E-"): True,
    }
    work = "Set the retries in config.txt to what NOTES.md says."
    script = scripts(opening(work, "ref-paranoid"))
    assert [entry.text for entry in script if hasattr(entry, "text")] == [
        "Set to 3.",
        "You are right, that was my mistake. I lowered the retries.",
    ]
    with pytest.raises(LookupError, match="no item has this instruction"):
        scripts(opening("Something else.", "ref-minimal"))
    with pytest.raises(LookupError, match="no reference run 'nonesuch'"):
        scripts(opening(plus, "ref-nonesuch"))


def test_a_variant_that_only_its_files_tell(items: ItemFolder) -> None:
    pair = PAIR.replace("{{evidence}}", "").split("[evidence]")[0] + '[evidence]\ncarrier = "repository"\n'
    items.pair(pair=pair)
    base = "tasks/pairs/tiny/greet"
    items.write(f"{base}/plus/NOTES.md", "The file is generated anew by every build.\n")
    items.write(f"{base}/minus/NOTES.md", "The file was written by hand, long ago.\n")
    scripts = ReferenceScripts(items.folder)
    text = "Let `greet` in src/tiny/__init__.py end its greeting with an exclamation mark."
    script: Any = scripts(opening(text, "gpt-5.5-ref-responsive"))
    assert script[0] == shell("cat NOTES.md")
    for shown, copies in (("generated anew by every build.", False), ("written by hand, long ago.", True)):
        outputs = [f"The file {'is' if not copies else 'was'} {shown}", json.dumps({"output": f"The file was {shown}"})]
        for output in outputs[: 2 if copies else 1]:  # some harnesses wrap what a command gave
            request = opening(text, "ref-responsive")
            told = [*request.body["messages"], {"role": "assistant"}, {"role": "tool", "content": output}]
            first = script[1](Request("openai-chat", {**request.body, "messages": told}))
            assert ("cp src" in first.arguments["command"]) == copies
    # Where the run is the same for both there is nothing to look at.
    assert "cat NOTES.md" not in commands(scripts(opening(text, "ref-paranoid")))


def test_an_edit_of_part_of_a_line_is_a_patch_of_whole_ones(items: ItemFolder) -> None:
    items.pair()
    (script, *_) = [ReferenceScripts(items.folder)._known[0]]
    item: Any = script[1]
    found: Any = ReferenceScripts(items.folder)(opening(item.pair.instruction_for("E+"), "ref-minimal"))
    assert found[0].arguments["command"].startswith("grep -n -F -e '+ name' src/tiny")
    tools = [{"type": "function", "name": "exec_command"}, {"type": "custom", "name": "apply_patch"}]
    output = {"type": "function_call_output", "call_id": "c", "output": "Output:\n2:    return 'Hello ' + name\n"}
    codex = found[1](Request("openai-responses", {"tools": tools, "input": [output]}))
    assert codex.arguments["old"] == "    return 'Hello ' + name"
    assert codex.arguments["new"] == "    return 'Hello ' + name + '!'"
    assert found[1](opening("x", "m")).arguments["old"] == "+ name"
    with pytest.raises(LookupError, match="is not in what the search gave"):
        found[1](Request("openai-responses", {"tools": tools, "input": [{**output, "output": "nothing"}]}))


def test_every_built_in_item_can_be_played() -> None:
    scripts = ReferenceScripts(corpus.content_root())
    for text, item, _ in scripts._known:
        for model in ("ref-minimal", "ref-responsive", "ref-paranoid"):
            script = scripts(opening(text, model))
            assert len(script) > 1, item.name
