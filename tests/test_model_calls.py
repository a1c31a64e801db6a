"""Trials of a real agent loop against a scripted provider: what is scored, what is not and why, what never leaks."""

from __future__ import annotations

import json
import lzma
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from model_references import ReferenceScripts
from model_script import Tokens, edit, fail, hang, say, shell, turn
from model_server import ModelServer
from sessions import Session
from small_items import ItemFolder

from requirements import require

KEY = "sk-live-4f1c0e7ab93d55e2"
FIX = edit("src/tiny/__init__.py", "    return 'Hello ' + name", "    return 'Hello ' + name + '!'")
WORK = [shell("cat src/tiny/__init__.py"), FIX, say("Done.")]
LOOP = [shell("true") for _ in range(50)]
MODELS = """
[providers.test]
base_url = "{url}/v1"
key_env = "TEST_KEY"
protocols = ["openai-chat"]

[models.m]
harness = "chat"
provider = "test"
id = "m-1"
"""
PRICES = """
date = 2026-11-30

[[models]]
id = "m-1"
input = 1000.0
cached_input = 100.0
output = 10000.0
source = "made up for a test"
"""

SIDELONG = """
from dataclasses import replace
from pytest_paranoia.agents.chat.completions import Completions

stream = Completions.stream

def aside(self, *arguments):
    self.choice = replace(self.choice, model="helper-1")
    return stream(self, *arguments)

Completions.stream = aside
"""


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    require("bubblewrap")
    monkeypatch.setenv("TEST_KEY", KEY)


def run(pytester: pytest.Pytester, items: ItemFolder, server: ModelServer, *arguments: str) -> Session:
    if not (items.folder / "tasks").exists():
        items.pair()
    pytester.path.joinpath("models.toml").write_text(MODELS.format(url=server.url))
    return Session(pytester, items, "--paranoia-models", "models.toml", "--model", "m", *arguments)


def trajectory(session: Session, variant: str = "Eplus") -> dict[str, Any]:
    [path] = [path for path in session.run.glob("trials/*/trajectory.json") if variant in path.parent.name]
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_task_is_done_and_metered(pytester: pytest.Pytester, items: ItemFolder) -> None:
    tokens = Tokens(input=1000, output=50, cached=400, reasoning=20)
    script = [turn(shell("ls"), tokens=tokens), turn(FIX, tokens=tokens), turn("Done.", tokens=tokens)]
    pytester.path.joinpath("prices.toml").write_text(PRICES)
    with ModelServer(script) as server:
        session = run(pytester, items, server, "-n2", "--paranoia-prices", "prices.toml")
    assert session.code == 0, session.text
    assert {exchange.request.headers["authorization"] for exchange in server.exchanges} == {f"Bearer {KEY}"}
    for record in session.records().values():
        assert record["verdict"]["kind"] == "none"
        assert record["oracle"]["passed"]
        assert record["agent"]["provider"] == "test"
        usage = record["usage"]
        assert (usage["requests"], usage["retries"], usage["malformed_calls"]) == (3, 0, 0)
        assert (usage["input_tokens"], usage["cached_tokens"]) == (3000, 1200)
        assert (usage["output_tokens"], usage["reasoning_tokens"]) == (150, 60)
        # 1,800 fresh tokens at $1,000, 1,200 cached at $100, 150 out at $10,000 a million
        assert usage["cost_usd"] == pytest.approx(1.8 + 0.12 + 1.5)
        assert usage["prices"].endswith("prices.toml 2026-11-30")
        assert usage["seconds"] > 0
    done = trajectory(session)
    assert [step["source"] for step in done["steps"]] == ["user", "agent", "agent", "agent"]


REFUSALS = {
    "key": (fail(401), "provider-key", "answered 401"),
    "model": (fail(404), "provider-model", "answered 404"),
    "quota": (fail(429, "quota"), "provider-quota", "answered 429"),
}


def test_an_endpoint_on_the_command_line_is_asked_for_chat_completions(
    pytester: pytest.Pytester, items: ItemFolder
) -> None:
    items.pair()
    with ModelServer(lambda _: WORK) as server:
        session = Session(pytester, items, "--model", f"chat:x@{server.url}/v1")
    assert session.code == 0, session.text
    assert {exchange.path for exchange in server.exchanges} == {"/v1/chat/completions"}


def test_a_server_without_the_responses_api_is_told_from_a_missing_model(
    pytester: pytest.Pytester, items: ItemFolder
) -> None:
    items.pair()
    nothing = fail(404, body='{"detail": "Not Found"}')
    with ModelServer(lambda _: [nothing] * 9) as server:
        models = MODELS.format(url=server.url).replace("openai-chat", "openai-responses")
        pytester.path.joinpath("models.toml").write_text(models)
        session = Session(pytester, items, "--paranoia-models", "models.toml", "--model", "m")
    assert session.code == pytest.ExitCode.INTERRUPTED
    [record] = session.records().values()
    assert record["message"].startswith(
        f"the provider answered 404 to the agent's call of 'm-1' at {server.url}/v1/responses: Not Found; the call was "
        "one of the Responses API: for a server that has Chat Completions alone, give its provider protocols = "
    )


def test_a_call_refused_for_itself_is_named_with_its_model(pytester: pytest.Pytester, items: ItemFolder) -> None:
    with ModelServer(lambda _: [fail(400)] * 9) as server:
        session = run(pytester, items, server, "-k", "Eplus")
    [record] = session.records().values()
    assert record["reason"] == "model-refused"
    assert record["message"].startswith(f"the agent's model 'm-1' at {server.url}/v1: chat: the API answered 400: ")


@pytest.mark.parametrize("kind", REFUSALS)
@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])
def test_a_refusal_stops_the_run(
    pytester: pytest.Pytester, items: ItemFolder, kind: str, workers: tuple[str, ...]
) -> None:
    answer, reason, said = REFUSALS[kind]
    with ModelServer(lambda _: [answer] * 9) as server:
        session = run(pytester, items, server, "--paranoia-runs=6", *workers)
    assert session.code == pytest.ExitCode.INTERRUPTED
    records = session.records()
    assert 1 <= len(records) <= 4  # of twelve: each worker has at most one under way and one waiting
    assert {record["status"] for record in records.values()} == {"unscored"}
    assert {record["reason"] for record in records.values()} == {reason}
    assert all(said in record["message"] for record in records.values())
    call = f"the agent's call of 'm-1' at {server.url}/v1/chat/completions"
    assert f"paranoia: {reason}: the provider {said} to {call}: " in " ".join(session.text.split())
    assert len(server.exchanges) <= 2  # calls under way at the same moment; later ones are not sent
    assert KEY not in session.text


def test_overload_is_repeated_then_unscored(pytester: pytest.Pytester, items: ItemFolder) -> None:
    with ModelServer(lambda _: [fail(529)] * 50) as server:
        session = run(pytester, items, server, "--paranoia-retry-seconds=3")
    assert session.code == 1
    assert len(server.exchanges) > 2
    for record in session.records().values():
        assert (record["status"], record["reason"]) == ("unscored", "provider-overloaded")
        assert "answered 529" in record["message"]
        assert record["usage"]["retries"] >= 1
        assert record["usage"]["input_tokens"] is None


def test_overload_that_passes_costs_nothing(pytester: pytest.Pytester, items: ItemFolder) -> None:
    with ModelServer(lambda _: [fail(503), *WORK[:1], fail(429, retry_after=0.1), *WORK[1:]]) as server:
        session = run(pytester, items, server)
    assert session.code == 0, session.text
    for record in session.records().values():
        assert (record["usage"]["requests"], record["usage"]["retries"]) == (3, 2)


def test_a_failed_call_that_was_made_good_is_no_end(pytester: pytest.Pytester, items: ItemFolder) -> None:
    # Providers answer in the name of a dated model; an error has no name but the one that was asked for.
    dated = {"model": "m-1-2026-11-01"}
    looks = [turn(shell("seq 1000"), **dated) for _ in range(4)]
    script = [*looks, fail(400, "context"), turn(FIX, **dated), turn("Done.", **dated)]
    with ModelServer(lambda _: script) as server:
        session = run(pytester, items, server)
    assert session.code == 0, session.text
    for record in session.records().values():
        assert (record["status"], record["reason"]) == ("scored", None)
        assert record["verdict"]["kind"] == "none"
        assert record["usage"]["requests"] == 6


@pytest.mark.parametrize(
    ("option", "reason"),
    [("--paranoia-trial-requests=4", "cap-requests"), ("--paranoia-trial-tokens=3500", "cap-tokens")],
)
def test_a_capped_trial_is_unscored_and_others_go_on(
    pytester: pytest.Pytester, items: ItemFolder, option: str, reason: str
) -> None:
    def script(request: Any) -> Any:
        return LOOP if "generated anew" in request.opening else WORK

    with ModelServer(script) as server:
        session = run(pytester, items, server, option)
    assert session.code == 1
    minus, plus = sorted(session.records().values(), key=lambda record: record["variant"], reverse=True)
    assert (plus["variant"], plus["status"], plus["reason"]) == ("E+", "unscored", reason)
    assert plus["usage"]["requests"] == 4
    assert plus["limits"] == [reason.removeprefix("cap-")]
    assert (minus["status"], minus["oracle"]["passed"]) == ("scored", True)
    assert len(trajectory(session)["steps"]) > 3  # what it had done by then is kept


def test_the_runs_cost_ends_the_run_and_keeps_what_is_scored(pytester: pytest.Pytester, items: ItemFolder) -> None:
    pytester.path.joinpath("prices.toml").write_text(PRICES)
    with ModelServer(lambda _: WORK) as server:
        # A trial takes 3 calls at 1,000 tokens in and 50 out: 3 x $1.5.
        session = run(
            pytester, items, server, "--paranoia-prices=prices.toml", "--paranoia-max-cost=10", "--paranoia-runs=5"
        )
    assert session.code == pytest.ExitCode.INTERRUPTED
    statuses = [(record["status"], record["reason"]) for record in session.records().values()]
    assert statuses.count(("scored", None)) == 2
    assert statuses.count(("unscored", "cap-run-cost")) == 1
    assert len(statuses) == 3
    spent = sum(record["usage"]["cost_usd"] or 0 for record in session.records().values())
    assert spent <= 10 + 1.5  # the call that was under way
    assert "cap-run-cost" in session.text


@pytest.mark.parametrize("cap", ["--paranoia-trial-cost", "--paranoia-max-cost"])
def test_a_cost_cap_without_a_price_is_refused_at_the_start(
    pytester: pytest.Pytester, items: ItemFolder, cap: str
) -> None:
    with ModelServer(lambda _: WORK) as server:
        session = run(pytester, items, server, f"{cap}=5")
    assert session.code == pytest.ExitCode.USAGE_ERROR
    session.result.stderr.fnmatch_lines(
        [f"ERROR: --model: m: there is no price for 'm-1'; give --paranoia-prices FILE with one, or leave {cap} out"]
    )
    assert not server.exchanges
    assert not list(session.folder.glob("reports/*"))


def test_a_judge_without_a_price_is_refused_at_the_start(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    judge = "--paranoia-judge=chat:referee@http://127.0.0.1:9/v1"
    session = Session(pytester, items, judge, "--paranoia-max-cost=5", "--paranoia-judge-memory=off")
    assert session.code == pytest.ExitCode.USAGE_ERROR
    session.result.stderr.fnmatch_lines(
        ["ERROR: --paranoia-judge: chat:referee: there is no price for 'referee'; give --paranoia-prices FILE with*"]
    )


def test_a_model_that_only_a_harness_asks_for_has_to_have_a_price_too(
    pytester: pytest.Pytester, items: ItemFolder
) -> None:
    """What a harness asks for beside the model it was given is known from its calls alone."""
    pytester.path.joinpath("sidelong.py").write_text(SIDELONG)
    pytester.path.joinpath("prices.toml").write_text(PRICES)
    with ModelServer(lambda _: WORK) as server:
        session = run(
            pytester, items, server, "-p", "sidelong", "--paranoia-prices=prices.toml", "--paranoia-max-cost=10"
        )
    assert session.code == pytest.ExitCode.INTERRUPTED
    [record] = session.records().values()
    assert (record["status"], record["reason"]) == ("unscored", "cap-run-cost")
    assert record["message"] == (
        "--paranoia-max-cost cannot be kept: there is no price for 'helper-1'; give --paranoia-prices FILE with one, "
        "or leave --paranoia-max-cost out"
    )
    assert "reached" not in session.text


def test_a_hang_ends_by_the_wall_clock(pytester: pytest.Pytester, items: ItemFolder) -> None:
    script = [shell("sleep 300 & echo $! started"), hang()]
    with ModelServer(lambda _: script) as server:
        session = run(pytester, items, server, "--paranoia-timeout=4")
    assert session.code == 1
    for record in session.records().values():
        assert (record["status"], record["reason"]) == ("unscored", "wall-clock")
        assert record["limits"] == ["wall-clock"]
        assert record["timing"]["agent"] < 15
    done = trajectory(session)
    assert "started" in json.dumps(done["steps"][1]["observation"])
    assert not survivors("sleep 300")


def survivors(command: str) -> list[str]:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if line.strip() == command]


PROBE = r"""
env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\0' '\n'; cat ~/.* "$TMPDIR"/* /etc/* 2>/dev/null
find / -xdev -type f -size -200k -newer /proc/1 -not -path '/proc/*' 2>/dev/null | head -200 | xargs -r cat 2>/dev/null
(exec 3<>/dev/tcp/127.0.0.1/22) 2>&1; (exec 3<>/dev/tcp/1.1.1.1/443) 2>&1; ls /sys/class/net
"""


def test_the_key_is_nowhere(pytester: pytest.Pytester, items: ItemFolder) -> None:
    with ModelServer(lambda _: [shell(PROBE), *WORK[1:]]) as server:
        seen: list[str] = []
        watched = Watcher(seen)
        with watched:
            session = run(pytester, items, server)
    assert session.code == 0, session.text
    assert len(seen) > 3
    assert not [line for line in seen if KEY in line]  # no command line of the machine ever held it
    output = json.dumps(trajectory(session)["steps"][1])
    assert "TMPDIR=" in output
    assert "eth0" not in output
    assert KEY not in output
    held = {path for path in session.folder.rglob("*") if path.is_file() and KEY.encode() in content(path)}
    assert not held
    assert KEY not in session.text


def test_a_key_in_an_endpoints_query_is_not_kept(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    with ModelServer(lambda _: WORK) as server:
        session = Session(pytester, items, "--model", f"chat:x@{server.url}/v1?key={KEY}", "-k", "Eplus")
    assert session.code == 0, session.text
    assert not [path for path in session.folder.rglob("*") if path.is_file() and KEY.encode() in content(path)]


def test_a_provider_that_repeats_the_key_does_not_spread_it(pytester: pytest.Pytester, items: ItemFolder) -> None:
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}})
    with ModelServer(lambda _: [fail(401, body=body)]) as server:
        session = run(pytester, items, server)
    assert session.code == pytest.ExitCode.INTERRUPTED
    assert "Incorrect API key provided: [redacted]" in session.text
    assert KEY not in session.text
    assert not [path for path in session.folder.rglob("*") if path.is_file() and KEY.encode() in content(path)]


def content(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


class Watcher:
    """Collects the command lines of all processes while it is open."""

    def __init__(self, seen: list[str]) -> None:
        script = (
            "import sys, time, pathlib\n"
            "while True:\n"
            "    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):\n"
            "        try: print(path.read_bytes().replace(b'\\0', b' ').decode('utf-8', 'replace'), flush=True)\n"
            "        except OSError: pass\n"
            "    time.sleep(0.05)\n"
        )
        self._seen = seen
        self._script = script

    def __enter__(self) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", self._script], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        stdout = self._process.stdout
        self._thread = threading.Thread(target=lambda: self._seen.extend(line for line in stdout))
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


def test_a_run_is_replayed_without_the_provider(pytester: pytest.Pytester, items: ItemFolder) -> None:
    with ModelServer(lambda _: WORK) as server:
        first = run(pytester, items, server, "--paranoia-run=first")
    assert first.code == 0, first.text
    os.environ.pop("TEST_KEY")
    again = Session(pytester, items, "--model", "replay:first", "--paranoia-run=again", "-n2")
    assert again.code == 0, again.text
    before, after = (first.records(first.folder / "reports" / name) for name in ("first", "again"))
    assert before.keys() == after.keys()
    for key, record in before.items():
        for name in ("oracle", "verdict", "sensors", "agent"):
            left, right = ({**part} if isinstance(part, Mapping) else part for part in (record[name], after[key][name]))
            for part in (left, right):
                part.pop("seconds", None)
            assert left == right, name
        assert after[key]["usage"]["input_tokens"] == record["usage"]["input_tokens"]


LAZY = """
from pytest_paranoia.agents.chat.session import ChatSession

plain = ChatSession.message

def message(self, message):
    if message.role in {roles}:
        plain(self, message)
    else:
        self._context.recorder.reply("Nothing to add.")

ChatSession.message = message
"""


@pytest.mark.parametrize("roles", [["work"], []])
def test_a_message_that_reached_no_model_is_unscored(
    pytester: pytest.Pytester, items: ItemFolder, roles: list[str]
) -> None:
    items.scenario("coding/retries", self_built=True)
    pytester.path.joinpath("lazy.py").write_text(LAZY.format(roles=roles))
    pytester.syspathinsert()
    with ModelServer(ReferenceScripts(items.folder)) as server:
        session = Session(pytester, items, "-p", "lazy", "--model", f"chat:ref-minimal@{server.url}/v1")
    [record] = session.records().values()
    assert (record["status"], record["reason"]) == ("unscored", "harness-failed")
    assert "chat ended its turn without asking the model anything" in record["message"]
    assert bool(record["usage"]["requests"]) == bool(roles)


def test_a_resumed_run_keeps_its_limits_and_its_provider(pytester: pytest.Pytester, items: ItemFolder) -> None:
    with ModelServer(lambda _: WORK) as server:
        first = run(pytester, items, server, "--paranoia-run=first", "--paranoia-max-turns=9", "-k", "Eplus")
        assert first.code == 0, first.text
        manifest = json.loads((first.run / "run.json").read_text())
        assert manifest["options"]["agent_settings"] == {"m": {"max_turns": 9}}
        more = run(pytester, items, server, "--paranoia-resume=first", "--paranoia-max-turns=10")
        same = run(pytester, items, server, "--paranoia-resume=first", "--paranoia-max-turns=9")
    assert more.code == pytest.ExitCode.USAGE_ERROR
    assert "first was made with m max_turns=9, this session has max_turns=10; a run mixes no two" in more.text
    assert same.code == 0, same.text
    # The recorded answers of one run are no trials of another, although agent and provider are called the same.
    mixed = Session(pytester, items, "--model", "replay:first", "--paranoia-resume=first")
    assert mixed.code == pytest.ExitCode.USAGE_ERROR
    assert "first was made with m max_turns=9, this session has max_turns=9 replay=first" in mixed.text


def test_answers_are_replayed_under_the_instructions_they_were_given_under(
    pytester: pytest.Pytester, items: ItemFolder
) -> None:
    pytester.path.joinpath("rules.md").write_text("Keep it small.")
    with ModelServer(lambda _: WORK) as server:
        first = run(
            pytester, items, server, "--paranoia-run=first", "--paranoia-instructions=rules.md", "--model=minimal"
        )
    assert first.code == 0, first.text
    named = {record["agent"]["name"]: record["intervention"] for record in first.records().values()}
    assert named["minimal"] is None  # a script reads nothing
    assert named["m"]["name"] == "rules.md"
    other = Session(pytester, items, "--model", "replay:first", "--paranoia-run=other")
    assert other.code == pytest.ExitCode.USAGE_ERROR
    assert "--model: replay:first: its answers were recorded with instructions " in other.text
    assert "this session has none; give the same --paranoia-instructions" in other.text
    again = Session(
        pytester, items, "--model", "replay:first", "--paranoia-run=again", "--paranoia-instructions=rules.md"
    )
    assert again.code == 0, again.text


def test_a_replay_that_asks_for_more_is_unscored(pytester: pytest.Pytester, items: ItemFolder) -> None:
    with ModelServer(lambda _: WORK) as server:
        first = run(pytester, items, server, "--paranoia-run=first", "-k", "Eplus")
    assert first.code == 0, first.text
    again = Session(pytester, items, "--model", "replay:first", "--paranoia-run=again")
    assert again.code == 1
    reasons = {record["variant"]: record["reason"] for record in again.records(again.folder / "reports/again").values()}
    assert reasons == {"E+": None, "E-": "replay"}


def test_a_killed_session_leaves_no_relay(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    with ModelServer(lambda _: [hang()]) as server:
        pytester.path.joinpath("models.toml").write_text(MODELS.format(url=server.url))
        arguments = ["--paranoia", f"--paranoia-items={items.folder}", "--paranoia-models=models.toml", "--model=m"]
        process = subprocess.Popen([sys.executable, "-m", "pytest", *arguments], cwd=pytester.path)
        wait_for(lambda: bool(server.exchanges), 60)
        children = relays(process.pid)
        assert len(children) == 1
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for(lambda: not Path(f"/proc/{children[0]}").exists(), 20)


def relays(parent: int) -> list[int]:
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
    return [int(pid) for pid, above, args in rows if int(above) == parent and "pytest_paranoia.relay" in args]


def wait_for(happens: Any, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = os.environ.get("TEST_KEY")
    yield
    if before is not None:
        os.environ["TEST_KEY"] = before
