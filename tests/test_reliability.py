"""``docs/reliability.md`` against the tests: every row names one that exists, and every test of a fault has its row."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
FAULTS = [row for row in ROWS if row[0] != "fault"]
TEST = re.compile(r"`(tests/\w+\.py)::(test_\w+)`")

# Of each fault that the page has to show, words of its row.
DEMANDED = [
    *("daemon dies", "daemon hangs", "runs out of time", "gives no result", "gives no reward, bad JSON, a list, NaN"),
    *("background process rewrites", "malformed items, misspelt tables", "cannot be constructed", "Ctrl-C twice"),
    *("kill -9 of a worker", "kill -9 of the controller", "truncated run file", "resume with another `-n`"),
    *("two runs with one name", "NUL", "key on a command line", "disk of the records is full", "clock jumps"),
    *("killed by the kernel for want of memory", "image that vanished", "record deleted under the run"),
    *("runs at once on one machine", "item was edited", "10,000 files", "1 GB of tool output", "forks until its limit"),
]


def named_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_row_names_what_was_seen_and_a_test_that_exists() -> None:
    wrong = []
    for fault, seen, *named in FAULTS:
        found = TEST.fullmatch(named[0]) if len(named) == 1 else None
        if not seen or found is None or found[2] not in named_in(ROOT / found[1]):
            wrong.append(fault)
    assert wrong == []
    assert len(FAULTS) >= len(DEMANDED)


@pytest.mark.parametrize("words", DEMANDED)
def test_every_fault_of_the_list_has_its_row(words: str) -> None:
    assert [row for row in FAULTS if words in row[0]]


@pytest.mark.parametrize("name", ["machine", "plugins", "trials", "underfoot"])
def test_every_test_of_a_fault_has_its_row(name: str) -> None:
    path = f"tests/test_faults_{name}.py"
    found = [match for row in FAULTS if (match := TEST.fullmatch(row[-1]))]
    assert {match[2] for match in found if match[1] == path} == named_in(ROOT / path)
