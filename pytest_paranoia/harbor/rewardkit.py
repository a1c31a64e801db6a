"""PyPI's harbor-rewardkit for checks that import it: its own environment, made once per machine from a hashed lock.

It needs Python 3.12 or newer, whatever Python this package runs with. In a verification (and never where an agent is)
``rewardkit`` is on PATH, and ``uvx … rewardkit`` means the same, since nothing can be fetched there.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pytest_paranoia.environments.base import Mount
from pytest_paranoia.errors import SourceError
from pytest_paranoia.workspaces import toolchain
from pytest_paranoia.workspaces.cache import cached, digest, file_digest
from pytest_paranoia.workspaces.process import run_tool, user_environment

VERSION = "0.2.3"
LOCK = Path(__file__).with_name(f"rewardkit-{VERSION}.txt")
OLDEST = (3, 12)
PYTHON_VARIABLE = "PARANOIA_REWARDKIT_PYTHON"
TARGET = "/opt/rewardkit"
_TEXT = (".py", ".sh", ".toml")

# What a task's script says to fetch is here already, in the one version there is.
_UVX = f"""\
#!/bin/sh
for word in "$@"; do
    shift
    case "$word" in
        rewardkit) exec {TARGET}/bin/rewardkit "$@" ;;
        harbor-rewardkit=={VERSION}|harbor-rewardkit) ;;
        harbor-rewardkit*) echo "uvx: $word is not here; harbor-rewardkit {VERSION} runs instead" >&2 ;;
    esac
done
echo "uvx: only harbor-rewardkit is here, nothing can be fetched during a verification" >&2
exit 127
"""


@dataclass(frozen=True)
class Rewardkit:
    """An installation: the folder with the environment, and the interpreter's folder that it needs beside it."""

    folder: Path
    python_home: Path

    @property
    def path(self) -> tuple[Path, ...]:
        """Host folders that come first on PATH."""
        return (self.folder / "tools", self.folder / "env" / "bin")

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """What a verification sees of it, read-only."""
        home = str(self.python_home)
        system = () if self.python_home.is_relative_to("/usr") else (Mount(self.python_home, home),)
        return (*system, Mount(self.folder / "env", TARGET), Mount(self.folder / "tools", "/opt/rewardkit-tools"))


ENV = {
    # Asked for over the network otherwise, three times, while nothing answers.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def wanted(folders: Iterable[Path]) -> bool:
    """Whether some script or check below *folders* needs rewardkit."""
    for folder in folders:
        for path in folder.rglob("*"):
            if (
                path.suffix in _TEXT
                and path.is_file()
                and "rewardkit" in path.read_text(encoding="utf-8", errors="replace")
            ):
                return True
    return False


def interpreter() -> Path:
    """Return a Python of at least 3.12 on this machine. Raises SourceError with the remedy."""
    if named := os.environ.get(PYTHON_VARIABLE):
        if (real := _real(named)) is None:
            raise SourceError(f"{PYTHON_VARIABLE}: {named} is no Python of at least {_oldest()}")
        return real
    if sys.version_info >= OLDEST:
        return toolchain.base_interpreter()
    names = [f"python3.{minor}" for minor in range(OLDEST[1], OLDEST[1] + 6)]
    # On PATH pyenv has programs that only start the version it is set to.
    versions = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser() / "versions"
    found = [program for name in names if (program := shutil.which(name))]
    found += [str(path) for name in names for path in sorted(versions.glob(f"*/bin/{name}"))]
    argv = ["python", "find", "--no-project", "--no-python-downloads", f">={_oldest()}"]
    done = toolchain.run_uv(Path.cwd(), *argv)
    found += done.output.strip().splitlines()[-1:] if done.status == 0 else []
    for program in found:
        if (real := _real(program)) is not None:
            return real
    raise SourceError(
        f"harbor-rewardkit needs Python {_oldest()} or newer, and none was found: install one (`uv python install "
        f"{_oldest()}`), or name one in the variable {PYTHON_VARIABLE}"
    )


def _oldest() -> str:
    return ".".join(map(str, OLDEST))


def _real(program: str) -> Path | None:
    """Return the interpreter that a program on PATH starts in the end; a shim of pyenv is no interpreter."""
    code = (
        f"import os, sys; assert sys.version_info >= {OLDEST}; "
        "print(os.path.realpath(getattr(sys, '_base_executable', '') or sys.executable))"
    )
    done = run_tool([program, "-I", "-c", code], cwd=Path("/"), env=user_environment(), seconds=60)
    path = Path(done.output.strip().splitlines()[-1]) if done.output.strip() else Path()
    return path if done.status == 0 and path.is_file() else None


def installed() -> Rewardkit:
    """Return rewardkit on this machine, installed now where it is not there. Raises SourceError."""
    python = interpreter()
    home = python.parent.parent

    def build(folder: Path) -> None:
        env = folder / "env"
        env.mkdir()
        made = toolchain.run_uv(
            folder,
            "venv",
            "--quiet",
            "--no-project",
            "--relocatable",
            "--allow-existing",
            "--python",
            str(python),
            str(env),
        )
        if made.status:
            raise SourceError(f"uv could not create an environment for rewardkit: {made.complaint()}\n{made.tail()}")
        toolchain.checked_lock(LOCK)
        argv = [
            "pip",
            "install",
            "--quiet",
            "--python",
            str(env),
            "--require-hashes",
            "--no-deps",
            "--compile-bytecode",
        ]
        done = toolchain.run_uv(
            folder, *argv, "--requirement", str(LOCK), "--index-strategy", "unsafe-best-match", mirrors=True
        )
        if done.status:
            said = re.sub(r"\s+", " ", done.tail(6))
            raise SourceError(f"harbor-rewardkit {VERSION}: uv could not install it: {said[:400]}\n{done.tail()}")
        tools = folder / "tools"
        tools.mkdir()
        (tools / "uvx").write_text(_UVX, encoding="utf-8")
        (tools / "uvx").chmod(0o755)

    key = digest("1", str(python), python.resolve().name, file_digest(LOCK), _UVX)[:24]
    return Rewardkit(cached("rewardkit", f"{VERSION}-{key}", build), home)
