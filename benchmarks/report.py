"""Writing the HTML report of 9,600 trials, and how soon a browser paints it.

    python benchmarks/report.py [--rounds N] [--trials N] [--check]

What is measured is a process of its own: start of Python, reading every record and artifact, the statistics with their
resamples, and the file. First paint needs chromium and playwright and is left out without them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from measuring import CHECKOUT, Bounds, Sample, median, rounds, run

SECONDS, MEGABYTES, PAINT = 10.0, 600.0, 2.0
WRITE = """
import sys
from pathlib import Path
from pytest_paranoia.reporting.html import write_report
write_report(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=9_600)
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bound is broken")
    options = parser.parse_args()
    sys.path.insert(0, str(CHECKOUT / "tests"))
    from html_runs import large_run

    bounds = Bounds()
    with tempfile.TemporaryDirectory(prefix="bench-html-") as folder:
        base = Path(folder)
        large_run(base / "run", options.trials)
        report = base / "report.html"

        def write() -> Sample:
            return run([sys.executable, "-c", WRITE, base / "run", report], cwd=CHECKOUT)

        (samples,) = rounds(options.rounds, write)
        size = report.stat().st_size / 1e6
        print(f"{options.trials} trials, {size:.1f} MB, wall clock {median([one.wall for one in samples]):.1f} s")
        # Its second thread only compresses: on a machine with nothing else to do the wall clock is no longer than CPU.
        bounds.show("report written", median([one.cpu for one in samples]), SECONDS, "s CPU")
        bounds.show("memory", median([one.peak for one in samples]), MEGABYTES, "MB")
        if (seconds := first_paint(report, options.rounds)) is not None:
            bounds.show("first paint", seconds, PAINT, "s")
    bounds.exit(check=options.check)


def first_paint(report: Path, count: int) -> float | None:
    """Return the median first contentful paint in seconds, None where nothing can paint."""
    from requirements import MISSING

    if reason := MISSING["chromium"]():
        print(f"first paint not measured: {reason}")
        return None
    from browsing import Tab, chromium

    found = []
    with chromium() as running:
        for _ in range(count):
            tab = Tab(running)
            page = tab.open(report)
            page.wait_for_selector("#table-body tr")
            found.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000)
            tab.context.close()
    return median(found)


if __name__ == "__main__":
    main()
