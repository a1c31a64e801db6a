"""The chat agent in a real sandbox, against the scripted model server, by both of its APIs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from cli_sessions import Bench, Run, Veto, agent_steps, calls
from model_script import (
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

from pytest_paranoia.agents.chat import HARNESS
from pytest_paranoia.agents.chat.conversation import ELIDED
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.relay.contract import Protocol, Provider
from pytest_paranoia.scoring.sensors.actions import actions_of
from requirements import require

FILES = {"a.txt": "one\ntwo\nthree\n", "blob": "x\n"}
BOTH = pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses"])


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Any]:
    require("bubblewrap")
    made = Bench(HARNESS, tmp_path)

    def start(script: Any, protocol: Protocol = "openai-chat", **options: Any) -> Run:
        provider = Provider("p", "http://127.0.0.1:1/v1", protocols=(protocol,))
        return made.start(script, provider=provider, files=FILES, **options)

    yield start
    made.close()


def outputs(run: Run) -> list[str]:
    return [str(result.content) for _, result in calls(run.trajectory) if result]


@BOTH
def test_two_messages_in_one_conversation(chat: Any, protocol: Protocol) -> None:
    script = [
        turn(
            think("first a look"), "Looking.", shell("echo hi; echo ho >&2; exit 3"), read("a.txt", 2, 1), read("a.txt")
        ),
        edit("a.txt", "two", "zwei"),
        write("b/c.txt", "new\n"),
        say("Done."),
        turn(think("again"), shell("cat b/c.txt a.txt")),
        say("Done again."),
    ]
    run = chat(script, protocol, instructions="Remember RULE-4711.")
    run.say("Do it.")
    trajectory = run.say("And on.")

    request = run.server.last
    assert request.users == ("Do it.", "And on.")
    assert request.replies == ("Looking.", "Done.")
    assert "RULE-4711" in request.system
    assert "/workspace" in request.system
    assert request.stream
    found = calls(trajectory)
    assert [call.function_name for call, _ in found] == ["bash", "read", "read", "edit", "write", "bash"]
    assert outputs(run) == [
        "hi\nho\n[exit status 3]",
        "two\n[lines 2 to 2 of 3]",
        "one\ntwo\nthree\n",
        "a.txt was changed",
        "b/c.txt was written",
        "new\none\nzwei\nthree",
    ]
    assert [(result.extra or {})["exit_code"] for _, result in found if result] == [3, 0, 0, 0, 0, 0]
    assert all((result.extra or {})["seconds"] < 30 for _, result in found if result)
    steps = agent_steps(trajectory)
    assert [step.text for step in steps] == ["Looking.", "", "", "Done.", "", "Done again."]
    assert steps[0].reasoning_content == "first a look"
    assert [(step.extra or {})["finish"] for step in steps[2:4]] == ["tool-calls", "stop"]
    assert (steps[0].extra or {})["tokens"] == {"input": 1000, "output": 50}
    assert [action.kind for action in actions_of(trajectory)] == ["command", "read", "read", "edit", "write", "command"]
    assert run.left_behind() == []
    assert run.context.limits == []


@BOTH
def test_the_users_own_variables_reach_no_provider(
    chat: Any, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # has no way to the relay
    for name in ("NO_PROXY", "no_proxy", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "own-4711")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-mine: own-4711")
    run = chat([say("Done.")], protocol)
    assert run.say("Do it.").reply == "Done."
    assert "own-4711" not in str(run.server.last.headers)


def test_reasoning_goes_back_within_a_message_and_not_beyond(chat: Any) -> None:
    script = [turn(think("one"), shell("a")), turn(think("two"), shell("b")), say("Done."), shell("c"), say("Done.")]
    run = chat(script)
    run.say("Do it.")
    thoughts = [message.get("reasoning_content") for message in run.server.last.body["messages"]]
    assert thoughts == [None, None, "one", None, "two", None]
    run.say("And on.")
    assert not any("reasoning_content" in message for message in run.server.last.body["messages"])


def test_sealed_reasoning_goes_back_in_responses(chat: Any) -> None:
    run = chat([turn(think("one"), shell("a")), say("Done.")], "openai-responses")
    run.say("Do it.")
    body: Any = run.server.last.body
    assert body["store"] is False
    (item,) = [item for item in body["input"] if item["type"] == "reasoning"]
    assert item["encrypted_content"]


@BOTH
def test_calls_nobody_can_read_are_told_and_counted(chat: Any, protocol: Protocol) -> None:
    gate = Veto("nothing")
    script = [
        turn(malformed(shell("x")), shell("echo fine")),
        tool("bash", {"cmd": "x"}),
        tool("bash", {"command": 7}),
        tool("nonesuch", {}),
        malformed(shell("x"), "[1, 2]"),
        tool("read", {"path": "a.txt", "line": None}),
        say("Done."),
    ]
    run = chat(script, protocol, gate=gate)
    trajectory = run.say("Do it.")
    assert run.context.malformed_calls == 5
    told = outputs(run)
    assert "no JSON object" in told[0]
    assert told[1] == "fine"
    assert "'command' of 'bash' is missing" in told[2]
    assert "expected type string" in told[3]
    assert "the tools are bash, read, edit, write" in told[4]
    assert "no JSON object" in told[5]
    assert told[6].startswith("one")
    assert run.server.last.results == tuple(told)
    # What goes back to the API can be parsed by any server.
    sent = [item.text for item in run.server.last.said if item.call]
    assert all(isinstance(json.loads(text), dict) for text in sent)
    assert [seen.tool for seen in gate.seen] == ["bash", "read"]
    assert run.gate is not None
    assert run.gate.holes(trajectory) == []


@BOTH
def test_a_gate_decides_before_each_call(chat: Any, protocol: Protocol) -> None:
    run = chat([turn(shell("touch forbidden"), shell("touch allowed")), say("Done.")], protocol, gate=Veto())
    trajectory = run.say("Do it.")
    assert not (run.workspace / "forbidden").exists()
    assert (run.workspace / "allowed").exists()
    (_, denied), (_, ran) = calls(trajectory)
    assert denied is not None
    assert (denied.extra or {})["denied"] is True
    assert "no forbidden here" in str(denied.content)
    assert ran is not None
    assert (ran.extra or {})["exit_code"] == 0
    assert run.gate is not None
    run.gate.check(trajectory)


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (400, None, "Invalid value"),
        (401, None, "Incorrect API key"),
        (404, None, "does not exist"),
        (429, None, "Rate"),
        (529, None, "529"),
    ],
)
@BOTH
def test_refused(chat: Any, protocol: Protocol, status: int, code: str | None, words: str) -> None:
    run = chat([shell("touch before"), *[fail(status, code)] * 9], protocol)
    with pytest.raises(InfrastructureError, match=f"{status}.*{words}") as caught:
        run.say("Do it.")
    assert caught.value.reason == "model-refused"
    assert len(run.server.main) == 2  # the relay repeats, not the client
    assert len(calls(run.trajectory)) == 1


@BOTH
def test_a_broken_stream_is_asked_for_again(chat: Any, protocol: Protocol) -> None:
    text = "a text that is long enough to be cut in the middle of it"
    run = chat(
        [cut(text, shell("touch cut")), bad_json(text), turn(text, shell("echo x >> once")), say("Done.")], protocol
    )
    trajectory = run.say("Do it.")
    assert [step.text for step in agent_steps(trajectory)] == [text, "Done."]
    assert (run.workspace / "once").read_text() == "x\n"
    assert not (run.workspace / "cut").exists()


@pytest.mark.parametrize(
    "entry", [cut("a text that is long enough"), bad_json("a text that is long enough"), garbage()]
)
@BOTH
def test_streams_that_are_never_whole(chat: Any, protocol: Protocol, entry: Any) -> None:
    run = chat([entry] * 9, protocol)
    with pytest.raises(InfrastructureError, match="no whole answer came in 3 tries") as caught:
        run.say("Do it.")
    assert caught.value.reason in ("harness-output", "model-refused")
    assert len(run.server.main) == 3


@pytest.mark.parametrize("where", ["head", "stream"])
@BOTH
def test_a_hang_ends_by_the_wall_clock(chat: Any, protocol: Protocol, where: Any) -> None:
    run = chat([shell("echo hi"), hang(where)], protocol, seconds=4)
    begun = time.monotonic()
    with pytest.raises(InfrastructureError) as caught:
        run.say("Do it.")
    assert time.monotonic() - begun < 8
    assert caught.value.reason == "wall-clock"
    assert run.context.limits == ["wall-clock"]
    assert outputs(run) == ["hi"]


@BOTH
def test_a_slow_stream_ends_by_the_wall_clock_and_what_came_is_kept(chat: Any, protocol: Protocol) -> None:
    run = chat([say("word " * 200, pace=0.2)], protocol, seconds=4)
    with pytest.raises(InfrastructureError) as caught:
        run.say("Do it.")
    assert caught.value.reason == "wall-clock"
    (step,) = agent_steps(run.trajectory)
    assert step.text.startswith("word word")
    assert (step.extra or {})["finish"] == "wall-clock"


def test_a_long_command_ends_by_the_wall_clock(chat: Any) -> None:
    run = chat([turn("about to", shell("sleep 904"))], seconds=4)
    with pytest.raises(InfrastructureError) as caught:
        run.say("Do it.")
    assert caught.value.reason == "wall-clock"
    ((call, result),) = calls(run.trajectory)
    assert (call.arguments, result) == ({"command": "sleep 904"}, None)
    run.environment.stop()
    assert not [process for process in psutil.process_iter(["cmdline"]) if "sleep 904" in str(process.info["cmdline"])]


def test_a_command_s_own_time(chat: Any) -> None:
    run = chat([tool("bash", {"command": "echo early; sleep 905", "seconds": 1}), say("Done.")])
    run.say("Do it.")
    assert outputs(run)[0].startswith("early\n[ended after 1 seconds]")


@BOTH
def test_ends_that_are_results(chat: Any, protocol: Protocol) -> None:
    run = chat([turn("I will not.", stop="refusal"), turn("too lo", stop="max_tokens"), say("Done.")], protocol)
    run.say("Do it.")
    run.say("Then that.")
    assert run.context.limits == ["output-tokens"]
    steps = agent_steps(run.say("Then."))
    assert [step.text for step in steps] == ["I will not.", "too lo", "Done."]
    finish = [(step.extra or {})["finish"] for step in steps]
    assert finish[0] in ("refusal", "content-filter")
    assert finish[1:] == ["length", "stop"]


@BOTH
def test_the_limit_of_turns(chat: Any, protocol: Protocol) -> None:
    run = chat([shell(f"echo {number} >> log") for number in range(9)], protocol, max_turns=2)
    with pytest.raises(InfrastructureError) as caught:
        run.say("Do it.")
    assert caught.value.reason == "max-turns"
    assert run.context.limits == ["max-turns"]
    assert (run.workspace / "log").read_text().split() == ["0", "1"]
    assert len(run.server.main) == 2


def test_as_many_turns_as_are_needed_are_enough_for_every_message(chat: Any) -> None:
    run = chat([shell("echo 1"), say("Done."), shell("echo 2"), say("Done.")], max_turns=2)
    run.say("Do it.")
    assert run.say("More.").reply == "Done."
    assert run.context.limits == []


def test_long_output_is_cut_and_that_is_said(chat: Any) -> None:
    run = chat([shell("seq 1 400000"), read("big"), say("Done.")])
    (run.workspace / "big").write_text("y" * 70_000)
    run.say("Do it.")
    for text, seen in zip(outputs(run), run.server.last.results, strict=True):
        assert text == seen
        assert 30_000 < len(text) < 30_200
        assert "characters were left out here" in text
    assert outputs(run)[0].startswith("1\n2\n")
    assert outputs(run)[0].endswith("400000")


def test_files_that_cannot_be_read_or_changed(chat: Any) -> None:
    script = [
        turn(read("nonesuch"), read("."), edit("a.txt", "nope", "x"), edit("a.txt", "", "x"), edit("a.txt", "o", "x")),
        turn(read("blob"), write("a.txt/x", "x"), read("empty"), read("a.txt", 9, 2), edit("nonesuch", "a", "b")),
        say("Done."),
    ]
    run = chat(script)
    (run.workspace / "blob").write_bytes(b"\xff\xfe\x00")
    (run.workspace / "empty").touch()
    run.say("Do it.")
    told = outputs(run)
    assert "No such file" in told[0]
    assert "Is a directory" in told[1]
    assert "is not in the file" in told[2]
    assert "is not in the file" in told[3]
    assert "is in the file 2 times" in told[4]
    assert "no text in UTF-8" in told[5]
    assert "could not be written" in told[6]
    assert told[7] == "[the file is empty]"
    assert told[8] == "[no lines of 3]"
    assert "No such file" in told[9]
    failed = [(result.extra or {}).get("is_error") for _, result in calls(run.trajectory) if result]
    assert failed == [True] * 7 + [None, None, True]
    assert (run.workspace / "a.txt").read_text() == FILES["a.txt"]


def test_older_outputs_make_room_in_a_full_context(chat: Any) -> None:
    fills = [Tokens(1000), Tokens(4000), Tokens(7000), Tokens(9500), Tokens(5000)]
    script = [turn(shell(f"seq {number}000 {number}999"), tokens=tokens) for number, tokens in enumerate(fills, 1)]
    run = chat([*script, say("Done.")], context=10_000)
    run.say("Do it.")
    seen = run.server.last.results
    assert seen[0] == ELIDED
    assert seen[-1].startswith("5000\n")
    assert any(event["kind"] == "elided" for event in (run.trajectory.extra or {})["events"])
    # The record keeps what the model had seen.
    assert outputs(run)[0].startswith("1000\n")


@BOTH
def test_a_context_the_api_calls_full(chat: Any, protocol: Protocol) -> None:
    work = [shell(f"seq {number}000 {number}999") for number in (1, 2, 3, 4)]
    run = chat([*work, fail(400, "context"), say("Done."), *[fail(400, "context")] * 9], protocol)
    run.say("Do it.")
    assert run.server.last.results[0] == ELIDED
    assert run.server.last.results[3].startswith("4000\n")
    run.say("More.")
    assert run.context.limits == ["context"]
    assert {"reason": "context"} in [event["event"] for event in (run.trajectory.extra or {})["events"]]


class Picky:
    """A server that knows fewer options: it refuses each once, by name, as OpenAI does."""

    def __init__(self, *unknown: str) -> None:
        self.unknown = list(unknown)

    def __call__(self, request: Any) -> Any:
        for name in self.unknown:
            if name in request.body:
                message = f"Unsupported parameter: '{name}' is not supported with this model."
                error = {
                    "message": message,
                    "type": "invalid_request_error",
                    "param": name,
                    "code": "unsupported_parameter",
                }
                return turn(status=400, body=json.dumps({"error": error}))
        return say("Done.")


def test_options_a_server_does_not_know_are_left_out(chat: Any) -> None:
    picky = Picky("stream_options", "reasoning_effort", "max_completion_tokens")
    run = chat([picky] * 9, effort="high", max_output=500)
    trajectory = run.say("Do it.")
    assert trajectory.reply == "Done."
    assert trajectory.extra is not None
    # The record names the effort that was asked for: that the model did not get it must stand somewhere.
    assert trajectory.extra["left_out"] == {
        "stream_options": {"include_usage": True}, "reasoning_effort": "high", "max_completion_tokens": 500,
    }  # fmt: skip
    body: Any = run.server.last.body
    assert body["max_tokens"] == 500
    assert not {"stream_options", "reasoning_effort", "max_completion_tokens"} & set(body)
    assert len(run.server.main) == 4


def test_responses_without_summaries_keep_the_effort(chat: Any) -> None:
    class NoSummary(Picky):
        def __call__(self, request: Any) -> Any:
            self.unknown = ["reasoning"] if "summary" in (request.body.get("reasoning") or {}) else []
            return super().__call__(request)

    run = chat([NoSummary()] * 3, "openai-responses", effort="low")
    assert run.say("Do it.").reply == "Done."
    assert run.server.last.body["reasoning"] == {"effort": "low"}


def test_call_ids_are_our_own_where_a_server_s_repeat(chat: Any) -> None:
    """Some servers number the calls of each answer anew."""
    run = chat([shell("echo 1"), shell("echo 2"), say("Done.")])
    run.say("Do it.")
    session: Any = run._session
    from pytest_paranoia.agents.chat.conversation import Answer, CallMade

    answers = [
        session._named(Answer(calls=(CallMade("call_0", "bash", "{}"), CallMade("", "bash", "{}")))) for _ in range(2)
    ]
    ids = [call.call_id for answer in answers for call in answer.calls]
    assert len(set(ids)) == 4
    assert all(ids)
    assert ids[0] == "call_0"


def test_a_model_must_be_named() -> None:
    with pytest.raises(pytest.UsageError, match="chat: given without a model"):
        HARNESS.choose(None)
    assert HARNESS.choose("m").name == "chat:m"


@BOTH
def test_a_subagent_has_its_own_context_and_our_account_gate_and_limits(chat: Any, protocol: Protocol) -> None:
    gate = Veto()
    script = {
        "default": [
            turn("I hand it over.", subagent("[[script:sub]] Look around."), shell("echo after")),
            say("Done."),
        ],
        "sub": [
            turn(think("Hm."), shell("echo below; echo made > c.txt")),
            shell("echo forbidden > d.txt"),
            tool("delegate", {"task": "[[script:sub]] deeper"}),
            say("Nothing here."),
        ],
    }
    run = chat(script, protocol, gate=gate)
    trajectory = run.say("Ask somebody.")
    (call, result), (after, _) = calls(trajectory)
    assert (call.function_name, after.function_name) == ("delegate", "bash")
    assert result is not None
    assert result.content == "Nothing here."
    (child,) = trajectory.subagent_trajectories or ()
    assert result.subagent_trajectory_ref == [{"trajectory_id": child.trajectory_id}]
    assert [step.source for step in child.steps] == ["user", "agent", "agent", "agent", "agent"]
    assert child.steps[0].text == "[[script:sub]] Look around."
    inner = calls(child)
    assert inner[0][1] is not None
    assert inner[0][1].content == "below"
    assert [bool(given and (given.extra or {}).get("denied")) for _, given in inner] == [False, True, False]
    assert inner[2][1] is not None
    assert "there is no tool 'delegate'" in str(inner[2][1].content), "subagents have none of their own"
    assert [(one.tool, one.subagent) for one in gate.seen] == [
        ("delegate", False), ("bash", True), ("bash", True), ("bash", False),
    ]  # fmt: skip
    assert run.gate is not None
    run.gate.check(trajectory)
    assert [action.text for action in actions_of(trajectory) if action.kind == "command"][-1] == "echo after"
    assert sorted(path.name for path in run.workspace.iterdir()) == ["a.txt", "blob", "c.txt"]
    asked = [exchange.request for exchange in run.server.main]
    assert all(request.users == ("[[script:sub]] Look around.",) for request in asked[1:5])
    assert [exchange.request.users for exchange in run.server.main][5] == ("Ask somebody.",)
    assert run.context.malformed_calls == 1
    ids = [call.tool_call_id for call, _ in (*calls(trajectory), *inner)]
    assert len(ids) == len(set(ids))


def test_two_subagents_are_told_apart(chat: Any) -> None:
    script = {
        "default": [turn(subagent("[[script:a]] one"), subagent("[[script:b]] two")), say("Done.")],
        "a": [say("A.")],
        "b": [say("")],
    }
    trajectory = chat(script).say("Ask two.")
    assert [str(result.content) for _, result in calls(trajectory) if result] == [
        "A.",
        "[the subagent reported nothing]",
    ]
    children = trajectory.subagent_trajectories or ()
    assert [child.trajectory_id for child in children] == ["subagent-1", "subagent-2"]


def test_what_a_subagent_did_is_kept_where_its_time_runs_out(chat: Any) -> None:
    script = {
        "default": [subagent("[[script:sub]] wait"), say("Done.")],
        "sub": [shell("echo begun; sleep 60"), say("Done.")],
    }
    run = chat(script, seconds=4)
    with pytest.raises(InfrastructureError) as caught:
        run.say("Ask somebody.")
    assert caught.value.reason == "wall-clock"
    (child,) = run.trajectory.subagent_trajectories or ()
    assert [call.function_name for call, _ in calls(child)] == ["bash"]
    ((_, result),) = calls(run.trajectory)
    assert result is not None
    assert result.extra == {"unfinished": True}
