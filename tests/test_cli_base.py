"""What command-line agents share, with small programs in the place of theirs: events, limits, errors, versions."""

from __future__ import annotations

import importlib
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_sessions import PRIVATE

from pytest_paranoia.agents import install
from pytest_paranoia.agents.base import AgentChoice, AgentContext, Harness, Recorder, UserMessage
from pytest_paranoia.agents.cli import base
from pytest_paranoia.agents.cli.base import CliHarness, CliSession, Command, ToolCalls
from pytest_paranoia.environments.base import EnvironmentSpec, ExecResult, Limits, Mount
from pytest_paranoia.environments.local import LocalEnvironment
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.relay.contract import Protocol
from pytest_paranoia.schema.record import AgentInfo
from pytest_paranoia.schema.trajectory import ToolCall
from pytest_paranoia.scoring.sensors.actions import actions_of
from requirements import require

INFO = AgentInfo(name="small", harness="small", model="m", version="1.2.3")
VERSION = 'if [ "$1" = --version ]; then echo "small 1.2.3 (build 9)"; exit; fi\n'


class Small(CliHarness):
    """Runs a shell script that prints events."""

    name = "small"
    protocols: tuple[Protocol, ...] = ("openai-chat",)
    efforts = ("low", "high")

    def open(self, context: AgentContext) -> SmallSession:
        return SmallSession(self, context)


class SmallSession(CliSession):
    last: str | None = None

    def command(self, text: str) -> Command:
        self.last = None
        return Command([self.program, "run"], {"MORE": "yes"}, stdin=text.encode())

    def variables(self) -> dict[str, str]:
        return {"STATE": self.inside}

    def event(self, event: dict[str, Any]) -> None:
        if event["kind"] == "say":
            self.calls.turn(event["text"])
        elif event["kind"] == "call":
            self.calls.turn(calls=[ToolCall(tool_call_id=event["id"], function_name="bash", arguments={})])
        elif event["kind"] == "end":
            self.last = event["how"]
        else:
            self.recorder.keep(event["kind"], event)

    def complete(self) -> bool:
        return self.last is not None

    def failure(self, result: ExecResult) -> InfrastructureError | None:
        return InfrastructureError("model-refused", f"status {result.exit_code}") if self.last == "refused" else None


Start = Callable[..., Any]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Install a script as the agent's program and open a session with it in a sandbox."""
    require("bubblewrap")
    running: list[LocalEnvironment] = []

    def make(
        script: str, *, seconds: float = 30.0, version: str = VERSION, harness: CliHarness | None = None
    ) -> CliSession:
        folder = tmp_path / str(len(running))
        program = folder / "installed/tree/bin/small"
        for one in (program.parent, folder / "workspace", folder / "scratch", folder / "agent"):
            one.mkdir(parents=True)
        program.write_text("#!/bin/sh\n" + version + script)
        program.chmod(0o755)
        there = install.Installed(
            "small", "1.2.3", folder / "installed", program, {"small": "sha512-x"}, ("small",), "", 1, "2026-01-01"
        )
        monkeypatch.setattr(install, "find", lambda *_: there)
        harness = harness or Small()
        choice = AgentChoice(name="small", harness="small", model="m", version="1.2.3")
        spec = EnvironmentSpec(
            folder / "workspace",
            folder / "scratch",
            mounts=harness.mounts(choice),
            writable=[Mount(folder / "agent", PRIVATE)],
            limits=Limits(wall_clock=seconds),
        )
        environment = LocalEnvironment(spec, isolated=True)
        environment.start()
        running.append(environment)
        context = AgentContext(
            agent=INFO,
            variant=None,
            environment=environment,
            recorder=Recorder(INFO),
            deadline=time.monotonic() + seconds,
            choice=choice,
            private=folder / "agent",
        )
        return harness.open(context)

    yield make
    for environment in running:
        environment.stop()


def send(session: CliSession, text: str = "Hello.") -> None:
    message = UserMessage("task", text)
    session.recorder.user(message)
    session.message(message)


def fails(session: CliSession) -> InfrastructureError:
    with pytest.raises(InfrastructureError) as caught:
        send(session)
    return caught.value


def said(session: SmallSession) -> list[str]:
    found = session.recorder.trajectory()
    assert found is not None
    return [step.text for step in found.steps[1:]]


END = 'echo \'{"kind": "end", "how": "well"}\'\n'


def test_events_become_steps_and_the_rest_is_kept(start: Start) -> None:
    script = """
read -r text
printf '{"kind": "say", "text": "%s %s %s"}\\n' "$text" "$MORE" "$STATE"
echo not an event >&2
echo
echo '{"kind": "news", "about": "x"}'
"""
    session = start(script + 'printf \'%s\' \'{"kind": "end", "how": "well"}\'')  # the last line has no end
    send(session, "Hello.\n")
    assert said(session) == [f"Hello. yes {PRIVATE}"]
    found = session.recorder.trajectory()
    assert found is not None
    assert (found.extra or {})["events"] == [{"kind": "news", "after_step": 2, "event": {"kind": "news", "about": "x"}}]
    assert "[stderr] not an event" in session.context.log
    assert '{"kind": "news", "about": "x"}' in session.context.log


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("Welcome to Small 2!", "JSONDecodeError"),
        ("[1, 2]", "expected an object, found list"),
        ('{"sort": "say"}', "KeyError: 'kind'"),
        ('{"kind": "say", "text": 5}', "ValidationError"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(start: Start, line: str, why: str) -> None:
    session = start(f'echo \'{line}\'\necho \'{{"kind": "say", "text": "after"}}\'\n{END}')
    error = fails(session)
    assert error.reason == "harness-output"
    assert line in str(error)
    assert why in str(error)
    assert "small 1.2.3" in str(error)
    assert said(session) == ["after"]
    found = session.recorder.trajectory()
    assert found is not None
    assert [(event["kind"], event["event"]) for event in (found.extra or {})["events"]] == [("unreadable", line)]


def test_a_program_that_fails_is_named_with_the_end_of_its_stderr(start: Start) -> None:
    error = fails(start("echo 'no such session' >&2\nexit 4\n"))
    assert error.reason == "harness-failed"
    assert "status 4" in str(error)
    assert "no such session" in str(error)


@pytest.mark.parametrize("name", ["small", "claude_code", "codex", "opencode", "hermes"])
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_program_that_dies_of_a_signal_is_named_with_it(start: Start, name: str, number: signal.Signals) -> None:
    """Whatever was said before: this is no end of a message, and never a result."""
    module = importlib.import_module(f"pytest_paranoia.agents.cli.{name}") if name != "small" else None
    script = f"echo 'oh no' >&2\nprintf '{{\"kind\": \"sa'\nkill -{number} $$\n"
    session = start((END if module is None else "") + script, harness=module.HARNESS if module else None)
    error = fails(session)
    assert error.reason == "harness-failed"
    assert f"{session.harness.name} 1.2.3 was ended by {number.name}; stderr ends with: oh no" in str(error)
    assert "unreadable" not in str(error)  # half a line is no unreadable one


def test_a_failing_program_that_prints_plain_text_says_so(start: Start) -> None:
    error = fails(start("echo 'Error: bad option'\nexit 1\n"))
    assert error.reason == "harness-failed"
    assert "Error: bad option" in str(error)


def test_what_the_events_declare_comes_before_the_exit_status(start: Start) -> None:
    error = fails(start('echo \'{"kind": "end", "how": "refused"}\'\nexit 1\n'))
    assert (error.reason, str(error)) == ("model-refused", "status 1")


def test_an_end_without_its_event_is_no_result(start: Start) -> None:
    error = fails(start('echo \'{"kind": "say", "text": "hm"}\'\n'))
    assert error.reason == "harness-output"
    assert "without its last event" in str(error)


def test_the_wall_clock_keeps_what_was_said(start: Start) -> None:
    session = start('echo \'{"kind": "say", "text": "hm"}\'\nprintf \'{"kind": "sa\'\nsleep 60\n', seconds=3)
    started = time.monotonic()
    error = fails(session)
    assert time.monotonic() - started < 20
    assert (error.reason, session.context.limits) == ("wall-clock", ["wall-clock"])
    assert said(session) == ["hm"]
    found = session.recorder.trajectory()
    assert found is not None
    assert found.extra is None  # half a line is no unreadable one
    session.context.environment.stop()


def test_no_command_starts_after_the_deadline(start: Start) -> None:
    session = start(END)
    session.context.deadline = time.monotonic() - 1
    assert fails(session).reason == "wall-clock"


def test_a_long_stream_is_read_to_its_end(start: Start) -> None:
    line = '{"kind": "news", "text": "' + "x" * 1000 + '"}'
    session = start(f"i=0\nwhile [ $i -lt 6000 ]; do echo '{line}'; i=$((i+1)); done\n{END}")
    send(session)
    found = session.recorder.trajectory()
    assert found is not None
    assert len((found.extra or {})["events"]) == 6000


def test_a_stream_without_end_is_cut_under_that_name(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "OUTPUT_BYTES", 10_000)
    monkeypatch.setattr(base, "LOG_CHARACTERS", 5_000)
    session = start('i=0\nwhile [ $i -lt 500 ]; do echo \'{"kind": "news", "number": 1}\'; i=$((i+1)); done\n' + END)
    error = fails(session)
    assert (error.reason, session.context.limits) == ("output", ["output"])
    assert session.context.log[-1] == "[the rest of the program's output is not in this log]"
    assert len("".join(session.context.log)) < 6_000


@pytest.mark.parametrize(
    ("version", "shown"),
    [("echo 'small 1.3.0'; exit\n", "small 1.3.0"), ("echo broken >&2; exit 3\n", "broken"), ("exit\n", "''")],
)
def test_another_version_than_the_installed_one_is_refused(start: Start, version: str, shown: str) -> None:
    with pytest.raises(InfrastructureError) as caught:
        start(END, version=f'if [ "$1" = --version ]; then {version}fi\n')
    assert caught.value.reason == "harness"
    assert shown in str(caught.value)
    assert "paranoia agents install small@1.2.3" in str(caught.value)


def test_the_version_is_asked_once_in_a_process(start: Start) -> None:
    count = VERSION.replace("echo", 'echo x >> "$STATE/asked"; echo', 1)
    session = start(END, version=count)
    SmallSession(session.harness, session.context)
    assert session.context.private is not None
    assert (session.context.private / "asked").read_text() == "x\n"


def test_a_second_message_follows_in_the_same_session(start: Start) -> None:
    session = start('read -r text; printf \'{"kind": "say", "text": "%s"}\\n\' "$text"\n' + END)
    send(session, "One.\n")
    send(session, "Two.\n")
    assert (session.messages, said(session)) == (2, ["One.", "Two.\n", "Two."])


# -- without a program ---------------------------------------------------------------------------------------------


def test_it_is_a_harness_and_wants_a_model() -> None:
    harness: Harness = Small()
    assert harness.choose("org/model-1").name == "small:org/model-1"
    for text in (None, "", "two words"):
        with pytest.raises(pytest.UsageError, match="expected small:MODEL"):
            harness.choose(text)


def test_what_is_missing_is_said_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pytest_paranoia.agents.cli.claude_code import HARNESS

    monkeypatch.setenv("PARANOIA_CACHE", str(tmp_path))
    default = AgentChoice(name="x", harness="claude-code", model="m")
    other = AgentChoice(name="x", harness="claude-code", model="m", version="9.9.9")
    assert str(HARNESS.missing(default)).endswith("run `paranoia agents install claude-code`")
    assert str(HARNESS.missing(other)).endswith("run `paranoia agents install claude-code@9.9.9`")
    wrong = AgentChoice(name="x", harness="claude-code", model="m", effort="huge")
    assert "knows no effort 'huge'; it knows low, medium" in str(HARNESS.missing(wrong))
    with pytest.raises(InfrastructureError) as caught:
        HARNESS.mounts(default)
    assert caught.value.reason == "harness"


def call(identity: str, name: str = "bash") -> ToolCall:
    return ToolCall(tool_call_id=identity, function_name=name, arguments={"command": identity})


def test_pieces_of_a_turn_make_one_step() -> None:
    calls = ToolCalls(Recorder(INFO))
    calls.turn(reasoning="why", identity="m1")
    calls.turn("said", calls=[call("a")], identity="m1", extra={"x": 1})
    calls.turn("more", calls=[call("b")], identity="m1")
    calls.turn("next", identity="m2")
    found = calls.recorder.trajectory()
    assert found is not None
    first, second = found.steps
    assert (first.text, first.reasoning_content, first.extra) == ("said\nmore", "why", {"x": 1})
    assert [one.tool_call_id for one in first.tool_calls or ()] == ["a", "b"]
    assert second.text == "next"
    assert calls.result("b", "2") is True
    assert calls.result("a", "1", {"exit_code": 0, "denied": None}) is True
    assert (calls.result("a", "again"), calls.result("c", "?")) == (False, False)
    results = first.observation.results if first.observation else []
    assert [(one.source_call_id, one.content) for one in results] == [("b", "2"), ("a", "1")]
    assert set(results[1].extra or {}) == {"exit_code", "seconds"}


def test_subagents_are_embedded_with_and_without_a_result() -> None:
    calls = ToolCalls(Recorder(INFO))
    calls.turn(calls=[call("done", "Agent"), call("cut", "Agent")])
    for starter in ("done", "cut", "nobody"):
        child = calls.subagent(starter, f"child of {starter}", INFO)
        assert calls.subagent(starter, f"child of {starter}", INFO) is child
        child.turn(calls=[call(f"in {starter}")])
        child.result(f"in {starter}", starter)
        below = child.subagent(f"in {starter}", f"below {starter}", INFO)
        below.turn("deep")
    calls.subagent("done", "silent", INFO)
    calls.result("done", "ready")
    calls.close()
    calls.close()
    found = calls.recorder.trajectory()
    assert found is not None
    assert [child.trajectory_id for child in found.subagent_trajectories or ()] == [
        "child of done",
        "child of cut",
        "child of nobody",
    ]
    assert [child.reply for one in found.subagent_trajectories or () for child in one.subagent_trajectories or ()] == (
        ["deep"] * 3
    )
    results = found.steps[0].observation.results if found.steps[0].observation else []
    assert [(one.content, (one.extra or {}).get("unfinished")) for one in results] == [("ready", None), (None, True)]
    assert [one.subagent_trajectory_ref for one in results] == [
        [{"trajectory_id": "child of done"}],
        [{"trajectory_id": "child of cut"}],
    ]
    assert [action.text for action in actions_of(found) if action.kind == "command"] == [
        "in done",
        "in cut",
        "in nobody",
    ]


def test_what_a_script_ran_stands_for_the_script() -> None:
    calls = ToolCalls(Recorder(INFO))
    script = ToolCall(
        tool_call_id="s", function_name="exec", arguments={"input": 'await tools.exec_command({cmd: "make"})'}
    )
    calls.turn(calls=[script], identity="t")
    alone = calls.recorder.trajectory()
    assert alone is not None
    assert [(one.text, one.exit_code) for one in actions_of(alone)] == [("make", None)]
    inner = ToolCall(tool_call_id="i", function_name="exec_command", arguments={"cmd": "make"}, extra={"within": "s"})
    calls.turn("later")
    calls.turn(calls=[inner])
    calls.result("i", "made", {"exit_code": 2})
    both = calls.recorder.trajectory()
    assert both is not None
    assert [(one.text, one.output, one.exit_code) for one in actions_of(both)] == [("make", "made", 2)]
    calls.mark("s", gate=[])
    assert script.extra == {"gate": []}
