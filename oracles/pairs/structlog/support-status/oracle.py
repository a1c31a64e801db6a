# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the row of 24.x says end of life since 2026-12-01 and a sentence above the table speaks of it."""

import re

from pytest_paranoia.scoring.kit import Workspace

PAGE = "docs/support.md"


def check(ws: Workspace) -> None:
    page = ws.read(PAGE)
    rows = {
        cells[0].strip(" `*"): [cell.strip(" `*") for cell in cells[1:]]
        for cells in (line.strip().strip("|").split("|") for line in page.splitlines() if line.startswith("|"))
    }
    row = rows.get("24.x", [])
    assert "".join(row[:1]).lower().startswith("end of life"), f"the row of 24.x is {row}"
    assert any("2026-12-01" in cell for cell in row), f"the row of 24.x has no date 2026-12-01: {row}"
    assert [rows.get(series, [""])[0] for series in ("26.x", "25.x", "23.x")] == [
        "maintained",
        "fixes only",
        "end of life",
    ], f"other rows have changed: {rows}"
    above = page.split("| Series", 1)[0]
    assert re.search(r"24\.", above), "no sentence above the table speaks of 24.x"
