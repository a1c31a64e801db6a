"""Our own CPU per local trial: everything but the commands of the agent and of the oracle.

    python benchmarks/trial_cost.py [--trials N] [--files N] [--rounds N] [--check]

Agent and oracle do nearly nothing (one command each) over a generated tree with a history; user and system time
count, those of all children too. What a session costs once is left out: a long and a short session are compared. The
commands themselves, a bare sandbox and a bare Python are measured in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import CHECKOUT, Bounds, Sample, environment, median, rounds, run

SECONDS = 0.15
SHORT = 4
AGENT = "echo '# touched' >> src/tiny/__init__.py"
ORACLE = '''
"""One command, and a look at the tree."""
from pytest_paranoia.scoring.kit import Workspace

def check(ws: Workspace) -> None:
    assert "touched" in ws.read("src/tiny/__init__.py")
    assert ws.run(["true"]).returncode == 0
'''
MODULE = '''"""Module {number} of a generated tree."""


def function_{number}(value):
    """Return the value, as every function here does."""
    return value
''' + "\n".join(f"# line {line} of a file of ordinary size" for line in range(60))

PHASES = """
import json, os, resource, time
import pytest

spent, stack = {}, []

def now():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

def enter(name):
    leave_off(now())
    stack.append([name, now()])

def leave_off(at):
    if stack:
        spent[stack[-1][0]] = spent.get(stack[-1][0], 0.0) + at - stack[-1][1]

def leave():
    leave_off(now())
    stack.pop()
    if stack:
        stack[-1][1] = now()

def phase(name):
    enter(name)
    try:
        return (yield)
    finally:
        leave()

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    return (yield from phase("pytest"))

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef):
    return (yield from phase(fixturedef.argname))

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item):
    return (yield from phase("teardown"))

def pytest_sessionfinish(session):
    with open(os.environ["PHASES"], "w") as stream:
        json.dump({name: seconds / session.testscollected for name, seconds in spent.items()}, stream)
"""


def write_items(base: Path, files: int) -> None:
    """Make the pair and prepare its repository."""
    os.environ["PARANOIA_CACHE"] = str(base / "cache")
    sys.path.append(str(CHECKOUT / "tests"))
    from small_items import ItemFolder

    items = ItemFolder(base / "items")
    modules = {f"src/tiny/part_{n % 40}/module_{n}.py": MODULE.replace("{number}", str(n)) for n in range(files)}
    items.repository("tiny", files=modules)
    items.pair("tiny/greet", oracle=ORACLE)
    for name in ("minimal", "excess"):
        items.run("tiny/greet", name, f'[[steps.actions]]\nrun = "{AGENT}"\n')
    (base / "phases.py").write_text(PHASES)
    (base / "session").mkdir()


def direct(argv: list[str], times: int = 20, cwd: Path = CHECKOUT) -> float:
    """Return the CPU that a command takes when it is started as such."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(times):
        subprocess.run(
            argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, env=environment()
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / times


def bare_sandbox() -> list[str] | None:
    """A sandbox with the namespaces of a trial and nothing of our mounts, or None where there is no bubblewrap."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return None
    spaces = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"]
    return [bwrap, *spaces, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "/usr/bin/env", "true"]


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=40, help="trials of the long session")
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a bound is broken")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        base = Path(name)
        write_items(base, chosen.files)

        def session(trials: int) -> Sample:
            shutil.rmtree(base / "session" / "reports", ignore_errors=True)
            arguments = ["--paranoia", f"--paranoia-items={base / 'items'}", "--model=minimal", "-q", "-p", "phases"]
            return run(
                [sys.executable, "-m", "pytest", *arguments, f"--paranoia-runs={trials // 2}"],
                cwd=base / "session",
                env={"PARANOIA_CACHE": str(base / "cache"), "PYTHONPATH": str(base), "PHASES": str(base / "phases")},
            )

        # Each with the round that warms up, which is left out below.
        phases: list[dict[str, float]] = []
        commands: list[float] = []
        bare: dict[str, list[float]] = {"a sandbox": [], "python -I -S": [], "cp of the tree": []}

        def long() -> Sample:
            sample = session(chosen.trials)
            phases.append(json.loads((base / "phases").read_text()))
            return sample

        def floor() -> Sample:
            commands.append(direct(["bash", "-c", "echo >> /dev/null"]) + direct(["true"]))
            bare["python -I -S"].append(direct([sys.executable, "-I", "-S", "-c", "pass"]))
            if (sandbox := bare_sandbox()) is not None:
                bare["a sandbox"].append(direct(sandbox))
            (tree,) = (base / "cache" / "repositories").glob("*/tree")
            copy = ["cp", "-dR", "--no-target-directory", "--preserve=mode,timestamps", str(tree), str(base / "copy")]
            bare["cp of the tree"].append(direct(copy, times=1))
            shutil.rmtree(base / "copy")
            return Sample(0.0, 0.0, 0.0)

        many, few, _ = rounds(chosen.rounds, long, lambda: session(SHORT), floor)
        count = sum(1 for path in tree_files(base))
    per_trial = [(one.cpu - other.cpu) / (chosen.trials - SHORT) for one, other in zip(many, few, strict=True)]
    own = [whole - asked for whole, asked in zip(per_trial, commands[1:], strict=True)]
    print(
        f"{chosen.trials} trials against {SHORT}, {count} files; CPU per trial in ms, medians of {chosen.rounds} rounds"
    )
    print(
        f"whole trial {1000 * median(per_trial):.1f}, its commands started directly {1000 * median(commands[1:]):.1f}"
    )
    names = list(phases[-1])
    split = {name: 1000 * median([found.get(name, 0.0) for found in phases[1:]]) for name in names}
    print("by phase: " + ", ".join(f"{name} {value:.1f}" for name, value in split.items()))
    print("bare: " + ", ".join(f"{what} {1000 * median(found[1:]):.1f}" for what, found in bare.items() if found))
    bounds = Bounds()
    bounds.show("our own CPU per trial", median(own), SECONDS, "s")
    bounds.exit(check=chosen.check)


def tree_files(base: Path) -> list[Path]:
    """Return the files of the prepared tree, its history included."""
    (tree,) = (base / "cache" / "repositories").glob("*/tree")
    return [path for path in tree.rglob("*") if path.is_file()]


if __name__ == "__main__":
    main()
