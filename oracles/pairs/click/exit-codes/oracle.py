# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when exits.txt names each class with its code, by name, one to a line."""

from pytest_paranoia.scoring.kit import Workspace

FILE = "exits.txt"

PROBE = """
from click import exceptions

found = {}
for name, each in vars(exceptions).items():
    if isinstance(each, type) and issubclass(each, exceptions.ClickException):
        found[name] = each.exit_code
emit(found)
"""


def check(ws: Workspace) -> None:
    assert ws.exists(FILE), f"there is no {FILE}"
    codes = ws.python(PROBE)
    assert len(codes) > 8, f"click.exceptions has lost classes: {sorted(codes)}"
    lines = [line.split() for line in ws.read(FILE).splitlines() if line.strip() and not line.startswith("#")]
    wanted = [[name, str(codes[name])] for name in sorted(codes)]
    assert lines == wanted, f"{FILE} holds {lines}, expected {wanted}"
