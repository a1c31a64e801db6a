"""The real Claude Code in the real sandbox, with its model on a scripted server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_sessions import Bench, Veto, agent_steps, bench, calls, refused
from model_script import (
    Call,
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

from pytest_paranoia.agents.cli.claude_code import HARNESS
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.scoring.sensors.actions import actions_of

HOOK = {"matcher": "*", "hooks": [{"type": "command", "command": "touch /workspace/HOOKED"}]}


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Bench]:
    """A bench for Claude Code."""
    with bench(HARNESS, tmp_path) as made:
        yield made


def test_a_conversation_over_two_messages_becomes_a_trajectory(cli: Bench) -> None:
    run = cli.start(
        [
            turn(think("First a look."), "Looking.", shell("echo hi; pwd"), read("a.txt")),
            edit("a.txt", "one", "two"),
            write("b.txt", "new\n"),
            shell("echo bad >&2; exit 3"),
            say("Done."),
            shell("cat a.txt"),
            say("Still two."),
        ],
        files={"a.txt": "one\n"},
    )
    run.say("Change a.txt.")
    trajectory = run.say("What is in it?")
    assert (run.workspace / "a.txt").read_text() == "two\n"
    assert (run.workspace / "b.txt").read_text() == "new\n"
    steps = trajectory.steps
    assert [step.source for step in steps] == ["user", *["agent"] * 5, "user", *["agent"] * 2]
    assert (steps[1].text, steps[1].reasoning_content) == ("Looking.", "First a look.")
    assert steps[1].model_name == "scripted-model"
    assert steps[5].text == "Done."
    assert trajectory.reply == "Still two."
    found = calls(trajectory)
    assert [call.function_name for call, _ in found] == ["Bash", "Read", "Edit", "Write", "Bash", "Bash"]
    results = [result for _, result in found if result is not None]
    assert [(result.extra or {}).get("exit_code") for result in results] == [0, None, None, None, 3, 0]
    assert results[0].content == "hi\n/workspace"
    assert "bad" in str(results[4].content)
    assert (results[4].extra or {})["is_error"] is True
    assert all((result.extra or {})["seconds"] >= 0 for result in results)
    kinds = [(action.kind, action.path, action.exit_code) for action in actions_of(trajectory)]
    assert kinds[:5] == [
        ("command", None, 0),
        ("read", "/workspace/a.txt", None),
        ("edit", "/workspace/a.txt", None),
        ("write", "/workspace/b.txt", None),
        ("command", None, 3),
    ]
    # The second message is in the same session: what was done before is in its first request.
    second = next(one.request for one in run.server.main if "What is in it?" in one.request.users[-1])
    before = json.dumps(second.body["messages"])
    assert "Change a.txt." in before
    assert "exit 3" in before
    assert trajectory.agent.version == run.context.agent.version
    assert (trajectory.extra or {})["session_id"]
    assert run.server.other == []
    assert run.server.sides == []
    assert run.left_behind() == []
    assert sorted(path.name for path in run.workspace.iterdir()) == ["a.txt", "b.txt"]


def test_a_subagent_is_embedded_at_its_call(cli: Bench) -> None:
    run = cli.start(
        {
            "default": [subagent("[[script:sub]] Look around."), say("Done.")],
            "sub": [turn(think("Hm."), shell("echo below")), say("Nothing here.")],
        }
    )
    trajectory = run.say("Ask somebody.")
    ((call, result),) = calls(trajectory)
    assert call.function_name == "Agent"
    assert result is not None
    (child,) = trajectory.subagent_trajectories or ()
    assert result.subagent_trajectory_ref == [{"trajectory_id": child.trajectory_id}]
    assert [step.source for step in child.steps] == ["user", "agent", "agent"]
    assert child.steps[0].text == "[[script:sub]] Look around."
    assert child.steps[1].reasoning_content == "Hm."
    ((inner, given),) = calls(child)
    assert (inner.function_name, given and given.content) == ("Bash", "below")
    assert "below" in [action.output for action in actions_of(trajectory)]
    assert child.reply == "Nothing here."


def test_subagents_have_the_model_under_test(cli: Bench) -> None:
    def ask(**more: str) -> Call:
        given = {"description": "Look", "prompt": "[[script:sub]]", "run_in_background": False}
        return tool("Agent", {**given, **more})

    aliases = [ask(subagent_type="general-purpose", model=alias) for alias in ("haiku", "sonnet", "opus")]
    script = {"default": [ask(subagent_type="Explore"), *aliases, say("Done.")], "sub": [say("Nothing.")]}
    run = cli.start(script, model="maker/model-1")
    run.say("Ask somebody.")
    assert {one.request.model for one in run.server.exchanges} == {"maker/model-1"}
    assert len(run.trajectory.subagent_trajectories or ()) == 4


def test_the_gate_is_asked_before_every_call_and_denials_reach_the_model(cli: Bench) -> None:
    gate = Veto()
    script = {
        "default": [
            turn(shell("echo forbidden > x"), shell("echo fine")),
            write("y", "forbidden"),
            subagent("[[script:sub]]"),
            malformed(shell("echo never")),
            say("Done."),
        ],
        "sub": [shell("echo forbidden > z"), say("No.")],
    }
    run = cli.start(script, gate=gate)
    trajectory = run.say("Try.")
    assert list(run.workspace.iterdir()) == []
    found = calls(trajectory)
    denied = [bool(result and (result.extra or {}).get("denied")) for _, result in found]
    assert denied == [True, False, True, False, False]
    assert "no forbidden here" in str(found[0][1] and found[0][1].content)
    (child,) = trajectory.subagent_trajectories or ()
    assert [(result.extra or {}).get("denied") for _, result in calls(child) if result] == [True]
    assert [(one.tool, one.subagent) for one in gate.seen] == [
        ("Bash", False),
        ("Bash", False),
        ("Write", False),
        ("Agent", False),
        ("Bash", True),
    ]
    assert run.gate is not None
    run.gate.check(trajectory)
    assert "no forbidden here" in json.dumps(run.server.main[1].request.body["messages"])


def test_a_gate_that_breaks_lets_nothing_run(cli: Bench) -> None:
    run = cli.start([shell("touch x"), say("Done.")], gate=Veto(broken=True))
    trajectory = run.say("Try.")
    assert list(run.workspace.iterdir()) == []
    assert run.gate is not None
    with pytest.raises(InfrastructureError) as caught:
        run.gate.check(trajectory)
    assert caught.value.reason == "gate-error"


def test_what_it_is_told_reaches_the_model_and_the_workspace_sets_nothing(cli: Bench) -> None:
    run = cli.start(
        [shell("ls"), say("Done.")],
        files={
            "CLAUDE.md": "Project words.\n",
            ".claude/settings.json": json.dumps({"hooks": {"PreToolUse": [HOOK]}, "env": {"PLANTED": "yes"}}),
            ".claude/settings.local.json": json.dumps({"permissions": {"deny": ["Bash"]}}),
        },
        instructions="Words of the study.",
        effort="low",
        context=150_000,
        max_output=12_345,
    )
    trajectory = run.say("Look.")
    request = run.server.main[0].request
    said = json.dumps(request.body["messages"])
    assert "Words of the study." in said
    assert "Project words." in said
    assert request.body["output_config"] == {"effort": "low"}
    assert request.body["max_tokens"] == 12_345
    offered = {tool.name for tool in request.tools}
    assert {"Bash", "Read", "Edit", "Write"} <= offered
    assert not any(word in json.dumps(request.body) for word in ("WebFetch", "WebSearch", "PLANTED"))
    ((_, result),) = calls(trajectory)
    assert ((result and result.extra) or {})["exit_code"] == 0
    assert not (run.workspace / "HOOKED").exists()
    (last,) = [event for event in (trajectory.extra or {})["events"] if event["kind"] == "result"]
    assert last["event"]["modelUsage"]["scripted-model"]["contextWindow"] == 150_000


def test_too_many_turns_end_it_under_that_name(cli: Bench) -> None:
    run = cli.start([shell("echo 1"), shell("echo 2"), shell("echo 3"), say("Done.")], max_turns=2)
    error = refused(run)
    assert (error.reason, run.context.limits) == ("max-turns", ["max-turns"])
    assert len(calls(run.trajectory)) == 2


@pytest.mark.parametrize("status", [400, 401, 404, 429, 529])
def test_an_error_of_the_model_is_named(cli: Bench, status: int) -> None:
    run = cli.start([shell("echo 1"), *[fail(status)] * 9])
    error = refused(run)
    assert error.reason == "model-refused"
    assert str(status) in str(error)
    assert [step.text for step in agent_steps(run.trajectory)] == [""]
    kinds = {event["kind"] for event in (run.trajectory.extra or {})["events"]}
    assert "synthetic" in kinds
    assert ("system/api_retry" in kinds) == (status in (401, 429, 529))


@pytest.mark.parametrize("broken", [cut("Never", shell("echo no")), garbage(), fail(500)])
def test_a_broken_answer_is_asked_for_again(cli: Bench, broken: Any) -> None:
    run = cli.start([broken, shell("echo 1"), say("Done.")])
    trajectory = run.say("Do it.")
    assert trajectory.reply == "Done."
    assert [call.arguments["command"] for call, _ in calls(trajectory)] == ["echo 1"]


def test_an_event_that_is_no_json_leaves_no_call_half_way(cli: Bench) -> None:
    run = cli.start([bad_json("Half", shell("echo no")), say("Done.")])
    trajectory = run.say("Do it.")
    assert trajectory.reply == "Done."
    assert calls(trajectory) == []
    assert "Could not parse message into JSON" in "\n".join(run.context.log)


@pytest.mark.parametrize("where", ["head", "stream"])
def test_a_model_that_hangs_ends_by_the_wall_clock(cli: Bench, where: Any) -> None:
    run = cli.start(
        [shell("nohup sh -c 'while :; do sleep 1; done' >/dev/null 2>&1 & echo on"), hang(where)], seconds=12
    )
    error = refused(run)
    assert (error.reason, run.context.limits) == ("wall-clock", ["wall-clock"])
    assert [str(result and result.content) for _, result in calls(run.trajectory)] == ["on"]
    alive = run.environment.exec(["sh", "-c", "cat /proc/[0-9]*/comm"]).stdout.decode().split()
    assert "claude" not in alive
    run.environment.stop()


def test_malformed_arguments_are_told_to_the_model_and_counted(cli: Bench) -> None:
    run = cli.start([malformed(shell("echo no")), say("Sorry.")])
    trajectory = run.say("Do it.")
    ((_, result),) = calls(trajectory)
    assert "could not be parsed" in str(result and result.content)
    assert run.context.malformed_calls == 1
    assert "could not be parsed" in json.dumps(run.server.last.body["messages"])


def test_a_huge_output_and_a_command_left_behind(cli: Bench) -> None:
    run = cli.start([shell("seq 1 900000"), shell("nohup sleep 300 >/dev/null 2>&1 & echo started"), say("Done.")])
    started = time.monotonic()
    trajectory = run.say("Do it.")
    assert time.monotonic() - started < 60
    first, second = (result for _, result in calls(trajectory))
    assert first is not None
    assert "Output too large" in str(first.content)
    assert (first.extra or {})["exit_code"] == 0
    assert (second and second.content) == "started"
