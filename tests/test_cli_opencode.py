"""The real OpenCode in a real sandbox, against the scripted model server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from cli_sessions import Bench, Veto, agent_steps, bench, calls
from model_script import (
    bad_json,
    cut,
    edit,
    fail,
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

from pytest_paranoia.agents.cli.opencode import HARNESS
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.relay.contract import Protocol, Provider
from pytest_paranoia.scoring.sensors.actions import actions_of

FILES = {"a.txt": "one\ntwo\nthree\n", "AGENTS.md": "The workspace's own RULE-0815.\n"}


@pytest.fixture
def opencode(tmp_path: Path) -> Iterator[Bench]:
    with bench(HARNESS, tmp_path) as made:
        yield made


def provider(*protocols: Protocol) -> Provider:
    return Provider("p", "http://127.0.0.1:1/v1", protocols=protocols)


def test_two_messages_in_one_session(opencode: Bench) -> None:
    script = [
        turn(think("first a look"), "Looking.", shell("echo $TMPDIR; env | grep -c XDG_; exit 3"), read("a.txt")),
        edit("a.txt", "two", "zwei"),
        write("b/c.txt", "new\n"),
        say("Done."),
        shell("cat b/c.txt; mktemp $TMPDIR/mine-XXXX"),
        say("Done again."),
    ]
    run = opencode.start(script, files=FILES, instructions="Remember RULE-4711.")
    text = 'Say "it" — with \\ and\na second line'
    run.say(text)
    trajectory = run.say("And on.")

    first, second = run.server.main[0].request, run.server.main[4].request
    assert [user.rstrip("\n") for user in first.users] == [text]  # not in quotes, not escaped
    assert [user.rstrip("\n") for user in second.users] == [text, "And on."]
    assert "RULE-4711" in first.system
    assert "RULE-0815" not in first.system
    assert not run.server.sides

    found = calls(trajectory)
    assert [call.function_name for call, _ in found] == ["bash", "read", "edit", "write", "bash"]
    results = [result for _, result in found]
    assert all(result is not None for result in results)
    outputs = [str(result.content) for result in results if result]
    assert outputs[0].split() == ["/tmp", "0"]  # the trial's own, and nothing of OpenCode's
    assert "two" in outputs[1]
    assert outputs[4].startswith("new\n")
    extras = [result.extra or {} for result in results if result]
    assert [extra.get("exit_code") for extra in extras] == [3, None, None, None, 0]
    assert all(0 <= extra["seconds"] < 60 for extra in extras)
    steps = agent_steps(trajectory)
    assert [step.text for step in steps] == ["Looking.", "", "", "Done.", "", "Done again."]
    assert steps[0].reasoning_content == "first a look"
    assert [step.source for step in trajectory.steps].count("user") == 2
    assert [(action.kind, action.path) for action in actions_of(trajectory)] == [
        ("command", None),
        ("read", "/workspace/a.txt"),
        ("edit", "/workspace/a.txt"),
        ("write", "/workspace/b/c.txt"),
        ("command", None),
    ]
    assert (run.workspace / "a.txt").read_text() == "one\nzwei\nthree\n"
    assert (run.workspace / "b/c.txt").read_text() == "new\n"
    assert sorted(path.name for path in run.workspace.iterdir()) == ["AGENTS.md", "a.txt", "b"]
    left = run.left_behind()
    assert len(left) == 1
    assert left[0].startswith("tmp/mine-")
    assert run.context.agent.version in json.dumps(trajectory.agent.model_dump())


def test_subagent_gate_and_unreadable_calls(opencode: Bench) -> None:
    scripts = {
        "default": [
            turn("delegating", subagent("[[script:child]] Do your part.")),
            turn(shell("echo forbidden > no.txt"), read("a.txt")),
            malformed(shell("x")),
            tool("nonesuch", {"a": 1}),
            say("Done."),
        ],
        "child": [turn(think("alone"), shell("echo child > c.txt")), shell("rm -rf forbidden"), say("child done")],
    }
    gate = Veto("forbidden")
    run = opencode.start(scripts, files=FILES, gate=gate)
    trajectory = run.say("Do it.")

    assert run.gate is not None
    run.gate.check(trajectory)
    assert [(seen.tool, seen.subagent) for seen in gate.seen[:3]] == [("task", False), ("bash", True), ("bash", True)]
    assert not (run.workspace / "no.txt").exists()
    assert (run.workspace / "c.txt").read_text() == "child\n"
    found = calls(trajectory)
    (child,) = trajectory.subagent_trajectories or ()
    task = found[0][1]
    assert task is not None
    assert task.subagent_trajectory_ref == [{"trajectory_id": child.trajectory_id}]
    assert "child done" in str(task.content)
    assert [step.source for step in child.steps] == ["user", "agent", "agent", "agent"]
    assert child.steps[0].text == "[[script:child]] Do your part."
    assert child.steps[1].reasoning_content == "alone"
    (_, denied) = calls(child)[1]
    assert denied is not None
    assert denied.extra is not None
    assert denied.extra["denied"] is True
    refused, looked = found[1][1], found[2][1]
    assert refused is not None
    assert refused.content == "no forbidden here"
    assert (refused.extra or {})["denied"] is True
    assert "two" in str(looked.content if looked else "")
    assert run.context.malformed_calls == 2
    assert [call.function_name for call, _ in found[3:]] == ["invalid", "invalid"]
    assert "nonesuch" in str(run.server.last.results)


def test_a_broken_gate_lets_nothing_through(opencode: Bench) -> None:
    run = opencode.start([shell("touch x"), say("Done.")], gate=Veto(broken=True))
    trajectory = run.say("Do it.")
    assert not (run.workspace / "x").exists()
    ((_, result),) = calls(trajectory)
    assert result is not None
    assert "could not be checked" in str(result.content)
    assert run.gate is not None
    with pytest.raises(InfrastructureError, match="gate"):
        run.gate.check(trajectory)


def test_a_gate_that_is_gone_lets_nothing_through(opencode: Bench) -> None:
    run = opencode.start([shell("touch x"), say("Done.")], gate=Veto())
    assert run.gate is not None
    run.gate.__exit__(None)
    ((_, result),) = calls(run.say("Do it."))
    assert not (run.workspace / "x").exists()
    assert result is not None
    assert "could not be checked" in str(result.content)


@pytest.mark.parametrize(
    ("status", "requests", "words"),
    [(401, 1, "status 401.*Incorrect API key"), (404, 1, "does not exist"), (529, 3, "after 2 retries")],
)
def test_refused(opencode: Bench, status: int, requests: int, words: str) -> None:
    """OpenCode itself would repeat a call to an overloaded provider for ever."""
    run = opencode.start([fail(status)] * 20)
    with pytest.raises(InfrastructureError, match=words) as caught:
        run.say("Do it.")
    assert caught.value.reason == "model-refused"
    assert len(run.server.main) == requests


def test_what_it_repeats_by_itself(opencode: Bench) -> None:
    text = "a text that is long enough to be cut in the middle of it"
    script = [
        cut(text, shell("touch cut")),
        bad_json(text),
        turn("now", shell("echo x >> once")),
        say("Done."),
    ]
    run = opencode.start(script)
    trajectory = run.say("Do it.")
    assert [step.text for step in agent_steps(trajectory)][-2:] == ["now", "Done."]
    assert (run.workspace / "once").read_text() == "x\n"
    assert not (run.workspace / "cut").exists()


@pytest.mark.parametrize(
    "script", [[shell("echo hi"), hang("stream")], [turn("about to", shell("echo hi; sleep 900"))]]
)
def test_wall_clock(opencode: Bench, script: Any) -> None:
    run = opencode.start(script, seconds=30)
    with pytest.raises(InfrastructureError) as caught:
        run.say("Do it.")
    assert caught.value.reason == "wall-clock"
    assert run.context.limits == ["wall-clock"]
    ((call, result),) = calls(run.trajectory)
    assert call.arguments["command"].startswith("echo hi")
    # What was under way is recorded without a result.
    assert (result is None) == ("sleep" in call.arguments["command"])
    run.environment.stop()
    assert not [process for process in psutil.process_iter(["cmdline"]) if "sleep 900" in str(process.info["cmdline"])]


def test_the_limit_of_turns_is_kept(opencode: Bench) -> None:
    """Its own limit is a word to the model, and this model does not listen."""
    run = opencode.start([shell(f"echo {number} >> log") for number in range(9)], max_turns=3)
    with pytest.raises(InfrastructureError) as caught:
        run.say("Do it.")
    assert caught.value.reason == "max-turns"
    assert (run.workspace / "log").read_text().split() == ["0", "1", "2"]
    assert run.context.limits == ["max-turns"]
    assert len(run.server.main) == 3


def test_a_refusal_and_a_cut_answer_are_results(opencode: Bench) -> None:
    run = opencode.start([turn("I will not.", stop="refusal"), turn("too lo", stop="max_tokens")])
    run.say("Do it.")
    steps = agent_steps(run.say("Then that."))
    assert [step.text for step in steps] == ["I will not.", "too lo"]
    assert [(step.extra or {})["finish"] for step in steps] == ["content-filter", "length"]


def test_a_full_context_is_its_own_affair(opencode: Bench) -> None:
    run = opencode.start([shell("echo hi"), fail(400, "context"), say("Done.")])
    trajectory = run.say("Do it.")
    assert trajectory.reply == "Done."
    assert any(event["kind"] == "error" for event in (trajectory.extra or {})["events"])


def test_huge_output_and_a_process_left_behind(opencode: Bench) -> None:
    run = opencode.start([shell("seq 1 400000"), shell("sleep 901 > /dev/null 2>&1 &"), say("Done.")])
    trajectory = run.say("Do it.")
    assert "truncated" in str(calls(trajectory)[0][1])
    listed = run.environment.exec(["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]).stdout.decode()
    assert "sleep 901" in listed
    run.environment.stop()
    assert not [process for process in psutil.process_iter(["cmdline"]) if "sleep 901" in str(process.info["cmdline"])]


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses", "anthropic-messages"])
def test_effort_by_every_protocol(opencode: Bench, protocol: Protocol) -> None:
    chosen = provider(protocol)
    run = opencode.start(
        [turn(think("hm"), shell("echo hi")), say("Done.")],
        model="vendor/m-1",
        effort="high",
        provider=chosen,
        context=64_000,
    )
    trajectory = run.say("Do it.")
    assert trajectory.reply == "Done."
    assert agent_steps(trajectory)[0].reasoning_content == "hm"
    request = run.server.main[0].request
    assert (request.protocol, request.model) == (protocol, "vendor/m-1")
    effort = {
        "openai-chat": lambda body: body["reasoning_effort"],
        "openai-responses": lambda body: body["reasoning"]["effort"],
        "anthropic-messages": lambda body: body["output_config"]["effort"],
    }[protocol]
    assert effort(request.body) == "high"


def test_events_nobody_knows_are_kept_and_lines_nobody_can_read_are_named(opencode: Bench) -> None:
    run = opencode.start([say("Done.")])
    run.say("Do it.")
    session: Any = run._session
    event = {"type": "news", "sessionID": "s", "part": {"a": [1]}}
    session._take(json.dumps(event))
    assert {"kind": "news", "after_step": 2, "event": event} in (run.trajectory.extra or {})["events"]
    session._take('{"type": "text", "part"')
    assert '"part"' in session._unreadable
