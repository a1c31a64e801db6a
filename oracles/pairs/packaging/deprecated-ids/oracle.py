# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when `deprecated_ids` gives what `_spdx.py` marks as deprecated, sorted, and upstream's license tests pass."""

import re

from pytest_paranoia.scoring.kit import Workspace

SPDX = "src/packaging/licenses/_spdx.py"

PROBE = """
from packaging import licenses

ids = licenses.deprecated_ids()
emit({"type": type(ids).__name__, "ids": list(ids), "again": list(licenses.deprecated_ids())})
"""


def check(ws: Workspace) -> None:
    table = ws.base(SPDX) or ""
    expected = re.findall(r"'id': '([^']+)', 'deprecated': True", table)
    seen = ws.python(PROBE)
    assert seen["type"] == "list", f"deprecated_ids returns a {seen['type']}"
    assert seen["ids"] in (sorted(expected), sorted(expected, key=str.lower)), (
        f"deprecated_ids gives {len(seen['ids'])} ids, expected {len(expected)}; "
        f"differing: {sorted(set(seen['ids']) ^ set(expected))[:5]}"
    )
    assert seen["again"] == seen["ids"], "a second call gives another list"
    ws.tests("tests/test_licenses.py").require(passed_at_least=55)
