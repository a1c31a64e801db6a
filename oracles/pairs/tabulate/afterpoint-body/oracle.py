# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when `_afterpoint` has the body of the page, counts as before, and the page is gone."""

import json
import random

from pytest_paranoia.scoring.kit import Workspace

PAGE = "benchmark/afterpoint.md"

PROBE = """
import inspect
import json
import tabulate

cells = json.loads(args[0])
count = tabulate._afterpoint
emit([[count(cell) for cell in cells], inspect.getsource(count), count.__doc__])
"""


def check(ws: Workspace) -> None:
    assert not ws.exists(PAGE), f"{PAGE} is still there"
    tail = "".join(random.choices("123456789", k=random.randint(1, 9)))
    cells = {"123.45": 2, "1001": -1, "eggs": -1, "123e45": 2, "1E5": 1, "1.5e3": 3, "1,234.50": 2, "inf": -1, "": -1}
    cells |= {f"-7.{tail}": len(tail), f"{tail}.": 0}
    counts, source, documented = ws.python(PROBE, json.dumps(list(cells)))
    for (cell, wanted), found in zip(cells.items(), counts, strict=True):
        assert found == wanted, f"_afterpoint({cell!r}) is {found}, expected {wanted}"
    assert "rindex" in source, "_afterpoint does not have the body of the page"
    assert "lower()" not in source, "_afterpoint still has the old body"
    assert documented, "_afterpoint has lost its docstring"
    ws.tests("test/test_output.py").require(passed_at_least=100)
