"""The start tree of a Harbor task: what its recipe puts below the working directory, then ``setup.sh``."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_paranoia.corpus import PairItem, ScenarioItem
from pytest_paranoia.environments.base import EnvironmentProvider, Limits, Mount
from pytest_paranoia.errors import InfrastructureError, SourceError
from pytest_paranoia.harbor import images
from pytest_paranoia.harbor.items import HarborItem
from pytest_paranoia.harbor.recipe import SETUP, Recipe, read_recipe
from pytest_paranoia.harbor.task import template
from pytest_paranoia.schema.taxonomy import Variant
from pytest_paranoia.workspaces import git
from pytest_paranoia.workspaces.cache import cached, digest, tree_digest
from pytest_paranoia.workspaces.prepare import plain_env
from pytest_paranoia.workspaces.stage import Stage, scratch_folder, stage_pair, stage_scenario

if TYPE_CHECKING:
    from pytest_paranoia.environments.docker.provider import DockerProvider

STAGING_VERSION = "1"
RECIPE_TARGET = "/opt/recipe"


def stage_of(item: PairItem | ScenarioItem, variant: Variant | None, provider: EnvironmentProvider) -> Stage:
    """Return where trials of *item* begin, whatever kind it is, prepared on first use. Raises SourceError."""
    if isinstance(item, PairItem):
        return stage_pair(item, variant or "E+")
    if isinstance(item, HarborItem):
        return stage_task(item, provider)
    return stage_scenario(item, provider)


def stage_task(item: HarborItem, provider: EnvironmentProvider) -> Stage:
    """Prepare a task's workspace, once per machine, and return where trials begin. Raises SourceError."""
    if (reason := provider.isolation()) is not None:
        # Its scripts say /app, and on the machine itself that would be the machine's.
        raise InfrastructureError("not-isolated", f"{item.nodeid}: Harbor tasks never run without isolation: {reason}")
    shown = item.shown(item.environment_folder)
    recipe = read_recipe(item.environment_folder, item.task.environment.workdir, shown)
    own = {name: template(text) or "" for name, text in item.task.environment.env.items()}
    env = {**recipe.env, **own, "APP_DIR": recipe.inside}
    containers = images.docker(provider) if images.has_recipe(item) else None
    if containers is not None:
        return _of_image(item, containers, recipe, env)
    setup = item.environment_folder / SETUP
    if recipe.builds and not setup.is_file():
        raise SourceError(
            f"{shown}/Dockerfile: key 'RUN': the workspace is built by commands of the image, and there is no {SETUP}; "
            "this task needs --paranoia-environment=docker"
        )
    seconds = item.task.environment.build_timeout_sec
    programs = _programs(item, recipe)

    def build(entry: Path) -> None:
        tree = entry / "tree"
        tree.mkdir()
        for copy in recipe.copies:
            copy_into(item.environment_folder, copy.source, tree, copy.target, copy.into, shown)
        if setup.is_file():
            _run_setup(item, provider, _stage(tree, recipe, env, programs), seconds, f"{shown}/{SETUP}")
        if (tree / ".git").is_dir():
            git.configure(tree)
            git.refresh(tree)

    content = tree_digest(item.environment_folder) if item.environment_folder.is_dir() else ""
    key = digest(STAGING_VERSION, provider.name, content, repr(sorted(env.items())), recipe.inside)
    name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in item.folder.name)[:60]
    return _stage(cached("harbor", f"{name}-{key[:24]}", build) / "tree", recipe, env, programs)


def _of_image(item: HarborItem, provider: DockerProvider, recipe: Recipe, env: dict[str, str]) -> Stage:
    """Return the stage whose start tree the task's own image holds."""

    def build(entry: Path) -> None:
        tree = entry / "tree"
        tree.mkdir()
        images.start_tree(item, provider, recipe.inside, tree)
        if (tree / ".git").is_dir():
            git.configure(tree)
            git.refresh(tree)

    tag = images.image_of(item, provider)
    key = digest(STAGING_VERSION, tag, recipe.inside)[:24]
    return _stage(cached("harbor", f"image-{key}", build) / "tree", recipe, env, ())


def remarks(item: HarborItem, provider: EnvironmentProvider) -> list[str]:
    """Return what of a task has no effect in this environment: keys, judge files, parts of the recipe."""
    found = [f"no effect here: {note}" for note in item.notes]
    if provider.name == "local":
        shown = item.shown(item.environment_folder)
        recipe = read_recipe(item.environment_folder, item.task.environment.workdir, shown)
        found += [f"not done of the recipe: {line}" for line in recipe.left_out]
    return found


def _stage(tree: Path, recipe: Recipe, env: dict[str, str], programs: tuple[Path, ...]) -> Stage:
    return Stage(start=tree, commit=None, python_env=plain_env(), services=programs, inside=recipe.inside, env=env)


def _programs(item: HarborItem, recipe: Recipe) -> tuple[Path, ...]:
    """Return the files that the recipe puts on PATH; they are shown there as services are."""
    found: list[Path] = []
    for source in recipe.programs:
        path = item.environment_folder / source
        if not path.resolve().is_relative_to(item.environment_folder.resolve()) or not path.exists():
            shown = item.shown(item.environment_folder)
            raise SourceError(f"{shown}/Dockerfile: key 'COPY': no {source!r} in the environment folder; add it")
        found += sorted(path.iterdir()) if path.is_dir() else [path]
    return tuple(found)


def copy_into(folder: Path, source: str, tree: Path, target: str, into: bool, shown: str) -> None:
    """Copy *source* below *folder* to *target* below *tree*, as COPY does. Raises SourceError."""
    found = sorted(folder.glob(source)) if any(mark in source for mark in "*?[") else [folder / source]
    found = [path for path in found if path.resolve().is_relative_to(folder.resolve()) and path.exists()]
    if not found:
        raise SourceError(f"{shown}/Dockerfile: key 'COPY': no {source!r} in the environment folder; add it")
    for path in found:
        place = tree / target
        if path.is_dir():
            shutil.copytree(path, place, symlinks=True, dirs_exist_ok=True)
            continue
        place = place / path.name if into or place.is_dir() or len(found) > 1 else place
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place, follow_symlinks=False)


def _run_setup(item: HarborItem, provider: EnvironmentProvider, stage: Stage, seconds: float, shown: str) -> None:
    with scratch_folder() as scratch:
        spec = stage.spec(stage.start, scratch, Limits(wall_clock=seconds))
        mounts = (*spec.mounts, Mount(item.environment_folder, RECIPE_TARGET))
        environment = provider.create(replace(spec, mounts=mounts))
        environment.start()
        try:
            result = environment.exec(["bash", f"{RECIPE_TARGET}/{SETUP}"])
        finally:
            environment.stop()
    if result.exit_code or result.limit:
        text = (result.stdout + result.stderr).decode("utf-8", "replace").strip()[-1500:]
        ended = f", limit {result.limit}" if result.limit else ""
        raise SourceError(f"{shown}: exit status {result.exit_code}{ended}\n{text}")
