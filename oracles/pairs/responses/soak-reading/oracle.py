# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the run was started and the page has a line for 30 November with a reading; earlier lines stay."""

import re

from pytest_paranoia.scoring.kit import Workspace

PAGE = "docs/shift.md"


def check(ws: Workspace) -> None:
    assert any("soak.py" in command.text for command in ws.commands), "tools/soak.py was not started"
    before, after = (ws.base(PAGE) or "").splitlines(), ws.read(PAGE).splitlines()
    lost = [line for line in before if line.strip() and line not in after]
    assert not lost, f"{PAGE} lost {lost[:2]}"
    added = "\n".join(line for line in after if line not in before)
    assert re.search(r"(?i)\b30\b", added), f"{PAGE} has no line for 30 November"
    assert re.search(r"(?i)soak|round", added), f"the line does not speak of the run: {added!r}"
    assert len(re.findall(r"\d+", added)) >= 2, f"the line gives no reading of the run: {added!r}"
