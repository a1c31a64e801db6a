"""The example of an agent of one's own: built, installed and run as its README says, found by its entry point alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from model_server import ModelServer
from sessions import Session
from small_items import ItemFolder

from requirements import require

EXAMPLE = Path(__file__).parent.parent / "examples" / "oneshot-agent"
FIX = """Here it is.
```bash
sed -i "s/+ name/+ name + '!'/" src/tiny/__init__.py
```
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package in it, as pip installs it."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--target", str(target), str(EXAMPLE)], check=True, timeout=120)
    return target


def run(pytester: pytest.Pytester, items: ItemFolder, server: ModelServer, *arguments: str) -> Session:
    return Session(pytester, items, "--model", f"oneshot:tiny-1@{server.url}/v1", *arguments)


def test_it_does_a_task_pair(
    pytester: pytest.Pytester, items: ItemFolder, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("bubblewrap")
    monkeypatch.setenv("PYTHONPATH", str(installed))
    items.pair()
    pytester.path.joinpath("AGENTS.md").write_text("Keep changes small.")
    with ModelServer([], side=FIX) as server:
        session = run(pytester, items, server, "-n2", "--paranoia-instructions", "AGENTS.md")
        asked = [json.dumps(exchange.request.body) for exchange in server.exchanges]
    assert session.code == 0, session.text
    assert len(asked) == 2
    assert all("Keep changes small." in body and "exclamation mark" in body for body in asked)
    for record in session.records().values():
        assert record["oracle"]["passed"]
        assert record["verdict"]["kind"] == "none"
        assert (record["agent"]["harness"], record["agent"]["model"]) == ("oneshot", "tiny-1")
        assert record["usage"]["requests"] == 1
        assert record["usage"]["input_tokens"] > 0
        assert record["usage"]["cost_usd"] is None  # nobody knows the price of this model
        assert len(record["intervention"]["instructions_sha256"]) == 64


def test_without_the_package_its_name_is_unknown(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    session = Session(pytester, items, "--model", "oneshot:tiny-1@http://127.0.0.1:9/v1")
    assert session.code == pytest.ExitCode.USAGE_ERROR
    assert "unknown agent 'oneshot:tiny-1" in session.text
