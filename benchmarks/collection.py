"""Collection of 10,000 trials, against plain pytest collecting as many parametrised tests in the same run.

    python benchmarks/collection.py [--rounds N] [--trials N] [--source builtin|small] [--check]

What is measured is the whole process ``pytest --paranoia --paranoia-items=DIR --collect-only -q``, start of Python and
printing of ids included. The items are copies of the built-in ones under other names, or small ones as the tests use.
"""

from __future__ import annotations

import argparse
import itertools
import re
import shutil
import sys
import tempfile
from pathlib import Path

from measuring import CHECKOUT, Bounds, Sample, median, rounds, run

SECONDS, MEGABYTES = 2.0, 150.0
AGENTS, RUNS = 3, 10
PLAIN = """
import pytest

@pytest.mark.parametrize("run", range({runs}))
@pytest.mark.parametrize("variant", ["E+", "E-"])
def test_pair(run, variant):
    pass
"""


def copy_builtin(target: Path, trials: int) -> None:
    """Fill *target* with renamed copies of the built-in items until they make *trials*."""
    manifests = sorted(CHECKOUT.glob("tasks/pairs/*/*/pair.toml")) + sorted(
        CHECKOUT.glob("tasks/accusations/*/*/scenario.toml")
    )
    shutil.copytree(CHECKOUT / "tasks" / "services", target / "tasks" / "services")
    made = 0
    for copy in itertools.count():
        for manifest in manifests:
            if made >= trials:
                return
            folder = manifest.parent.relative_to(CHECKOUT / "tasks")
            kind, group, item = folder.parts
            pair = kind == "pairs"
            # A domain is fixed, a repository is not: a benchmark of that size has many.
            name = f"{group}-{copy}/{item}" if pair else f"{group}/{item}-{copy}"
            shutil.copytree(CHECKOUT / "tasks" / folder, target / "tasks" / kind / name)
            if pair:
                for path in manifest.parent.parent.iterdir():
                    if path.is_file():
                        shutil.copy(path, (target / "tasks" / kind / name).parent)
            shutil.copytree(CHECKOUT / "oracles" / folder, target / "oracles" / kind / name)
            card = target / "oracles" / kind / name / ("card.toml" if pair else "truth.toml")
            text = card.read_text().replace(f'"{group}/{item}"', f'"{name}"')
            # Patterns of so many items differ; copies of the same ones would all come from the cache of ``re``.
            card.write_text(re.sub(r"((?:pattern|unless) = |[\[\n ]\s*)('''|'(?!''))(?=.*')", rf"\1\2(?#{copy})", text))
            made += AGENTS * RUNS * (2 if pair else 1)


def write_small(target: Path, trials: int) -> None:
    """Fill *target* with the small pairs of the tests, eight to a repository, and a scenario for every ten pairs."""
    sys.path.insert(0, str(CHECKOUT / "tests"))
    from small_items import ItemFolder

    items = ItemFolder(target)
    made = 0
    for number in itertools.count():
        if made >= trials:
            return
        repository = f"tiny-{number // 8}"
        # Written here and not by ItemFolder.repository, which prepares it: nothing of this benchmark runs a trial.
        items.write(f"tasks/pairs/{repository}/source/src/tiny/__init__.py", "def greet(name):\n    return name\n")
        items.write(f"tasks/pairs/{repository}/repository.toml", REPOSITORY)
        items.pair(f"{repository}/greet-{number}")
        made += AGENTS * RUNS * 2
        if number % 10 == 0:
            items.scenario(f"coding/retries-{number}", self_built=number % 20 == 0)
            made += AGENTS * RUNS


REPOSITORY = f"""
schema = 1
commit = "{"a" * 40}"
license = "MIT"
description = "A greeting."
pythonpath = ["src"]
packages = ["tiny"]
test_command = "true"
test_seconds = 1.0

[source]
kind = "folder"
folder = "source"
sha256 = "{"b" * 64}"
"""


def write_plain(target: Path, trials: int) -> None:
    """Fill *target* with as many parametrised tests, spread over as many files as there are items."""
    per_file = 2 * AGENTS * RUNS
    target.mkdir()
    for number in range(-(-trials // per_file)):
        (target / f"test_plain_{number}.py").write_text(PLAIN.format(runs=AGENTS * RUNS))


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--source", choices=["builtin", "small"], default="builtin")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a bound is broken")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        base = Path(name)
        (write_small if chosen.source == "small" else copy_builtin)(base / "items", chosen.trials)
        write_plain(base / "plain", chosen.trials)
        (base / "empty").mkdir()
        # Hypothesis is there for our own tests; its plugin imports all of it at the end of every session.
        pytest = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:hypothesispytest"]

        def ours() -> Sample:
            return run(
                [*pytest, "--paranoia", f"--paranoia-items={base / 'items'}", f"--paranoia-runs={RUNS}"],
                cwd=base / "empty",
            )

        def plain() -> Sample:
            return run([*pytest, str(base / "plain")], cwd=base / "plain")

        measured, floor = rounds(chosen.rounds, ours, plain)
    trials = sum("::test_" in line for line in measured[0].output.splitlines())
    tests = sum("::test_" in line for line in floor[0].output.splitlines())
    print(f"{trials} trials of {chosen.source} items; floor: {tests} parametrised tests; medians of {chosen.rounds}")
    for label, samples in (("pytest --paranoia", measured), ("plain pytest", floor)):
        wall, cpu, peak = (median([getattr(sample, part) for sample in samples]) for part in ("wall", "cpu", "peak"))
        print(f"{label:18} {wall:6.2f} s wall {cpu:6.2f} s CPU {peak:6.0f} MB peak")
    ratios = [ours.cpu / plain.cpu for ours, plain in zip(measured, floor, strict=True)]
    print(f"ratio of CPU, each round: median {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    bounds = Bounds()
    # One thread and no waiting: its CPU is its wall clock on a machine that has nothing else to do.
    bounds.show("time", median([sample.cpu for sample in measured]), SECONDS, "s CPU")
    bounds.show("peak memory", max(sample.peak for sample in measured), MEGABYTES, "MB")
    bounds.exit(check=chosen.check)


if __name__ == "__main__":
    main()
