"""Subprocesses with a time limit whose output is kept for error messages only."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_paranoia.errors import SourceError

# Variables with which a caller (a git hook, an active venv, a test run) would steer our git, pip and uv elsewhere.
_FOREIGN = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
        "GIT_SHALLOW_FILE",
        "GIT_GRAFT_FILE",
        "GIT_CONFIG",
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_COUNT",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "PYTHONWARNINGS",
        "VIRTUAL_ENV",
        "__PYVENV_LAUNCHER__",
        "PIP_PYTHON",
        "PIP_TARGET",
        "UV_CONSTRAINT",
        "UV_OVERRIDE",
        "UV_PREFIX",
        "UV_PYTHON",
        "UV_SYSTEM_PYTHON",
        "UV_TARGET",
        "UV_VENV_SEED",
    }
)


@dataclass(frozen=True)
class Finished:
    """How a tool ended; ``output`` is stdout and stderr as they came."""

    status: int
    output: str

    def tail(self, lines: int = 20) -> str:
        """Return the last *lines* non-empty lines of the output."""
        return "\n".join([line for line in self.output.splitlines() if line.strip()][-lines:])

    def complaint(self) -> str:
        """Return the line in which the tool most likely says what is wrong."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        for mark in ("fatal:", "error:", "×"):
            for line in lines:
                if line.lower().startswith(mark):
                    return line
        return lines[-1] if lines else f"no output, exit status {self.status}"


def user_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the user's environment (mirrors, proxies, certificates) without what would redirect a tool."""
    env = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    env.update(extra or {})
    return env


def run_tool(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], seconds: float) -> Finished:
    """Run *argv* to its end and return status and output; a tool that overruns is killed with its children."""
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise SourceError(f"{argv[0]} is not installed or not on PATH, preparation needs it") from error
    with process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except BaseException as error:
            # Its session holds every child, and a Ctrl-C of ours does not reach that session by itself.
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            text = output.decode("utf-8", "replace")
            raise SourceError(f"{Path(argv[0]).name} took longer than {seconds:g} s and was ended\n{text}") from error
    return Finished(process.returncode, output.decode("utf-8", "replace"))
