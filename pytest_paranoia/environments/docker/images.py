"""One image per repository: built once from a generated recipe, under a name that says exactly what is in it."""

from __future__ import annotations

import re
import tarfile
import tempfile
import time
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any

import filelock

from pytest_paranoia.environments.base import Ingredients
from pytest_paranoia.environments.docker import layer
from pytest_paranoia.environments.docker.bases import REASON, Base, inspect
from pytest_paranoia.environments.docker.daemon import DAEMON, said
from pytest_paranoia.environments.docker.settings import LABEL, PREFIX, user
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.workspaces.cache import cache_root, digest

RECIPE_VERSION = "1"
"""Raised with every change that alters what a recipe or a layer makes of the same input."""

BUILD_SECONDS = 1200.0
SILENT_SECONDS = 300
_BARE = "bare"


@dataclass(frozen=True)
class Image:
    """An image that trials run in."""

    tag: str
    id: str


def tag_of(base: Base, ingredients: Ingredients | None) -> str:
    """Return the name of the image; it changes with everything that goes into the image."""
    parts = [RECIPE_VERSION, base.id, *map(str, user())]
    if ingredients is not None:
        # A prepared environment's folder is named after a hash of its lock and its interpreter.
        parts += [ingredients.python_env.name, ingredients.target, ingredients.commit or ""]
    name = re.sub(r"[^a-z0-9]+", "-", (ingredients.name if ingredients is not None else _BARE).lower()).strip("-")
    return f"{PREFIX}/trial-{name}:{digest(*parts)[:24]}"


def recipe(base: Base, ingredients: Ingredients | None) -> str:
    """Return the Dockerfile."""
    labels = {"name": ingredients.name if ingredients else _BARE, "base": base.id, "base-digest": base.digest}
    labels["python"] = base.facts.python
    if ingredients is not None and ingredients.commit:
        labels["commit"] = ingredients.commit
    number, group = user()
    said_of_it = " ".join(f'{LABEL}.{name}="{value}"' for name, value in labels.items())
    # Few lines: every one is a container and a commit for the daemon.
    lines = [f"FROM {base.pinned}", f"LABEL {said_of_it}", "ADD layer.tar /", f"USER {number}:{group}", "ENTRYPOINT []"]
    return "\n".join(lines) + "\n"


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

    folder = cache_root() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / f"docker-{tag.replace('/', '-').replace(':', '-')}.lock", timeout=BUILD_SECONDS)
    try:
        held = lock.acquire()
    except filelock.Timeout as error:
        raise InfrastructureError(REASON, f"waited {BUILD_SECONDS:.0f} s for another build of {tag}") from error
    with held:
        if (there := _find(tag)) is not None:
            return there
        with tempfile.TemporaryFile(prefix="paranoia-image-") as context:
            write_context(base, ingredients, context)
            repository, pinned_tag = base.pinned.split(":")
            try:
                # Here and not once per session: somebody may tidy up meanwhile.
                DAEMON.call(
                    "tag the base image", lambda client: client.tag(base.id, repository, pinned_tag), reason=REASON
                )
                DAEMON.call(f"build the image {tag}", lambda client: send(client, context, tag), reason=REASON)
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
    """Have the daemon build; the time limit holds for all of it, not only for each line of its log."""
    latest = time.monotonic() + BUILD_SECONDS
    context.seek(0)
    options = {"custom_context": True, "rm": True, "forcerm": True, "pull": False, "network_mode": "none"}
    for line in client.build(fileobj=context, tag=tag, decode=True, timeout=SILENT_SECONDS, **options):
        if line.get("error"):
            raise InfrastructureError(REASON, f"the image {tag} cannot be built: {' '.join(line['error'].split())}")
        if time.monotonic() > latest:
            raise InfrastructureError(REASON, f"the image {tag} was not built within {BUILD_SECONDS:.0f} s")


def ours() -> list[dict[str, Any]]:
    """Return all images that recipes made, as the daemon lists them. Raises InfrastructureError."""
    return DAEMON.call(
        "list the images", lambda client: client.images(filters={"label": f"{LABEL}.name"}), reason=REASON
    )


def pinned() -> list[tuple[str, str]]:
    """Return (id, name) of the base images as recipes name them. Raises InfrastructureError."""
    found = DAEMON.call("list the base images", lambda client: client.images(f"{PREFIX}/pinned"), reason=REASON)
    return [
        (one["Id"], tag) for one in found for tag in one.get("RepoTags") or () if tag.startswith(f"{PREFIX}/pinned:")
    ]
