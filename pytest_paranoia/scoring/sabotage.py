"""Doubt about a test run: tests that were made to fail must fail.

The code under test lives in the process of the test runner and could have patched it. So a second run, the same but
for a random part of the tests that passed, which now hold an assertion that cannot hold: names, order and arguments
do not tell a code that turns failures into passes which of them have to stay failures.
"""

from __future__ import annotations

import ast
import os
import random
import secrets
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from pytest_paranoia.workspaces.laying import RealFolders
from pytest_paranoia.workspaces.snapshots import read_plain

FILE_CAP = 2 * 1024**2
ENOUGH = 30
"""Made-to-fail tests in one run: more would cost time and prove little."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Edit = tuple[int, int, bytes]
_choice = random.SystemRandom()


def function_of(nodeid: str) -> str:
    """Return a node id without its parameters: the function that stands in the file."""
    return nodeid.partition("[")[0]


def file_of(nodeid: str) -> str:
    """Return the file of a node id."""
    return nodeid.partition("::")[0]


def exposed(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Return what is wrong where the function *name* was made to fail between two runs, None where it did fail."""
    again = {nodeid: outcome for nodeid, outcome in now.items() if function_of(nodeid) == name}
    for nodeid, outcome in again.items():
        if outcome == "passed" or (outcome == "skipped" and before.get(nodeid) == "passed"):
            return f"{nodeid}, made to fail, came out as {outcome}"
    # Some parameters have another name in every run, so what is missing is counted by function.
    return None if {"failed", "error"} & set(again.values()) else f"{name}, made to fail, is missing"


def spoil(tree: Path, passed: Sequence[str]) -> list[str]:
    """Let some of the tests *passed* fail in a laid *tree*; return the node ids, without parameters, of what must fail.

    It writes from outside, so no process may see the tree yet.
    """
    files = _TestFiles(tree, passed)
    return files.spoil(files.pick(passed)) if files.functions else [_stranger(tree, passed)]


def _stranger(tree: Path, passed: Sequence[str]) -> str:
    """Add a failing test of our own: the tests are made at run time, or not in Python files."""
    name = f"test_{secrets.token_hex(4)}"
    folder = PurePosixPath(file_of(passed[0])).parent
    path = folder / f"{name}.py"
    if not (RealFolders(tree).holds(os.fsencode(str(path))) and (tree / folder).is_dir()):
        path = PurePosixPath(path.name)
    (tree / path).write_text(f"def {name}():\n    assert 2 == 3\n")
    return f"{path}::{name}"


class _TestFiles:
    """The test functions of a laid tree that can be made to fail: by node id, the definitions of that name."""

    def __init__(self, tree: Path, nodeids: Iterable[str]) -> None:
        self._tree = tree
        self._folders = RealFolders(tree)
        self._sources: dict[str, bytes] = {}
        wanted = {function_of(nodeid) for nodeid in nodeids}
        found: dict[str, list[_Function]] = {}
        for path in sorted({file_of(name) for name in wanted}):
            if (read := self._read(path)) is not None:
                self._sources[path], module = read
                _collect(module, path, found)
        self.functions = {name: found[name] for name in wanted & found.keys()}

    def _read(self, path: str) -> tuple[bytes, ast.Module] | None:
        """Return a Python file that is there as such, and parsed; tests that the agent wrote may be anything."""
        try:
            if not path.endswith(".py") or not self._folders.holds(os.fsencode(path)):
                return None
            source = read_plain(os.fsencode(self._tree / path), FILE_CAP)
            if source is None:
                return None
            source.decode("utf-8")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return source, ast.parse(source)
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            return None

    def pick(self, passed: Sequence[str]) -> list[str]:
        """Return a random half of the functions (one at least), fewer where each is many tests."""
        names = list(self.functions)
        _choice.shuffle(names)
        picked: list[str] = []
        tests = 0
        for name in names[: max(1, len(names) // 2)]:
            picked.append(name)
            tests += sum(function_of(nodeid) == name for nodeid in passed)
            if tests >= ENOUGH:
                break
        return picked

    def spoil(self, names: list[str]) -> list[str]:
        """Let the functions *names* fail, and return them."""
        edits: dict[str, list[_Edit]] = {}
        for name in names:
            path = file_of(name)
            edits.setdefault(path, []).extend(_edit(found, self._sources[path]) for found in self.functions[name])
        for path, here in edits.items():
            (self._tree / path).write_bytes(_edited(self._sources[path], here))
        return names


def _collect(node: ast.AST, name: str, found: dict[str, list[_Function]]) -> None:
    """Add the functions below *node* that a test runner would see, under ``if`` and ``try`` too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function):
            found.setdefault(f"{name}::{child.name}", []).append(child)
        elif isinstance(child, ast.ClassDef):
            _collect(child, f"{name}::{child.name}", found)
        elif isinstance(child, ast.If | ast.Try | ast.ExceptHandler | ast.With):
            _collect(child, name, found)


def _edit(function: _Function, source: bytes) -> _Edit:
    """Return where to insert what: (line, column in bytes, text). No line moves where a statement can be joined."""
    left, right = _choice.sample(range(2, 1000), 2)
    text = f"assert {left} == {right}".encode()
    last, first = function.body[-1], function.body[0]
    if _reaches_its_end(function):
        assert last.end_lineno is not None
        assert last.end_col_offset is not None
        if not _compound(last):
            return last.end_lineno, last.end_col_offset, b"; " + text
        return last.end_lineno + 1, 0, _indent(function, source) + text + b"\n"
    if not _compound(first):
        return first.lineno, first.col_offset, text + b"; "
    decorators = getattr(first, "decorator_list", [])
    line = min([first.lineno, *(decorator.lineno for decorator in decorators)])
    return line, 0, _indent(function, source) + text + b"\n"


def _compound(statement: ast.stmt) -> bool:
    return hasattr(statement, "body") or isinstance(statement, ast.Match)


def _reaches_its_end(function: _Function) -> bool:
    """Whether what stands after the last statement is surely reached where the test passes."""
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom | ast.While):
            return False
        if not isinstance(node, _Function | ast.Lambda | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(node))
    return not isinstance(function.body[-1], ast.Raise)


def _indent(function: _Function, source: bytes) -> bytes:
    line = source.splitlines(keepends=True)[function.body[0].lineno - 1]
    return line[: len(line) - len(line.lstrip())]


def _edited(source: bytes, edits: Sequence[_Edit]) -> bytes:
    lines = source.splitlines(keepends=True)
    if lines and not lines[-1].endswith((b"\n", b"\r")):
        lines[-1] += b"\n"
    lines.append(b"")
    for line, column, text in sorted(edits, reverse=True):
        old = lines[line - 1]
        lines[line - 1] = old[:column] + text + old[column:]
    return b"".join(lines)
