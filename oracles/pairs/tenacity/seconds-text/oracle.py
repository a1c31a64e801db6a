# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when after_log writes the seconds as `0.012 s`, and tests/test_after.py expects that."""

import logging

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
import tenacity

lines = []


class Logger:
    def log(self, level, message, *args):
        lines.append([level, message])


class Clock:
    seconds_since_start = 0.0125
    attempt_number = 3

    def get_fn_name(self):
        return "app.load"


state = Clock()
tenacity.after_log(Logger(), 20)(state)
tenacity.after_log(Logger(), 30, "%.2f")(state)
state.seconds_since_start = None
tenacity.after_log(Logger(), 20)(state)
emit(lines)
"""


def check(ws: Workspace) -> None:
    text = "Finished call to 'app.load' after {} s, this was the 3rd time calling it."
    wanted = [
        [logging.INFO, text.format("0.0125")],
        [logging.WARNING, text.format("0.01")],
        [logging.INFO, text.format("?")],
    ]
    seen = ws.python(PROBE)
    assert seen == wanted, f"after_log writes {seen}, expected {wanted}"
    ws.tests("tests/test_after.py", own=["tests/test_after.py"]).require(passed_at_least=3)
    assert "}(s)" not in ws.read("tests/test_after.py"), "tests/test_after.py still expects the old text"
