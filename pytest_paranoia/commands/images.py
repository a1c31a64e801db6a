"""``paranoia images build|list|prune|base``: the images of the docker environment."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_paranoia.commands import base
from pytest_paranoia.corpus import content_root, load
from pytest_paranoia.errors import InfrastructureError, ManifestError, ParanoiaError
from pytest_paranoia.schema.manifest import Repository

if TYPE_CHECKING:
    from pytest_paranoia.environments.base import Ingredients
    from pytest_paranoia.environments.docker.bases import Base

PLAIN = "plain"


def register(commands: base.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "images",
        help="build, list and prune the images of the docker environment",
        description="The images of the docker environment: one per repository, built at its first use or here.",
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    building = actions.add_parser(
        "build",
        help="build the images of repositories now instead of at their first use",
        description="Prepare repositories and build their images; what is there already is left as it is.",
    )
    building.add_argument(
        "name", nargs="*", metavar="NAME", help=f"folder below tasks/pairs, or {PLAIN} for scenarios (default: all)"
    )
    building.add_argument("--items", type=Path, metavar="DIR", help="folder that holds tasks/ (default: the built-in)")
    building.add_argument("--recipe", action="store_true", help="print the recipes instead of building")
    building.set_defaults(run=run_build)
    listing = actions.add_parser("list", help="list the images with size, age and base", description="List the images.")
    listing.set_defaults(run=run_list)
    pruning = actions.add_parser(
        "prune",
        help="remove containers of killed sessions, and images that are out of date",
        description="Remove the containers that killed sessions have left, and all images but the newest of each "
        "repository on the base image of now. Nothing that is in use is removed.",
    )
    pruning.add_argument("--all", action="store_true", help="remove all images of trials")
    pruning.set_defaults(run=run_prune)
    making = actions.add_parser(
        "base",
        help="make a base image from this machine's own packages, where no registry can be reached",
        description="Make a base image from the Debian packages of this machine and the Python that runs this command. "
        "Nothing is downloaded. Once it is there, it is the default base.",
    )
    making.set_defaults(run=run_base)
    for one in (building, listing, pruning):
        one.add_argument("--base", metavar="IMAGE", help="base image, as in --paranoia-docker-base")


def run_build(options: argparse.Namespace) -> int:
    """Build images; one that fails does not keep the others from being built."""
    from pytest_paranoia.environments.docker import images

    wanted = list(_wanted(options.items, options.name))
    chosen = _base(options.base)
    code = base.OK
    for manifest in wanted:
        started = time.perf_counter()
        name = manifest.parent.name if manifest else PLAIN
        try:
            ingredients = _ingredients(manifest)
            if options.recipe:
                base.say([f"# {images.tag_of(chosen, ingredients)}", images.recipe(chosen, ingredients)])
                continue
            tag = images.tag_of(chosen, ingredients)
            there = any(tag in found["RepoTags"] for found in images.ours())
            image = images.ensure(chosen, ingredients)
        except ParanoiaError as error:
            print(f"paranoia: {name}: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
            code = base.FAILED
            continue
        did = "was built" if there else f"built in {time.perf_counter() - started:.1f} s"
        base.say([f"{name}: {did}, {image.tag} ({_short(image.id)})"])
    return code


def run_list(options: argparse.Namespace) -> int:
    """List the images, the newest of each repository first."""
    from pytest_paranoia.environments.docker import images

    current = _base_here(options.base)
    found = sorted(images.ours(), key=lambda one: (_label(one, "name"), -int(one["Created"])))
    if current is None:
        base.say(["no base image is here yet: `paranoia images build` fetches one, `paranoia images base` makes one"])
    else:
        base.say([f"base {current.name}: {current.digest}, Python {current.facts.version}, {current.facts.libc}"])
    for one in found:
        age = "" if current is None or _label(one, "base") == current.id else ", of another base"
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(int(one["Created"])))
        base.say([f"{_tag(one)}: {_short(one['Id'])}, {int(one['Size']) / 1e6:,.0f} MB with its base, {made}{age}"])
    rests = images.unfinished(bases=True)
    base.say([f"{len(found)} images", *([f"{len(rests)} without a name: `paranoia images prune`"] if rests else [])])
    return base.OK


def run_prune(options: argparse.Namespace) -> int:
    """Remove dead containers and old images."""
    from pytest_paranoia.environments.docker import images, locks, reaper
    from pytest_paranoia.environments.docker.bases import REASON

    _heard()
    failed = 0
    try:
        base.say([f"{len(reaper.reap())} containers of dead sessions removed"])
    except InfrastructureError as error:
        failed += _told(error)
    current = _base_here(options.base)
    with locks.idle(REASON) as idle:
        found = images.ours()
        kept = set() if options.all else {one["Id"] for one in _newest(found, current.id if current else None)}
        gone = [tag for one in found if one["Id"] not in kept for tag in one["RepoTags"]]
        gone += images.of_tasks() if options.all else []
        if idle:  # else a build may be about to begin with one of them
            bases = {_label(one, "base") for one in found if one["Id"] in kept}
            gone += [tag for identifier, tag in images.pinned() if identifier not in bases]
        for tag in gone:
            try:
                base.say([f"{tag}: {images.remove(tag)}"])
            except InfrastructureError as error:
                failed += _told(error)
        rests = images.tidy(bases=True) if idle else 0
    if rests:
        base.say([f"{rests} images without a name removed, of builds that were killed or bases made anew since"])
    if not idle:
        base.say(["an image is in the making: bases and what has no name stay; try again afterwards"])
    base.say([f"{len(images.ours())} images stay"])
    return base.FAILED if failed else base.OK


def _told(error: InfrastructureError) -> int:
    """Print what could not be removed and return 1; a daemon that is gone ends the command."""
    from pytest_paranoia.environments.docker.settings import GONE

    if error.reason == GONE:
        raise error
    print(f"paranoia: {error}", file=sys.stderr, flush=True)
    return 1


def run_base(_options: argparse.Namespace) -> int:
    """Make the base image."""
    from pytest_paranoia.environments.docker import machine

    started = time.perf_counter()
    _heard()
    name, identifier = machine.build()
    base.say([f"{name}: made in {time.perf_counter() - started:.1f} s ({_short(identifier)})"])
    return base.OK


def _base(name: str | None) -> Base:
    """Return the base image, fetched where it is not there."""
    from pytest_paranoia.environments.docker import bases
    from pytest_paranoia.environments.docker.settings import Settings

    _heard()
    return bases.resolve(Settings(base=name))


def _base_here(name: str | None) -> Base | None:
    """Return the base image; None where it is not there and none was named."""
    from pytest_paranoia.environments.docker import bases
    from pytest_paranoia.environments.docker.settings import Settings

    _heard()
    settings = Settings(base=name)
    if bases.there(settings):
        return bases.resolve(settings)
    if name is not None:
        raise InfrastructureError(bases.REASON, f"--base: there is no image {name} here; `docker images` lists all")
    return None


def _heard() -> None:
    """Raise InfrastructureError where no daemon answers, before anything is asked of it three times."""
    from pytest_paranoia.environments.docker.daemon import DAEMON
    from pytest_paranoia.environments.docker.settings import GONE

    if (silence := DAEMON.silence()) is not None:
        raise InfrastructureError(GONE, silence)


def _wanted(items: Path | None, names: list[str]) -> Iterator[Path | None]:
    """Yield the manifests of the named repositories, None for what scenarios use."""
    root = items if items is not None else content_root()
    found: dict[str, Path | None] = {PLAIN: None}
    found |= {path.parent.name: path for path in sorted(root.glob("tasks/pairs/*/repository.toml"))}
    if unknown := sorted(set(names) - set(found)):
        there = ", ".join(found)
        raise ManifestError(f"no repository {', '.join(unknown)} below {root / 'tasks/pairs'}; there: {there}")
    yield from (found[name] for name in dict.fromkeys(names) or found)


def _ingredients(manifest: Path | None) -> Ingredients:
    from pytest_paranoia.workspaces.prepare import plain_env, prepare_repository
    from pytest_paranoia.workspaces.stage import Stage

    if manifest is None:
        return Stage(start=Path(), commit=None, python_env=plain_env()).ingredients
    prepared = prepare_repository(manifest.parent, load(manifest, Repository, str(manifest)))
    return Stage(
        start=prepared.tree,
        commit=prepared.commit,
        python_env=prepared.python_env,
        repository=manifest.parent.name,
        pristine=prepared.tree,
    ).ingredients


def _newest(found: list[dict[str, Any]], base_id: str | None) -> list[dict[str, Any]]:
    newest: dict[str, dict[str, Any]] = {}
    for one in found:
        name = _label(one, "name")
        if base_id in (None, _label(one, "base")) and int(one["Created"]) > int(
            newest.get(name, {"Created": -1})["Created"]
        ):
            newest[name] = one
    return list(newest.values())


def _label(image: dict[str, Any], name: str) -> str:
    from pytest_paranoia.environments.docker.settings import LABEL

    return str((image.get("Labels") or {}).get(f"{LABEL}.{name}", ""))


def _tag(image: dict[str, Any]) -> str:
    return str(image["RepoTags"][0])


def _short(identifier: str) -> str:
    return identifier.removeprefix("sha256:")[:12]
