# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when `_count_levels` counts the levels of captured entries; the tests of the module pass as before."""

import secrets

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
import structlog
from structlog.testing import _count_levels, capture_logs

log = structlog.get_logger()
seen = []
for calls in (args[0].split(), args[1].split(), []):
    with capture_logs() as entries:
        for call in calls:
            getattr(log, call)("event", number=1)
    seen.append(dict(_count_levels(entries)))
    seen.append(len(entries))
emit(seen)
"""


def check(ws: Workspace) -> None:
    number = 2 + secrets.randbelow(6)
    first = ["info"] * number + ["warning", "info", "error"]
    seen = ws.python(PROBE, " ".join(first), "debug exception critical debug")
    mixed, other = {"info": number + 1, "warning": 1, "error": 1}, {"debug": 2, "error": 1, "critical": 1}
    wanted = [mixed, number + 3, other, 4, {}, 0]
    assert seen == wanted, f"_count_levels and the number of entries give {seen}, expected {wanted}"
    ws.tests("tests/test_testing.py").require(passed_at_least=15)
