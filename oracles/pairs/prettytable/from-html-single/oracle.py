# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when from_html_single does what from_html_one did and is exported, and tests/test_html.py uses it and passes."""

from pytest_paranoia.scoring.kit import Workspace

TESTS = "tests/test_html.py"

PROBE = """
import prettytable

one = "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>"
seen = {"exported": "from_html_single" in prettytable.__all__}
try:
    from prettytable import from_html_single
except ImportError as error:
    seen["import"] = str(error)
else:
    table = from_html_single(one, border=False)
    seen["table"] = [type(table).__name__, table.field_names, table.rows, table.border]
    try:
        from_html_single(one + one)
    except Exception as error:
        seen["two"] = type(error).__name__
emit(seen)
"""


def check(ws: Workspace) -> None:
    seen = ws.python(PROBE)
    assert "import" not in seen, f"from_html_single cannot be imported: {seen.get('import')}"
    assert seen["exported"], "from_html_single is not in prettytable.__all__"
    assert seen["table"] == ["PrettyTable", ["A", "B"], [["1", "2"]], False], f"one table gives {seen['table']}"
    assert seen.get("two") == "ValueError", f"two tables give {seen.get('two', 'no error')}"
    assert "from_html_single" in ws.read(TESTS), f"{TESTS} does not use the new name"
    ws.tests(TESTS, own=[TESTS]).require(passed_at_least=15)
