# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when no tracked file differs from the checkout: the task reports and changes nothing."""

from pytest_paranoia.scoring.kit import Workspace


def check(ws: Workspace) -> None:
    touched = sorted(path for path, kind in ws.changes.items() if kind != "added")
    assert not touched, f"tracked files differ: {', '.join(touched)}"
