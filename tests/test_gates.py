"""Gates: asked before each call, closed whatever breaks, checked against the trajectory afterwards."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sessions import Session
from small_items import ItemFolder

from pytest_paranoia.environments import bubblewrap
from pytest_paranoia.environments.base import EnvironmentSpec, Mount
from pytest_paranoia.environments.local import LocalEnvironment
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.gates.base import Decision, GateView, ToolRequest
from pytest_paranoia.gates.service import BROKEN, GateService
from pytest_paranoia.schema.trajectory import Observation, ObservationResult, Trajectory
from requirements import require

PYTHON = bubblewrap.interpreter()
GATES = """
from pytest_paranoia.gates.base import Decision

class NoCopies:
    name, version = "no-copies", "1"
    def decide(self, request, view):
        return Decision("cp " not in str(request.arguments), "copies are withheld")

class NoEdits:
    name, version = "no-edits", "2"
    def decide(self, request, view):
        return Decision(request.tool != "edit", "edits are withheld")

class Nameless:
    def __init__(self):
        self.name, self.version = "nameless", "1"
    def decide(self, request, view):
        return Decision(True)

class Counted:
    name, version = "counted", 1
    decide = None

class Broken:
    name, version = "broken", "1"
    def decide(self, request, view):
        raise RuntimeError("out of order")
"""


class Asked:
    """Denies what says deny; remembers what it saw."""

    name, version = "asked", "1"

    def __init__(self) -> None:
        self.views: list[GateView] = []

    def decide(self, request: ToolRequest, view: GateView) -> Decision:
        self.views.append(view)
        if "odd" in str(request.arguments):
            return True  # type: ignore[return-value]
        return Decision("deny" not in str(request.arguments), "because")


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[LocalEnvironment]:
    require("bubblewrap")
    for name in ("workspace", "scratch", "private"):
        (tmp_path / name).mkdir()
    spec = EnvironmentSpec(
        tmp_path / "workspace", tmp_path / "scratch", writable=[Mount(tmp_path / "private", "/var/x")]
    )
    made = LocalEnvironment(spec, isolated=True)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def service(environment: LocalEnvironment, tmp_path: Path) -> Iterator[GateService]:
    with GateService(Asked(), environment, tmp_path / "private", PYTHON, lambda: None) as made:
        yield made


def hook(environment: LocalEnvironment, command: str, event: Any) -> dict[str, Any] | None:
    data = event if isinstance(event, bytes) else json.dumps(event).encode()
    result = environment.exec(["sh", "-c", command], stdin=data, timeout=30)
    assert result.exit_code == 0
    text = result.stdout.decode().strip()
    return json.loads(text) if text else None


def claude(word: str, **more: Any) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": word}, "tool_use_id": f"id-{word}", **more}


def reason(answer: dict[str, Any] | None) -> str:
    assert answer is not None
    output = answer["hookSpecificOutput"]
    assert output["hookEventName"] == "PreToolUse"
    assert output["permissionDecision"] == "deny"
    return str(output["permissionDecisionReason"])


def test_the_hook_asks_from_inside(environment: LocalEnvironment, service: GateService) -> None:
    for dialect in ("claude", "codex"):
        command = service.hook_command(dialect)  # type: ignore[arg-type]
        assert hook(environment, command, claude("ls")) is None
        assert reason(hook(environment, command, claude("deny", agent_id="a1"))) == "because"
    answer = hook(environment, service.hook_command("hermes"), {"tool_name": "terminal", "args": {"command": "deny"}})
    assert answer is not None
    assert (answer["decision"], answer["reason"]) == ("block", "because")
    assert [(entry.request.tool, entry.decision.allow) for entry in service.log] == [
        ("Bash", True),
        ("Bash", False),
        ("Bash", True),
        ("Bash", False),
        ("terminal", False),
    ]
    assert [entry.request.subagent for entry in service.log] == [False, True, False, True, False]
    assert service.log[0].request.call_id == "id-ls"
    assert json.loads(service.lines().splitlines()[1])["reason"] == "because"


@pytest.mark.parametrize("event", [b"", b"{", b"[]", b'{"tool_name": null}', b"\xff\xfe"])
def test_an_event_that_cannot_be_read_is_denied(
    environment: LocalEnvironment, service: GateService, event: bytes
) -> None:
    answer = hook(environment, service.hook_command("claude"), event)
    if event == b'{"tool_name": null}':  # readable: the gate itself decides
        assert answer is None
        return
    assert "withheld" in reason(answer)
    assert service.log == []


def test_a_hook_that_cannot_run_denies(environment: LocalEnvironment, service: GateService) -> None:
    command = service.hook_command("claude")
    assert PYTHON in command
    assert reason(hook(environment, command.replace(PYTHON, "/no/python"), claude("ls"))) == BROKEN
    assert reason(hook(environment, command.replace("gate-hook.py", "gone.py"), claude("ls"))) == BROKEN


@pytest.mark.parametrize(
    "script", ["echo 'print()' > gate-hook.py", "rm gate-hook.py", "ln -sf /etc/passwd gate-hook.py", "true"]
)
def test_a_hook_that_was_changed_inside_is_a_hole(
    environment: LocalEnvironment, service: GateService, script: str
) -> None:
    service.check(None)
    service.hook_command("claude")
    service.check(None)
    assert environment.exec(["sh", "-c", f"cd /var/x && {script}"]).exit_code == 0
    if script == "true":
        service.check(None)
        return
    with pytest.raises(InfrastructureError, match="was changed or removed in the trial") as raised:
        service.check(None)
    assert raised.value.reason == "gate-hole"


def test_a_gate_that_is_gone_denies(environment: LocalEnvironment, tmp_path: Path) -> None:
    with GateService(Asked(), environment, tmp_path / "private", PYTHON, lambda: None) as service:
        commands = [service.hook_command("claude"), service.hook_command("hermes")]
    assert "withheld" in reason(hook(environment, commands[0], claude("ls")))
    answer = hook(environment, commands[1], claude("ls"))
    assert answer is not None
    assert answer["decision"] == "block"


def test_a_gate_that_raises_or_answers_nonsense_denies_and_is_told(service: GateService) -> None:
    assert service.decide(ToolRequest("Bash", {"command": "odd"})) == Decision(False, BROKEN)
    with pytest.raises(InfrastructureError, match="expected a Decision") as raised:
        service.check(None)
    assert raised.value.reason == "gate-error"


def test_a_gate_that_is_too_slow_denies_and_is_told(service: GateService, monkeypatch: pytest.MonkeyPatch) -> None:
    # The hook gives up at 15 seconds; an answer after the promised ten may never have reached it.
    monkeypatch.setattr("pytest_paranoia.gates.service.ANSWER_SECONDS", 0.2)
    plain = service.gate.decide
    monkeypatch.setattr(service.gate, "decide", lambda *asked: [time.sleep(0.15), plain(*asked)][1])
    assert service.decide(ToolRequest("Bash", {"command": "ls"})) == Decision(True, "because")
    service.check(None)
    # Two at once: the second waits for the first, so that its answer is late as well.
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(service.decide, [ToolRequest("Bash", {"command": "ls"})] * 2))
    assert sorted(made, key=lambda decision: decision.allow) == [Decision(False, BROKEN), Decision(True, "because")]
    with pytest.raises(InfrastructureError, match=r"the answer took 0\.\d s, expected at most 0\.2 s") as raised:
        service.check(None)
    assert raised.value.reason == "gate-error"


def test_the_plugins_address_answers_from_inside(environment: LocalEnvironment, service: GateService) -> None:
    question = json.dumps({"tool": "bash", "arguments": {"command": "deny"}, "call_id": "c"})
    script = (
        "import sys, urllib.request as u\n"
        "request = u.Request(sys.argv[1], sys.argv[2].encode(), {'Content-Type': 'application/json'})\n"
        "print(u.urlopen(request, timeout=10).read().decode())"
    )
    result = environment.exec([PYTHON, "-c", script, service.url, question])
    assert json.loads(result.stdout) == {"allow": False, "reason": "because"}, result.stderr
    # Only from inside: the port is that of the trial's own loopback.
    outside = subprocess.run(
        [PYTHON, "-c", script, service.url, question], capture_output=True, text=True, timeout=30, check=False
    )
    assert outside.returncode != 0
    assert len(service.log) == 1


def run_of(*calls: tuple[str, str], children: list[Trajectory] | None = None, extra: Any = None) -> Trajectory:
    listed = [
        {"tool_call_id": identity, "function_name": name, "arguments": {}, "extra": extra} for identity, name in calls
    ]
    return Trajectory.model_validate(
        {
            "trajectory_id": "t",
            "agent": {"name": "x", "version": "1"},
            "steps": [{"step_id": 1, "source": "agent", "message": "", "tool_calls": listed}],
            "subagent_trajectories": children,
        }
    )


def test_calls_that_nobody_asked_about_are_found(service: GateService) -> None:
    service.decide(ToolRequest("Bash", {}, "a"))
    service.decide(ToolRequest("Read", {}, None))
    assert service.holes(run_of(("a", "Bash"), ("b", "Read"))) == []
    assert service.holes(run_of(("a", "Bash"), ("b", "Read"), ("c", "Read"))) == ["Read (c)"]
    assert service.holes(run_of(("a", "Bash"), children=[run_of(("d", "Write"))])) == ["Write (d)"]
    # One question answers for one call, also where it is the only one under that name.
    assert service.holes(run_of(("a", "Bash"), ("e", "Bash"))) == ["Bash (e)"]
    # What an adapter knows of the names under which the gate was asked.
    assert service.holes(run_of(("a", "Bash"), ("x", "exec"), extra={"gate": ["Read"]})) == []
    assert service.holes(run_of(("x", "exec"), extra={"gate": ["Write"]})) == ["exec (x)"]
    assert service.holes(run_of(("x", "unreadable"), extra={"gate": []})) == []
    with pytest.raises(
        InfrastructureError, match=r"1 tool calls ran without asking gate 'asked': Write \(d\)"
    ) as raised:
        service.check(run_of(("d", "Write")))
    assert raised.value.reason == "gate-hole"


@pytest.mark.parametrize(
    ("facts", "ran"), [({"exit_code": 0}, True), (None, True), ({"denied": True}, False), ({"is_error": True}, False)]
)
def test_a_withheld_call_that_ran_all_the_same_is_found(service: GateService, facts: Any, ran: bool) -> None:
    # What a harness makes of a denial whose form it no longer understands.
    service.decide(ToolRequest("Bash", {"command": "deny"}, "a"))
    service.decide(ToolRequest("Bash", {"command": "ls"}, "b"))
    trajectory = run_of(("a", "Bash"), ("b", "Bash"), ("c", "Bash"))
    service.decide(ToolRequest("Bash", {"command": "deny"}, "c"))  # without a result: it may not have run
    results = [
        ObservationResult(source_call_id="a", content="gone", extra=facts),
        ObservationResult(source_call_id="b", content="src", extra={"exit_code": 0}),
    ]
    trajectory.steps[0].observation = Observation(results=results)
    outer = run_of(("d", "Task"), children=[trajectory])
    service.decide(ToolRequest("Task", {}, "d"))
    for looked in (trajectory, outer):
        assert service.ignored(looked) == (["Bash (a)"] if ran else [])
    if not ran:
        service.check(outer)
        return
    with pytest.raises(
        InfrastructureError, match=r"1 tool calls that gate 'asked' withheld ran .*: Bash \(a\)"
    ) as raised:
        service.check(outer)
    assert raised.value.reason == "gate-hole"


def gated(pytester: pytest.Pytester, items: ItemFolder, gate: str, *arguments: str) -> Session:
    items.pair()
    pytester.path.joinpath("mygates.py").write_text(GATES)
    return Session(pytester, items, "--paranoia-gate", f"mygates:{gate}", *arguments)


def test_what_a_gate_withholds_from_a_script_is_not_done(pytester: pytest.Pytester, items: ItemFolder) -> None:
    session = gated(pytester, items, "NoCopies", "--model", "paranoid")
    assert session.code == 0, session.text
    for record in session.records().values():
        # The spare copy was the excess; the attempt is still in the trajectory, as one that failed.
        assert record["verdict"]["kind"] == "none"
        assert record["oracle"]["passed"]
        assert record["intervention"] == {
            "name": "gate:no-copies",
            "instructions_sha256": None,
            "gates": [{"name": "no-copies", "version": "1", "dry": False, "denied": 1, "would_deny": 0, "let_pass": 0}],
            "allowed": 1,
            "denied": 1,
            "denied_in": {"task": 1},
            "would_deny_in": {},
        }
    [log, _] = sorted(session.run.glob("trials/*/gate.jsonl"))
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(entry["tool"], entry["allow"]) for entry in entries] == [("bash", False), ("edit", True)]
    assert json.loads((session.run / "run.json").read_text())["options"]["gate"] == "no-copies 1"
    plain = Session(pytester, items, "--model", "paranoid", "--paranoia-resume", session.run.name)
    assert plain.code == pytest.ExitCode.USAGE_ERROR
    assert "gate no-copies 1, this session has none" in plain.text


def test_a_script_that_lost_an_edit_goes_on(pytester: pytest.Pytester, items: ItemFolder) -> None:
    session = gated(pytester, items, "NoEdits", "--model", "minimal")
    assert session.code == 1
    for record in session.records().values():
        assert record["status"] == "scored"
        assert not record["oracle"]["passed"]


def test_a_gate_that_breaks_leaves_trials_unscored(pytester: pytest.Pytester, items: ItemFolder) -> None:
    session = gated(pytester, items, "Broken", "--model", "minimal", "-n2")
    assert session.code == 1
    for record in session.records().values():
        assert (record["status"], record["reason"]) == ("unscored", "gate-error")
        assert "RuntimeError('out of order')" in record["message"]


@pytest.mark.parametrize(
    ("gate", "lacks"), [("Nameless", "it lacks name, version"), ("Counted", "it lacks version, decide")]
)
def test_what_records_could_not_name_is_no_gate(
    pytester: pytest.Pytester, items: ItemFolder, gate: str, lacks: str
) -> None:
    session = gated(pytester, items, gate, "--model", "minimal")
    assert session.code == pytest.ExitCode.USAGE_ERROR, session.text
    assert lacks in session.text
    assert "INTERNALERROR" not in session.text
