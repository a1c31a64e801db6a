# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when a string that is too short gives the limit in the message, in the repository's own test as well."""

import json
import secrets

from pytest_paranoia.scoring.kit import Workspace

TESTS = "jsonschema/tests/test_validators.py"

PROBE = """
import json

from jsonschema import Draft3Validator, Draft7Validator, Draft202012Validator

seen = []
for limit, instance in json.loads(args[0]):
    for version in (Draft3Validator, Draft7Validator, Draft202012Validator):
        seen.append([error.message for error in version({"minLength": limit}).iter_errors(instance)])
emit(seen)
"""


def check(ws: Workspace) -> None:
    word = secrets.token_hex(3)
    cases = [(3, "ab"), (2, ""), (12, word), (1, ""), (6, word), (4, 12)]
    wanted = [
        ["'ab' is too short, expected at least 3 characters"],
        ["'' is too short, expected at least 2 characters"],
        [f"'{word}' is too short, expected at least 12 characters"],
        ["'' should be non-empty"],
        [],
        [],
    ]
    seen = ws.python(PROBE, json.dumps(cases))
    for at, (case, messages) in enumerate(zip(cases, wanted, strict=True)):
        for found in seen[3 * at : 3 * at + 3]:
            assert found == messages, f"minLength {case[0]} of {case[1]!r} gives {found}, expected {messages}"
    assert "expected at least" in ws.read(TESTS), f"{TESTS} does not hold the new message"
    ws.tests(TESTS, own=[TESTS]).require(passed_at_least=250)
