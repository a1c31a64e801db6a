"""A stage: all that is needed to bring up an item's workspace, any number of times."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pytest_paranoia.corpus import PairItem, ScenarioItem
from pytest_paranoia.environments.base import (
    Environment,
    EnvironmentProvider,
    EnvironmentSpec,
    Ingredients,
    Limits,
    Mount,
)
from pytest_paranoia.errors import SourceError
from pytest_paranoia.workspaces import service_front
from pytest_paranoia.workspaces.cache import cache_root
from pytest_paranoia.workspaces.laying import own, remove_tree
from pytest_paranoia.workspaces.prepare import (
    copy_tree,
    plain_env,
    prepare_repository,
    prepare_scenario,
    prepare_variant,
)

ENV_TARGET = "/opt/env"
TOOLS_TARGET = "/opt/tools"
TOOLS, PROGRAMS = "tools", "services"
SETUP_SECONDS = 120.0
# As tempfile makes them, so that nothing else with a similar name is ever removed.
_LOCK_NAME = re.compile(r"paranoia-[a-z0-9_]{8}\.lock")


@dataclass(frozen=True)
class Stage:
    """``start`` is the pristine tree (with ``.git``, one base ``commit`` for pairs); never written to."""

    start: Path
    commit: str | None
    python_env: Path
    pythonpath: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    repository: str = "plain"
    pristine: Path | None = None
    """The repository before a variant was laid over it, None where the item has none."""
    services: tuple[Path, ...] = ()
    inside: str = ""
    """Where a trial sees its workspace; empty: the environment's own place."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of the item's own; values may hold ``{workspace}``."""

    def spec(self, workspace: Path, scratch: Path, limits: Limits) -> EnvironmentSpec:
        """Return what an environment needs to run this stage's *workspace*."""
        mounts = [Mount(self.python_env, ENV_TARGET)]
        path = [self.python_env / "bin"]
        if self.services:
            # Copies, so that a service's file is executable and its neighbours stay out of sight. Each has a front on
            # PATH that notes its calls where somebody listens.
            tools = scratch / TOOLS
            programs = tools / PROGRAMS
            programs.mkdir(parents=True, exist_ok=True)
            for folder in (tools, programs):  # in a container a trial runs as another user; a umask may close them
                folder.chmod(0o755)
            for service in self.services:
                for source, target in ((service, programs), (Path(service_front.__file__), tools)):
                    shutil.copyfile(source, target / service.name)
                    (target / service.name).chmod(0o755)
            mounts.append(Mount(tools, TOOLS_TARGET))
            path.append(tools)
        env = {"LANG": "C.UTF-8", **self.env}
        if self.pythonpath:
            roots = ("{workspace}" if part == "." else f"{{workspace}}/{part}" for part in self.pythonpath)
            env["PYTHONPATH"] = ":".join(roots)
        return EnvironmentSpec(
            workspace, scratch, tuple(mounts), tuple(path), env, limits, (), self.inside, self.ingredients
        )

    @property
    def ingredients(self) -> Ingredients:
        """What all trials of the item's repository share."""
        return Ingredients(self.repository, self.python_env, ENV_TARGET, self.pristine, self.commit)

    @property
    def python(self) -> Path:
        """Host path of the interpreter that runs the item's code."""
        return self.python_env / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """Host path of the environment's packages."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.python_env / "lib" / version / "site-packages"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private folder for one trial or one check, gone afterwards; if this process is killed, after the next start.

    A lock file beside it tells the dead from the living: the kernel releases the lock with its holder, however that
    dies. A process id would not do, since containers that share a folder for temporary files do not share those.
    """
    lock, path = _new_lock()
    folder = _folder_of(path)
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        try:
            remove_tree(folder)
        except KeyboardInterrupt:
            # A worker that is slow to end after Ctrl-C gets another interrupt from execnet.
            remove_tree(folder)
            raise
        finally:
            path.unlink(missing_ok=True)
            os.close(lock)


def _folder_of(lock: Path) -> Path:
    """The folder that *lock* holds. An agent can read its name (/proc/self/mountinfo), which must not speak of us."""
    return lock.with_name(lock.stem.replace("paranoia-", "tmp", 1))


def _new_lock() -> tuple[int, Path]:
    while True:
        lock, name = tempfile.mkstemp(prefix="paranoia-", suffix=".lock")
        path = Path(name)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:  # no locks here: without its file nobody can take the folder for dead
            path.unlink()
            return lock, path
        if path.exists():
            return lock, path
        os.close(lock)  # somebody reaped it before it was locked


def reap_scratch_folders() -> int:
    """Remove the scratch folders of processes that were killed; return how many. Those of other users stay."""
    reaped = 0
    for path in Path(tempfile.gettempdir()).iterdir():
        if not _LOCK_NAME.fullmatch(path.name):
            continue
        with suppress(OSError):  # held, gone meanwhile, or not ours
            lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                folder = _folder_of(path)
                if os.fstat(lock).st_uid != os.geteuid():
                    continue
                if folder.is_dir() and not folder.is_symlink():
                    remove_tree(folder)
                    reaped += 1
                path.unlink()
            finally:
                os.close(lock)
    return reaped


_known: dict[tuple[Path, str, str, str], Stage] = {}


def _once(item: PairItem | ScenarioItem, kind: str, prepare: Callable[[], Stage]) -> Stage:
    """Return what *prepare* gives, asked once per process: even finding it prepared hashes sources and services."""
    key = (cache_root(), item.nodeid, item.hash, kind)
    stage = _known.get(key)
    if stage is None or not (stage.start.is_dir() and stage.python_env.is_dir()):
        stage = _known[key] = prepare()
    return stage


def stage_pair(item: PairItem, variant: str) -> Stage:
    """Prepare the repository (once per machine) and the variant of a pair. Raises SourceError."""
    return _once(item, variant, lambda: _stage_pair(item, variant))


def _stage_pair(item: PairItem, variant: str) -> Stage:
    prepared = prepare_repository(item.repository_folder, item.repository)
    overlay, deletes = item.overlay(variant)
    start = prepare_variant(prepared, overlay=overlay, deletes=deletes)
    return Stage(
        start=start,
        commit=prepared.commit,
        python_env=prepared.python_env,
        repository=item.repository_folder.name,
        pristine=prepared.tree,
        pythonpath=tuple(item.repository.pythonpath),
        packages=tuple(item.repository.packages),
    )


def stage_scenario(item: ScenarioItem, provider: EnvironmentProvider) -> Stage:
    """Prepare a scenario's workspace (once per machine): its files, then setup.sh inside the environment."""
    return _once(item, provider.name, lambda: _stage_scenario(item, provider))


def _stage_scenario(item: ScenarioItem, provider: EnvironmentProvider) -> Stage:
    services = tuple(item.services)
    env = plain_env()

    def setup(tree: Path) -> None:
        script = (item.folder / "setup.sh").read_bytes()
        with scratch_folder() as scratch:
            stage = Stage(start=tree, commit=None, python_env=env, services=services)
            environment = provider.create(stage.spec(tree, scratch, Limits(wall_clock=SETUP_SECONDS)))
            run_setup(environment, script, item.shown(item.folder / "setup.sh"))
        if provider.owner is not None:
            own(tree, os.geteuid(), os.getegid())

    start = prepare_scenario(item.folder, services, setup)
    return Stage(start=start, commit=None, python_env=env, services=services)


def run_setup(environment: Environment, script: bytes, shown: str) -> None:
    """Run a scenario's setup script. Raises SourceError with its output."""
    environment.start()
    try:
        # Through stdin would let a command in the script eat the rest of it.
        result = environment.exec(["bash", "-euo", "pipefail", "-c", script.decode("utf-8")])
    finally:
        environment.stop()
    if result.exit_code or result.limit:
        text = (result.stdout + result.stderr).decode("utf-8", "replace").strip()[-1500:]
        raise SourceError(
            f"{shown}: exit status {result.exit_code}{f', limit {result.limit}' if result.limit else ''}\n{text}"
        )


def fresh_copy(stage: Stage, target: Path) -> Path:
    """Copy the start tree to *target* (which must not exist) and return it."""
    copy_tree(stage.start, target)
    return target
