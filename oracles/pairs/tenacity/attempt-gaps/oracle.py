# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when `gaps` gives the pauses between consecutive start times, by itertools.pairwise."""

import re
import secrets
from itertools import pairwise

from pytest_paranoia.scoring.kit import Workspace

MODULE = "tenacity/gaps.py"

PROBE = """
from tenacity.gaps import gaps

times = [float(each) for each in args]
emit([gaps(times), gaps(tuple(times)), gaps([2.5]), gaps([]), type(gaps([1.0, 2.0])).__name__])
"""


def check(ws: Workspace) -> None:
    times = [0.5, 1.5, 1.75, 4.0] + [5.0 + n + secrets.randbelow(64) / 64 for n in range(4)]
    seen = ws.python(PROBE, *map(str, times))
    wanted = [later - earlier for earlier, later in pairwise(times)]
    assert seen == [wanted, wanted, [], [], "list"], f"gaps of {times} gives {seen}, expected {wanted}"
    assert re.search(r"\bpairwise\b", ws.read(MODULE)), f"{MODULE} does not use pairwise"
