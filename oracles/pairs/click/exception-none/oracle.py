# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when tests/test_basic.py makes each of these assertions with `is None`, and still passes."""

import re

from pytest_paranoia.scoring.kit import Workspace

FILE = "tests/test_basic.py"
OLD, NEW = r"(?m)^\s*assert not result\.exception\b", r"(?m)^\s*assert result\.exception is None\b"


def check(ws: Workspace) -> None:
    before, after = ws.base(FILE) or "", ws.read(FILE)
    count = len(re.findall(OLD, before)) + len(re.findall(NEW, before))
    assert count >= 15, f"the start tree has {count} such assertions"
    left = re.findall(OLD, after)
    assert not left, f"{FILE} still has {len(left)} of the old assertions"
    found = len(re.findall(NEW, after))
    assert found == count, f"{FILE} has {found} of the new assertions, expected {count}"
    ws.tests(FILE, own=[FILE]).require(passed_at_least=60)
