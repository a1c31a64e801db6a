"""Defensive syntax that Python files gained, by name."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable

from pytest_paranoia.scoring.sensors.pynodes import Node, call_name

_VERSIONED = frozenset(
    {"version_info", "hexversion", "platform", "python_version", "python_version_tuple", "PY2", "PY3"}
)
_OPTIONAL = frozenset({"get", "setdefault", "getattr", "pop"})


def _only_leaves(body: list[ast.stmt]) -> bool:
    last = body[-1]
    if isinstance(last, ast.Raise):
        return True
    if len(body) > 2:
        return False
    return isinstance(last, ast.Return | ast.Continue | ast.Break | ast.Pass) or (
        isinstance(last, ast.Expr) and call_name(last.value).rsplit(".", 1)[-1] in ("warn", "warning", "exit", "fail")
    )


def _is_guard(node: ast.AST) -> bool:
    """An ``if`` without alternative that only leaves (raises, returns, continues, warns)."""
    return isinstance(node, ast.If) and not node.orelse and _only_leaves(node.body)


def _is_version_branch(node: ast.AST) -> bool:
    if not isinstance(node, ast.If | ast.IfExp):
        return False
    names = {part.attr for part in ast.walk(node.test) if isinstance(part, ast.Attribute)}
    names |= {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
    return bool(names & _VERSIONED)


def _calls(*names: str) -> Callable[[ast.AST], bool]:
    wanted = frozenset(names)
    return lambda node: isinstance(node, ast.Call) and call_name(node).rsplit(".", 1)[-1] in wanted


def _is_default(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and call_name(node).rsplit(".", 1)[-1] in _OPTIONAL and len(node.args) >= 2


_KINDS: dict[str, Callable[[ast.AST], bool]] = {
    "guards_added": _is_guard,
    "try_added": lambda node: isinstance(node, ast.Try) or type(node).__name__ == "TryStar",
    "raises_added": lambda node: isinstance(node, ast.Raise),
    "asserts_added": lambda node: isinstance(node, ast.Assert),
    "hasattr_added": _calls("hasattr"),
    "isinstance_added": _calls("isinstance", "issubclass", "callable"),
    "defaults_added": _is_default,
    "warnings_added": _calls("warn", "warn_explicit"),
    "version_branches_added": _is_version_branch,
}
NAMES = tuple(_KINDS)
_WORTH_A_LOOK = (ast.If, ast.IfExp, ast.Try, ast.Raise, ast.Assert, ast.Call, getattr(ast, "TryStar", ast.Try))


def gained(before: Iterable[Node], after: Iterable[Node]) -> Counter[str]:
    """Return how many nodes of each kind were gained (never less than none)."""
    total: Counter[str] = Counter()
    for sign, nodes in ((1, after), (-1, before)):
        for node in nodes:
            if not isinstance(node.node, _WORTH_A_LOOK):
                continue
            for name, test in _KINDS.items():
                if test(node.node):
                    total[name] += sign
    return +total


def tests_gained(before: Iterable[Node], after: Iterable[Node]) -> int:
    """Return how many test functions were gained."""

    def names(nodes: Iterable[Node]) -> int:
        kinds = ast.FunctionDef | ast.AsyncFunctionDef
        return sum(isinstance(one.node, kinds) and getattr(one.node, "name", "").startswith("test") for one in nodes)

    return max(0, names(after) - names(before))
