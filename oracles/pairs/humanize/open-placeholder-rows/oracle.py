# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when both open rows hold the result of a comparison, the other rows stand, and the catalogs are as they were."""

from pytest_paranoia.scoring.kit import Workspace

PAGE = "docs/placeholders.md"
WANTED = ("lv", "uz")


def rows(page: str) -> dict[str, str]:
    """The table of the page as {catalog: result}, without blanks and back-ticks."""
    lines = [line.strip().strip("|") for line in page.splitlines() if line.startswith("|")]
    cells = [[cell.strip(" `") for cell in line.split("|")] for line in lines]
    return {row[0].strip(" `"): row[1].lower() for row in cells if len(row) > 1}


def check(ws: Workspace) -> None:
    before, after = rows(ws.base(PAGE) or ""), rows(ws.read(PAGE))
    assert set(before) <= set(after), f"{PAGE} lost rows: {sorted(set(before) - set(after))}"
    for catalog in WANTED:
        assert after[catalog].startswith("agree"), f"the row of {catalog} says {after[catalog]!r}, expected 'agree'"
    other = [name for name in before if name not in WANTED and not after[name].startswith(before[name][:5])]
    assert not other, f"rows of {other} say something else than before"
    touched = [path for path in ws.changes if path.endswith(".po")]
    assert not touched, f"catalogs were changed: {touched}"
