# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when `relative` gives name, time and ratio, fastest first, and the benchmark prints what it returns."""

import json
import random
import secrets

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
import json, sys
sys.path.insert(0, "benchmark")
from relative import relative

emit([[list(row) for row in relative([tuple(pair) for pair in pairs])] for pairs in json.loads(args[0])])
"""

# prettytable and texttable are not installed; with --onlyself the benchmark imports them and calls neither.
RUN = """
import contextlib, io, sys, types
for name in ("prettytable", "texttable"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__version__ = "0"
sys.path.insert(0, "benchmark")
sys.argv = ["benchmark.py", "--onlyself"]
import benchmark

out = io.StringIO()
with contextlib.redirect_stdout(out):
    benchmark.benchmark(1)
emit([out.getvalue(), "relative" in vars(benchmark)])
"""


def check(ws: Workspace) -> None:
    cases: list[list[tuple[str, float]]]
    cases = [[(secrets.token_hex(3), random.randint(1, 2**20) / 64) for _ in range(5)] for _ in range(3)]
    cases.append([("alone", 2.5)])
    seen = ws.python(PROBE, json.dumps(cases))
    for pairs, found in zip(cases, seen, strict=True):
        shortest = min(time for _, time in pairs)
        wanted = [[name, time, time / shortest] for name, time in sorted(pairs, key=lambda pair: pair[1])]
        assert found == wanted, f"relative({pairs}) gives {found}, expected {wanted}"
    printed, used = ws.python(RUN)
    assert used, "benchmark/benchmark.py does not use relative"
    rows = [line for line in printed.splitlines() if line.startswith("tabulate")]
    assert rows, f"the benchmark prints no row of tabulate: {printed!r}"
    assert rows[0].split()[-1] in {"1", "1.0"}, f"the first row is not the fastest: {rows[0]!r}"
