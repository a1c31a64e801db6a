"""The real Codex in the real sandbox, with its model on a scripted server: plain tools, and those inside of scripts."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_sessions import Bench, Veto, agent_steps, bench, calls, refused
from model_requests import Request
from model_script import (
    Entry,
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
    think,
    tool,
    turn,
    write,
)

from pytest_paranoia.agents.cli.codex import HARNESS
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.scoring.sensors.actions import actions_of

PLAIN, SCRIPTS = "gpt-5.5", "gpt-5.6-sol"
HOOKS = '[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "touch /workspace/HOOKED"\n'


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Bench]:
    """A bench for Codex."""
    with bench(HARNESS, tmp_path) as made:
        yield made


@pytest.mark.parametrize("model", [PLAIN, SCRIPTS])
def test_a_conversation_over_two_messages_becomes_a_trajectory(cli: Bench, model: str) -> None:
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
        model=model,
        files={"a.txt": "one\n"},
    )
    run.say("Change a.txt.")
    trajectory = run.say("What is in it?")
    assert (run.workspace / "a.txt").read_text() == "two\n"
    assert (run.workspace / "b.txt").read_text() == "new\n"
    steps = trajectory.steps
    assert [step.source for step in steps] == ["user", *["agent"] * 5, "user", *["agent"] * 2]
    assert (steps[1].text, steps[1].reasoning_content, steps[1].model_name) == ("Looking.", "First a look.", model)
    assert steps[5].text == "Done."
    assert trajectory.reply == "Still two."
    done = [action for action in actions_of(trajectory) if action.kind != "other"]
    assert [(action.kind, action.exit_code) for action in done] == [
        ("command", 0),
        ("command", 0),
        ("edit", 0),
        ("edit", 0),
        ("command", 3),
        ("command", 0),
    ]
    assert [action.text for action in done if action.kind == "command"] == [
        "echo hi; pwd",
        "cat a.txt",
        "echo bad >&2; exit 3",
        "cat a.txt",
    ]
    assert "hi\n/workspace\n" in done[0].output
    assert "bad" in done[4].output
    assert [(action.path or "").rpartition("/")[2] for action in done[2:4]] == ["a.txt", "b.txt"]
    assert "+two" in done[2].text
    found = calls(trajectory)
    assert [call.function_name for call, _ in found if not (call.extra or {}).get("within")] == (
        ["exec"] * 6 if model == SCRIPTS else ["exec_command"] * 2 + ["apply_patch"] * 2 + ["exec_command"] * 2
    )
    assert all(result is not None and (result.extra or {})["seconds"] >= 0 for _, result in found)
    second = next(one.request for one in run.server.main if "What is in it?" in one.request.users[-1])
    before = json.dumps(second.body["input"])
    assert "Change a.txt." in before
    assert "exit 3" in before
    assert (trajectory.extra or {})["session_id"]
    assert run.server.other == []
    assert run.left_behind() == []
    assert sorted(path.name for path in run.workspace.iterdir()) == ["a.txt", "b.txt"]


def test_a_subagent_is_embedded_at_its_call_without_what_it_inherited(cli: Bench) -> None:
    def spawn(fork: str) -> Entry:
        return tool("spawn_agent", {"task_name": "sub", "message": "[[script:sub]] Look.", "fork_turns": fork})

    wait = tool("wait_agent", {"timeout_ms": 10_000})
    run = cli.start(
        {
            "default": [shell("echo before"), spawn("none"), wait, say("Done.")],
            "sub": [turn(think("Hm."), shell("sleep 2; echo below; exit 4")), say("Nothing here.")],
        },
        model=SCRIPTS,
        gate=Veto(),
    )
    trajectory = run.say("Ask somebody.")
    _, result = next(pair for pair in calls(trajectory) if pair[0].function_name == "spawn_agent")
    (child,) = trajectory.subagent_trajectories or ()
    assert result is not None
    assert result.subagent_trajectory_ref == [{"trajectory_id": child.trajectory_id}]
    assert [step.source for step in child.steps] == ["user", "agent", "agent"]
    assert "[[script:sub]] Look." in child.steps[0].text
    assert child.steps[1].reasoning_content == "Hm."
    assert child.reply == "Nothing here."
    commands = [(action.text, action.exit_code) for action in actions_of(trajectory) if action.kind == "command"]
    assert commands == [("echo before", 0), ("sleep 2; echo below; exit 4", 4)]
    assert run.gate is not None
    run.gate.check(trajectory)
    assert [entry.request.subagent for entry in run.gate.log if entry.request.tool == "Bash"] == [False, True]


def test_a_subagent_that_inherits_the_conversation_does_not_repeat_it(cli: Bench) -> None:
    start = tool("spawn_agent", {"task_name": "sub", "message": "Go on.", "fork_turns": "all"})
    run = cli.start([shell("echo before"), start, shell("echo after"), say("Done.")], model=SCRIPTS)
    trajectory = run.say("Ask somebody.")
    (child,) = trajectory.subagent_trajectories or ()
    commands = [call.arguments["cmd"] for call, _ in calls(child) if call.function_name == "exec_command"]
    assert "echo before" not in commands
    assert "Go on." in child.steps[0].text


@pytest.mark.parametrize("model", [PLAIN, SCRIPTS])
def test_the_gate_is_asked_before_every_call_and_denials_reach_the_model(cli: Bench, model: str) -> None:
    gate = Veto()
    run = cli.start(
        [shell("echo forbidden > x"), shell("echo fine"), write("y", "forbidden"), malformed(shell("x")), say("Done.")],
        model=model,
        gate=gate,
    )
    trajectory = run.say("Try.")
    assert list(run.workspace.iterdir()) == []
    outer = [pair for pair in calls(trajectory) if not (pair[0].extra or {}).get("within")]
    assert [bool(result and (result.extra or {}).get("denied")) for _, result in outer] == [True, False, True, False]
    assert [one.tool for one in gate.seen] == ["Bash", "Bash", "apply_patch"]
    withheld = [action.withheld for action in actions_of(trajectory)]
    assert withheld == [True, False, True, False]
    assert run.gate is not None
    run.gate.check(trajectory)
    assert "no forbidden here" in json.dumps(run.server.main[1].request.body["input"])


def test_a_gate_that_breaks_lets_nothing_run(cli: Bench) -> None:
    run = cli.start([shell("touch x"), say("Done.")], model=PLAIN, gate=Veto(broken=True))
    trajectory = run.say("Try.")
    assert list(run.workspace.iterdir()) == []
    assert run.gate is not None
    with pytest.raises(InfrastructureError) as caught:
        run.gate.check(trajectory)
    assert caught.value.reason == "gate-error"


@pytest.mark.parametrize("gated", [False, True])
def test_what_it_is_told_reaches_the_model_and_the_workspace_sets_nothing(cli: Bench, gated: bool) -> None:
    run = cli.start(
        [shell("ls"), say("Done.")],
        model=PLAIN,
        gate=Veto() if gated else None,
        files={"AGENTS.md": "Project words.\n", ".codex/config.toml": f'model_reasoning_effort = "low"\n{HOOKS}'},
        instructions='Words of the "study".',
        effort="high",
        context=400_000,
        max_output=128_000,
    )
    run.say("Look.")
    request = run.server.main[0].request
    said = json.dumps(request.body["input"])
    assert r"Words of the \\\"study\\\"." in json.dumps(said)
    assert "Project words." in said
    assert request.body["reasoning"]["effort"] == "high"
    assert "web_search" not in {entry.get("type") for entry in request.body["tools"]}
    assert not (run.workspace / "HOOKED").exists()
    (transcript,) = (run.context.private or Path()).rglob("rollout-*.jsonl")
    assert '"model_context_window":258400' in transcript.read_text()  # 95 % of what may go in


def test_too_many_turns_end_it_under_that_name(cli: Bench) -> None:
    run = cli.start([shell(f"echo {number}") for number in range(9)], model=PLAIN, max_turns=2)
    error = refused(run)
    assert (error.reason, run.context.limits) == ("max-turns", ["max-turns"])
    assert len(calls(run.trajectory)) >= 2
    assert len(run.server.main) <= 4


def test_turns_are_counted_for_each_message(cli: Bench) -> None:
    run = cli.start([shell("echo 1"), "One.", shell("echo 2"), "Two."], model=PLAIN, max_turns=2)
    run.say("First.")
    assert run.say("Second.").reply == "Two."


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_an_error_of_the_model_is_named(cli: Bench, status: int) -> None:
    run = cli.start([shell("echo 1"), *[fail(status)] * 9], model=PLAIN)
    error = refused(run)
    assert error.reason == "model-refused"
    assert [step.text for step in agent_steps(run.trajectory)] == [""]
    assert "turn.failed" in {event["kind"] for event in (run.trajectory.extra or {})["events"]}


@pytest.mark.parametrize("broken", [cut("Never", shell("echo no")), garbage(), fail(500)])
def test_a_broken_answer_is_asked_for_again(cli: Bench, broken: Any) -> None:
    run = cli.start([broken, shell("echo 1"), say("Done.")], model=PLAIN)
    trajectory = run.say("Do it.")
    assert trajectory.reply == "Done."
    assert [call.arguments["cmd"] for call, _ in calls(trajectory)] == ["echo 1"]


def test_an_event_that_is_no_json_is_passed_over(cli: Bench) -> None:
    run = cli.start([bad_json("Half", shell("echo yes")), say("Done.")], model=PLAIN)
    trajectory = run.say("Do it.")
    assert trajectory.reply == "Done."
    assert all(result is not None for _, result in calls(trajectory))


@pytest.mark.parametrize("where", ["head", "stream"])
def test_a_model_that_hangs_ends_by_the_wall_clock(cli: Bench, where: Any) -> None:
    stay = shell("nohup sh -c 'while :; do sleep 1; done' >/dev/null 2>&1 & echo on")
    run = cli.start([stay, hang(where)], model=PLAIN, seconds=12)
    error = refused(run)
    assert (error.reason, run.context.limits) == ("wall-clock", ["wall-clock"])
    ((_, result),) = calls(run.trajectory)
    assert "on\n" in str(result and result.content)
    alive = run.environment.exec(["sh", "-c", "cat /proc/[0-9]*/comm"]).stdout.decode().split()
    assert "codex" not in alive


@pytest.mark.parametrize("model", [PLAIN, SCRIPTS])
def test_malformed_arguments_are_told_to_the_model(cli: Bench, model: str) -> None:
    run = cli.start([malformed(shell("echo no")), say("Sorry.")], model=model)
    trajectory = run.say("Do it.")
    ((_, result),) = calls(trajectory)
    assert ((result and result.extra) or {})["is_error"] is True
    assert run.context.malformed_calls == (1 if model == PLAIN else 0)  # a script that is wrong is no malformed call
    assert trajectory.reply == "Sorry."


def test_a_command_that_outlives_its_call_gets_its_exit_status_later(cli: Bench) -> None:
    def wait(request: Request) -> Entry:
        number = re.search(r"session ID (\d+)", json.dumps(request.body["input"]))
        assert number is not None
        given = {"session_id": int(number[1]), "chars": "", "yield_time_ms": 8000}
        return tool("write_stdin", given)

    first = tool("exec_command", {"cmd": "echo a; sleep 3; echo b; exit 7", "yield_time_ms": 500})
    run = cli.start([first, wait, say("Done.")], model=PLAIN, gate=Veto())
    trajectory = run.say("Do it.")
    (_, result), (_, waited) = calls(trajectory)
    assert ((result and result.extra) or {})["exit_code"] == 7
    assert "b\n" in str(waited and waited.content)
    assert run.gate is not None
    run.gate.check(trajectory)


def test_no_text_gets_into_a_running_command(cli: Bench) -> None:
    run = cli.start([shell("cat; echo over"), say("Done.")], model=PLAIN)
    ((_, result),) = calls(run.say("Do it."))
    assert "over\n" in str(result and result.content)


def test_a_huge_output_and_a_command_left_behind(cli: Bench) -> None:
    run = cli.start(
        [shell("seq 1 900000"), tool("exec_command", {"cmd": "sleep 300", "yield_time_ms": 500}), say("Done.")],
        model=PLAIN,
    )
    trajectory = run.say("Do it.")
    (_, first), (_, second) = calls(trajectory)
    assert ((first and first.extra) or {})["exit_code"] == 0
    assert "900000" in str(first and first.content)
    assert len(str(first and first.content)) < 100_000
    # Codex kills what is left when it ends; whether it still notes that is a race of its own.
    assert ((second and second.extra) or {}).get("exit_code") in (None, 128 + signal.SIGKILL)
    assert trajectory.reply == "Done."
