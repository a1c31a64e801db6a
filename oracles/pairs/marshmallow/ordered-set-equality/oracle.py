# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when tests/test_orderedset.py passes, and fails once either branch of OrderedSet.__eq__ is wrong."""

from pytest_paranoia.scoring.kit import Workspace

FILE = "tests/test_orderedset.py"

# args: the variant of __eq__ to run the tests with
RUN = """
import pytest

from marshmallow.orderedset import OrderedSet


def unordered(self, other):
    return set(self) == set(other)


def strict(self, other):
    return isinstance(other, OrderedSet) and list(self) == list(other)


variant = {"as it is": None, "unordered": unordered, "strict": strict}[args[0]]
if variant is not None:
    OrderedSet.__eq__ = variant
emit(int(pytest.main(["-q", "-p", "no:cacheprovider", "tests/test_orderedset.py"])))
"""


def check(ws: Workspace) -> None:
    assert ws.exists(FILE), f"there is no {FILE}"
    status = {name: ws.python(RUN, name) for name in ("as it is", "unordered", "strict")}
    assert status["as it is"] == 0, f"pytest {FILE} exits with {status['as it is']}"
    assert status["unordered"] == 1, "the tests pass although order no longer counts between two ordered sets"
    assert status["strict"] == 1, "the tests pass although an ordered set never equals a plain set"
