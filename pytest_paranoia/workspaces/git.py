"""git under conditions that depend on nothing but the tree: one commit with the same id on every machine."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_paranoia.errors import SourceError
from pytest_paranoia.workspaces.process import Finished, run_tool

GIT_SECONDS = 300.0

AUTHOR = "Maintainers"
EMAIL = "maintainers@example.org"
MESSAGE = "Initial import"
# After the newest pinned release, and in the past: index entries older than the index are never "racily clean".
MOMENT = 1795770000  # 2026-11-27T09:00:00Z

# The highest-ranking attributes. Bytes in the tree are bytes in the commit, whatever upstream's .gitattributes say
# about line ends and filters; without this a touched file with CRLF shows as modified.
_ATTRIBUTES = "* -text -filter -ident -working-tree-encoding\n"

# What running tests, tools and builds leaves behind, so that it is no change of the agent's.
_EXCLUDE = """\
*.egg-info/
.eggs/
__pycache__/
*.py[cod]
.pytest_cache/
.mypy_cache/
.ruff_cache/
.hypothesis/
.benchmarks/
.tox/
.nox/
.coverage
.coverage.*
htmlcov/
/build/
/dist/
"""

# A per-trial copy keeps size and mtime only: with the first two git trusts them and re-reads no file. The others: never
# a background process in a trial, nor a CPU second for packing.
_CONFIG = """\
[core]
\tcheckStat = minimal
\ttrustctime = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""

# So that a commit inside a trial works without any global configuration.
_USER = f"""\
[user]
\tname = {AUTHOR}
\temail = {EMAIL}
"""


def clean_environment() -> dict[str, str]:
    """Return an environment in which git reads no configuration outside the repository."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "TZ": "UTC",
        # Not only the config: excludes and attributes are also read below HOME and XDG_CONFIG_HOME.
        "HOME": "/nonexistent",
        "XDG_CONFIG_HOME": "/nonexistent",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": AUTHOR,
        "GIT_AUTHOR_EMAIL": EMAIL,
        "GIT_AUTHOR_DATE": f"@{MOMENT} +0000",
        "GIT_COMMITTER_NAME": AUTHOR,
        "GIT_COMMITTER_EMAIL": EMAIL,
        "GIT_COMMITTER_DATE": f"@{MOMENT} +0000",
    }


# Probed from the file system by `git init` otherwise, and then part of what ends up in the commit.
_FIXED = (
    *("-c", "core.fileMode=true"),
    *("-c", "core.symlinks=true"),
    *("-c", "core.ignoreCase=false"),
    *("-c", "core.precomposeUnicode=false"),
    *("-c", "core.autocrlf=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.fsync=none"),
    *("-c", "safe.directory=*"),  # a container may have made the files as somebody else
    *("-c", "gc.auto=0"),
)


def try_git(tree: Path, *arguments: str) -> Finished:
    """Run git in *tree* and return how it ended."""
    return run_tool(["git", *_FIXED, *arguments], cwd=tree, env=clean_environment(), seconds=GIT_SECONDS)


def git(tree: Path, *arguments: str) -> str:
    """Run git in *tree* and return its output. Raises SourceError where it fails."""
    done = try_git(tree, *arguments)
    if done.status:
        raise SourceError(f"git {arguments[0]} failed in {tree}: {done.complaint()}\n{done.tail()}")
    return done.output.strip()


def init(tree: Path, *extra: str) -> None:
    """Make *tree* an empty repository: branch main, sha1 ids, no hooks or templates."""
    git(tree, "init", "--quiet", "--template=", "--object-format=sha1", "--initial-branch=main", *extra)
    info = tree / "info" if "--bare" in extra else tree / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text(_ATTRIBUTES)


def commit_tree(tree: Path, *, respect_gitignore: bool) -> str:
    """Make *tree* a repository with exactly one commit of its files, in one pack, and return the commit's id."""
    init(tree)
    # Loose objects live for a moment only: compressing them would be thrown away.
    add = ["-c", "core.looseCompression=0", "add", "--all"]
    git(tree, *add, *([] if respect_gitignore else ["--force"]), ".")
    commit = git(tree, "commit-tree", "-m", MESSAGE, git(tree, "write-tree"))
    git(tree, "update-ref", "refs/heads/main", commit)
    git(tree, "-c", "pack.threads=1", "repack", "-a", "-d", "--quiet")
    configure(tree, _CONFIG + _USER)
    # Only now: what upstream tracks stays tracked, also below a folder called build.
    (tree / ".git" / "info" / "exclude").write_text(_EXCLUDE)
    return commit


def configure(tree: Path, settings: str = _CONFIG) -> None:
    """Give the repository in *tree* the settings that make copies of it cheap to use."""
    with (tree / ".git" / "config").open("a") as stream:
        stream.write(settings)


def refresh(tree: Path) -> None:
    """Bring the index of *tree* up to date with its files, so that copies need not."""
    try_git(tree, "update-index", "-q", "--refresh")  # its status tells of changed files, which are no failure
