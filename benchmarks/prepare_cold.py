"""Preparing all repositories of the built-in items on a machine that has none of them.

    python benchmarks/prepare_cold.py [--jobs N] [--warm-uv] [--check]

Cold means: an empty cache of ours, and an empty one of uv unless ``--warm-uv`` keeps the user's. Archives come from the
package index that pip is configured for, so the network counts; CPU is told beside it. Then the same again, with
everything there.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from measuring import CHECKOUT, Bounds, Sample, run

SECONDS = 90.0
AGAIN = 3.0
PROCESSORS = 2


def prepare(jobs: int | None, variables: dict[str, str]) -> Sample:
    """Run the command as a user does."""
    argv = [sys.executable, "-m", "pytest_paranoia.cli", "prepare", *(["-j", str(jobs)] if jobs else [])]
    return run(argv, cwd=CHECKOUT, env={**variables, "PYTHONPATH": str(CHECKOUT)})


def main() -> None:
    """Measure, print, and look at the bounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, metavar="N", help="repositories at a time (default: the command's own)")
    parser.add_argument("--warm-uv", action="store_true", help="use the user's cache of uv")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bound is broken")
    chosen = parser.parse_args()
    # The bound is one of two processors.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    with tempfile.TemporaryDirectory(prefix="bench-prepare-") as name:
        variables = {"PARANOIA_CACHE": str(Path(name) / "paranoia")}
        if not chosen.warm_uv:
            variables["UV_CACHE_DIR"] = str(Path(name) / "uv")
        cold = prepare(chosen.jobs, variables)
        again = prepare(chosen.jobs, variables)
    repositories = len(cold.output.splitlines()) - 1
    print(cold.output.rstrip())
    print(f"{repositories} repositories: {cold.wall:.1f} s, CPU {cold.cpu:.1f} s; again {again.wall:.2f} s")
    bounds = Bounds()
    bounds.show(f"{repositories} repositories cold", cold.wall, SECONDS, "s")
    bounds.show("everything there", again.wall, AGAIN, "s")
    bounds.exit(check=chosen.check)


if __name__ == "__main__":
    main()
