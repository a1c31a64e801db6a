# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when sizes.json holds lines and columns of each format in each list, as numbers."""

import csv
import io
import json

from pytest_paranoia.scoring.kit import Workspace

FILE, LISTS = "sizes/sizes.json", ("short", "numbers", "texts")


def check(ws: Workspace) -> None:
    assert ws.exists(FILE), f"there is no {FILE}"
    text = ws.read(FILE)
    try:
        found = json.loads(text)
    except ValueError as error:
        raise AssertionError(f"{FILE} is no JSON: {error}") from error
    assert isinstance(found, dict), f"{FILE} holds no object"
    assert sorted(found) == sorted(LISTS), f"{FILE} has the lists {sorted(found)}, expected {sorted(LISTS)}"
    for name in LISTS:
        rows = csv.DictReader(io.StringIO(ws.base(f"sizes/{name}.csv") or ""))
        wanted = {row["format"]: [int(row["lines"]), int(row["columns"])] for row in rows}
        assert len(wanted) > 30, f"the start tree has no list {name}"
        assert found[name] == wanted, f"{name} differs from sizes/{name}.csv"
