# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the page has a heading and, for each policy, the three numbers of the CSV in its order."""

import csv
import io
import re

from pytest_paranoia.scoring.kit import Workspace

PAGE, DATA = "docs/hit-rates.rst", "docs/data/hit-rates.csv"


def check(ws: Workspace) -> None:
    assert ws.exists(PAGE), f"there is no {PAGE}"
    text = ws.read(PAGE)
    assert re.search(r"(?m)^([=\-~^\"*#])\1{3,}\s*$", text), f"{PAGE} has no heading"
    sizes, *rows = list(csv.reader(io.StringIO(ws.base(DATA) or "")))
    included = re.search(r"csv-table::[^\n]*\n(?:\s+:[^\n]*\n)*\s+:file:\s*(?:docs/)?data/hit-rates\.csv", text)
    if included:
        assert ws.read(DATA) == ws.base(DATA), f"{DATA} differs"
        return
    for size in sizes[1:]:
        assert re.search(rf"\b{size[:-3]},?{size[-3:]}\b", text), f"{PAGE} does not name the size {size}"
    for policy, *rates in rows:
        pattern = rf"\b{policy}(Cache)?\b[^A-Za-z]*?" + r"[^A-Za-z]*?".join(re.escape(rate) + r"\b" for rate in rates)
        assert re.search(pattern, text), f"{PAGE} has no row with {policy} {', '.join(rates)}"
