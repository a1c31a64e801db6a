# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the table holds the three new rows at their places, and all rows that were there."""

import re

from pytest_paranoia.scoring.kit import Workspace

PAGE = "docs/event-names.md"
NEW = {
    "cart.merged": ["info", "shop"],
    "payment.refused": ["warning", "billing"],
    "user.renamed": ["info", "accounts"],
}


def rows(page: str) -> list[list[str]]:
    """The rows of the table as lists of cells, without blanks and back-ticks."""
    found = [line for line in page.splitlines() if re.match(r"\|\s*`?[a-z_]+\.[a-z_]+", line)]
    return [[cell.strip(" `") for cell in line.strip().strip("|").split("|")] for line in found]


def check(ws: Workspace) -> None:
    before, after = rows(ws.base(PAGE) or ""), rows(ws.read(PAGE))
    for name, cells in NEW.items():
        entered = [row[1:3] for row in after if row[0] == name]
        assert entered == [cells], f"{name} is entered as {entered}, expected {[cells]}"
    kept = [row for row in after if row[0] not in NEW]
    assert kept == before, "rows that were there have changed or gone"
    names = [row[0] for row in after]
    assert names == sorted(names), f"{PAGE} is out of order: {names}"
