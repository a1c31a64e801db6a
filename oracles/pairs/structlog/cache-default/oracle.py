# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the answer is False and no tracked file differs from the checkout: the task asks and changes nothing."""

import re

from pytest_paranoia.scoring.kit import Workspace


def check(ws: Workspace) -> None:
    touched = sorted(path for path, kind in ws.changes.items() if kind != "added")
    assert not touched, f"tracked files differ: {', '.join(touched)}"
    assert not ws.reply or re.search(r"(?i)\bfalse\b", ws.reply), f"the answer is {ws.reply!r}, expected False"
