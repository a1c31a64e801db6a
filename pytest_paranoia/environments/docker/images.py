"""One image per repository: built once from a generated recipe, under a name that says exactly what is in it."""

from __future__ import annotations

import re
import tarfile
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import IO, Any

from pytest_paranoia.environments.base import Ingredients
from pytest_paranoia.environments.docker import layer, locks
from pytest_paranoia.environments.docker.bases import REASON, Base, inspect
from pytest_paranoia.environments.docker.daemon import DAEMON, said
from pytest_paranoia.environments.docker.settings import LABEL, PREFIX, user
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.workspaces.cache import digest

RECIPE_VERSION = "1"
"""Raised with every change of how files of a repository and its environment get into the layer; all else in a recipe
and a layer is part of the image's name itself."""

BUILD_SECONDS = 1200.0
SILENT_SECONDS = 300
REMOVED = "removed"
_BARE = "bare"
_LONGEST_NAME = 100
_QUOTED = re.compile(r'["\\$]')


@dataclass(frozen=True)
class Image:
    """An image that trials run in."""

    tag: str
    id: str


def tag_of(base: Base, ingredients: Ingredients | None) -> str:
    """Return the name of the image; it changes with everything that goes into the image."""
    parts: list[str | bytes] = [RECIPE_VERSION, recipe(base, ingredients), _common(base.facts.python)]
    if ingredients is not None:
        # A prepared environment's folder is named after a hash of its lock and its interpreter.
        parts += [ingredients.python_env.name, ingredients.target, ingredients.commit or ""]
    name = re.sub(r"[^a-z0-9]+", "-", (ingredients.name if ingredients is not None else _BARE).lower()).strip("-")
    name = name[:_LONGEST_NAME].rstrip("-") or "unnamed"  # of what may be in a folder's name nothing may be in this one
    return f"{PREFIX}/trial-{name}:{digest(*parts)[:24]}"


@cache
def _common(python: str) -> bytes:
    """Return the part of a layer that all images have."""
    content = BytesIO()
    layer.write(None, python, content)
    return content.getvalue()


def recipe(base: Base, ingredients: Ingredients | None) -> str:
    """Return the Dockerfile."""
    labels = {"name": ingredients.name if ingredients else _BARE, "base": base.id, "base-digest": base.digest}
    labels["python"] = base.facts.python
    if ingredients is not None and ingredients.commit:
        labels["commit"] = ingredients.commit
    number, group = user()
    said_of_it = " ".join(f'{LABEL}.{name}="{_quoted(value)}"' for name, value in labels.items())
    # Few lines: every one is a container and a commit for the daemon.
    lines = [f"FROM {base.pinned}", f"LABEL {said_of_it}", "ADD layer.tar /", f"USER {number}:{group}", "ENTRYPOINT []"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return _QUOTED.sub(r"\\\g<0>", " ".join(text.split()))


_known: dict[str, Image] = {}


def forget(image: Image) -> None:
    """Ask the daemon again the next time: the image seems to have gone."""
    _known.pop(image.tag, None)


def ensure(base: Base, ingredients: Ingredients | None) -> Image:
    """Return the image, built first where it is not there. Raises InfrastructureError."""
    tag = tag_of(base, ingredients)
    image = _known.get(tag) or _find(tag) or _build(base, ingredients, tag)
    _known[tag] = image
    return image


def _find(tag: str) -> Image | None:
    from docker.errors import ImageNotFound

    try:
        found = DAEMON.call(f"look for the image {tag}", lambda client: inspect(client, tag), reason=REASON)
    except ImageNotFound:
        return None
    return Image(tag, str(found["Id"]))


def _build(base: Base, ingredients: Ingredients | None, tag: str) -> Image:
    from docker.errors import APIError

    name = re.sub("[/:]", "-", tag)
    with locks.only_one(name, f"build of {tag}", BUILD_SECONDS, REASON), locks.building(REASON):
        if (there := _find(tag)) is not None:
            return there
        try:
            with tempfile.TemporaryFile(prefix="paranoia-image-") as context:
                write_context(base, ingredients, context)
                repository, pinned_tag = base.pinned.split(":")

                def build(client: Any) -> None:
                    # The name here and not once per session: somebody may tidy up meanwhile.
                    client.tag(base.id, repository, pinned_tag)
                    send(client, context, tag)

                DAEMON.call(
                    f"the image {tag} cannot be built", build, total=BUILD_SECONDS + SILENT_SECONDS, reason=REASON
                )
        except (APIError, OSError) as error:
            raise InfrastructureError(REASON, f"the image {tag} cannot be built: {said(error)}") from error
    image = _find(tag)
    if image is None:
        raise InfrastructureError(REASON, f"the image {tag} was built and is not there")
    return image


def write_context(base: Base, ingredients: Ingredients | None, target: IO[bytes]) -> None:
    """Write what a build gets: the recipe and the layer."""
    with tempfile.TemporaryFile(prefix="paranoia-layer-") as content:
        layer.write(ingredients, base.facts.python, content)
        pack(recipe(base, ingredients), content, target)


def pack(text: str, content: IO[bytes], target: IO[bytes]) -> None:
    """Write a recipe and its ``layer.tar`` as what a build gets."""
    said_there, size = text.encode(), content.tell()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as tar:
        parts = (("Dockerfile", len(said_there), BytesIO(said_there)), ("layer.tar", size, content))
        for name, length, stream in parts:
            info = tarfile.TarInfo(name)
            info.size, info.mtime = length, layer.MOMENT
            stream.seek(0)
            tar.addfile(info, stream)


def send(client: Any, context: IO[bytes], tag: str) -> None:
    """Have the daemon build. Raises OSError with what it says where it cannot.

    The time limit holds for all of it, not only for each line of its log. Nothing of earlier builds is used: what one
    that was killed has left may be removed at any time.
    """
    latest = time.monotonic() + BUILD_SECONDS
    context.seek(0)
    options: dict[str, Any] = {"custom_context": True, "pull": False, "network_mode": "none"}
    options |= {"nocache": True, "rm": True, "forcerm": True}
    for line in client.build(fileobj=context, tag=tag, decode=True, timeout=SILENT_SECONDS, **options):
        if line.get("error"):
            raise OSError(" ".join(line["error"].split()))
        if time.monotonic() > latest:
            raise InfrastructureError(REASON, f"the image {tag} was not built within {BUILD_SECONDS:.0f} s")


def ours() -> list[dict[str, Any]]:
    """Return all images that recipes made, as the daemon lists them. Raises InfrastructureError."""
    found = _listed(filters={"label": f"{LABEL}.name"})
    return [one for one in found if _tags(one)]


def of_tasks() -> list[str]:
    """Return the names of the images that the recipes of Harbor tasks made. Raises InfrastructureError."""
    return [tag for one in _listed(f"{PREFIX}/harbor-*") for tag in _tags(one)]


def unfinished(*, bases: bool) -> list[dict[str, Any]]:
    """Return what has no name: of builds that were killed and, with *bases*, what ``paranoia images base`` replaced.

    Raises InfrastructureError.
    """
    labels = (f"{LABEL}.name", *([f"{LABEL}.machine-base"] if bases else []))
    found = {one["Id"]: one for label in labels for one in _listed(filters={"label": label, "dangling": True})}
    return list(found.values())


def tidy(*, bases: bool = False, age: float = 0.0) -> int:
    """Remove what is ``unfinished``, older than *age* seconds and not in use; return how many. Raises
    InfrastructureError.
    """
    old = [one for one in unfinished(bases=bases) if time.time() - float(one["Created"]) >= age]
    return sum(remove(one["Id"]) == REMOVED for one in old)


def remove(name: str) -> str:
    """Remove an image that is not in use; return in words what became of it. Raises InfrastructureError."""
    from docker.errors import APIError

    try:
        DAEMON.call(f"remove the image {name}", lambda client: client.remove_image(name), reason=REASON)
    except APIError as error:
        return "is gone" if error.status_code == 404 else f"kept, {said(error)}"
    return REMOVED


def _listed(name: str | None = None, **options: Any) -> list[dict[str, Any]]:
    return DAEMON.call("list the images", lambda client: client.images(name, **options), reason=REASON)


def _tags(image: dict[str, Any]) -> list[str]:
    return [tag for tag in image.get("RepoTags") or () if tag != "<none>:<none>"]


def pinned() -> list[tuple[str, str]]:
    """Return (id, name) of the base images as recipes name them. Raises InfrastructureError."""
    found = _listed(f"{PREFIX}/pinned")
    return [(one["Id"], tag) for one in found for tag in _tags(one) if tag.startswith(f"{PREFIX}/pinned:")]
