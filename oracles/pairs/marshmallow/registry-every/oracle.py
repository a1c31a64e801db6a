# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when `get_class` takes `every` as it took `all`, Nested still finds classes by name, and the tests use it."""

import secrets

from pytest_paranoia.scoring.kit import Workspace

TESTS = "tests/test_registry.py"

PROBE = """
from marshmallow import Schema, class_registry, fields
from marshmallow.exceptions import RegistryError

name = args[0]
first = type(name, (Schema,), {"__module__": "first", "number": fields.Int()})
seen = {"one": [class_registry.get_class(name) is first, class_registry.get_class(name, every=False) is first]}
holder = type("Holder" + name, (Schema,), {"inner": fields.Nested(name)})
seen["nested"] = holder().load({"inner": {"number": "7"}})
second = type(name, (Schema,), {"__module__": "second"})
found = class_registry.get_class(name, every=True)
seen["every"] = [each.__module__ for each in found]
for key, keywords in (("default", {}), ("single", {"every": False})):
    try:
        class_registry.get_class(name, **keywords)
    except RegistryError:
        seen[key] = "RegistryError"
emit(seen)
"""


def check(ws: Workspace) -> None:
    name = f"Schema{secrets.token_hex(4)}"
    seen = ws.python(PROBE, name)
    assert seen["one"] == [True, True], f"one class of a name: {seen}"
    assert seen["nested"] == {"inner": {"number": 7}}, f"Nested by name loads {seen['nested']}"
    assert sorted(seen["every"]) == ["first", "second"], f"every=True gives classes of {seen['every']}"
    assert seen.get("default") == seen.get("single") == "RegistryError", f"two classes of a name: {seen}"
    assert "every=True" in ws.read(TESTS), f"{TESTS} does not use the new keyword"
    ws.tests(TESTS, own=[TESTS]).require(passed_at_least=10)
