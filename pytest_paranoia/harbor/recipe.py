"""The recipe of a Harbor task's environment, as far as it can be followed without building an image.

What a ``Dockerfile`` copies below the working directory, and ``setup.sh`` with APP_DIR: that is the local environment's
share. The rest of a recipe (packages, tools) is named, not done; a recipe that needs it belongs into docker.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from pytest_paranoia.errors import SourceError

APP = "/app"
DOCKERFILE, SETUP = "Dockerfile", "setup.sh"
_PROGRAMS = frozenset({"/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/bin"})
_SILENT = frozenset(
    {"FROM", "WORKDIR", "COPY", "ADD", "ENV", "ARG", "LABEL", "EXPOSE", "MAINTAINER", "CMD", "ENTRYPOINT"}
)


@dataclass(frozen=True)
class Copy:
    """``source`` (below the environment folder) goes to ``target`` (relative to the workspace, "." for itself)."""

    source: str
    target: str
    into: bool
    """Whether the target is a folder that gets the source, not the source's new name."""


@dataclass
class Recipe:
    """What of a recipe is done, and what is not. ``inside`` is where the workspace lies."""

    inside: str = APP
    copies: list[Copy] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    programs: list[str] = field(default_factory=list)
    """Sources that go into a folder of PATH."""
    left_out: list[str] = field(default_factory=list)
    builds: bool = False
    """Whether some RUN does more than call the setup script."""


def read_recipe(folder: Path, workdir: str | None, shown: str) -> Recipe:
    """Read ``Dockerfile`` in the environment *folder*; *workdir* is the task's own. Raises SourceError."""
    path = folder / DOCKERFILE
    recipe = Recipe()
    if not path.is_file():
        recipe.inside = posixpath.normpath(workdir or APP)
        return recipe
    try:
        lines = instructions(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{shown}/{DOCKERFILE}: not readable as text in UTF-8: {error}") from None
    current, copied = "/", []
    for word, rest in lines:
        if word == "WORKDIR":
            current = posixpath.normpath(posixpath.join(current, rest.strip().strip('"')))
        elif word in ("COPY", "ADD"):
            copied.append((current, rest))
        elif word == "ENV":
            recipe.env |= variables(rest)
        elif word == "RUN" and re.search(rf"\b{re.escape(SETUP)}\b", rest):
            continue
        elif word == "RUN":
            recipe.builds = True
            recipe.left_out.append(f"RUN {rest}")
        elif word not in _SILENT:
            recipe.left_out.append(f"{word} {rest}")
    recipe.inside = posixpath.normpath(workdir or (current if current != "/" else APP))
    recipe.env.pop("PATH", None)
    for here, rest in copied:
        _copy(recipe, here, rest)
    return recipe


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile: (word in capitals, the rest), continuation lines joined."""
    found: list[tuple[str, str]] = []
    joined = ""
    waiting: str | None = None
    for line in text.splitlines():
        if waiting is not None:
            # A here-document belongs to the instruction before it.
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{line}")
            waiting = None if line.strip() == waiting else waiting
            continue
        bare = line.strip()
        if bare.startswith("#") or not (bare or joined):
            continue
        if bare.endswith("\\"):
            joined += bare[:-1].rstrip() + " "
            continue
        word, _, rest = (joined + bare).partition(" ")
        joined = ""
        found.append((word.upper(), rest.strip()))
        if mark := re.search(r"<<-?[\"']?(\w+)", rest):
            waiting = mark[1]
    return found


def variables(rest: str) -> dict[str, str]:
    """Return what an ``ENV`` sets: ``K=V …`` or ``K V``."""
    words = shlex.split(rest)
    if words and "=" not in words[0]:
        return {words[0]: " ".join(words[1:])}
    return dict(word.split("=", 1) for word in words if "=" in word)


def _copy(recipe: Recipe, here: str, rest: str) -> None:
    words = [str(word) for word in json.loads(rest)] if rest.startswith("[") else shlex.split(rest)
    flags = [word for word in words if word.startswith("--")]
    names = [word for word in words if not word.startswith("--")]
    if any(flag.startswith("--from") for flag in flags) or len(names) < 2 or any("://" in name for name in names):
        recipe.left_out.append(f"COPY {rest}")
        return
    *sources, target = names
    place = posixpath.normpath(posixpath.join(here, target))
    into = target.endswith("/") or len(sources) > 1 or target in (".", "./")
    for source in sources:
        if place == recipe.inside or place.startswith(recipe.inside + "/"):
            recipe.copies.append(Copy(source, posixpath.relpath(place, recipe.inside), into))
        elif place in _PROGRAMS:
            recipe.programs.append(source)
        elif posixpath.basename(source) != SETUP:
            recipe.left_out.append(f"COPY {source} {target}")
