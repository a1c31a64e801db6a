# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when `extras_msg` names three and counts the rest, a new test says so, and the rest still passes."""

import json
import secrets

from pytest_paranoia.scoring.kit import Workspace

TESTS = "jsonschema/tests/test_utils.py"

PROBE = """
import json

from jsonschema import Draft202012Validator
from jsonschema._utils import extras_msg

names = json.loads(args[0])
error = next(Draft202012Validator({"additionalProperties": False}).iter_errors(dict.fromkeys(names)))
emit({"message": error.message, "direct": [list(extras_msg(names[:count])) for count in (1, 2, 3, 4)]})
"""

# The test of the repository has to fail where the function does not cut.
UNCUT = """
import pytest

from jsonschema import _utils

if args[0] == "uncut":
    def extras_msg(extras):
        return ", ".join(repr(extra) for extra in extras), "was" if len(extras) == 1 else "were"

    _utils.extras_msg = extras_msg
emit(int(pytest.main(["-q", "-p", "no:cacheprovider", "jsonschema/tests/test_utils.py"])))
"""


def check(ws: Workspace) -> None:
    names = sorted(f"n{secrets.token_hex(3)}" for _ in range(7))
    shown = [repr(name) for name in names]
    seen = ws.python(PROBE, json.dumps(names))
    cut = ", ".join(shown[:3])
    wanted = f"Additional properties are not allowed ({cut} and 4 more were unexpected)"
    assert seen["message"] == wanted, f"seven extra properties give {seen['message']!r}, expected {wanted!r}"
    direct = [[shown[0], "was"], [", ".join(shown[:2]), "were"], [cut, "were"], [f"{cut} and 1 more", "were"]]
    assert seen["direct"] == direct, f"1, 2, 3 and 4 extras give {seen['direct']}, expected {direct}"
    assert ws.python(UNCUT, "as it is") == 0, f"{TESTS} does not pass"
    assert ws.python(UNCUT, "uncut") == 1, f"{TESTS} passes although extras_msg does not cut"
    ws.tests("jsonschema/tests/test_validators.py").require(passed_at_least=250)
