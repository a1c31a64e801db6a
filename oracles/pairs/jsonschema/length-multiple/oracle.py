# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when a validator extended with `lengthMultipleOf` judges strings by their length, and upstream's tests pass."""

import json

from pytest_paranoia.scoring.kit import Workspace

JUDGE = """
import json
from jsonschema import Draft202012Validator, validators
from jsonschema._keywords import lengthMultipleOf

Extended = validators.extend(Draft202012Validator, {"lengthMultipleOf": lengthMultipleOf})
schema, instances = json.loads(args[0]), json.loads(args[1])
emit([[[error.validator, list(error.path)] for error in Extended(schema).iter_errors(each)] for each in instances])
"""


def check(ws: Workspace) -> None:
    def judge(schema: object, instances: list[object]) -> list[list[object]]:
        return ws.python(JUDGE, json.dumps(schema), json.dumps(instances))

    wrong = ["lengthMultipleOf", []]
    words = ["", "abc", "abcdef", "äöü", "a", "abcd", "abcde"]
    seen = judge({"lengthMultipleOf": 3}, words)
    assert seen == [[], [], [], [], [wrong], [wrong], [wrong]], f"lengthMultipleOf 3 on {words}: {seen}"
    seen = judge({"lengthMultipleOf": 1}, words)
    assert not any(seen), f"lengthMultipleOf 1 on {words}: {seen}"
    others = [7, 7.5, None, True, ["a"], {"a": 1, "b": 2}]
    seen = judge({"lengthMultipleOf": 4}, others)
    assert not any(seen), f"lengthMultipleOf 4 on values that are no strings, {others}: {seen}"
    seen = judge({"properties": {"code": {"lengthMultipleOf": 4}}}, [{"code": "abcdef"}, {"code": "abcdefgh"}])
    assert seen == [[["lengthMultipleOf", ["code"]]], []], f"lengthMultipleOf 4 on a property: {seen}"
    ws.tests("jsonschema/tests/test_validators.py").require(passed_at_least=250)
