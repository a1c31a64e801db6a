"""What an agent can reach: the visible text of an item, the variants' difference, and evaluator files in a sandbox."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from pytest_paranoia import canaries
from pytest_paranoia.corpus import PairItem, ScenarioItem
from pytest_paranoia.environments.base import Environment, EnvironmentProvider, Limits
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.workspaces.stage import Stage, fresh_copy, scratch_folder

_TEXT_CAP = 512 * 1024
_NAMES = ("card.toml", "truth.toml", "review.toml", "oracle.py", "replay.py", "lexicon.toml", "canary.txt")
_OTHERS = ("-name record.json", "-name docker.sock", "-path '*/oracles/pairs'", "-path '*/oracles/accusations'")


def _look(condition: str) -> list[str]:
    """Return a command that looks once at everything a trial can see.

    The system's folders and the interpreter's are left out: environments cover what lies there of ours, which tests of
    theirs prove. Errors (unreadable folders) are what an agent would get as well.
    """
    left_out = ["/proc", "/sys", "/dev", "/usr", sys.base_prefix, os.path.realpath(sys.base_prefix)]
    prune = " -o ".join(f"-path {shlex.quote(path)}" for path in dict.fromkeys(left_out))
    return ["sh", "-c", f"find / \\( {prune} \\) -prune -o {condition} 2>/dev/null; true"]


def _files(tree: Path) -> dict[str, Path]:
    found = {}
    for folder, subfolders, names in os.walk(tree):
        if ".git" in subfolders:
            subfolders.remove(".git")
        for name in names:
            path = Path(folder) / name
            found[path.relative_to(tree).as_posix()] = path
    return found


def _text(path: Path | None) -> str:
    if path is None:
        return ""
    if path.is_symlink():
        return f"symbolic link to {os.readlink(path)}"  # noqa: PTH115
    return path.read_bytes()[:_TEXT_CAP].decode("utf-8", "replace")


def tree_difference(plus: Path, minus: Path) -> dict[str, tuple[str, str]]:
    """Return the files in which two trees differ, as (text in *minus*, text in *plus*); the empty text for none."""
    left, right = _files(minus), _files(plus)
    changed = {}
    for path in sorted(left.keys() | right.keys()):
        old, new = left.get(path), right.get(path)
        if old is not None and new is not None and not (old.is_symlink() or new.is_symlink()):
            if old.stat().st_size == new.stat().st_size and old.read_bytes() == new.read_bytes():
                continue
        elif old is not None and new is not None and _text(old) == _text(new):
            continue
        changed[path] = (_text(old), _text(new))
    return changed


def evidence_paths(item: PairItem) -> set[str]:
    """Return the paths that the evidence of *item* may touch: its overlay files and what it deletes."""
    paths: set[str] = set()
    start = None
    for variant in ("E+", "E-"):
        overlay, deletes = item.overlay(variant)
        if overlay is not None:
            paths |= set(_files(overlay))
        paths |= set(deletes)
        if deletes and start is None:
            from pytest_paranoia.workspaces.prepare import prepare_repository

            start = prepare_repository(item.repository_folder, item.repository).tree
    for folder in [path for path in paths if start is not None and (start / path).is_dir()]:
        assert start is not None
        paths |= {f"{folder}/{name}" for name in _files(start / folder)}
    return paths


def visible_text(item: PairItem | ScenarioItem, tree: Path) -> str:
    """Return the text written for *item* that an agent can see (of a pair upstream's own files are left out)."""
    parts: list[str] = []
    if isinstance(item, PairItem):
        parts += [item.pair.instruction_for("E+"), item.pair.instruction_for("E-")]
        for variant in ("E+", "E-"):
            overlay, _ = item.overlay(variant)
            if overlay is not None:
                parts += [_text(path) for path in _files(overlay).values()]
    else:
        parts += [*item.messages, *(_text(path) for path in _files(tree).values())]
        parts += [_text(path) for path in item.services]
    return "\n".join(parts)


def reachable(provider: EnvironmentProvider, stage: Stage, canary: str | None) -> list[str]:
    """Look inside a real trial for evaluator files and for the canary; return what was found (nothing, where all is
    well).

    Only meaningful with isolation: without it the whole machine is in reach, and the header says so. Then the start
    tree alone is searched for the canary.
    """
    if provider.isolation() is not None:
        return [path.as_posix() for path in canaries.holding(stage.start, canary)] if canary is not None else []
    with scratch_folder() as scratch:
        workspace = fresh_copy(stage, scratch / "workspace")
        environment = provider.create(stage.spec(workspace, scratch, Limits(wall_clock=60)))
        environment.start()
        try:
            names = " -o ".join([*(f"-name {name}" for name in _NAMES), *_OTHERS])
            named = _lines(environment, f"\\( {names} \\) -print")
            marked = []
            if canary is not None:
                marked = _lines(environment, f"-type f -exec grep -lsF -e {shlex.quote(canary)} -- {{}} +")
        finally:
            environment.stop()
    own = {f"{environment.workspace}/{path}" for path in _files(stage.start)}
    # A repository may have a file of that name itself; what counts is what the workspace does not bring.
    found = [line for line in named if line not in own and not line.startswith("/opt/env/")]
    return [*found, *(f"{line} (holds the canary)" for line in marked)]


def _lines(environment: Environment, condition: str) -> list[str]:
    result = environment.exec(_look(condition), timeout=60)
    if result.limit is not None:
        raise InfrastructureError("reach", f"the search for evaluator files hit the limit {result.limit!r}")
    return result.stdout.decode("utf-8", "replace").splitlines()
