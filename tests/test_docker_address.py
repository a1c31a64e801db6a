"""Which daemon is meant, and what is said where none can be: as ``docker`` itself would choose, in one line."""

from __future__ import annotations

import gc
import hashlib
import json
import threading
import time
import warnings
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from docker_lab import client
from sessions import Session
from small_items import ItemFolder

from pytest_paranoia.environments.docker import address, daemon, provider, settings
from pytest_paranoia.environments.docker.daemon import Daemon
from pytest_paranoia.errors import InfrastructureError
from requirements import require

SOCKET = "/var/run/docker.sock"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Docker's settings of a user who has none."""
    for name in ("HOST", "CONTEXT", "TLS_VERIFY", "CERT_PATH", "CLIENT_TIMEOUT"):
        monkeypatch.delenv(f"DOCKER_{name}", raising=False)
    made = tmp_path / "docker-settings"
    made.mkdir()
    monkeypatch.setenv("DOCKER_CONFIG", str(made))
    return made


def context(folder: Path, name: str, host: str) -> Path:
    """A context as ``docker context create`` writes it."""
    meta = folder / "contexts/meta" / hashlib.sha256(name.encode()).hexdigest() / "meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host}}}))
    return meta


def silence() -> str:
    with warnings.catch_warnings():
        # The library leaves the socket of a connection that fails open.
        warnings.simplefilter("ignore", ResourceWarning)
        found = Daemon().silence()
        gc.collect()
    assert found is not None
    assert len(found.splitlines()) == 1
    return found


# -- who is meant --------------------------------------------------------------------------------------------------


def test_the_order_is_that_of_docker(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host before a context, a context before the settings, and this machine's daemon where nothing is said."""
    for name in ("named", "current"):
        context(folder, name, f"unix:///run/{name}.sock")
    assert address.chosen()["base_url"] == f"unix://{SOCKET}"
    (folder / "config.json").write_text('{"currentContext": "current"}')
    assert address.chosen()["base_url"] == "unix:///run/current.sock"
    monkeypatch.setenv("DOCKER_CONTEXT", "named")
    assert address.chosen()["base_url"] == "unix:///run/named.sock"
    monkeypatch.setenv("DOCKER_CONTEXT", "default")
    assert address.chosen()["base_url"] == f"unix://{SOCKET}"
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/host.sock")
    assert address.chosen()["base_url"] == "unix:///run/host.sock"


def test_a_context_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("docker")
    context(folder, "mine", f"unix://{SOCKET}")
    monkeypatch.setenv("DOCKER_CONTEXT", "mine")
    made = Daemon()
    try:
        assert made.silence() is None
        assert made.call("ask", lambda asked: asked.info())["ID"] == client().info()["ID"]
    finally:
        made.close()


# -- who cannot be meant -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("garbage", ["DOCKER_HOST: 'garbage' is no address of a daemon", "expected unix:///"]),
        ("tcp://", ["DOCKER_HOST: 'tcp://' is no address"]),
        ("tcp://[::1", ["is no address of a daemon"]),
        ("tcp://127.0.0.1:99999", ["is no address of a daemon"]),
        ("tcp://127.0.0.1:abc", ["is no address of a daemon"]),
        ("   ", ["DOCKER_HOST: '   ' is no address"]),
        ("fd://", ["is no address of a daemon"]),
        ("ssh://somebody@elsewhere", ["a daemon on another machine, which does not see the files of this one"]),
        ("npipe:////./pipe/docker_engine", ["only supported on Windows"]),
        ("unix:///no/such.sock", ["no Docker daemon answers at unix:///no/such.sock", "systemctl start docker"]),
        ("unix:///a\nb", ["no Docker daemon answers at 'unix:///a\\nb'"]),
        (f"unix:///{'x' * 200}", ["AF_UNIX path too long"]),
    ],
)
def test_a_host_that_cannot_be_meant(host: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    said = silence()
    assert all(word in said for word in words), said


def test_a_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://somebody:hidden-word@127.0.0.1:9")
    said = silence()
    assert "somebody:***@127.0.0.1" in said
    assert "hidden-word" not in said


def test_contexts_that_are_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = context(folder, "broken", "unix:///run/x.sock")
    context(folder, "whole", "unix:///run/x.sock")
    monkeypatch.setenv("DOCKER_CONTEXT", "none")
    said = silence()
    assert "DOCKER_CONTEXT: there is no context 'none'; there: default, " in said
    assert "broken" in said
    assert "whole" in said
    monkeypatch.setenv("DOCKER_CONTEXT", "broken")
    broken.write_text('{"Name": "broken"}')
    assert f"the context 'broken' cannot be read from {broken}" in silence()
    monkeypatch.delenv("DOCKER_CONTEXT")
    (folder / "config.json").write_text('{"currentContext": "gone"}')
    assert f"{folder}/config.json: key 'currentContext': there is no context 'gone'" in silence()


@pytest.mark.parametrize("variable", ["DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"])
def test_tls_without_certificates(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, str(tmp_path))
    said = silence()
    assert "lacks ca.pem, cert.pem or key.pem" in said
    assert "unset both" in said


@pytest.mark.parametrize("content", ["[]", "7", "null", '{"auths": 3}', '{"proxies": 3}'])
def test_settings_that_are_none(content: str, folder: Path) -> None:
    (folder / "config.json").write_text(content)
    assert f"{folder}/config.json holds no settings of Docker" in silence()


@pytest.mark.parametrize("given", ["soon", "0", "-1", "nan", "inf", "1e9", "5s"])
def test_a_time_limit_that_is_none(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CLIENT_TIMEOUT", given)
    with pytest.raises(
        InfrastructureError, match=f"DOCKER_CLIENT_TIMEOUT: '{given}' given, expected seconds"
    ) as caught:
        settings.call_seconds()
    assert caught.value.reason == settings.GONE
    assert f"DOCKER_CLIENT_TIMEOUT: '{given}' given" in silence()


def test_a_time_limit_below_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library knows whole seconds alone, and takes none for none at all."""
    require("docker")
    monkeypatch.setenv("DOCKER_CLIENT_TIMEOUT", "0.5")
    assert settings.call_seconds() == 0.5
    assert Daemon().silence() is None


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("DOCKER_HOST", "tcp://127.0.0.1:abc", "DOCKER_HOST: 'tcp://127.0.0.1:abc' is no address of a daemon"),
        ("DOCKER_CONTEXT", "none", "DOCKER_CONTEXT: there is no context 'none'"),
        ("DOCKER_CLIENT_TIMEOUT", "soon", "DOCKER_CLIENT_TIMEOUT: 'soon' given"),
    ],
)
def test_a_session_is_refused(
    pytester: pytest.Pytester,
    items: ItemFolder,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    said: str,
) -> None:
    items.pair()
    monkeypatch.setenv(variable, value)
    session = Session(pytester, items, "--paranoia-environment=docker")
    assert session.code == pytest.ExitCode.USAGE_ERROR, session.text
    assert f"--paranoia-environment: docker cannot be used: {said}" in session.text
    assert "Traceback" not in session.text
    assert session.runs == []


# -- daemons that answer and cannot serve --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"OSType": "windows"}, "switch it to Linux containers"),
        ({"SecurityOptions": ["name=seccomp,profile=default", "name=rootless"]}, "runs without root"),
        ({"SecurityOptions": ["name=userns"]}, "maps users (userns-remap)"),
        ({"PidsLimit": False}, "cannot limit the processes of a container"),
        ({"MemoryLimit": False, "CpuCfsQuota": False}, "cannot limit the memory and the processor time"),
    ],
)
def test_what_a_daemon_lacks(changed: dict[str, Any], said: str) -> None:
    good: dict[str, Any] = {
        "OSType": "linux",
        "DockerRootDir": "/",
        "SecurityOptions": ["name=seccomp,profile=default"],
    }
    good |= {"PidsLimit": True, "MemoryLimit": True, "CpuCfsQuota": True}
    assert provider._lack(good) is None
    lack = provider._lack({**good, **changed})
    assert lack is not None
    assert said in lack


class Trickle(BaseHTTPRequestHandler):
    """A daemon that answers its version at once and all else a byte at a time, without an end."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000" if "version" not in self.path else "23")
        self.end_headers()
        with suppress(OSError):
            if "version" in self.path:
                self.wfile.write(b'{"ApiVersion":  "1.41"}')
                return
            while True:
                self.wfile.write(b" ")
                time.sleep(0.05)

    def log_message(self, *_: object) -> None:
        pass


def test_a_daemon_that_never_comes_to_an_end_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never silent for long, so the limit for silence alone would wait for ever."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Trickle)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(daemon, "PAUSES", (0.01,))
    monkeypatch.setattr(daemon, "PING_SECONDS", 0.5)
    made = Daemon()
    began = time.monotonic()
    try:
        with pytest.raises(InfrastructureError, match=r"ask for its state: .*timed out after") as caught:
            made.call("ask for its state", lambda asked: asked.info(), seconds=0.5, total=1.0)
        assert caught.value.reason == settings.GONE
        assert time.monotonic() - began < 20
    finally:
        made.close()
        server.shutdown()
        server.server_close()
