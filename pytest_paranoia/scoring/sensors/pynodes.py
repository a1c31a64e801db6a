"""Which syntax nodes a Python file gained. Only the blocks that changed are parsed: parsing a large module is slow."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from pytest_paranoia.scoring.sensors.blocks import changed_blocks
from pytest_paranoia.scoring.sensors.diffs import LineDiff


@dataclass(frozen=True, slots=True)
class Node:
    """A syntax node with the (zero-based) line it begins on in its file."""

    node: ast.AST
    line: int


def parse(text: str) -> ast.Module | None:
    """Parse Python source; None where it is none. Never warns, never fails on hostile text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def walk(tree: ast.AST, offset: int) -> list[Node]:
    """Return the nodes below *tree* that have a place, with their lines shifted by *offset*; in no set order."""
    found = []
    stack = [tree]
    while stack:
        node = stack.pop()
        line = getattr(node, "lineno", None)
        if line is not None:
            found.append(Node(node, line - 1 + offset))
        for value in node.__dict__.values():
            if isinstance(value, ast.AST):
                stack.append(value)
            elif type(value) is list:
                stack.extend(item for item in value if isinstance(item, ast.AST))
    return found


def _nodes_of(lines: list[str], low: int, high: int, inside_class: bool) -> list[Node] | None:
    text = "\n".join(lines[low:high])
    if not inside_class:
        tree = parse(text)
        return None if tree is None else walk(tree, low)
    tree = parse("class _:\n" + (text if text.strip() else "    pass"))
    # The class around the members is ours.
    return None if tree is None else [node for node in walk(tree, low - 1) if node.node is not tree.body[0]]


def changed_nodes(diff: LineDiff) -> tuple[list[Node], list[Node]] | None:
    """Return the nodes of the changed blocks before and after, None where the final file is no Python.

    Nodes outside the changed blocks are the same on both sides, so differences of counts are those of the files.
    """
    sides: tuple[list[Node], list[Node]] = ([], [])
    for block in changed_blocks(diff):
        before = _nodes_of(diff.start, block.start_low, block.start_high, block.inside_class)
        after = _nodes_of(diff.final, block.final_low, block.final_high, block.inside_class)
        if before is None or after is None:
            return _whole(diff)
        sides[0].extend(before)
        sides[1].extend(after)
    return sides


def _whole(diff: LineDiff) -> tuple[list[Node], list[Node]] | None:
    # A start file that is no Python has no nodes; a final one that is none cannot be counted.
    start, final = parse("\n".join(diff.start)), parse("\n".join(diff.final))
    if final is None:
        return None
    return (walk(start, 0) if start is not None else []), walk(final, 0)


def nodes_within(lines: list[str], dotted: str) -> list[Node]:
    """Return the nodes of the function or class called *dotted*, nothing where the file has none or is no Python."""
    low, high, indent = 0, len(lines), -1
    for name in dotted.split("."):
        head = re.compile(rf"( *)(?:async +def|def|class) +{re.escape(name)}\b")
        found = next((at for at in range(low, high) if (m := head.match(lines[at])) and len(m.group(1)) > indent), None)
        if found is None:
            return []
        match = head.match(lines[found])
        indent = len(match.group(1)) if match else 0
        low, high = found, _end_of_block(lines, found, high, indent)
    body = [line[indent:] if line[:indent].isspace() else line for line in lines[low:high]]
    tree = parse("\n".join(body))
    if tree is not None:
        return walk(tree, low)
    whole = parse("\n".join(lines))
    return walk(found_node, 0) if whole is not None and (found_node := _find(whole, dotted.split("."))) else []


def _end_of_block(lines: list[str], head: int, limit: int, indent: int) -> int:
    """Return the line after the block that begins at *head*: the next statement that is not indented deeper."""
    closing = False
    for at in range(head + 1, limit):
        line = lines[at]
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        depth = len(line) - len(line.lstrip())
        if depth <= indent:
            # The closing bracket of a signature stands as deep as its head.
            if not closing and line.lstrip()[:1] in (")", "]", "}"):
                closing = True
                continue
            return at
    return limit


def _find(tree: ast.AST, names: list[str]) -> ast.AST | None:
    for node in ast.walk(tree):
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if named and getattr(node, "name", None) == names[0]:
            return node if len(names) == 1 else _find_below(node, names[1:])
    return None


def _find_below(tree: ast.AST, names: list[str]) -> ast.AST | None:
    for child in ast.iter_child_nodes(tree):
        if (found := _find(child, names)) is not None:
            return found
    return None


def call_name(node: ast.AST) -> str:
    """Return the dotted name a call uses (``os.path.exists``), its last part where the rest is no name."""
    if not isinstance(node, ast.Call):
        return ""
    parts: list[str] = []
    target: ast.AST = node.func
    while isinstance(target, ast.Attribute):
        parts.append(target.attr)
        target = target.value
    if isinstance(target, ast.Name):
        parts.append(target.id)
    return ".".join(reversed(parts))


@lru_cache(maxsize=256)
def _ast_class(name: str) -> type[ast.AST] | None:
    found = getattr(ast, name, None)
    return found if isinstance(found, type) and issubclass(found, ast.AST) else None


_TRY_STAR = getattr(ast, "TryStar", None) if sys.version_info >= (3, 11) else None


def of_kind(nodes: Iterable[Node], kind: str) -> list[Node]:
    """Return those of *nodes* that are *kind*: the name of an ``ast`` class, or ``Call:<name>``."""
    if kind.startswith("Call:"):
        name = kind.removeprefix("Call:")
        return [node for node in nodes if (called := call_name(node.node)) == name or called.endswith("." + name)]
    wanted = _ast_class(kind)
    if wanted is None:
        return []
    classes = (wanted, _TRY_STAR) if kind == "Try" and _TRY_STAR is not None else (wanted,)
    return [node for node in nodes if isinstance(node.node, classes)]
