"""``paranoia agents``: installing with an npm and a uv that need no network, checking what came, listing it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_paranoia import cli
from pytest_paranoia.agents import install
from pytest_paranoia.errors import SourceError
from pytest_paranoia.workspaces import toolchain

Run = Callable[..., tuple[int, str, str]]

# Installs what the file PACKAGES says, as npm does; logs its arguments and writes into HOME.
FAKE_NPM = """\
#!{python}
import json, os, pathlib, sys
told = json.loads(pathlib.Path({told!r}).read_text())
with open({log!r}, "a") as log:
    print(json.dumps([sys.argv[1:], os.environ["HOME"], os.environ.get("npm_config_userconfig")]), file=log)
if told.get("fail"):
    print("npm error code E404", file=sys.stderr)
    print("npm error 404 no such version", file=sys.stderr)
    sys.exit(1)
pathlib.Path(os.environ["HOME"], ".left").write_text("x")
tree = pathlib.Path(sys.argv[sys.argv.index("--prefix") + 1])
lock = {{"packages": {{}}}}
for name, (integrity, files) in told["packages"].items():
    folder = tree / "node_modules" / name
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        (folder / path).chmod(0o755)
    lock["packages"]["node_modules/" + name] = {{"integrity": integrity, "resolved": "somewhere"}}
(tree / "node_modules/.package-lock.json").write_text(json.dumps(lock))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of its own: cache, HOME, an npm on PATH, and a table of versions for two invented agents."""
    for name in ("home", "bin", "cache"):
        (tmp_path / name).mkdir()
    npm = tmp_path / "bin/npm"
    npm.write_text(
        FAKE_NPM.format(python=sys.executable, told=str(tmp_path / "told.json"), log=str(tmp_path / "npm.log"))
    )
    npm.chmod(0o755)
    monkeypatch.setenv("PARANOIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    table = tmp_path / "versions.toml"
    table.write_text(
        """\
schema = 1
[small]
default = "1.2.0"
npm = "@org/small"
program = "node_modules/@org/small-linux-{cpu}*/bin/small"
[small.pinned."1.2.0"]
"@org/small" = "sha512-main"
"@org/small-linux-x64" = "sha512-part"
"@org/small-linux-arm64" = "sha512-part"
[snake]
default = "0.3.0"
pip = "snake-agent"
program = "bin/snake"
[snake.pinned."0.3.0"]
lock = "snake-0.3.0.txt"
"""
    )
    monkeypatch.setattr(install, "VERSIONS", table)
    install.tools.cache_clear()
    packages(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def _forget() -> Any:
    yield
    install.tools.cache_clear()


def packages(folder: Path, *, main: str = "sha512-main", part: str = "sha512-part", **more: Any) -> None:
    """Decide what npm will install."""
    given = {"@org/small": (main, {"package.json": "{}"})}
    for cpu in ("x64", "arm64"):
        given[f"@org/small-linux-{cpu}"] = (part, {"bin/small": "#!/bin/sh\necho 1.2.0\n"})
    (folder / "told.json").write_text(json.dumps({"packages": given, **more}))


def npm_calls(folder: Path) -> list[Any]:
    log = folder / "npm.log"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(["agents", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_it_is_installed_once_and_checked(folder: Path, run: Run) -> None:
    code, out, _ = run("install", "small")
    assert code == 0
    assert out.startswith("small 1.2.0: installed in ")
    assert out.rstrip().endswith("as pinned")
    code, out, _ = run("install", "small")
    assert (code, out.startswith("small 1.2.0: was installed")) == (0, True)
    (called,) = npm_calls(folder)
    assert "@org/small@1.2.0" in called[0]
    assert "--ignore-scripts" in called[0]
    # Packages write to HOME; the user's own settings of npm count all the same.
    assert called[1] != str(folder / "home")
    assert called[2] == str(folder / "home/.npmrc")
    assert list((folder / "home").iterdir()) == []
    found = install.find("small")
    assert found is not None
    assert found.program.read_text() == "#!/bin/sh\necho 1.2.0\n"
    assert found.damage() is None
    assert sorted(path.name for path in found.folder.iterdir()) == ["agent.json", "tree"]
    assert list(found.tree.rglob(".package-lock.json")) == []  # it names the registry


@pytest.mark.parametrize("wrong", ["main", "part"])
def test_a_package_that_is_not_the_pinned_one_is_refused(folder: Path, run: Run, wrong: str) -> None:
    packages(folder, **{wrong: "sha512-other"})
    code, out, err = run("install", "small")
    assert (code, out) == (1, "")
    assert "has integrity sha512-other, expected sha512-" in err
    assert "nothing was installed" in err
    assert install.find("small") is None
    assert list((folder / "cache/agents").iterdir()) == []
    assert list((folder / "cache/staging").iterdir()) == []


def test_versions_lie_side_by_side(folder: Path, run: Run) -> None:
    run("install", "small")
    packages(folder, main="sha512-new", part="sha512-newer")
    code, out, _ = run("install", "small@1.10.0", "small@1.9.0")
    assert code == 0
    assert "not pinned: @org/small, @org/small-linux-x64, @org/small-linux-arm64" in out
    code, out, _ = run("list")
    assert code == 0
    lines = out.splitlines()
    assert [line.split(":")[0] for line in lines[:4]] == [
        "small 1.2.0 (default)",
        "small 1.9.0",
        "small 1.10.0",
        "snake 0.3.0 (default)",
    ]
    assert lines[3] == "snake 0.3.0 (default): not installed; paranoia agents install snake"
    assert lines[4].startswith("3 installed, ")
    first, second = install.find("small"), install.find("small", "1.10.0")
    assert first is not None
    assert second is not None
    assert first.folder != second.folder
    assert second.packages["@org/small"] == "sha512-new"


@pytest.mark.usefixtures("folder")
def test_changed_files_are_found(run: Run) -> None:
    run("install", "small")
    assert run("list", "--verify")[0] == 0
    found = install.find("small")
    assert found is not None
    found.program.write_text("#!/bin/sh\necho planted\n")
    code, out, _ = run("list", "--verify")
    assert code == 1
    assert "its files have changed: digest" in out
    assert str(found.folder) in out


def test_without_npm_the_remedy_is_named(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder / "home"))
    code, _, err = run("install", "small")
    assert code == 1
    assert "npm, which is not on PATH" in err
    assert "apt-get install npm" in err


def test_what_npm_says_is_passed_on_and_the_others_are_installed(folder: Path, run: Run) -> None:
    packages(folder, fail=True)
    code, _, err = run("install", "small")
    assert code == 1
    assert "npm could not install it: npm error code E404" in err
    assert err.count("\n") == 1
    _, _, err = run("install", "-v", "small")
    assert "npm error 404 no such version\n" in err


def test_a_package_without_a_program_for_this_machine_is_refused(folder: Path, run: Run) -> None:
    (folder / "told.json").write_text(json.dumps({"packages": {"@org/small": ["sha512-main", {"package.json": ""}]}}))
    code, _, err = run("install", "small")
    assert code == 1
    assert "hold no program for this machine" in err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("smal", "no agent 'smal' can be installed; there are: small, snake"),
        ("small@latest", "small@latest: 'latest' is no version; expected small@1.2.0 or another exact one"),
        ("small@../../x", "is no version"),
        ("small@", "'' is no version"),
    ],
)
def test_what_cannot_be_meant_is_usage(folder: Path, run: Run, name: str, said: str) -> None:
    code, _, err = run("install", "small", name)
    assert code == 2
    assert said in err
    assert npm_calls(folder) == []


@pytest.mark.usefixtures("folder")
def test_an_unreadable_record_counts_as_nothing(run: Run) -> None:
    run("install", "small")
    found = install.find("small")
    assert found is not None
    (found.folder / "agent.json").write_text("{")
    assert install.find("small") is None
    code, _, err = run("install", "small")
    assert code == 1
    assert "holds no readable agent.json" in err


# -- with uv -------------------------------------------------------------------------------------------------------


def wheel(folder: Path, version: str) -> str:
    """Make a wheel of the invented program and return its sha256."""
    name = f"snake_agent-{version}"
    files = {
        "snake_agent.py": f"def main():\n    print('Snake {version}')\n",
        f"{name}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: snake-agent\nVersion: {version}\n",
        f"{name}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}.dist-info/entry_points.txt": "[console_scripts]\nsnake = snake_agent:main\n",
    }
    lines = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(text)}")
    files[f"{name}.dist-info/RECORD"] = "\n".join([*lines, f"{name}.dist-info/RECORD,,"]) + "\n"
    (folder / "wheels").mkdir(exist_ok=True)
    made = folder / "wheels" / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return hashlib.sha256(made.read_bytes()).hexdigest()


@pytest.fixture
def offline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(folder / "wheels"))
    monkeypatch.setenv("UV_CACHE_DIR", str(folder / "uv"))
    return folder


def test_a_python_program_comes_from_its_pinned_lock(offline: Path, run: Run) -> None:
    digest = wheel(offline, "0.3.0")
    (offline / "snake-0.3.0.txt").write_text(f"snake-agent==0.3.0 \\\n    --hash=sha256:{digest}\n")
    code, out, err = run("install", "snake")
    assert (code, err) == (0, "")
    assert out.rstrip().endswith("as pinned")
    found = install.find("snake")
    assert found is not None
    done = subprocess.run([found.program], capture_output=True, text=True, check=True)
    assert done.stdout == "Snake 0.3.0\n"
    ((name, integrity),) = found.packages.items()
    assert name.startswith("snake-agent==0.3.0")
    assert integrity == f"sha256:{hashlib.sha256((offline / 'snake-0.3.0.txt').read_bytes()).hexdigest()}"


def test_a_lock_with_another_hash_installs_nothing(offline: Path, run: Run) -> None:
    wheel(offline, "0.3.0")
    (offline / "snake-0.3.0.txt").write_text(f"snake-agent==0.3.0 \\\n    --hash=sha256:{'0' * 64}\n")
    code, _, err = run("install", "snake")
    assert code == 1
    assert "snake 0.3.0" in err
    assert install.find("snake") is None


def test_another_version_is_resolved_and_its_lock_kept(offline: Path, run: Run) -> None:
    digest = wheel(offline, "0.4.0")
    code, out, _ = run("install", "snake@0.4.0")
    assert code == 0
    assert "not pinned: snake-agent==0.4.0" in out
    found = install.find("snake", "0.4.0")
    assert found is not None
    lock = (found.folder / "requirements.txt").read_text()
    assert f"--hash=sha256:{digest}" in lock
    with pytest.raises(SourceError, match=r"could not resolve snake-agent==0\.5\.0"):
        install.install("snake", "0.5.0")


# -- what the package brings ---------------------------------------------------------------------------------------


def test_the_pinned_versions_are_complete() -> None:
    assert set(install.tools()) == {"claude-code", "codex", "opencode", "hermes"}
    for tool in install.tools().values():
        pins = tool.pinned[tool.default]
        if tool.npm is not None:
            assert tool.npm in pins
            assert all(value.startswith("sha512-") for value in pins.values())
        else:
            lock = install.VERSIONS.with_name(pins["lock"])
            content = toolchain.checked_lock(lock)  # pinned and hashed in every line, no URL
            assert f"{tool.pip}=={tool.default}".encode() in content
    assert "://" not in install.VERSIONS.read_text()
