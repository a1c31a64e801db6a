# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when docs/filesize.md keeps the reference and says below it that a rounded number takes the next suffix."""

import re

from pytest_paranoia.scoring.kit import Workspace

PAGE = "docs/filesize.md"
REFERENCE = "::: humanize.filesize"


def check(ws: Workspace) -> None:
    page = ws.read(PAGE)
    assert REFERENCE in page, f"{PAGE} lost the reference"
    text = page.split(REFERENCE, 1)[1]
    assert re.search(r"(?i)\bround", text), f"{PAGE} does not speak of rounding below the reference"
    assert re.search(r"(?i)\b(MB|suffix|unit)", text), f"{PAGE} does not speak of the suffix below the reference"
    value = ws.python("import humanize; emit([humanize.naturalsize(999_999), humanize.naturalsize(999_900)])")
    assert value == ["1.0 MB", "999.9 kB"], f"naturalsize gives {value} now"
