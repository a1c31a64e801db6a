# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the page tells of row_filter in a sentence or more, and the package is as it was."""

from pytest_paranoia.scoring.kit import Workspace

PAGE = "docs/mail-row-filter.md"


def check(ws: Workspace) -> None:
    assert ws.exists(PAGE), f"there is no {PAGE}"
    text = ws.read(PAGE)
    assert "row_filter" in text, f"{PAGE} does not name row_filter"
    assert len(text.split()) >= 15, f"{PAGE} has {len(text.split())} words: no explanation"
    changed = [path for path in ws.changes if path.startswith("src/")]
    assert not changed, f"the package differs: {changed}"
