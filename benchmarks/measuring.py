"""Shared by the benchmarks: one finished process as numbers, medians of several rounds, one way to report a bound."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median as median

CHECKOUT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Sample:
    """What one process and all it started took: seconds of wall clock and CPU, and the largest resident size in MB."""

    wall: float
    cpu: float
    peak: float
    output: str = ""


@functools.cache
def _bytecode() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="bench-pyc-")


def environment() -> dict[str, str]:
    """The variables of measured processes. Bytecode is cached, as where packages are installed the usual way."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST_"))}
    return {**kept, "PYTHONPYCACHEPREFIX": _bytecode().name}


def run(argv: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str] | None = None) -> Sample:
    """Run a process to its end. Ends the benchmark when it fails: a broken run measures nothing."""
    words = [str(word) for word in argv]
    variables = {**environment(), **(env or {})}
    started = time.perf_counter()
    process = subprocess.Popen(
        words, cwd=cwd, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    output = process.stdout.read()
    # Not Popen.wait: only wait4 tells what this one process and its children used.
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode:
        sys.exit(f"{output[-4000:]}\n{' '.join(words)}: exit status {process.returncode}")
    return Sample(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output)


def rounds(count: int, *kinds: Callable[[], Sample]) -> list[list[Sample]]:
    """Run each kind once per round, in turn, so that a busy machine slows all alike; a first round warms up."""
    samples: list[list[Sample]] = [[] for _ in kinds]
    for number in range(count + 1):
        for kind, found in zip(kinds, samples, strict=True):
            sample = kind()
            if number:
                found.append(sample)
    return samples


class Bounds:
    """The bounds that were looked at; with ``--check`` a broken one is the exit status."""

    def __init__(self) -> None:
        self._broken = 0

    def show(self, what: str, value: float, bound: float, unit: str) -> None:
        """Print one bound, and whether it holds."""
        holds = value <= bound
        self._broken += not holds
        print(f"{'ok    ' if holds else 'BROKEN'} {what}: {value:.3g} {unit}, bound {bound:.3g} {unit}")

    def exit(self, *, check: bool) -> None:
        """End the script."""
        sys.exit(1 if check and self._broken else 0)
