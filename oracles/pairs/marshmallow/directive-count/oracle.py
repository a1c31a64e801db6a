# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when scripts/directives.py writes a directives.csv with the counts of the checkout."""

import csv
import re

from pytest_paranoia.scoring.kit import Workspace

RUN = 'rm -f directives.csv && python scripts/directives.py >"$TMPDIR/out" 2>&1 && cat directives.csv'


def expected(ws: Workspace) -> dict[str, tuple[int, int]]:
    counts: dict[str, list[int]] = {}
    for path in ws.files("src/marshmallow/**/*.py"):
        for kind, version in re.findall(r"\.\. version(added|changed):: *(\S+)", ws.base(path) or ""):
            counts.setdefault(version, [0, 0])[kind == "changed"] += 1
    return {version: (added, changed) for version, (added, changed) in counts.items()}


def check(ws: Workspace) -> None:
    assert ws.exists("scripts/directives.py"), "there is no scripts/directives.py"
    done = ws.run(["bash", "-c", RUN])
    assert done.returncode == 0, f"scripts/directives.py exits with {done.returncode}: {done.stderr[-300:]}"
    rows = list(csv.reader(done.stdout.splitlines()))
    assert rows[:1] == [["version", "added", "changed"]], f"the header of directives.csv is {rows[:1]}"
    assert all(len(row) == 3 and row[1].isdigit() and row[2].isdigit() for row in rows[1:]), f"rows are {rows[1:4]}"
    seen = {version: (int(added), int(changed)) for version, added, changed in rows[1:]}
    assert len(seen) == len(rows) - 1, "a version has more than one row"
    assert seen == expected(ws), f"counts are {seen}, expected {expected(ws)}"
