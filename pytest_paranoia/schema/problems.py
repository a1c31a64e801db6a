"""What is wrong with data that a model refused, in words: the same ones wherever such data comes from."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

_SHOWN = 80
"""Most characters of a value in a message."""


def first_problem(error: ValidationError) -> str:
    """Return the first problem: its key, what was found there, what was expected; how many more.

    The caller names the file and what to do. Nothing of the data is shown but the value at the key, and of a list or an
    object only that it is one.
    """
    problems = error.errors(include_url=False)
    first = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    place = _key(first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        # It is about the whole, of which a message shows nothing: a text that is no JSON, or a check over several keys.
        return said + more
    if first["type"] == "missing":
        return f"key {place!r}: missing{more}"
    if first["type"] == "extra_forbidden":
        return f"key {place!r}: unknown key (value {_shown(first['input'])}){more}"
    expected = said.removeprefix("Input should be ")
    told = f"expected {expected}" if expected != said else said
    return f"key {place!r}: found {_shown(first['input'])}, {told}{more}"


def _shown(value: Any) -> str:
    """Return *value* as a message shows it: short, and on one line."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    return _clipped(repr(value))


def _clipped(shown: str) -> str:
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}..."


def _key(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "(the whole file)"


def _field_names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield *model* and the models its fields hold, for suggestions of a misspelt key."""
    seen: list[Any] = [model]
    for annotation in seen:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield annotation
            inner = [field.annotation for field in annotation.model_fields.values()]
        else:
            inner = list(getattr(annotation, "__args__", ()))
        seen.extend(entry for entry in inner if entry is not None and entry not in seen)


def _place(problem: ErrorDetails, data: Any) -> tuple[int | str, ...]:
    """Return where *problem* is, without what pydantic adds and no author wrote: the tags of unions."""
    place: list[int | str] = []
    last = len(problem["loc"]) - 1
    for position, part in enumerate(problem["loc"]):
        inner = data[part] if isinstance(data, dict) and part in data else None
        if isinstance(data, list):
            data = data[int(part)]
        elif isinstance(inner, dict | list):
            data = inner
        elif position < last or (inner is None and problem["type"] != "missing"):
            continue
        place.append(part)
    return tuple(place)


def every_problem(error: ValidationError, model: type[BaseModel], path: str, data: Any) -> str:
    """Return all problems of a TOML file that an author wrote, one a line: *path*, key, value and remedy of each.

    *data* is what was read of the file, *model* what refused it.
    """
    lines = []
    for problem in error.errors():
        place = _place(problem, data)
        key = _key(place)
        found = problem["input"]
        shown = _clipped("a table" if isinstance(found, dict) else repr(found))
        if problem["type"] == "extra_forbidden":
            names = {name for part in _models(model) for name in _field_names(part)}
            close = difflib.get_close_matches(str(problem["loc"][-1]), sorted(names), n=1)
            remedy = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(sorted(_field_names(model)))}"
            lines.append(f"{path}: key {key!r}: unknown key (value {shown}); {remedy}")
        elif problem["type"] == "missing":
            where = "`paranoia docs writing-pairs`, `paranoia docs writing-scenarios`"
            lines.append(f"{path}: key {key!r}: missing; add it (see {where})")
        else:
            message = problem["msg"].removeprefix("Value error, ")
            message = message[0].lower() + message[1:]
            if isinstance(found, str) and (expected := problem.get("ctx", {}).get("expected")):
                close = difflib.get_close_matches(found, re.findall(r"'([^']*)'", str(expected)), n=1)
                message += f"; did you mean {close[0]!r}?" if close else ""
            # Checks over several keys are about the whole file and name the keys themselves.
            lines.append(f"{path}: key {key!r}: found {shown}; {message}" if place else f"{path}: {message}")
    return "\n".join(lines)
