# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the repr of a tag names the tag alone, the changelog has a line for it, and the tests of tags pass."""

import secrets

from pytest_paranoia.scoring.kit import Workspace

TESTS = "tests/test_tags.py"

PROBE = """
from packaging.tags import Tag

emit([[repr(Tag(*parts.split("-"))), str(Tag(*parts.split("-")))] for parts in args])
"""


def check(ws: Workspace) -> None:
    names = ["py3-none-any", f"cp312-abi3-plat_{secrets.token_hex(4)}"]
    for name, (shown, text) in zip(names, ws.python(PROBE, *names), strict=True):
        assert shown == f"<Tag('{name}')>", f"repr of the tag {name} is {shown}"
        assert text == name, f"str of the tag {name} is {text}"
    changelog, released = ws.read("CHANGELOG.rst"), "26.4 - 2026-11-23"
    assert released in changelog, f"the section {released!r} is gone from CHANGELOG.rst"
    new = changelog.split(released)[0]
    assert "Unreleased" in new, "CHANGELOG.rst has no section Unreleased above 26.4"
    bullets = [line for line in new.split("Unreleased")[1].splitlines() if line.startswith(("* ", "- "))]
    assert bullets, "the section Unreleased has no bullet"
    assert "Tag" in new, f"the section Unreleased does not name Tag: {bullets}"
    ws.tests(f"{TESTS}::TestTag", f"{TESTS}::TestParseTag", own=[TESTS]).require(passed_at_least=20)
