"""The real Hermes in a real sandbox, against the scripted model server."""

from __future__ import annotations

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

from pytest_paranoia.agents.cli.hermes import HARNESS
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.relay.contract import Protocol, Provider
from pytest_paranoia.scoring.sensors.actions import actions_of

FILES = {"a.txt": 'one\ntwo "2"\nthree\n'}


@pytest.fixture
def hermes(tmp_path: Path) -> Iterator[Bench]:
    with bench(HARNESS, tmp_path) as made:
        yield made


def test_two_messages_in_one_session(hermes: Bench) -> None:
    script = [
        turn(think("first a look"), "Looking.", shell('echo "$TMPDIR"; exit 3'), read("a.txt")),
        edit("a.txt", "two", "zwei"),
        write("b/c.txt", "new\n"),
        say("Done."),
        shell("cat b/c.txt; mktemp $TMPDIR/mine-XXXX"),
        say("Done again."),
    ]
    run = hermes.start(script, files=FILES, instructions="Remember RULE-4711.")
    text = 'Say "it" — with \\ and\na second line'
    run.say(text)
    trajectory = run.say("--- And on.")

    first, second = run.server.main[0].request, run.server.main[4].request
    assert first.users == (text,)
    assert second.users == (text, "--- And on.")
    assert "RULE-4711" in first.system
    assert first.system.startswith("You are Hermes Agent")  # its own words stay
    assert not run.server.sides

    found = calls(trajectory)
    assert [call.function_name for call, _ in found] == ["terminal", "read_file", "patch", "write_file", "terminal"]
    outputs = [str(result.content) for _, result in found if result]
    assert outputs[0] == "/tmp"
    assert '2|two "2"' in outputs[1]  # the file's own text, not JSON of it
    assert outputs[4].startswith("new\n")
    extras = [result.extra or {} for _, result in found if result]
    assert [extra.get("exit_code") for extra in extras] == [3, None, None, None, 0]
    assert all(0 <= extra["seconds"] < 60 for extra in extras)
    steps = agent_steps(trajectory)
    assert [step.text for step in steps] == ["Looking.", "", "", "Done.", "", "Done again."]
    assert steps[0].reasoning_content == "first a look"
    assert [(action.kind, action.path) for action in actions_of(trajectory)] == [
        ("command", None),
        ("read", "/workspace/a.txt"),
        ("edit", "/workspace/a.txt"),
        ("write", "/workspace/b/c.txt"),
        ("command", None),
    ]
    assert (run.workspace / "a.txt").read_text() == 'one\nzwei "2"\nthree\n'
    assert (run.workspace / "b/c.txt").read_text() == "new\n"
    assert sorted(path.name for path in run.workspace.iterdir()) == ["a.txt", "b"]
    left = run.left_behind()
    assert len(left) == 1
    assert left[0].startswith("tmp/mine-")


def test_subagent_gate_and_unreadable_calls(hermes: Bench) -> None:
    scripts = {
        "default": [
            turn("delegating", subagent("[[script:child]] Do your part.")),
            turn(shell("echo forbidden > no.txt"), read("a.txt")),
            tool("nonesuch", {"a": 1}),
            malformed(shell("x")),
            say("Done."),
        ],
        "child": [turn(think("alone"), shell("echo child > c.txt")), shell("rm -rf forbidden"), say("child done")],
    }
    gate = Veto("forbidden")
    run = hermes.start(scripts, files=FILES, gate=gate)
    trajectory = run.say("Do it.")

    assert run.gate is not None
    run.gate.check(trajectory)
    assert [seen.tool for seen in gate.seen[:3]] == ["delegate_task", "terminal", "terminal"]
    assert not (run.workspace / "no.txt").exists()
    assert (run.workspace / "c.txt").read_text() == "child\n"
    found = calls(trajectory)
    (child,) = trajectory.subagent_trajectories or ()
    task = found[0][1]
    assert task is not None
    assert task.subagent_trajectory_ref == [{"trajectory_id": child.trajectory_id}]
    assert "child done" in str(task.content)  # it was waited for
    assert [step.source for step in child.steps] == ["user", "agent", "agent", "agent"]
    assert child.steps[1].reasoning_content == "alone"
    (_, denied) = calls(child)[1]
    assert denied is not None
    assert (denied.extra or {})["denied"] is True
    refused, looked = found[1][1], found[2][1]
    assert refused is not None
    assert "no forbidden here" in str(refused.content)
    assert (refused.extra or {})["denied"] is True
    assert "two" in str(looked.content if looked else "")
    # An unknown tool is told to the model; of arguments it cannot read Hermes tells nobody and asks again.
    assert run.context.malformed_calls == 1
    assert trajectory.reply == "Done."


def test_a_broken_gate_lets_nothing_through(hermes: Bench) -> None:
    run = hermes.start([shell("touch x"), say("Done.")], gate=Veto(broken=True))
    trajectory = run.say("Do it.")
    assert not (run.workspace / "x").exists()
    assert run.gate is not None
    with pytest.raises(InfrastructureError, match="gate"):
        run.gate.check(trajectory)


def test_a_gate_that_is_gone_lets_nothing_through(hermes: Bench) -> None:
    run = hermes.start([shell("touch x"), say("Done.")], gate=Veto())
    assert run.gate is not None
    run.gate.__exit__(None)
    ((_, result),) = calls(run.say("Do it."))
    assert not (run.workspace / "x").exists()
    assert result is not None
    assert "could not be checked" in str(result.content)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "HTTP 401: Incorrect API key"),
        (404, "does not exist"),
        (429, "HTTP 429"),
        (500, "HTTP 500"),
        (529, "HTTP 529"),
    ],
)
def test_refused(hermes: Bench, status: int, words: str) -> None:
    run = hermes.start([fail(status)] * 9)
    with pytest.raises(InfrastructureError, match=words) as caught:
        run.say("Do it.")
    assert caught.value.reason == "model-refused"
    assert len(run.server.main) == 1  # the relay repeats, not Hermes


def test_what_it_repeats_by_itself(hermes: Bench) -> None:
    text = "a text that is long enough to be cut in the middle of it"
    script = [cut(text, shell("touch cut")), bad_json(text), turn("now", shell("echo x >> once")), say("Done.")]
    run = hermes.start(script)
    trajectory = run.say("Do it.")
    assert [step.text for step in agent_steps(trajectory)][-2:] == ["now", "Done."]
    assert (run.workspace / "once").read_text() == "x\n"
    assert not (run.workspace / "cut").exists()


@pytest.mark.parametrize("script", [[shell("echo hi"), hang()], [turn("about to", shell("echo hi; sleep 902"))]])
def test_wall_clock(hermes: Bench, script: Any) -> None:
    run = hermes.start(script, seconds=25)
    with pytest.raises(InfrastructureError) as caught:
        run.say("Do it.")
    assert caught.value.reason == "wall-clock"
    assert run.context.limits == ["wall-clock"]
    ((call, result),) = calls(run.trajectory)
    assert call.arguments["command"].startswith("echo hi")
    assert (result is None) == ("sleep" in call.arguments["command"])
    run.environment.stop()
    assert not [process for process in psutil.process_iter(["cmdline"]) if "sleep 902" in str(process.info["cmdline"])]


def test_the_limit_of_turns(hermes: Bench) -> None:
    run = hermes.start([shell(f"echo {number} >> log") for number in range(9)], max_turns=3)
    with pytest.raises(InfrastructureError) as caught:
        run.say("Do it.")
    assert caught.value.reason == "max-turns"
    assert (run.workspace / "log").read_text().split() == ["0", "1", "2"]
    assert run.context.limits == ["max-turns"]
    # Hermes then asks for a summary, without tools.
    assert run.trajectory.reply == "A scripted title"


def test_a_refusal_is_a_result(hermes: Bench) -> None:
    run = hermes.start([turn("I will not.", stop="refusal")])
    (step,) = agent_steps(run.say("Do it."))
    assert "I will not." in step.text
    assert (step.extra or {})["finish"] == "refusal"


def test_huge_output_and_a_process_left_behind(hermes: Bench) -> None:
    background = tool("terminal", {"command": "sleep 903", "background": True})
    run = hermes.start([shell("seq 1 400000"), background, say("Done.")])
    trajectory = run.say("Do it.")
    (_, first), (_, second) = calls(trajectory)
    assert first is not None
    assert 10_000 < len(str(first.content)) < 100_000
    assert second is not None
    run.environment.stop()
    assert not [process for process in psutil.process_iter(["cmdline"]) if "sleep 903" in str(process.info["cmdline"])]


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses"])
def test_effort_by_every_protocol(hermes: Bench, protocol: Protocol) -> None:
    run = hermes.start(
        [turn(think("hm"), shell("echo hi")), say("Done.")],
        model="vendor/m-1",
        effort="high",
        provider=Provider("p", "http://127.0.0.1:1/v1", protocols=(protocol,)),
        max_output=4000,
    )
    trajectory = run.say("Do it.")
    assert trajectory.reply == "Done."
    assert agent_steps(trajectory)[0].reasoning_content == "hm"
    request = run.server.main[0].request
    assert (request.protocol, request.model) == (protocol, "vendor/m-1")
    body: Any = request.body
    assert (body["reasoning_effort"] if protocol == "openai-chat" else body["reasoning"]["effort"]) == "high"
