# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when `per_round` gives milliseconds per round and the script prints them as its last column."""

import json
import secrets

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
import contextlib, importlib.util, io, json, os, sys, tempfile

sys.path.insert(0, os.getcwd())
spec = importlib.util.spec_from_file_location("report", "bench/report.py")
report = importlib.util.module_from_spec(spec)
sys.modules["report"] = report
spec.loader.exec_module(report)

path = os.path.join(tempfile.mkdtemp(), "runs.json")
with open(path, "w") as file:
    file.write(args[0])
sys.argv = ["report.py", path]
out = io.StringIO()
with contextlib.redirect_stdout(out):
    report.main()
emit({"values": [report.per_round(run) for run in report.load(path)], "lines": out.getvalue().splitlines()})
"""


def check(ws: Workspace) -> None:
    runs = [{"name": f"run {n}", "rounds": 1 + secrets.randbelow(5000), "seconds": 0.5 + n * 1.25} for n in range(3)]
    seen = ws.python(PROBE, json.dumps(runs))
    wanted = [run["seconds"] / run["rounds"] * 1000 for run in runs]
    close = [abs(value - expected) < 1e-6 * expected for value, expected in zip(seen["values"], wanted, strict=True)]
    assert all(close), f"per_round gives {seen['values']}, expected {wanted}"
    lines = [line for line in seen["lines"] if line.startswith("run ")]
    assert len(lines) == len(runs), f"the script prints {seen['lines']}"
    for line, run, value in zip(lines, runs, wanted, strict=True):
        cells = line.removeprefix(run["name"]).split()
        expected = [str(run["rounds"]), f"{run['seconds']:.3f}", f"{value:.3f}"]
        assert cells[:3] == expected, f"the line of {run} is {line!r}, expected the columns {expected}"
