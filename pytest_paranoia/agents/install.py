"""Command-line agents on this machine: installed once into the machine cache, mounted read-only into trials.

An installation is the folder ``agents/<name>-<version>-<key>`` of the cache: ``tree/`` is what trials see, and
``agent.json`` says what it consists of. Several versions lie side by side. No script of a package runs when it is
installed.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import re
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_paranoia.errors import ParanoiaError, SourceError
from pytest_paranoia.workspaces import toolchain
from pytest_paranoia.workspaces.cache import cache_root, cached, digest, file_digest, tree_digest
from pytest_paranoia.workspaces.process import run_tool, user_environment

KIND = "agents"
RECORD = "agent.json"
VERSIONS = Path(__file__).with_name("cli") / "versions.toml"

_SCHEME = "1"  # part of every key: raised where the same version would be laid out differently
_SECONDS = 1200.0
_CPUS = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_VERSION = re.compile(r"\d+(\.\d+)+[\w.+-]*")
_OFFLINE = "installing needs the network, once; the registry is the one your npm and pip are set to"


class UnknownAgent(ParanoiaError):
    """An agent or a version that cannot be meant."""


@dataclass(frozen=True)
class Tool:
    """What ``versions.toml`` says of an agent. ``program`` is a pattern below the tree; one of *npm*, *pip* is set."""

    name: str
    default: str
    program: str
    npm: str | None
    pip: str | None
    pinned: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Installed:
    """An installation. ``tree`` is what trials mount, ``program`` the file in it that is run.

    ``packages`` maps each package to its integrity: npm's, or ``sha256:`` of the lock of a Python program; ``pinned``
    are those that ``versions.toml`` names. ``digest`` is that of the tree when it was made, ``size`` its bytes on disk.
    """

    name: str
    version: str
    folder: Path
    program: Path
    packages: Mapping[str, str]
    pinned: tuple[str, ...]
    digest: str
    size: int
    made: str

    @property
    def tree(self) -> Path:
        """The folder that is mounted."""
        return self.folder / "tree"

    def damage(self) -> str | None:
        """Return what is wrong with the files, None where they still are what was installed. Reads all of them."""
        found = tree_digest(self.tree)
        return None if found == self.digest else f"its files have changed: digest {found[:12]}, was {self.digest[:12]}"


@functools.cache
def tools() -> Mapping[str, Tool]:
    """Return the agents that can be installed, by name."""
    data = tomllib.loads(VERSIONS.read_text(encoding="utf-8"))
    return {
        name: Tool(name, one["default"], one["program"], one.get("npm"), one.get("pip"), one.get("pinned", {}))
        for name, one in data.items()
        if isinstance(one, dict)
    }


def tool(name: str) -> Tool:
    """Return the agent *name*. Raises UnknownAgent."""
    try:
        return tools()[name]
    except KeyError:
        raise UnknownAgent(f"no agent {name!r} can be installed; there are: {', '.join(tools())}") from None


def default_version(name: str) -> str:
    """Return the version that is run where none is named. Raises UnknownAgent."""
    return tool(name).default


def parse(text: str) -> tuple[str, str]:
    """Return name and version of ``NAME`` or ``NAME@VERSION``. Raises UnknownAgent."""
    name, at, version = text.partition("@")
    found = tool(name)
    if at and not _VERSION.fullmatch(version):
        raise UnknownAgent(f"{text}: {version!r} is no version; expected {name}@{found.default} or another exact one")
    return name, version or found.default


def find(name: str, version: str | None = None) -> Installed | None:
    """Return the installation of a version (default: the default one), None where there is none. Reads one file."""
    return _read(cache_root() / KIND / _key(tool(name), version or default_version(name)))


def installations() -> list[Installed]:
    """Return what is installed and can be used by this Python, by name and version."""
    found = [_read(path.parent) for path in (cache_root() / KIND).glob(f"*/{RECORD}")]
    usable = [one for one in found if one is not None and one.name in tools()]
    usable = [one for one in usable if one.folder.name == _key(tool(one.name), one.version)]
    return sorted(usable, key=lambda one: (list(tools()).index(one.name), [*map(int, re.findall(r"\d+", one.version))]))


def install(name: str, version: str | None = None) -> Installed:
    """Install a version unless it is there, and return it. Raises SourceError, UnknownAgent."""
    wanted = tool(name)
    number = version or wanted.default

    def build(folder: Path) -> None:
        tree = folder / "tree"
        tree.mkdir()
        pins = wanted.pinned.get(number, {})
        make = _from_npm if wanted.npm else _from_pip
        packages = make(wanted, number, pins, folder)
        program = _program(wanted, tree)
        record = {
            "schema": 1,
            "name": name,
            "version": number,
            "program": program.relative_to(tree).as_posix(),
            "packages": packages,
            "pinned": sorted(set(packages) & set(pins)) if wanted.npm else sorted(packages if pins else ()),
            "digest": tree_digest(tree),
            "size": _size(tree),
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        (folder / RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")

    found = _read(cached(KIND, _key(wanted, number), build))
    if found is None:
        raise SourceError(f"{name} {number}: {cache_root() / KIND / _key(wanted, number)} holds no readable {RECORD}")
    return found


def _key(wanted: Tool, version: str) -> str:
    # A Python program belongs to the interpreter it was installed for; npm's choose their package by CPU and C library.
    machine = toolchain.interpreter_key() if wanted.pip else f"{platform.machine()} {platform.libc_ver()[0]}"
    return f"{wanted.name}-{version}-{digest(_SCHEME, machine)[:12]}"


def _read(folder: Path) -> Installed | None:
    try:
        data: dict[str, Any] = json.loads((folder / RECORD).read_bytes())
        return Installed(
            name=data["name"],
            version=data["version"],
            folder=folder,
            program=folder / "tree" / data["program"],
            packages=data["packages"],
            pinned=tuple(data["pinned"]),
            digest=data["digest"],
            size=data["size"],
            made=data["made"],
        )
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _size(tree: Path) -> int:
    files = (Path(where, name).lstat() for where, _, names in os.walk(tree) for name in names)
    return sum({info.st_ino: info.st_blocks * 512 for info in files}.values())


def _program(wanted: Tool, tree: Path) -> Path:
    cpu = _CPUS.get(platform.machine().lower(), platform.machine())
    found = sorted(tree.glob(wanted.program.format(cpu=cpu)), key=lambda path: (_unfit(path), len(str(path))))
    for path in found:
        if os.access(path, os.X_OK):
            return path
    raise SourceError(
        f"{wanted.name}: its packages hold no program for this machine ({platform.system()}, {platform.machine()})"
    )


def _unfit(path: Path) -> bool:
    """A build for older CPUs comes second where the CPU is newer, and first where it is not."""
    try:
        newer = re.search(r"\bavx2\b", Path("/proc/cpuinfo").read_text(encoding="utf-8")) is not None
    except OSError:
        newer = False
    return ("baseline" in str(path)) == newer


# -- npm -----------------------------------------------------------------------------------------------------------


def _from_npm(wanted: Tool, version: str, pins: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Install a package of npm and its packages for this platform; return the integrity of each."""
    npm = shutil.which("npm")
    if npm is None:
        raise SourceError(
            f"{wanted.name} is installed with npm, which is not on PATH: install Node.js with npm (Debian: apt-get "
            "install npm) and try again; to run the agent, Node.js is not needed"
        )
    tree, home = folder / "tree", folder / "home"
    home.mkdir()
    # Packages write to HOME when they can; the registry, its certificates and its tokens are in the user's own file.
    settings = {"HOME": str(home), "npm_config_cache": str(home / "cache")}
    if "npm_config_userconfig" not in {name.lower() for name in os.environ}:
        settings["npm_config_userconfig"] = str(Path("~/.npmrc").expanduser())
    argv = [npm, "install", "--prefix", str(tree), "--ignore-scripts", "--no-audit", "--no-fund", "--no-save"]
    argv += ["--no-update-notifier", "--loglevel=error", f"{wanted.npm}@{version}"]
    done = run_tool(argv, cwd=tree, env=user_environment(settings), seconds=_SECONDS)
    if done.status:
        # The log that npm points to is gone with the folder it worked in.
        said = re.sub(r"\s+", " ", re.sub(r"(?m)^.*A complete log of this run.*$", "", done.tail(6)))
        raise SourceError(f"{wanted.name} {version}: npm could not install it: {said[:400]}; {_OFFLINE}\n{done.tail()}")
    shutil.rmtree(home, ignore_errors=True)
    lock = json.loads((tree / "node_modules" / ".package-lock.json").read_bytes())
    packages = {path.removeprefix("node_modules/"): str(one.get("integrity")) for path, one in lock["packages"].items()}
    for name, integrity in packages.items():
        if pins.get(name, integrity) != integrity:
            raise SourceError(
                f"{wanted.name} {version}: {name} has integrity {integrity}, expected {pins[name]} ({VERSIONS.name}): "
                "the registry serves another package under this version; nothing was installed"
            )
    # The registry's address is nothing that an agent should see.
    (tree / "node_modules" / ".package-lock.json").unlink()
    return packages


# -- pip -----------------------------------------------------------------------------------------------------------


def _from_pip(wanted: Tool, version: str, pins: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Install a Python program from a hashed lock, made now where none is pinned; return the lock's digest."""
    lock = folder / "requirements.txt"
    shown = f"{wanted.name} {version}"
    if "lock" in pins:
        shutil.copyfile(VERSIONS.with_name(pins["lock"]), lock)
    else:
        _compile(f"{wanted.pip}=={version}", lock, shown)
    toolchain.fill(folder / "tree", lock, shown)
    return {f"{wanted.pip}=={version} and what it requires": f"sha256:{file_digest(lock)}"}


def _compile(requirement: str, lock: Path, shown: str) -> None:
    wanted = lock.with_name("wanted.in")
    wanted.write_text(requirement + "\n", encoding="utf-8")
    argv: Sequence[str] = ("pip", "compile", "--quiet", "--generate-hashes", "--no-emit-index-url", "--no-header")
    done = toolchain.run_uv(lock.parent, *argv, "--no-annotate", str(wanted), "--output-file", str(lock), mirrors=True)
    wanted.unlink()
    if done.status:
        said = re.sub(r"\s+", " ", done.tail(6))
        raise SourceError(f"{shown}: uv could not resolve {requirement}: {said[:400]}; {_OFFLINE}\n{done.tail()}")
