"""What the plugin costs a session that did not ask for it: its import and its hooks, without ``--paranoia``.

    python benchmarks/import_cost.py [--rounds N] [--check]

``pytest --collect-only`` over one test, against the same with ``-p no:paranoia`` in the same run; and the time that
``-X importtime`` gives for the hook module, with all that it imports.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

from measuring import Bounds, Sample, median, rounds, run

SECONDS = 0.005
_WHOLE = re.compile(r"import time:\s+\d+ \|\s+(\d+) \| pytest_paranoia\S*$", re.MULTILINE)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a bound is broken")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        (folder / "test_one.py").write_text("def test_one(): pass\n")

        def session(*more: str) -> Sample:
            # Hypothesis' plugin, there for our own tests, takes fifty times what is measured here.
            plugins = ["-p", "no:hypothesispytest", "-p", "no:cacheprovider"]
            return run([sys.executable, "-m", "pytest", "--collect-only", "-q", *plugins, *more], cwd=folder)

        ours, without, traced = rounds(
            chosen.rounds,
            session,
            lambda: session("-p", "no:paranoia"),
            # Not in a session: what importlib loads for an entry point is not told.
            lambda: run(
                [sys.executable, "-X", "importtime", "-c", "import pytest, pytest_paranoia.plugin"], cwd=folder
            ),
        )
    imports = median([sum(int(micro) / 1e6 for micro in _WHOLE.findall(sample.output)) for sample in traced])
    print(f"medians of {chosen.rounds} rounds")
    for label, samples in (("with the plugin", ours), ("-p no:paranoia", without)):
        wall, cpu = (1000 * median([getattr(sample, part) for sample in samples]) for part in ("wall", "cpu"))
        print(f"{label:16} {wall:7.1f} ms wall {cpu:7.1f} ms CPU")
    difference = median([one.cpu for one in ours]) - median([other.cpu for other in without])
    ratio = median([one.cpu / other.cpu for one, other in zip(ours, without, strict=True)])
    print(f"ratio of CPU, each round: median {ratio:.3f}; difference of medians {1000 * difference:.1f} ms")
    bounds = Bounds()
    bounds.show("import", 1000 * imports, 1000 * SECONDS, "ms")
    bounds.show("import and hooks, the difference in CPU", 1000 * difference, 1000 * SECONDS, "ms")
    bounds.exit(check=chosen.check)


if __name__ == "__main__":
    main()
