"""Subprocesses with a time limit whose output is kept for error messages only."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pytest_paranoia.errors import SourceError

_T = TypeVar("_T")

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


class _Live:
    """The tools that run at this moment, in whichever thread, by the session each of them leads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: set[int] = set()
        self._ending = False

    def add(self, session: int) -> None:
        with self._lock:
            self._sessions.add(session)
            if self._ending:
                _kill(session)

    def discard(self, session: int) -> None:
        with self._lock:
            self._sessions.discard(session)

    def end(self) -> None:
        """Kill all of them, and from now on each new one."""
        with self._lock:
            self._ending = True
            for session in self._sessions:
                _kill(session)

    def go_on(self) -> None:
        """Let new ones live again."""
        self._ending = False


_live = _Live()


def _kill(session: int) -> None:
    # A session holds every child, and a Ctrl-C of ours does not reach it by itself.
    with suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)


def in_threads(calls: Iterable[Callable[[], _T]], threads: int) -> Generator[Callable[[], _T]]:
    """Make *calls* in so many *threads*; yield, in their order and as they end, what gives each result or raises.

    Where the caller stops early (a Ctrl-C reaches the main thread alone) the tools of all threads are ended and no
    further call begins. Close the iterator.
    """
    pool = ThreadPoolExecutor(threads)
    try:
        futures = [pool.submit(call) for call in calls]
        for future in futures:
            wait([future])
            yield future.result
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        _live.end()
        raise
    finally:
        pool.shutdown()
        _live.go_on()


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
        _live.add(process.pid)
        try:
            output, _ = process.communicate(timeout=seconds)
        except BaseException as error:
            _kill(process.pid)
            output, _ = process.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            text = output.decode("utf-8", "replace")
            raise SourceError(f"{Path(argv[0]).name} took longer than {seconds:g} s and was ended\n{text}") from error
        finally:
            _live.discard(process.pid)
    return Finished(process.returncode, output.decode("utf-8", "replace"))
