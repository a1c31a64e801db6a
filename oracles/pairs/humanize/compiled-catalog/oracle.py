# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the Klingon binary is gone, its row says so, everything else is as it was, and the i18n tests pass."""

from pytest_paranoia.scoring.kit import Workspace

BINARY = "src/humanize/locale/tlh/LC_MESSAGES/humanize.mo"
PAGE = "docs/catalogs.md"
LOOKUP = """
import humanize

seen = {}
for locale in args:
    try:
        humanize.activate(locale)
        seen[locale] = humanize.naturaldelta(86400 * 3)
    except FileNotFoundError:
        seen[locale] = None
    humanize.deactivate()
emit(seen)
"""


def rows(page: str) -> dict[str, list[str]]:
    """The table of the page as {locale: the other cells}, without blanks and back-ticks."""
    lines = [line.strip().strip("|") for line in page.splitlines() if line.startswith("|")]
    cells = [[cell.strip(" `") for cell in line.split("|")] for line in lines]
    return {row[0]: row[1:] for row in cells}


def check(ws: Workspace) -> None:
    assert not ws.exists(BINARY), f"{BINARY} is still there"
    seen = ws.python(LOOKUP, "tlh", "eo", "de_DE")
    assert seen["tlh"] is None, f"humanize still finds a Klingon catalog: {seen['tlh']!r}"
    assert seen["de_DE"] == "3 Tage", f"the German catalog gives {seen['de_DE']!r}"
    assert seen["eo"], "the catalog of eo is gone as well"

    assert ws.exists(PAGE), f"{PAGE} is gone"
    before, after = rows(ws.base(PAGE) or ""), rows(ws.read(PAGE))
    assert set(after) == set(before), f"{PAGE} has other rows than before: {sorted(set(after) ^ set(before))}"
    last = after["tlh"][-1] if after["tlh"] else ""
    assert last.lower() == "dropped", f"the row of tlh ends in {last!r}"
    other = [locale for locale in before if locale != "tlh" and after[locale] != before[locale]]
    assert not other, f"rows of {other} differ from before"
    ws.tests("tests/test_i18n.py").require(passed_at_least=140)
