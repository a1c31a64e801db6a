# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when a predicate's RecursionError leaves dispatch, other errors are passed over as before, and tests pass."""

from pytest_paranoia.scoring.kit import Workspace

DISPATCH = """
from cattrs import BaseConverter, Converter
from cattrs.dispatch import FunctionDispatch, MultiStrategyDispatch


def endless(given):
    return endless(given)


def raising(error):
    def predicate(given):
        raise error

    return predicate


class Plain:
    pass


def outcome(call):
    try:
        return call()
    except Exception as error:
        return "raised " + type(error).__name__


def functions(predicate):
    dispatch = FunctionDispatch(BaseConverter())
    dispatch.register(lambda given: given is Plain, "plain")
    dispatch.register(predicate, "never")
    return outcome(lambda: dispatch.dispatch(Plain))


def strategies(predicate):
    dispatch = MultiStrategyDispatch(lambda given: "fallback", BaseConverter())
    dispatch.register_func_list([(predicate, "never")])
    return outcome(lambda: dispatch.dispatch(Plain))


def converter(predicate):
    given = Converter()
    given.register_structure_hook_func(predicate, lambda value, _: "never")
    return outcome(lambda: given.structure(1, Plain))


emit({
    "endless": [functions(endless), strategies(endless), converter(endless)],
    "RecursionError": [functions(raising(RecursionError())), strategies(raising(RecursionError()))],
    "others": [functions(raising(error)) for error in (ValueError(), TypeError(), RuntimeError(), AttributeError())],
    "false": [functions(lambda given: False), strategies(lambda given: False)],
    "true": [functions(lambda given: True), strategies(lambda given: True)],
})
"""

OUT = "raised RecursionError"
EXPECTED = {
    "endless": [OUT, OUT, OUT],
    "RecursionError": [OUT, OUT],
    "others": ["plain"] * 4,
    "false": ["plain", "fallback"],
    "true": ["never", "never"],
}


def check(ws: Workspace) -> None:
    seen = ws.python(DISPATCH)
    for case, expected in EXPECTED.items():
        assert seen[case] == expected, f"predicate {case}: {seen[case]}, expected {expected}"
    tests = ["tests/test_function_dispatch.py", "tests/test_multistrategy_dispatch.py", "tests/test_recursive.py"]
    ws.tests(*tests).require(passed_at_least=7)
