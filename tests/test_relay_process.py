"""The relay as a process: who may reach it, and that it ends with whoever started it."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import child
from relay_lab import (
    KEY,
    KEY_ENV,
    MESSAGES,
    QUICK,
    Lab,
    Upstream,
    answer,
    laboratory,
    message,
    message_events,
    streaming,
)

from pytest_paranoia.environments.base import EnvironmentSpec
from pytest_paranoia.environments.local import LocalEnvironment
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.relay import codec
from pytest_paranoia.relay.client import Relay, connect
from pytest_paranoia.relay.contract import Call, Caps, Metered, Overload, Provider, Refusal, Route
from pytest_paranoia.relay.settings import RunTotals, Settings
from pytest_paranoia.relay.wire import read_wire
from requirements import require


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with laboratory(tmp_path) as running:
        yield running


def gone(pid: int, seconds: float = 15.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


def test_admin_socket_is_private(lab: Lab) -> None:
    path = Path(lab.relay.address)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.parent.stat().st_uid == os.geteuid()
    assert path.is_socket()
    assert json.loads(json.dumps(lab.relay.address)) == lab.relay.address


def test_other_users_are_turned_away(lab: Lab) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can ask as somebody else")
    script = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
folder = os.open(os.path.dirname(sys.argv[1]), os.O_PATH)
os.setuid(65534)
try:
    s.connect(f"/proc/self/fd/{folder}/relay.sock")
    s.sendall((12).to_bytes(4, "little") + b'{"op":"tot"}')
    print(s.recv(100))
except OSError as error:
    print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", script, lab.relay.address], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("PermissionError", "b''", "ConnectionResetError", "BrokenPipeError")


def test_relay_ends_on_close_and_leaves_nothing(tmp_path: Path) -> None:
    relay = Relay.start(QUICK)
    folder = Path(relay.address).parent
    assert folder.is_dir()
    relay.close()
    assert gone(relay.pid, 0.1)
    assert not folder.exists()
    relay.close()
    with pytest.raises(InfrastructureError) as caught:
        connect(str(folder / "relay.sock"))
    assert caught.value.reason == "relay-lost"
    assert not list(tmp_path.iterdir())


CONTROLLER = """
import os, sys, time
from pytest_paranoia.relay.client import Relay
from pytest_paranoia.relay.settings import Settings
relay = Relay.start(Settings())
forked = os.fork() if sys.argv[1] == "fork" else -1
if forked == 0:
    time.sleep(60)  # holds a copy of the relay's stdin open
    os._exit(0)
print(relay.pid, forked, relay.address, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("how", ["plain", "fork"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_relay_ends_when_its_controller_dies(how: str, number: signal.Signals) -> None:
    with child(CONTROLLER, how) as controller:
        assert controller.stdout is not None
        pid, forked, address = controller.stdout.readline().split()
        controller.send_signal(number)
        try:
            assert gone(int(pid))
            assert not Path(address).parent.exists()
        finally:
            if int(forked) > 0:
                os.kill(int(forked), signal.SIGKILL)


def test_ctrl_c_in_the_terminal_is_not_for_the_relay(lab: Lab) -> None:
    assert os.getsid(lab.relay.pid) == lab.relay.pid


WORKER = """
import os, socket, sys, time
from pytest_paranoia.relay.client import connect
from pytest_paranoia.relay.contract import Provider, Route
client = connect(sys.argv[1])
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
client.open(Route("t", Provider("p", sys.argv[2], None, ("anthropic-messages",)), "m", sys.argv[3]), listener)
print(port, flush=True)
time.sleep(60)
"""


def test_trials_of_a_worker_that_dies_end_with_it(lab: Lab, tmp_path: Path) -> None:
    wire = tmp_path / "worker.jsonl"
    with Upstream(streaming(*message_events()[:2], hang=True)) as upstream:
        mine = lab.open(upstream)
        with child(WORKER, lab.relay.address, upstream.url, wire) as worker:
            assert worker.stdout is not None
            port = int(worker.stdout.readline())
            with socket.create_connection(("127.0.0.1", port), timeout=10) as call:
                body = b'{"model": "m", "stream": true}'
                call.sendall(
                    f"POST {MESSAGES} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
                )
                received = b""
                while b"text_delta" not in received and (data := call.recv(1 << 16)):
                    received += data
                worker.kill()
                while call.recv(1 << 16):
                    pass
        assert b"text_delta" in received
        assert upstream.gone.wait(10)
        deadline = time.monotonic() + 10
        while not list(read_wire(wire)) and time.monotonic() < deadline:
            time.sleep(0.05)
        (logged,) = read_wire(wire)
        assert logged.ended == "closed"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5)
        assert mine.relay.metered().calls == ()  # other workers' trials go on


def test_relay_that_dies_is_said_to_be_lost(tmp_path: Path) -> None:
    relay = Relay.start(QUICK)
    lab = Lab(relay, tmp_path)
    with Upstream(answer(message())) as upstream:
        trial = lab.open(upstream, key_env=None)
        os.kill(relay.pid, signal.SIGKILL)
        with pytest.raises(InfrastructureError) as caught:
            trial.relay.close()
        assert caught.value.reason == "relay-lost"
        with pytest.raises(InfrastructureError):
            trial.relay.metered()
    relay.close()


def test_logs_of_open_trials_are_finished_when_the_relay_ends(tmp_path: Path) -> None:
    with Upstream(streaming(*message_events()[:2], hang=True)) as upstream:
        with laboratory(tmp_path) as lab:
            trial = lab.open(upstream)
            connection = trial.connection()
            connection.request("POST", MESSAGES, json.dumps({"model": "m", "stream": True}))
            connection.getresponse().read1(10)
        connection.close()
    (logged,) = read_wire(trial.wire)
    assert logged.ended == "closed"
    assert logged.body == b"".join(message_events()[:2])


def test_price_table_that_cannot_be_used_ends_the_start(tmp_path: Path) -> None:
    table = tmp_path / "prices.toml"
    table.write_text('date = "2026-11-01"\n[[models]]\nid = "m"\ninput = "much"\noutput = 1.0\nsource = "x"\n')
    with pytest.raises(InfrastructureError, match=r"prices\.toml: models\[0\] \(m\)\.input: found 'much'") as caught:
        Relay.start(Settings(prices=str(table)))
    assert caught.value.reason == "relay-start"


def test_folder_of_the_tests_is_not_imported_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("aiohttp.py", "json.py", "asyncio.py", "pytest_paranoia.py"):
        (tmp_path / name).write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    with Relay.start(QUICK) as relay:
        assert relay.totals() == RunTotals(prices=relay.totals().prices)


def test_long_temporary_folder(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a-long-name-of-a-folder"] * 6)
    deep.mkdir(parents=True)
    with Relay.start(QUICK, environ={**os.environ, "TMPDIR": str(deep)}) as relay:
        assert len(relay.address) < len(str(deep))
        assert relay.totals().requests == 0


def test_unknown_operations_and_trials_are_refused(lab: Lab) -> None:
    with connect(lab.relay.address) as client:
        with pytest.raises(InfrastructureError, match="there is no trial 7"):
            client.ask_trial("metered", 7)
        assert client.totals().requests == 0


def test_trial_in_a_sandbox_reaches_its_model_and_nothing_else(lab: Lab, tmp_path: Path) -> None:
    require("bubblewrap")
    workspace, scratch = tmp_path / "workspace", tmp_path / "scratch"
    workspace.mkdir()
    scratch.mkdir()
    script = """
import json, os, pathlib, sys, urllib.request
request = urllib.request.Request(sys.argv[1], json.dumps({"model": "m"}).encode(), {"x-api-key": "any"})
print(json.loads(urllib.request.urlopen(request).read())["usage"])
print([str(p) for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if b"paranoia" + b".relay" in p.read_bytes()])
print(os.path.exists(sys.argv[2]))
"""
    environment = LocalEnvironment(EnvironmentSpec(workspace, scratch), isolated=True)
    environment.start()
    try:
        with Upstream(answer(message(tokens=21))) as upstream:
            trial = lab.open(upstream, listener=environment.listen())
            address = f"http://127.0.0.1:{trial.address[1]}{MESSAGES}"
            done = environment.exec(["python3", "-I", "-c", script, address, os.path.dirname(lab.relay.address)])  # noqa: PTH120
            metered = trial.relay.close()
            after = environment.exec(["python3", "-I", "-c", script, address, "/"])
    finally:
        environment.stop()
    assert done.stdout.decode().splitlines() == ["{'input_tokens': 21, 'output_tokens': 5}", "[]", "False"], done.stderr
    assert metered.calls[0].input_tokens == 21
    assert b"Connection refused" in after.stderr
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY.encode() not in everything
    assert KEY_ENV.encode() not in everything


# -- what crosses the border ---------------------------------------------------------------------------------------


def test_plain_data_comes_back_as_it_was() -> None:
    call = Call("openai-chat", "m", 200, 1.5, None, 2.5, 3, 10, None, 0, 5, 1, 0.25)
    refusal, overload = Refusal("quota", 402, "no money", "a call"), Overload(529, 6, "busy", "a call")
    metered = Metered((call, call), 2, "run-cost", refusal, overload, "2026", 1.0, 3, 4, "m")
    assert codec.metered(json.loads(json.dumps(codec.plain(metered)))) == metered
    assert codec.metered(json.loads(json.dumps(codec.plain(Metered())))) == Metered()
    provider = Provider(
        "p", "http://x/v1", "K", ("openai-chat",), headers={"a": "b"}, concurrency=3, requests_per_minute=60
    )
    route = Route("t", provider, "m", "/w", Caps(1, 2, 3.0), "/r", "judge")
    assert codec.route(json.loads(json.dumps(codec.plain(route)))) == route
    settings = Settings(max_cost=1.0, prices="/p", attempts=2)
    assert codec.settings(json.loads(json.dumps(codec.plain(settings)))) == settings
    totals = RunTotals(1, 2, None, 0.5, "d", refusal, "run-cost", overload, "m")
    assert codec.totals(json.loads(json.dumps(codec.plain(totals)))) == totals
