"""A Harbor task's recipe as an image: built once, its working directory taken out as the start tree of trials."""

from __future__ import annotations

import io
import re
import shutil
import tarfile
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_paranoia.environments.base import EnvironmentProvider
from pytest_paranoia.errors import InfrastructureError, SourceError
from pytest_paranoia.harbor.items import HarborItem
from pytest_paranoia.harbor.recipe import DOCKERFILE
from pytest_paranoia.workspaces.cache import digest, tree_digest

if TYPE_CHECKING:
    from pytest_paranoia.environments.docker.provider import DockerProvider

REASON = "environment-image"
TAKE_SECONDS = 600.0
_FROM = re.compile(r"(?im)^FROM[ \t]+(?P<flags>(?:--\S+[ \t]+)*)(?P<image>\S+)(?P<rest>.*)$")


def docker(provider: EnvironmentProvider) -> DockerProvider | None:
    """Return *provider* where it is the one of containers."""
    if provider.name != "docker":
        return None
    from pytest_paranoia.environments.docker.provider import DockerProvider

    return provider if isinstance(provider, DockerProvider) else None


def has_recipe(item: HarborItem) -> bool:
    """Whether the task says what image its trials run in."""
    return (item.environment_folder / DOCKERFILE).is_file() or item.task.environment.docker_image is not None


def provider_for(item: HarborItem, provider: EnvironmentProvider) -> EnvironmentProvider:
    """Return the provider whose containers are made from the task's own image. Raises InfrastructureError."""
    containers = docker(provider)
    if containers is None or not has_recipe(item):
        return provider
    return replace(containers, settings=replace(containers.settings, base=image_of(item, containers)))


def image_of(item: HarborItem, provider: DockerProvider) -> str:
    """Return the name of the task's image, built first where it is not there. Raises InfrastructureError."""
    from pytest_paranoia.environments.docker import locks
    from pytest_paranoia.environments.docker.settings import PREFIX

    text, own_base = _recipe(item, provider)
    folder = item.environment_folder
    content = tree_digest(folder) if folder.is_dir() else ""
    name = re.sub(r"[^a-z0-9]+", "-", item.folder.name.lower()).strip("-")[:60] or "task"
    tag = f"{PREFIX}/harbor-{name}:{digest('1', text, content)[:24]}"
    seconds = item.task.environment.build_timeout_sec
    name = re.sub("[/:]", "-", tag)
    with locks.only_one(name, f"build of {tag}", seconds + 60, REASON), locks.building(REASON):
        if not _there(tag):
            _build(item, text, tag, seconds, offline=own_base)
    return tag


def start_tree(item: HarborItem, provider: DockerProvider, inside: str, target: Path) -> None:
    """Copy the working directory of the task's image to *target*. Raises InfrastructureError and SourceError."""
    from docker.errors import APIError

    from pytest_paranoia.environments.docker.daemon import DAEMON, said

    tag = image_of(item, provider)
    with tempfile.TemporaryFile(prefix="paranoia-tree-") as stream, tempfile.TemporaryDirectory() as scratch:

        def take(client: Any) -> None:
            from pytest_paranoia.environments.docker.reaper import current
            from pytest_paranoia.environments.docker.settings import LABEL, OWNER_LABEL

            labels = {OWNER_LABEL: current().as_label(), f"{LABEL}.run": "look"}
            container = client.create_container(tag, command=["true"], labels=labels)["Id"]
            try:
                for chunk in client.get_archive(container, inside)[0]:
                    stream.write(chunk)
            finally:
                client.remove_container(container, v=True, force=True)

        try:
            DAEMON.call(f"take {inside} out of {tag}", take, total=TAKE_SECONDS, reason=REASON)
        except APIError as error:
            raise SourceError(f"{item.nodeid}: the image holds no folder {inside}: {said(error)}") from error
        stream.seek(0)
        with tarfile.open(fileobj=stream) as tar:
            # "tar" and not "data": a tree may hold links to places that only exist inside.
            tar.extractall(scratch, filter="tar")
        (top,) = Path(scratch).iterdir()
        shutil.copytree(top, target, symlinks=True, dirs_exist_ok=True)


def _recipe(item: HarborItem, provider: DockerProvider) -> tuple[str, bool]:
    """Return the Dockerfile to build, and whether ``--paranoia-docker-base`` takes the place of what it begins with."""
    path = item.environment_folder / DOCKERFILE
    text = path.read_text(encoding="utf-8") if path.is_file() else f"FROM {item.task.environment.docker_image}\n"
    if provider.settings.base is None:
        return text, False
    stages: set[str] = set()

    def swap(match: re.Match[str]) -> str:
        named = re.search(r"(?i)\bAS[ \t]+(\S+)", match["rest"])
        image = match["image"] if match["image"].lower() in stages else provider.base().pinned
        stages.update({named[1].lower()} if named else ())
        return f"FROM {match['flags']}{image}{match['rest']}"

    return _FROM.sub(swap, text), True


def _there(tag: str) -> bool:
    from docker.errors import ImageNotFound

    from pytest_paranoia.environments.docker.bases import inspect
    from pytest_paranoia.environments.docker.daemon import DAEMON

    try:
        DAEMON.call(f"look for the image {tag}", lambda client: inspect(client, tag), reason=REASON)
    except ImageNotFound:
        return False
    return True


def _build(item: HarborItem, text: str, tag: str, seconds: float, *, offline: bool) -> None:
    from docker.errors import APIError

    from pytest_paranoia.environments.docker.daemon import DAEMON, said

    shown = item.shown(item.environment_folder / DOCKERFILE)
    with tempfile.TemporaryFile(prefix="paranoia-image-") as context:
        with tarfile.open(fileobj=context, mode="w") as tar:
            if item.environment_folder.is_dir():
                tar.add(item.environment_folder, ".", filter=lambda one: None if one.name == f"./{DOCKERFILE}" else one)
            info = tarfile.TarInfo(DOCKERFILE)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))

        def build(client: Any) -> None:
            context.seek(0)
            latest = time.monotonic() + seconds
            # A base of the user's own is there for want of a registry: nothing else could be fetched either.
            options = {"network_mode": "none"} if offline else {}
            lines = client.build(
                fileobj=context,
                custom_context=True,
                tag=tag,
                decode=True,
                rm=True,
                forcerm=True,
                timeout=seconds,
                **options,
            )
            for line in lines:
                if line.get("error"):
                    raise InfrastructureError(
                        REASON,
                        f"{shown}: cannot be built: {' '.join(str(line['error']).split())}; where no registry can be "
                        "reached, --paranoia-docker-base names the image to begin with",
                    )
                if time.monotonic() > latest:
                    raise InfrastructureError(
                        REASON, f"{shown}: key 'environment.build_timeout_sec': {seconds:g} s are up"
                    )

        try:
            DAEMON.call(f"build the image {tag}", build, seconds=seconds, total=2 * seconds, reason=REASON)
        except APIError as error:
            raise InfrastructureError(REASON, f"{shown}: cannot be built: {said(error)}") from error
