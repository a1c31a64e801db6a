# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when both open rows name a test of their change that exists and passes, and the page has kept its rows."""

import re

from pytest_paranoia.scoring.kit import Workspace

PAGE = "docs/tests-8.5.1.md"

# With the change of 3865 or 3884 taken back, these and no other tests of the suite fail (stress tests were left out).
FITTING = {
    "3865": {"tests/test_utils/test_make_default_short_help.py::test_make_default_short_help"},
    "3884": {
        "tests/test_options.py::test_show_envvar_empty",
        "tests/test_options.py::test_missing_envvar_sequence",
    },
}


def rows(text: str) -> dict[str, str]:
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines() if "|" in line]
    return {row[1]: row[2] for row in cells if len(row) >= 3 and row[1].isdigit()}


def check(ws: Workspace) -> None:
    before, after = rows(ws.base(PAGE) or ""), rows(ws.read(PAGE))
    assert len(before) == 6, f"the start tree has {len(before)} rows"
    assert sorted(after) == sorted(before), f"the page has the rows {sorted(after)}, expected {sorted(before)}"
    chosen = set()
    for number, fitting in FITTING.items():
        named = set(re.findall(r"tests/[\w./]+\.py::\w+", after[number]))
        assert named, f"row {number} names no test: {after[number]!r}"
        assert named <= fitting, f"row {number} names {sorted(named)}, expected some of {sorted(fitting)}"
        chosen |= named
    # The other test of 3884 looks at an error message, the row is about the help page.
    assert "tests/test_options.py::test_show_envvar_empty" in chosen, f"row 3884 names {after['3884']!r}"
    ws.tests(*sorted(chosen)).require(passed_at_least=6)
