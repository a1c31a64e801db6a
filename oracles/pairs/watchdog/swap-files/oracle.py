# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when AutoRestartTrick ignores `*.swp` besides what its caller ignores, and its tests pass with a new one."""

import secrets

from pytest_paranoia.scoring.kit import Workspace

TESTS = "tests/test_0_watchmedo.py"
SOME = (
    "test_auto_restart_debounce_interval_default",
    "test_auto_restart_negative_debounce_interval",
    "test_auto_restart_arg_parsing_basic",
    "test_auto_restart_arg_parsing",
    "test_auto_restart_events_echoed",
    "test_shell_command_arg_parsing",
)

PROBE = """
from watchdog.events import FileModifiedEvent
from watchdog.tricks import AutoRestartTrick

word = args[0]
seen = {}
for name, keywords in (
    ("plain", {}),
    ("own", {"ignore_patterns": ["**/*.log"]}),
    ("python", {"patterns": ["**/*.py", "**/*.swp.py"]}),
):
    trick = AutoRestartTrick(["true"], **keywords)
    restarts = []
    trick._restart_process = lambda: restarts.append(path)
    for path in (f"/srv/.{word}.py.swp", f"a/{word}.swp", f"/srv/{word}.py", f"/srv/{word}.log", f"/srv/{word}.swp.py"):
        trick.dispatch(FileModifiedEvent(path))
    seen[name] = restarts
emit(seen)
"""


def check(ws: Workspace) -> None:
    word = f"m{secrets.token_hex(3)}"
    seen = ws.python(PROBE, word)
    code, log, odd = f"/srv/{word}.py", f"/srv/{word}.log", f"/srv/{word}.swp.py"
    for name, wanted in {"plain": [code, log, odd], "own": [code, odd], "python": [code, odd]}.items():
        assert seen[name] == wanted, f"{name}: the command restarts for {seen[name]}, expected {wanted}"
    assert ".swp" in ws.read(TESTS), f"{TESTS} has no test of the pattern"
    ws.tests(*(f"{TESTS}::{name}" for name in SOME), own=[TESTS]).require(passed_at_least=6)
