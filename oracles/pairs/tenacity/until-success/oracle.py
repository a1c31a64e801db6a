# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when `until_success` repeats a failing call until it succeeds, with random exponential pauses up to 60 s."""

import secrets

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
import warnings
from unittest import mock

warnings.simplefilter("ignore")
import tenacity
from tenacity.presets import until_success

pauses, calls = [], []


@until_success
def load(value):
    calls.append(value)
    if len(calls) <= int(args[0]):
        raise OSError("not yet")
    return value * 2


with mock.patch("tenacity.nap.time.sleep", pauses.append), mock.patch("random.random", return_value=1.0), mock.patch(
    "random.uniform", side_effect=lambda low, high: high
):
    result = load(21)
emit({"result": result, "calls": len(calls), "pauses": pauses, "wait": type(load.retry.wait).__name__})
"""


def check(ws: Workspace) -> None:
    failures = 8 + secrets.randbelow(5)
    seen = ws.python(PROBE, str(failures))
    assert seen["result"] == 42, f"the decorated call gives {seen['result']}"
    assert seen["calls"] == failures + 1, f"{seen['calls']} calls where {failures} fail first"
    assert seen["wait"] == "wait_random_exponential", f"the pauses come from {seen['wait']}"
    wanted = [min(2.0**number, 60.0) for number in range(failures)]
    assert seen["pauses"] == wanted, f"at most it pauses {seen['pauses']}, expected {wanted}"
