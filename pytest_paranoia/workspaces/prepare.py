"""Prepare repositories and scenarios once per machine; later calls, in any process, find the finished folders."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_paranoia.errors import SourceError
from pytest_paranoia.schema.manifest import Repository
from pytest_paranoia.workspaces import git, importing, sources, toolchain
from pytest_paranoia.workspaces.cache import cache_root, cached, digest, tree_digest
from pytest_paranoia.workspaces.metadata import ProjectMetadata, read_metadata

__all__ = ["PreparedRepository", "copy_tree", "plain_env", "prepare_repository", "prepare_scenario", "prepare_variant"]

# Raised with every change that alters what an import makes of the same input.
IMPORTER_VERSION = "2"

plain_env = toolchain.plain_env


@dataclass(frozen=True)
class PreparedRepository:
    """A repository on this machine. ``tree`` is pristine (one commit, never written to); ``python_env`` a venv."""

    tree: Path
    commit: str
    python_env: Path


def prepare_repository(manifest_folder: Path, repository: Repository) -> PreparedRepository:
    """Fetch, strip, commit and give an environment to a repository, or find all that done. Raises SourceError."""
    manifest = manifest_folder / "repository.toml"
    # A lock that cannot be used is told before anything is fetched.
    lock = manifest_folder / repository.requirements if repository.requirements else None
    if lock:
        toolchain.checked_lock(lock)
    imported = import_repository(manifest_folder, repository)
    info = _info(imported)
    if info["commit"] != repository.commit:
        pinned = "not pinned yet" if not repository.commit.strip("0") else f"expected {repository.commit}"
        raise SourceError(
            f'{manifest}: commit: {pinned}, the import commit is {info["commit"]}; set commit = "{info["commit"]}" '
            "if the source is the one you mean"
        )
    project = ProjectMetadata(**info["project"]) if info["project"] else None
    env = toolchain.build_env(lock, project, repository.packages, name=manifest_folder.name, shown=str(manifest))
    return PreparedRepository(imported / "tree", info["commit"], env)


def import_repository(manifest_folder: Path, repository: Repository) -> Path:
    """Return the cached import of a repository: ``tree`` and ``info.json``. The commit is not compared."""
    manifest = manifest_folder / "repository.toml"
    source = repository.source
    sources.verify_folder(manifest, source)

    def build(folder: Path) -> None:
        tree = folder / "tree"
        tree.mkdir()
        sources.place(manifest, source, tree)
        project = read_metadata(tree)
        try:
            importing.refuse_escapes(tree)
            importing.strip(tree, repository.strip)
        except SourceError as error:
            raise SourceError(f"{manifest}: {error}") from error
        importing.settle(tree)
        commit = git.commit_tree(tree, respect_gitignore=repository.respect_gitignore)
        info = {
            "commit": commit,
            "respect_gitignore": repository.respect_gitignore,
            "project": project.as_json() if project else None,
        }
        (folder / "info.json").write_text(json.dumps(info, indent=1))

    return cached("repositories", _entry(manifest_folder, repository), build)


def is_imported(manifest_folder: Path, repository: Repository) -> bool:
    """Say whether ``import_repository`` would find its work done. Nothing is made."""
    return (cache_root() / "repositories" / _entry(manifest_folder, repository)).exists()


def _entry(manifest_folder: Path, repository: Repository) -> str:
    options = json.dumps([repository.respect_gitignore, sorted(repository.strip)])
    identity = sources.identity(repository.source)
    name = importing.normalised(manifest_folder.name)
    return f"{name}-{digest(IMPORTER_VERSION, identity, options)[:24]}"


def _info(imported: Path) -> dict[str, Any]:
    info: dict[str, Any] = json.loads((imported / "info.json").read_text())
    return info


def prepare_variant(prepared: PreparedRepository, *, overlay: Path | None, deletes: Sequence[str]) -> Path:
    """Return the tree of one variant: the pristine tree with *overlay* laid over it and *deletes* removed.

    Its history is one commit with the same identity, date and message, so nothing tells what was laid over.
    """
    if overlay is None and not deletes:
        return prepared.tree

    def build(folder: Path) -> None:
        tree = folder / "tree"
        copy_tree(prepared.tree, tree)
        # A repository of its own, not an amended one: no object of the other state is left behind.
        importing.remove(tree / ".git", tree)
        for name in deletes:
            path = tree / name
            if not path.resolve().is_relative_to(tree.resolve()) or not (path.exists() or path.is_symlink()):
                raise SourceError(f"deletes: {name!r} is not in the repository at commit {prepared.commit}")
            importing.remove(path, tree)
        if overlay is not None:
            importing.copy_content(overlay, tree)
            importing.refuse_escapes(tree)
        importing.settle(tree)
        git.commit_tree(tree, respect_gitignore=_info(prepared.tree.parent)["respect_gitignore"])

    content = tree_digest(overlay) if overlay is not None else ""
    key = digest(IMPORTER_VERSION, prepared.tree.parent.name, prepared.commit, content, *sorted(deletes))
    return cached("variants", key[:40], build) / "tree"


def prepare_scenario(folder: Path, services: Sequence[Path], run_setup: Callable[[Path], None]) -> Path:
    """Return the start tree of a scenario: ``workspace/``, then *run_setup* on it where there is a ``setup.sh``.

    Where that leaves no repository the tree becomes one with a single commit.
    """

    def build(entry: Path) -> None:
        tree = entry / "tree"
        tree.mkdir()
        if (folder / "workspace").is_dir():
            importing.copy_content(folder / "workspace", tree)
            importing.refuse_escapes(tree)
        importing.settle(tree)
        if (folder / "setup.sh").is_file():
            run_setup(tree)
        if (tree / ".git").exists():
            git.configure(tree)
            git.refresh(tree)
        else:
            importing.settle(tree)
            git.commit_tree(tree, respect_gitignore=True)

    parts = [part for service in services for part in (service.name, tree_digest(service))]
    key = digest(IMPORTER_VERSION, tree_digest(folder), *parts)
    return cached("scenarios", f"{folder.parent.name}-{folder.name}-{key[:24]}", build) / "tree"


def copy_tree(source: Path, target: Path) -> None:
    """Copy a prepared tree to *target*, which must not exist, with modes and times, so that git finds it clean.

    ``cp`` shares blocks or lets the kernel copy, and takes half the CPU of shutil.copytree. Owners are not
    copied: git distrusts a repository of somebody else.
    """
    argv = ["cp", "-dR", "--no-target-directory", "--preserve=mode,timestamps", "--reflink=auto", "--"]
    if target.exists():
        raise FileExistsError(f"{target} exists already")
    done = subprocess.run([*argv, str(source), str(target)], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        raise OSError(f"copy of {source} to {target} failed: {done.stderr.decode(errors='replace').strip()}")
