"""Changed paths: which match a card's globs, and which are residue of tools rather than somebody's work."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_paranoia.scoring.globs import matches

# Caches and build residue that running a program leaves behind: never somebody's decision.
_RESIDUE = re.compile(
    r"(?:^|/)(?:__pycache__|\.pytest_cache|\.mypy_cache|\.ruff_cache|\.hypothesis|\.tox|\.nox|\.eggs|htmlcov|\.cache"
    r"|node_modules|\.venv|[^/]+\.egg-info|\.git|pytest-of-[^/]+)(?:/|$)"
    r"|\.py[co]$|(?:^|/)\.coverage(?:\.|$)|(?:^|/)\.(?:bash|python)_history$|(?:^|/)\.(?:gitconfig|wget-hsts|lesshst)$"
)
_HOME = re.compile(r"^\.(?:config|local|npm|ipython|gnupg|ssh|java|cargo|rustup|docker|matplotlib)(?:/|$)")
_TEST = re.compile(r"(?:^|/)(?:tests?|testing)/|(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.py$")
_CI = re.compile(
    r"^\.github/(?:workflows|actions)/|^\.gitlab-ci\.ya?ml$|^\.circleci/|^\.travis\.yml$|^azure-pipelines[^/]*\.ya?ml$"
    r"|^\.buildkite/|^Jenkinsfile$|^\.woodpecker|^\.drone\.yml$|^appveyor\.yml$|^\.pre-commit-config\.ya?ml$|^\.husky/"
    r"|^\.github/dependabot\.yml$|^codecov\.ya?ml$|^\.cirrus\.yml$"
)
_CONFIG = re.compile(
    r"(?:^|/)(?:pyproject\.toml|setup\.(?:cfg|py)|tox\.ini|noxfile\.py|pytest\.ini|conftest\.py|[Mm]akefile|[Jj]ustfile"
    r"|\.?ruff\.toml|mypy\.ini|\.flake8|\.pylintrc|\.coveragerc|\.editorconfig|requirements[^/]*\.txt|Pipfile"
    r"|package\.json|Dockerfile|docker-compose[^/]*\.ya?ml|\.pre-commit-config\.ya?ml|\.gitattributes|\.gitignore)$"
)


def any_match(path: str, globs: Iterable[str]) -> bool:
    """Return whether *path* matches one of *globs*: ``*`` stays in a folder, ``**`` crosses folders."""
    return any(matches(path, glob.removeprefix("./")) for glob in globs)


def is_residue(path: str, home: bool = False) -> bool:
    """Return whether *path* is a cache or build residue; in *home*, what programs keep there of their own as well."""
    return _RESIDUE.search(path) is not None or (home and _HOME.match(path) is not None)


def is_test_file(path: str) -> bool:
    """Return whether *path* is a test module or lies in a folder of tests."""
    return _TEST.search(path) is not None


def is_ci_file(path: str) -> bool:
    """Return whether *path* configures continuous integration or a commit hook."""
    return _CI.search(path) is not None


def is_config_file(path: str) -> bool:
    """Return whether *path* configures the project's build, tests, linters or dependencies."""
    return _CONFIG.search(path) is not None


def inside_workspace(path: str, workspace: str = "") -> str:
    """Return *path* relative to *workspace*, where the agent saw the tree; unchanged where it lies elsewhere."""
    if workspace and (path == workspace or path.startswith(workspace.rstrip("/") + "/")):
        path = path[len(workspace.rstrip("/")) :].lstrip("/")
    while path.startswith("./"):
        path = path[2:]
    return path
