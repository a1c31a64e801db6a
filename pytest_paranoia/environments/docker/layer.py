"""The one layer that an image adds to its base, as a tar file: dependencies, the repository, the user, mount points."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO

from pytest_paranoia.agents.cli.base import MOUNTED as AGENTS
from pytest_paranoia.environments import bubblewrap
from pytest_paranoia.environments.base import Ingredients
from pytest_paranoia.environments.docker import interpreters
from pytest_paranoia.environments.docker.settings import user

REPOSITORY = "opt/repository"
CONTROL = "/run/init"
"""Folder inside in which the server finds its socket, for as long as it takes to connect."""

MOMENT = 1_000_000_000
"""Time of what has none of its own; the same on every machine, as the layer should be."""

_FOLDERS = (bubblewrap.WORKSPACE, bubblewrap.HOME, CONTROL, AGENTS, "/opt/tools", "/var/lib/agent")


def write(ingredients: Ingredients | None, python: str, target: IO[bytes]) -> None:
    """Write the layer. *python* is the base's interpreter, that the virtual environment gets in place of the host's."""
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as tar:
        number, group = user()
        name, home = bubblewrap.USER, bubblewrap.HOME
        passwd = f"root:x:0:0:root:/root:/bin/sh\n{name}:x:{number}:{group}::{home}:/bin/sh\n"
        passwd += "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        add_text(tar, "etc/passwd", passwd)
        add_text(tar, "etc/nsswitch.conf", bubblewrap.NSSWITCH)
        add_text(tar, "etc/host.conf", bubblewrap.HOST_CONF)
        add_text(tar, "etc/group", f"root:x:0:\n{name}:x:{group}:\nnogroup:x:65534:\n")
        for folder in _FOLDERS:
            _folder(tar, folder.lstrip("/"), 0o755)
        if ingredients is None:
            return
        _environment(tar, ingredients, python)
        if ingredients.tree is not None:
            # Closed: to an agent it would show what a variant leaves out.
            _folder(tar, REPOSITORY, 0o700)
            for name, path in _entries(ingredients.tree):
                _copy(tar, f"{REPOSITORY}/{name}", path)


def _environment(tar: tarfile.TarFile, ingredients: Ingredients, python: str) -> None:
    env, place = ingredients.python_env, ingredients.target.lstrip("/")
    links = interpreters.links(env)
    _folder(tar, place, 0o755)
    for name, path in _entries(env):
        inside = f"{place}/{name}"
        if path in links:
            _link(tar, inside, python)
        elif name == interpreters.CONFIG:
            add_text(tar, inside, interpreters.config(path.read_text(encoding="utf-8"), python))
        else:
            _copy(tar, inside, path)


def _entries(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield (relative name, path) of all below *folder*, folders before what is in them, in a fixed order."""
    for where, folders, files in os.walk(folder):
        folders.sort()
        here = Path(where)
        for name in sorted((*folders, *files)):
            yield (here / name).relative_to(folder).as_posix(), here / name


def _copy(tar: tarfile.TarFile, name: str, path: Path) -> None:
    info = tar.gettarinfo(path, name)
    if info is None or not (info.isfile() or info.isdir() or info.issym() or info.islnk()):
        return
    if info.islnk():  # one of several names of a file: each gets its own
        info.type, info.linkname = tarfile.REGTYPE, ""
        info.size = path.lstat().st_size
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    # Byte code names its source's time in whole seconds, so nothing is lost.
    info.mtime = int(info.mtime)
    # The agent is nobody special to the image's files: what their owner may run and read, he may.
    info.mode = 0o755 if info.isdir() or info.mode & stat.S_IXUSR else 0o644
    if info.isfile():
        with path.open("rb") as stream:
            tar.addfile(info, stream)
    else:
        tar.addfile(info)


def _info(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.mtime = kind, mode, MOMENT
    return info


def _folder(tar: tarfile.TarFile, name: str, mode: int) -> None:
    tar.addfile(_info(name, tarfile.DIRTYPE, mode))


def _link(tar: tarfile.TarFile, name: str, target: str) -> None:
    info = _info(name, tarfile.SYMTYPE, 0o777)
    info.linkname = target
    tar.addfile(info)


def add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    """Add a file of root's with this text."""
    data = text.encode()
    info = _info(name, tarfile.REGTYPE, 0o644)
    info.size = len(data)
    tar.addfile(info, BytesIO(data))
