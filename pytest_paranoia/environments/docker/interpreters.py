"""Mounted virtual environments get the base's interpreter in place of the host's, as the one in an image does."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from pytest_paranoia.environments.base import Mount
from pytest_paranoia.workspaces import toolchain

CONFIG = "pyvenv.cfg"


def config(text: str, python: str) -> str:
    """Return the text of a ``pyvenv.cfg`` whose interpreter is *python*."""
    kept = [line for line in text.splitlines() if not line.startswith("home ")]
    return "\n".join([f"home = {os.path.dirname(python)}", *kept, ""])  # noqa: PTH120 -- a path inside


def links(env: Path) -> list[Path]:
    """Return the links in a virtual environment's ``bin`` that lead to an interpreter outside it."""
    found = sorted((env / "bin").glob("python*"))
    return [path for path in found if path.is_symlink() and path.readlink().is_absolute()]


def replaced(mount: Mount, python: str, folder: Path) -> Iterator[Mount]:
    """Yield what has to be mounted over *mount*, where that is a virtual environment of the tests' own interpreter.

    *python* is the base's interpreter: of the same minor version, so packages and byte code are good for it, but seldom
    at the same path. What is mounted is made in *folder*. Raises OSError.
    """
    env = mount.source
    if not (env / CONFIG).is_file():
        return
    # An environment of another interpreter brings that along.
    wrong = [path for path in links(env) if path.resolve() == toolchain.base_interpreter()]
    if not wrong or all(str(path.readlink()) == python for path in wrong):
        return
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier attempt
    folder.mkdir(parents=True)
    shutil.copytree(env / "bin", folder / "bin", symlinks=True)
    for path in wrong:
        link = folder / "bin" / path.name
        link.unlink()
        link.symlink_to(python)
    (folder / CONFIG).write_text(config((env / CONFIG).read_text(encoding="utf-8"), python), encoding="utf-8")
    # The trial's user may be another one than this process's.
    folder.joinpath("bin").chmod(0o755)
    folder.joinpath(CONFIG).chmod(0o644)
    yield Mount(folder / "bin", f"{mount.target}/bin")
    yield Mount(folder / CONFIG, f"{mount.target}/{CONFIG}")
