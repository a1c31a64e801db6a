"""Reading ATIF files of others: every version from 1.0 to 1.8, with what real producers add to the format.

Keys the format does not know are kept under the ``extra`` of their object, as the format asks producers to do in the
first place; those of objects without an ``extra`` (content parts, observations, references) under that of the nearest
object around them that has one, by path. A trajectory of ours is written with ``dump``; ``parse`` and ``dump`` undo
each other, but for nulls, which mean that a key is absent.
"""

from __future__ import annotations

import json
import types
from functools import cache
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from pytest_paranoia.errors import ManifestError
from pytest_paranoia.schema.problems import first_problem
from pytest_paranoia.schema.trajectory import Trajectory

VERSIONS = tuple(f"ATIF-v1.{minor}" for minor in range(9))
UNKNOWN = "unknown_keys"
"""Where the ``extra`` of an object keeps foreign keys of objects below it that have no ``extra``: path to value."""


def parse(content: bytes | str | dict[str, Any], shown: str) -> Trajectory:
    """Return the trajectory in *content*, named *shown* in messages.

    Raises ManifestError with place, what was found and what was expected.
    """
    if isinstance(content, dict):
        data: Any = content
    else:
        try:
            data = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ManifestError(f"{shown}: not readable as JSON: {error}") from None
    if not isinstance(data, dict):
        raise ManifestError(
            f"{shown}: found {type(data).__name__}, expected a JSON object with schema_version and steps"
        )
    version = data.get("schema_version", VERSIONS[-1])
    if version not in VERSIONS:
        raise ManifestError(
            f"{shown}: key 'schema_version': found {version!r}, expected one of {VERSIONS[0]} to {VERSIONS[-1]}; "
            "convert the file, or use a newer pytest-paranoia"
        )
    try:
        return Trajectory.model_validate(_tidy(data, Trajectory))
    except ValidationError as error:
        raise ManifestError(
            f"{shown}: no trajectory as {version} has it: {first_problem(error)}; mend the file, or leave it out"
        ) from None


def dump(trajectory: Trajectory) -> dict[str, Any]:
    """Return *trajectory* as ATIF: plain data, keys without a value left out."""
    return trajectory.model_dump(mode="json", exclude_none=True)


def _tidy(value: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return *value* with keys that *model* does not have moved into an ``extra``."""
    kept, strays = _split(value, model, "")
    assert not strays, "a trajectory has an extra"
    return kept


def _split(value: dict[str, Any], model: type[BaseModel], path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (known keys, foreign ones by path that this object cannot keep)."""
    kept: dict[str, Any] = {}
    own: dict[str, Any] = {}
    strays: dict[str, Any] = {}
    children = _models(model)
    for key, part in value.items():
        if key not in model.model_fields:
            own[key] = part
        elif key in children and part is not None:
            kept[key], lost = _below(part, children[key], f"{path}{key}")
            strays |= lost
        else:
            kept[key] = part
    if "subagent_trajectory_ref" in kept and isinstance(kept["subagent_trajectory_ref"], dict):
        kept["subagent_trajectory_ref"] = [kept["subagent_trajectory_ref"]]  # before 1.3 there was at most one
    if not own and not strays:
        return kept, {}
    extra = kept.get("extra")
    if "extra" in model.model_fields and (extra is None or isinstance(extra, dict)):
        # What the object says itself under that name has precedence; a foreign key then goes the way of the strays.
        extra = dict(extra or {})
        clash = {f"{path}{key}": own.pop(key) for key in list(own) if key in extra}
        extra |= own
        if strays or clash:
            extra[UNKNOWN] = {**extra.get(UNKNOWN, {}), **_relative(strays, path), **_relative(clash, path)}
        return {**kept, "extra": extra}, {}
    return kept, {**{f"{path}{key}": part for key, part in own.items()}, **strays}


def _relative(strays: dict[str, Any], path: str) -> dict[str, Any]:
    return {name.removeprefix(path): value for name, value in strays.items()}


def _below(part: Any, model: type[BaseModel], path: str) -> tuple[Any, dict[str, Any]]:
    if isinstance(part, dict):
        return _split(part, model, f"{path}.")
    if isinstance(part, list):
        kept: list[Any] = []
        strays: dict[str, Any] = {}
        for index, entry in enumerate(part):
            clean, lost = _below(entry, model, f"{path}.{index}")
            kept.append(clean)
            strays |= lost
        return kept, strays
    return part, {}


@cache
def _models(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return the fields of *model* that hold objects of the format, or lists of them."""
    found = {}
    for name, field in model.model_fields.items():
        if (child := _model_in(field.annotation)) is not None:
            found[name] = child
    return found


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, Union, types.UnionType):
        return next((child for part in get_args(annotation) if (child := _model_in(part)) is not None), None)
    return None
