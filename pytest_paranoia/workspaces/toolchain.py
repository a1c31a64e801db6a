"""Test environments: relocatable virtual environments that uv fills from a hashed lock."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_paranoia.errors import SourceError
from pytest_paranoia.workspaces.cache import cached, digest
from pytest_paranoia.workspaces.importing import normalised
from pytest_paranoia.workspaces.metadata import ProjectMetadata, write_dist_info
from pytest_paranoia.workspaces.process import Finished, run_tool, user_environment
from pytest_paranoia.workspaces.sources import OFFLINE

COMPILE = "uv pip compile requirements.in -o requirements.txt --generate-hashes --universal --no-emit-index-url"
TOOLCHAIN_VERSION = "2"
UV_SECONDS = 1200.0

# pip options and the variables by which uv takes the same.
_PIP_TO_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
    "trusted-host": "UV_INSECURE_HOST",
}


def base_interpreter() -> Path:
    """Return the real path of the interpreter below this process's virtual environment."""
    return Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()


def site_packages(env: Path) -> Path:
    """Return the folder of an environment that holds its packages."""
    return env / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def plain_env() -> Path:
    """Return a virtual environment without packages."""
    return cached("envs", f"plain-{interpreter_key()}", _create)


def build_env(
    lock: Path | None, project: ProjectMetadata | None, packages: Sequence[str], *, name: str, shown: str
) -> Path:
    """Return the environment of one repository: the lock's packages and the project's own metadata.

    *name* starts the folder's name, *shown* names the manifest in errors.
    """
    content = checked_lock(lock) if lock else b""
    described = json.dumps([project.as_json() if project else None, list(packages)], sort_keys=True)

    def build(env: Path) -> None:
        _create(env)
        if lock:
            _install(env, lock, content, shown)
        if project:
            _drop_installed(env, project.name)
            write_dist_info(env, site_packages(env), project, packages)

    return cached("envs", f"{name}-{digest(interpreter_key(), content, described)[:24]}", build)


def fill(env: Path, lock: Path, shown: str) -> None:
    """Make a virtual environment of the empty folder *env* that holds a lock's packages; *shown* names it in errors."""
    content = checked_lock(lock)
    _create(env)
    _install(env, lock, content, shown)


def checked_lock(lock: Path) -> bytes:
    """Return the bytes of a requirements file in which every line is pinned and hashed and none names a place."""
    try:
        content = lock.read_bytes()
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise SourceError(
            f"{lock}: key requirements names this file, which cannot be read ({said}); make the lock with "
            f"`{COMPILE}` (see `paranoia docs writing-pairs`)"
        ) from error
    for number, line in _logical_lines(text):
        where = f"{lock}:{number}: {line.split()[0]}"
        if line.startswith("-"):
            raise SourceError(f"{where}: options have no place in the lock (no index, URL, file or editable line)")
        if "://" in line or re.search(r"[\w\]]\s*@", line):
            raise SourceError(f"{where}: no URL in the lock; pin as name==version with hashes")
        if not re.match(r"[\w.-]+(\[[\w.,\s-]*\])?\s*==\s*[^\s*;]+(\s|;)", line):
            raise SourceError(f"{where}: not pinned; every line is name==version with hashes")
        hashes = re.findall(r"--hash=(\S*)", line)
        if not hashes or not all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes):
            raise SourceError(
                f"{where}: not hashed; make the lock with `{COMPILE}` (see `paranoia docs writing-pairs`)"
            )
    return content


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number of its first line, text) of each requirement, continuation lines joined, comments gone."""
    start, parts = 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        bare = re.sub(r"(^|\s)#.*$", "", line).strip()
        start = start if parts else number
        continues = bare.endswith("\\")
        parts.append(bare.rstrip("\\").strip())
        if not continues:
            if joined := " ".join(parts).strip():
                yield start, joined + " "
            parts = []


def interpreter_key() -> str:
    """Return a hash of everything about the interpreter that an environment depends on."""
    version = f"{platform.python_implementation()} {sys.version}"
    return digest(TOOLCHAIN_VERSION, version, str(base_interpreter()))[:24]


def _create(env: Path) -> None:
    argv = ["venv", "--quiet", "--no-project", "--relocatable", "--allow-existing", "--python", str(base_interpreter())]
    done = run_uv(env, *argv, str(env))
    if done.status:
        raise SourceError(f"uv could not create a virtual environment: {done.complaint()}\n{done.tail()}")


def _install(env: Path, lock: Path, content: bytes, shown: str) -> None:
    # From a copy: what is installed is what was checked and hashed into the key.
    copy = env / "lock.txt"
    copy.write_bytes(content)
    argv = ["pip", "install", "--quiet", "--python", str(env), "--require-hashes", "--no-deps"]
    # Compiled once here: the environment is mounted read-only, so no trial could keep what it compiles.
    argv += ["--compile-bytecode", "--requirement", str(copy)]
    # As pip chooses among several indexes; the hashes decide what may be installed.
    done = run_uv(env, *argv, "--index-strategy", "unsafe-best-match", mirrors=True)
    copy.unlink()
    if done.status:
        said = re.sub(r"\s+", " ", done.tail(6))
        raise SourceError(
            f"{shown}: requirements: uv could not install {lock.name}: {said[:400]}; {OFFLINE}\n{done.tail()}"
        )


def _drop_installed(env: Path, name: str) -> None:
    """Remove the release of the project itself that the lock may hold (pytest needs pluggy): the workspace is meant."""
    installed = {normalised(found.name) for found in importlib.metadata.distributions(path=[str(site_packages(env))])}
    if normalised(name) in installed:
        done = run_uv(env, "pip", "uninstall", "--quiet", "--python", str(env), name)
        if done.status:
            raise SourceError(f"uv could not remove {name} from its own environment: {done.complaint()}\n{done.tail()}")


def run_uv(cwd: Path, *arguments: str, mirrors: bool = False) -> Finished:
    """Run uv in the folder *cwd*, with ``mirrors`` told of pip's indexes. Raises SourceError where it is missing."""
    import uv

    try:
        program = uv.find_uv_bin()
    except FileNotFoundError as error:
        raise SourceError(f"the uv program is missing, reinstall the package uv: {error}") from error
    extra = _mirrors(cwd) if mirrors else {}
    # In the folder being built: a uv.toml or pyproject.toml of the user's current folder is about another project.
    return run_tool([program, *arguments], cwd=cwd, env=user_environment(extra), seconds=UV_SECONDS)


def _mirrors(cwd: Path) -> dict[str, str]:
    """Return pip's indexes and certificates as variables for uv, which reads no pip configuration.

    Only where the user has told uv nothing about them, so that one configuration serves both tools.
    """
    if any(name.startswith("UV_") and ("INDEX" in name or name in _PIP_TO_UV.values()) for name in os.environ):
        return {}
    config = [
        Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "uv/uv.toml",
        Path("/etc/uv/uv.toml"),
    ]
    if "UV_CONFIG_FILE" in os.environ or any(path.is_file() for path in config):
        return {}
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    done = run_tool(argv, cwd=cwd, env=user_environment(), seconds=60)
    found: dict[str, str] = {}
    # ":env:" comes last in pip's list and outranks files, as with pip.
    for key, value in re.findall(r"^(?:global|install|download|:env:)\.([\w-]+)='(.*)'$", done.output, re.MULTILINE):
        if key in _PIP_TO_UV and value:
            text = value.replace("\\n", " ").strip()
            found[_PIP_TO_UV[key]] = ",".join(text.split()) if key == "find-links" else text
    if "SSL_CERT_FILE" in os.environ:
        found.pop("SSL_CERT_FILE", None)
    return found
