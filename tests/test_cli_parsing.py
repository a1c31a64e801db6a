"""What Claude Code and Codex may print or leave that a scripted model does not bring about, from made-up streams."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_sessions import Bench, Run, calls

from pytest_paranoia.agents import install
from pytest_paranoia.agents.base import AgentChoice, AgentContext, Recorder
from pytest_paranoia.agents.cli.claude_code import HARNESS
from pytest_paranoia.agents.cli.codex_transcript import Transcript
from pytest_paranoia.agents.cli.tool_calls import ToolCalls
from pytest_paranoia.environments.base import EnvironmentSpec
from pytest_paranoia.environments.local import LocalEnvironment
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.schema.record import AgentInfo
from pytest_paranoia.schema.trajectory import Trajectory
from requirements import require

Event = dict[str, Any]
Stream = Callable[..., Run]
THREAD = "01a22c50-52c6-7f91-93c4-7a22299c5e04"
CHILD = "01a22c50-53a9-7a32-88e9-e2836ef35fef"


# -- Claude Code ---------------------------------------------------------------------------------------------------


@pytest.fixture
def stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a program in the place of Claude Code that prints these events and ends with this status."""
    require("bubblewrap")
    bench = Bench(HARNESS, tmp_path)

    def start(*events: Event | str, status: int = 0, version: str = "2.1.332") -> Run:
        folder = tmp_path / f"installed-{len(bench.running)}"
        program = folder / "tree/claude"
        program.parent.mkdir(parents=True)
        lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
        (folder / "tree/lines").write_text("".join(f"{line}\n" for line in lines))
        program.write_text(
            f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{version} (Claude Code)"; exit; fi\n'
            f'cat >/dev/null; cat "${{0%/*}}/lines"; exit {status}\n'
        )
        program.chmod(0o755)
        there = install.Installed("claude-code", "2.1.332", folder, program, {}, (), "", 1, "2026-01-01")
        monkeypatch.setattr(install, "find", lambda *_: there)
        return bench.start(["never asked"])

    yield start
    bench.close()


INIT: Event = {"type": "system", "subtype": "init", "session_id": "s", "claude_code_version": "2.1.332", "tools": []}
DONE: Event = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}


def assistant(*blocks: Event, identity: str = "m1", **more: Any) -> Event:
    return {"type": "assistant", "message": {"id": identity, "model": "m", "content": list(blocks)}, **more}


def user(*blocks: Event, **more: Any) -> Event:
    return {"type": "user", "message": {"role": "user", "content": list(blocks)}, **more}


def use(identity: str, name: str = "Bash", **given: Any) -> Event:
    return {"type": "tool_use", "id": identity, "name": name, "input": given}


def result(identity: str, content: Any, **more: Any) -> Event:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **more}


def kept(trajectory: Trajectory) -> list[str]:
    return [event["kind"] for event in (trajectory.extra or {}).get("events", ())]


def test_what_has_no_place_in_a_step_is_kept(stream: Stream) -> None:
    run = stream(
        INIT,
        {"type": "system", "subtype": "thinking_tokens", "estimated_tokens": 5},
        {"type": "system", "subtype": "compact_boundary", "compact_metadata": {"trigger": "auto"}},
        {"type": "weather", "rain": True},
        assistant({"type": "server_tool_use", "id": "s1", "name": "code", "input": {}}, {"type": "text", "text": "A"}),
        assistant({"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "B"}),
        user({"type": "text", "text": "Go on."}, isSynthetic=True),
        user(result("nobody", "lost")),
        DONE,
    )
    trajectory = run.say("Do it.")
    assert kept(trajectory) == ["system/compact_boundary", "weather", "user", "tool_result", "result"]
    (step,) = trajectory.steps[1:]
    assert step.text == "A\nB"
    assert [block["type"] for block in (step.extra or {})["blocks"]] == ["server_tool_use", "redacted_thinking"]


def test_results_of_several_parts_keep_text_and_name_the_rest(stream: Stream) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    run = stream(
        INIT,
        assistant(use("a", "Read", file_path="x.png"), use("b", "ToolSearch"), use("c", "Read")),
        user(result("a", [{"type": "text", "text": "An image:"}, {"type": "image", "source": source}])),
        user(result("b", [{"type": "tool_reference", "tool_name": "Monitor"}])),
        user(result("c", None)),
        DONE,
    )
    first, second, third = (given for _, given in calls(run.say("Do it.")))
    assert first is not None
    assert isinstance(first.content, list)
    assert [part.type for part in first.content] == ["text", "text"]
    assert "image/png" in str(first.content[1].text)
    assert "QUJD" not in str(first.content[1].text)
    assert (second and second.content) == '{"type": "tool_reference", "tool_name": "Monitor"}'
    assert (third and third.content) == ""


@pytest.mark.parametrize(
    ("given", "detail", "code"),
    [
        (result("a", "x", is_error=False), {"stdout": "x"}, 0),
        (result("a", "Exit code 137\nkilled", is_error=True), "Error: Exit code 137", 137),
        (result("a", "Exit code x", is_error=True), "Error", None),
        (result("a", "", is_error=False), {"stdout": "", "returnCodeInterpretation": "No matches found"}, None),
        (result("a", "Running", is_error=False), {"stdout": "", "backgroundTaskId": "b1"}, None),
        (result("a", "part", is_error=False), {"stdout": "part", "interrupted": True}, None),
        (result("a", "Exit code 1 is what it printed"), {"type": "text"}, None),
    ],
)
def test_exit_statuses_are_known_or_left_out(stream: Stream, given: Event, detail: Any, code: int | None) -> None:
    run = stream(INIT, assistant(use("a", command="x")), user(given, tool_use_result=detail), DONE)
    ((_, found),) = calls(run.say("Do it."))
    assert found is not None
    assert (found.extra or {}).get("exit_code") == code


def test_another_version_in_the_stream_is_named(stream: Stream) -> None:
    run = stream({**INIT, "claude_code_version": "2.2.0"}, assistant({"type": "text", "text": "Hi."}), DONE)
    with pytest.raises(InfrastructureError) as caught:
        run.say("Do it.")
    assert caught.value.reason == "harness-output"
    assert "claude_code_version '2.2.0', expected '2.1.332'" in str(caught.value)


def test_a_changed_format_is_named_with_its_line(stream: Stream) -> None:
    run = stream(INIT, {"type": "assistant", "content": "Hi."}, DONE)
    with pytest.raises(InfrastructureError) as caught:
        run.say("Do it.")
    assert caught.value.reason == "harness-output"
    assert '"content": "Hi."' in str(caught.value)


def test_an_error_that_is_not_the_models_is_the_harness_own(stream: Stream) -> None:
    run = stream(INIT, {**DONE, "is_error": True, "subtype": "error_during_execution", "errors": ["broken"]}, status=1)
    with pytest.raises(InfrastructureError) as caught:
        run.say("Do it.")
    assert caught.value.reason == "harness-failed"
    assert "error_during_execution" in str(caught.value)
    assert "broken" in str(caught.value)


def test_an_end_without_result_is_no_end(stream: Stream) -> None:
    with pytest.raises(InfrastructureError) as caught:
        stream(INIT, assistant({"type": "text", "text": "Hi."})).say("Do it.")
    assert caught.value.reason == "harness-output"


# -- Codex ---------------------------------------------------------------------------------------------------------


class Rollouts:
    """Transcripts in a folder, and what becomes of them."""

    def __init__(self, folder: Path) -> None:
        info = AgentInfo(name="codex", harness="codex", model="m", version="0.171.0")
        for name in ("workspace", "scratch", "sessions"):
            (folder / name).mkdir()
        self.folder = folder / "sessions"
        self.context = AgentContext(
            agent=info,
            variant=None,
            environment=LocalEnvironment(EnvironmentSpec(folder / "workspace", folder / "scratch"), isolated=False),
            recorder=Recorder(info),
            deadline=time.monotonic() + 60,
            choice=AgentChoice(name="codex", harness="codex"),
            private=folder,
        )
        self.calls = ToolCalls(self.context.recorder)
        self.transcript = Transcript(self.folder, self.context, self.calls)

    def add(self, *lines: Event | str, thread: str = THREAD, end: str = "\n") -> None:
        """Append lines to the transcript of a thread."""
        path = self.folder / f"rollout-2026-11-30T11-56-31-{thread}.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        with path.open("a") as file:
            file.write("\n".join(texts) + end)

    def read(self) -> Trajectory:
        """Read on and return the trajectory."""
        self.transcript.read(THREAD)
        found = self.context.recorder.trajectory()
        assert found is not None
        return found


@pytest.fixture
def rollouts(tmp_path: Path) -> Rollouts:
    return Rollouts(tmp_path)


def item(kind: str, at: str = "2026-11-30T11:56:31.000Z", **payload: Any) -> Event:
    return {"timestamp": at, "type": "response_item", "payload": {"type": kind, **payload}}


def happened(kind: str, **payload: Any) -> Event:
    return {"timestamp": "x", "type": "event_msg", "payload": {"type": kind, **payload}}


def completed(**payload: Any) -> Event:
    return happened("item_completed", item=payload)


def called(identity: str, command: str = "true") -> Event:
    return item("function_call", name="exec_command", arguments=json.dumps({"cmd": command}), call_id=identity)


def said(text: str) -> Event:
    return item("message", role="assistant", content=[{"type": "output_text", "text": text}])


ANSWERED: Event = {"timestamp": "x", "type": "token_usage_record", "payload": {}}


def test_a_line_is_taken_when_it_is_whole(rollouts: Rollouts) -> None:
    rollouts.add(said("One."), '{"timestamp": "x", "type": "resp', end="")
    assert [step.text for step in rollouts.read().steps] == ["One."]
    rollouts.add('onse_item", "payload": {"type": "reasoning", "summary": [{"text": "Hm."}]}}')
    assert rollouts.read().steps[0].reasoning_content == "Hm."


def test_a_line_that_cannot_be_read_is_named_and_the_others_taken(rollouts: Rollouts) -> None:
    rollouts.add(said("One."), {"sort": "new"}, ANSWERED, said("Two."), "no json", ANSWERED, said("Three."))
    with pytest.raises(ValueError, match=r"sort.*new") as caught:
        rollouts.read()
    assert THREAD in str(caught.value)
    assert [step.text for step in rollouts.read().steps] == ["One.", "Two.", "Three."]


def test_what_nobody_knows_is_kept(rollouts: Rollouts) -> None:
    rollouts.add(
        {"type": "compacted", "payload": {"message": "m"}},
        item("web_search_result", query="q"),
        happened("warning", message="w"),
        completed(type="McpToolCall", id="x"),
        said("Done."),
        happened("token_count", info={}),
    )
    trajectory = rollouts.read()
    assert kept(trajectory) == ["compacted", "web_search_result", "warning", "McpToolCall"]


def test_turns_are_parted_by_the_models_answers(rollouts: Rollouts) -> None:
    rollouts.add(said("A"), called("a"), called("b"), ANSWERED, said("B"), ANSWERED, called("c"))
    steps = rollouts.read().steps
    assert [len(step.tool_calls or ()) for step in steps] == [2, 0, 1]
    assert rollouts.transcript.turns == 3
    rollouts.transcript.begin()
    assert rollouts.transcript.turns == 0


@pytest.mark.parametrize(
    ("output", "facts"),
    [
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 5\nOutput:\nx", {"exit_code": 5}),
        ("Chunk ID: 1\nProcess running with session ID 7\nOutput:\nProcess exited with code 5\n", {}),
        ("Command blocked by PreToolUse hook: no. Command: x", {"denied": True, "is_error": True}),
        ("Chunk ID: 1\nOutput:\nCommand blocked by PreToolUse hook: says the command", {}),
        (
            [{"type": "input_text", "text": "Script failed\nOutput:\n"}, {"type": "input_text", "text": "x"}],
            {"is_error": True},
        ),
    ],
)
def test_what_an_output_tells(rollouts: Rollouts, output: Any, facts: dict[str, Any]) -> None:
    rollouts.add(called("a"), item("function_call_output", "2026-11-30T11:56:33.500Z", call_id="a", output=output))
    ((_, found),) = calls(rollouts.read())
    assert found is not None
    assert found.extra == {**facts, "seconds": 2.5}


def test_changes_of_a_script_become_a_patch(rollouts: Rollouts) -> None:
    changes = {
        "/w/new": {"type": "add", "content": "a\nb\n"},
        "/w/old": {"type": "delete", "content": "x"},
        "/w/moved": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-a\n+b\n", "move_path": "/w/there"},
    }
    rollouts.add(
        item("custom_tool_call", name="exec", input="await tools.apply_patch(p)", call_id="s"),
        completed(type="FileChange", id="exec-1", changes=changes, status="failed", stdout="", stderr="no"),
    )
    (_, _), (inner, found) = calls(rollouts.read())
    assert inner.extra == {"within": "s"}
    assert inner.arguments["input"].splitlines() == [
        "*** Begin Patch",
        "*** Add File: /w/new",
        "+a",
        "+b",
        "*** Delete File: /w/old",
        "*** Update File: /w/moved",
        "*** Move to: /w/there",
        "@@ -1 +1 @@",
        "-a",
        "+b",
        "*** End Patch",
    ]
    assert found is not None
    assert (found.content, (found.extra or {})["exit_code"]) == ("no", 1)


def test_a_subagent_without_a_known_call_is_embedded_all_the_same(rollouts: Rollouts) -> None:
    own = happened("task_started", turn_attribution={"parent_turn_id": "t", "initiating_agent_path": "/root"})
    rollouts.add(said("Main."))
    rollouts.add(said("inherited"), own, said("Own."), thread=CHILD)
    rollouts.read()
    rollouts.transcript.subagents()
    rollouts.calls.close()
    (child,) = rollouts.read().subagent_trajectories or ()
    assert ([step.text for step in child.steps], child.trajectory_id) == (["Own."], CHILD)


def test_without_a_transcript_there_is_no_result(rollouts: Rollouts) -> None:
    rollouts.transcript.read(THREAD)
    with pytest.raises(ValueError, match="no transcript"):
        rollouts.transcript.subagents()


def test_a_link_in_its_place_leads_nowhere(rollouts: Rollouts, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    name = f"rollout-2026-11-30T11-56-31-{THREAD}.jsonl"
    (outside / name).write_text(json.dumps(said("A secret of the host.")) + "\n")
    (rollouts.folder / name).symlink_to(outside / name)
    with pytest.raises(ValueError, match="without following links"):
        rollouts.transcript.read(THREAD)
    (rollouts.folder / name).unlink()
    rollouts.add(said("One."))
    rollouts.read()
    rollouts.folder.rename(tmp_path / "away")
    rollouts.folder.symlink_to(outside)
    with pytest.raises(ValueError, match="is a link"):
        rollouts.transcript.subagents()
    with pytest.raises(ValueError, match="without following links"):
        rollouts.transcript.read(THREAD)
    found = rollouts.context.recorder.trajectory()
    assert found is not None
    assert "secret" not in found.model_dump_json()
