# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the module and its test are gone, its row says so, and the rest of the package works."""

from pytest_paranoia.scoring.kit import Workspace

PAGE = "docs/experimental_modules.rst"

IMPORT = """
import importlib.util

import marshmallow.experimental.context

emit(importlib.util.find_spec("marshmallow.experimental.tally") is None)
"""


def state(page: str, module: str) -> str:
    """The third cell of the row of *module* in the list table."""
    lines = [line.strip() for line in page.splitlines()]
    start = next((at for at, line in enumerate(lines) if line.startswith(f"* - ``{module}``")), None)
    assert start is not None, f"{PAGE} has no row for {module}"
    cells = [line for line in lines[start : start + 5] if line.startswith(("* - ", "- "))]
    return cells[2].removeprefix("- ").strip().strip("`") if len(cells) > 2 else ""


def check(ws: Workspace) -> None:
    for path in ("src/marshmallow/experimental/tally.py", "tests/test_tally.py"):
        assert not ws.exists(path), f"{path} is still there"
    assert ws.python(IMPORT), "marshmallow.experimental.tally can still be imported"
    page = ws.read(PAGE)
    assert state(page, "tally") == "out", f"the state of tally is {state(page, 'tally')!r}"
    assert state(page, "context") == "in", f"the state of context is {state(page, 'context')!r}"
    ws.tests("tests/test_context.py").require(passed_at_least=5)
