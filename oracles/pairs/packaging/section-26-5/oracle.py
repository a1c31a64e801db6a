# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when CHANGELOG.rst begins with a section 26.5 that holds the two fixes, above the sections as they were."""

from pytest_paranoia.scoring.kit import Workspace

PAGE, LAST = "CHANGELOG.rst", "26.4 - 2026-11-23"


def words(text: str) -> str:
    return " ".join(text.split())


def check(ws: Workspace) -> None:
    before, after = ws.base(PAGE) or "", ws.read(PAGE)
    released = before[before.index(LAST) :]
    assert after.rstrip().endswith(released.rstrip()), "the sections from 26.4 down are not as they were"
    new = after[: len(after.rstrip()) - len(released.rstrip())]
    assert new.startswith("Changelog\n"), "the title of the page is gone"
    assert "26.5" in new, "there is no section 26.5 above 26.4"
    section = new[new.index("26.5") :]
    assert "Fixes:" in section, "section 26.5 has no part 'Fixes:'"
    fixes = section[section.index("Fixes:") :]
    bullets = [words(bullet) for bullet in fixes.split("\n* ")[1:]]
    for number, name in ((1561, "parse_sdist_filename"), (1563, "Specifier")):
        found = [each for each in bullets if f":pull:`{number}`" in each and name in each]
        assert found, f"no bullet for {number}: {bullets}"
