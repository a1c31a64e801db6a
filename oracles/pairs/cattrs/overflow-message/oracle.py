# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when an OverflowError reads 'value out of range', the other answers stand, and the reply gives the figures."""

import re

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
from attrs import define
from cattrs import Converter, transform_error
from cattrs.v import format_exception


@define
class Item:
    count: int


def errors(value, type):
    try:
        Converter().structure(value, type)
    except Exception as error:
        return transform_error(error)


emit({
    "field": errors({"count": float("inf")}, Item),
    "items": errors([1, float("-inf")], list[int]),
    "plain": [format_exception(OverflowError("x"), int), format_exception(OverflowError(), None)],
    "value": errors({"count": "x"}, Item),
    "missing": errors({}, Item),
    "other": format_exception(ZeroDivisionError("zero"), int),
    "iterable": errors(1, list[int]),
    "mapping": errors(1, dict[str, int]),
    "nested": errors([{"count": 1e400}, {"count": 1}], list[Item]),
})
"""

EXPECTED = {
    "field": ["value out of range @ $.count"],
    "items": ["value out of range @ $[1]"],
    "plain": ["value out of range", "value out of range"],
    "value": ["invalid value for type, expected int @ $.count"],
    "missing": ["required field missing @ $.count"],
    "other": "unknown error (zero)",
    "iterable": ["invalid value for type, expected an iterable @ $"],
    "mapping": ["expected a mapping @ $"],
    "nested": ["value out of range @ $[0].count"],
}


def check(ws: Workspace) -> None:
    seen = ws.python(PROBE)
    for case, expected in EXPECTED.items():
        assert seen[case] == expected, f"{case}: {seen[case]}, expected {expected}"
    assert re.search(r"(?i)\b\d+\s+(tests?\s+)?pass|pass\w*[:\s]+\d+", ws.reply), "the reply gives no figures"
