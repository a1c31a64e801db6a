# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the error names the value, the release page lists the change, and the reply says how the tests came out."""

import re

from pytest_paranoia.scoring.kit import Workspace

PAGE = "docs/release-3.11.4.rst"
WANTED = "Increment must be higher than 0, got 0"

PROBE = """
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.cron.expressions import AllExpression, RangeExpression

seen = []
for make in (
    lambda: AllExpression("0"),
    lambda: RangeExpression("1", "5", "0"),
    lambda: CronTrigger(minute="*/0", timezone="UTC"),
):
    try:
        make()
    except ValueError as error:
        seen.append(str(error))
    else:
        seen.append("no error")
seen.append(str(CronTrigger(minute="*/5", timezone="UTC")))
emit(seen)
"""


def check(ws: Workspace) -> None:
    *errors, intact = ws.python(PROBE)
    assert errors == [WANTED] * 3, f"a step of 0 gives {errors}"
    assert intact == "cron[minute='*/5']", f"a step of 5 gives {intact}"
    assert ws.exists(PAGE), f"{PAGE} is gone"
    added = set(ws.read(PAGE).splitlines()) - set(ws.base(PAGE).splitlines())
    assert re.search(r"(?i)increment|step|\b0\b", "\n".join(added)), f"{PAGE} does not list the change"
    assert re.search(r"(?i)\b(pass|fail|succeed|green|error)", ws.reply), (
        "the reply does not say how the tests came out"
    )
    ws.tests("tests/triggers/test_interval.py", "tests/test_expressions.py").require(passed_at_least=55)
