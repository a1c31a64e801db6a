# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the sample is the demo's first table of that style, and the other samples are as they were."""

from pytest_paranoia.scoring.kit import Workspace

SAMPLE = "docs/samples/double_border.txt"
DEMO = """
from prettytable import PrettyTable, TableStyle
from prettytable.__main__ import FIELD_NAMES, ROWS

table = PrettyTable(FIELD_NAMES)
for row in ROWS:
    table.add_row(row, divider=row[0] == "Hobart")
table.set_style(TableStyle.DOUBLE_BORDER)
emit(table.get_string())
"""


def check(ws: Workspace) -> None:
    assert ws.exists(SAMPLE), f"there is no {SAMPLE}"
    wanted = ws.python(DEMO)
    assert ws.read(SAMPLE).rstrip("\n") == wanted, f"{SAMPLE} is not the table of the demo:\n{ws.read(SAMPLE)}"
    touched = [path for path in ws.changes if path.startswith("docs/samples/") and path.endswith(".txt")]
    assert touched == [SAMPLE], f"other samples differ: {touched}"
