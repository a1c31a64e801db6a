"""The read-only tools of a judge.

Listing and reading happen in this process, on texts that were read before and on the start tree, of which no link is
followed. Searching and git run fixed programs in a sandbox of the environment provider that has the dossier and the
repository read-only; nothing of the run is executed anywhere.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pytest_paranoia.agents.chat.tools import SHOWN_CHARACTERS, Tool
from pytest_paranoia.environments.base import Environment, EnvironmentSpec, ExecResult, Limits, Mount
from pytest_paranoia.judging.case import Means
from pytest_paranoia.judging.llm.dossier import BEFORE, DIFF, REPOSITORY, RUN, Dossier
from pytest_paranoia.scoring.trees import FinalTree
from pytest_paranoia.workspaces.freezing import FrozenTree

DOSSIER, DOSSIER_TARGET = "dossier", "/dossier"
LISTED = 400
"""Most names of one listing."""
SECONDS = 30.0
"""Wall clock of one search or git command."""
_FILE = 2_000_000

_PATH = "path below run/ or repository/"
TOOLS = (
    Tool("list_files", "List a folder of the dossier.", {"path": ("string", f"{_PATH}; empty for the top", False)}),
    Tool(
        "read_file",
        "Return a file, or some of its lines.",
        {
            "path": ("string", _PATH, True),
            "start": ("integer", "the first line to return, counted from 1", False),
            "end": ("integer", "the last line to return", False),
        },
    ),
    Tool(
        "search",
        "Search files for an extended regular expression; returns path, line number and line.",
        {
            "regex": ("string", "a POSIX extended regular expression", True),
            "path": ("string", f"{_PATH}; empty for all of them", False),
        },
    ),
    Tool(
        "diff",
        "Return what the run changed in the workspace, as a unified diff.",
        {"path": ("string", "one changed file, as the workspace names it; empty for all", False)},
    ),
    Tool(
        "git_show",
        "Run git show in the repository at the start of the run.",
        {"object": ("string", "a revision, or REVISION:PATH; HEAD is the pinned revision", True)},
    ),
)


class Sandbox:
    """A place for fixed programs that has the dossier read-only; brought up on first use."""

    def __init__(self, means: Means, dossier: Dossier) -> None:
        self._means = means
        self._dossier = dossier
        self._stack = ExitStack()
        self._environment: Environment | None = None

    def run(self, argv: list[str]) -> ExecResult:
        """Run a program. Raises InfrastructureError where there is no sandbox."""
        return self._environment_().exec(argv, timeout=SECONDS)

    def inside(self, path: str) -> str:
        """Return the path inside of *path* of the dossier."""
        host = self._means.scratch / DOSSIER
        if path == REPOSITORY or path.startswith(f"{REPOSITORY}/"):
            host, path = self._means.start, path[len(REPOSITORY) :].lstrip("/")
        place = self._environment_().locate(host)
        return f"{place}/{path}" if path else place

    def _environment_(self) -> Environment:
        return self._environment or self._open()

    def _open(self) -> Environment:
        self._environment = environment = self._means.provider.create(dossier_spec(self._means, self._dossier))
        self._stack.callback(environment.stop)
        environment.start()
        return environment

    def close(self) -> None:
        """End the sandbox, where one was needed."""
        self._stack.close()
        self._environment = None


def dossier_spec(means: Means, dossier: Dossier) -> EnvironmentSpec:
    """Write *dossier* to disk and return an environment that has it, and the repository, read-only."""
    folder, workspace = means.scratch / DOSSIER, means.scratch / "workspace"
    for needed in (folder, workspace):
        needed.mkdir(exist_ok=True)
    (folder / REPOSITORY).mkdir(exist_ok=True)  # where the start tree is mounted
    dossier.write(folder)
    mounts = (
        Mount(folder, DOSSIER_TARGET),
        Mount(means.start, f"{DOSSIER_TARGET}/{REPOSITORY}"),
    )
    return EnvironmentSpec(workspace, means.scratch, mounts, env={"LANG": "C.UTF-8"}, limits=Limits(wall_clock=SECONDS))


class Reading:
    """Runs the tools on one dossier."""

    def __init__(self, dossier: Dossier, means: Means) -> None:
        self._dossier = dossier
        self._start = means.start
        self._tree = FinalTree(means.start, FrozenTree())
        self.sandbox = Sandbox(means, dossier)

    def run(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Run a call that has no ``problem`` and return its text."""
        runners: dict[str, Callable[..., str]] = {
            "list_files": self._list,
            "read_file": self._read,
            "search": self._search,
            "diff": self._diff,
            "git_show": self._git_show,
        }
        return runners[name](**{key: value for key, value in arguments.items() if value is not None})

    def close(self) -> None:
        """End the sandbox."""
        self.sandbox.close()

    def _list(self, path: str = "") -> str:
        path = _tidy(path)
        if path == "":
            return f"{RUN}/\n{REPOSITORY}/"
        if path == RUN or path.startswith(f"{RUN}/"):
            names = sorted(name for name in self._dossier.texts if name.startswith(f"{path}/"))
        elif path == REPOSITORY or path.startswith(f"{REPOSITORY}/"):
            names = self._names(path)
        else:
            names = []
        if not names:
            return f"{path}: no such folder; the dossier has {RUN}/ and {REPOSITORY}/"
        more = [f"[{len(names) - LISTED} more]"] if len(names) > LISTED else []
        return "\n".join([*names[:LISTED], *more])

    def _names(self, path: str) -> list[str]:
        """List one folder of the repository; links and what lies behind them are named, never entered."""
        parts = Path(path).parts[1:]
        folder = self._start
        for part in parts:
            folder = folder / part
            try:
                mode = os.lstat(folder).st_mode
            except (OSError, ValueError):
                return []
            if part == ".." or not stat.S_ISDIR(mode):
                return []
        found = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name != ".git":
                    sign = "@" if entry.is_symlink() else "/" if entry.is_dir(follow_symlinks=False) else ""
                    found.append(f"{path}/{os.fsencode(entry.name).decode('utf-8', 'backslashreplace')}{sign}")
        return sorted(found)

    def _text(self, path: str) -> str | None:
        if (text := self._dossier.texts.get(path)) is not None:
            return text
        if not path.startswith(f"{REPOSITORY}/") or path.startswith(f"{REPOSITORY}/.git/"):
            return None
        try:
            content = self._tree.base(path.removeprefix(f"{REPOSITORY}/"))
        except ValueError:  # a null byte
            return None
        if content is None:
            return None
        return "[binary]" if b"\0" in content[:8000] else content[:_FILE].decode("utf-8", "backslashreplace")

    def _read(self, path: str, start: int = 1, end: int | None = None) -> str:
        text = self._text(_tidy(path))
        if text is None:
            return f"{path}: no such file in the dossier; list_files shows what there is"
        lines = text.splitlines(keepends=True)
        first = max(start, 1)
        last = len(lines) if end is None else min(max(end, 0), len(lines))
        chosen = "".join(lines[first - 1 : last])
        if len(chosen) > SHOWN_CHARACTERS:
            whole = chosen[:SHOWN_CHARACTERS].count("\n")
            chosen = chosen[:SHOWN_CHARACTERS]
            return f"{chosen}\n[cut after {SHOWN_CHARACTERS} characters, in line {first + whole} of {len(lines)}]"
        if first > 1 or last < len(lines):
            return f"{chosen}\n[lines {first} to {last} of {len(lines)}]"
        return chosen or "[empty]"

    def _search(self, regex: str, path: str = "") -> str:
        path = _tidy(path)
        if not path.startswith((RUN, REPOSITORY)) and path:
            return f"{path}: no such path; the dossier has {RUN}/ and {REPOSITORY}/"
        inside = {one: self.sandbox.inside(one) for one in ([path] if path else [RUN, REPOSITORY])}
        options = ["-rnIE", "--exclude-dir=.git", "-m", "200", "-e", regex, "--"]
        result = self.sandbox.run(["grep", *options, *inside.values()])
        return _shown(result, "no line matches", {there: here for here, there in inside.items()})

    def _diff(self, path: str = "") -> str:
        if not path:
            return self._dossier.texts[DIFF] or "[the run changed nothing in the workspace]"
        pieces = self._dossier.texts[DIFF].split("\n--- ")
        name = path.removeprefix("./")
        found = [piece for piece in pieces if f"a/{name}\n" in piece[:4000] or f"b/{name}\n" in piece[:4000]]
        return "\n--- ".join(found) or f"{path}: not among the changed files (see run/frozen.json and {BEFORE})"

    def _git_show(self, object: str) -> str:
        if object.startswith("-"):
            return f"{object}: expected a revision or REVISION:PATH"
        where = self.sandbox.inside(REPOSITORY)
        git = ["git", "--no-pager", "-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-C", where]
        result = self.sandbox.run([*git, "show", "--no-ext-diff", "--no-textconv", "--no-color", object, "--"])
        return _shown(result, "[empty]")


def _tidy(path: str) -> str:
    path = path.strip().removeprefix(f"{DOSSIER_TARGET}/").removeprefix("./")
    return path.rstrip("/") if path not in (".", "/", DOSSIER_TARGET) else ""


def _shown(result: ExecResult, otherwise: str, replaced: Mapping[str, str] | None = None) -> str:
    text = result.stdout.decode("utf-8", "backslashreplace")
    for there, here in (replaced or {}).items():
        lines = text.split("\n")
        text = "\n".join(here + line[len(there) :] if line.startswith(there) else line for line in lines)
    if result.limit:
        return f"{text[:SHOWN_CHARACTERS]}\n[ended: limit {result.limit!r}]"
    if result.exit_code > 1 or (result.exit_code and result.stderr):
        return result.stderr.decode("utf-8", "backslashreplace")[-1000:].strip() or f"[status {result.exit_code}]"
    if len(text) > SHOWN_CHARACTERS:
        return f"{text[:SHOWN_CHARACTERS]}\n[cut after {SHOWN_CHARACTERS} characters]"
    return text.strip("\n") or otherwise


def signature(name: str, arguments: object) -> str:
    """Return what makes two calls the same call."""
    return f"{name} {json.dumps(arguments, sort_keys=True, default=str)}"
