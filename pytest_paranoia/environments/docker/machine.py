"""A base image made of this machine's own Debian packages, for where no registry can be reached.

The files of the named packages and of all they depend on are taken as they are installed, documentation apart, and with
them the interpreter that runs the tests. Nothing is downloaded, and nothing else of the machine goes in.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from pytest_paranoia.environments import bubblewrap
from pytest_paranoia.environments.docker import images, layer, locks
from pytest_paranoia.environments.docker.bases import REASON, inspect
from pytest_paranoia.environments.docker.daemon import DAEMON, said
from pytest_paranoia.environments.docker.settings import LABEL, machine_base
from pytest_paranoia.environments.served import SYSTEM_PATH
from pytest_paranoia.errors import InfrastructureError

PACKAGES = (
    *("base-files", "base-passwd", "bash", "ca-certificates", "coreutils", "dash", "debianutils", "diffutils"),
    *("findutils", "grep", "gzip", "hostname", "libc-bin", "mawk", "ncurses-base", "ncurses-bin", "perl-base"),
    *("procps", "sed", "sensible-utils", "tar", "tzdata", "util-linux", "git", "python3-minimal", "python3"),
)
OPTIONAL = (
    *(
        "bzip2",
        "curl",
        "file",
        "gawk",
        "gettext",
        "jq",
        "less",
        "make",
        "patch",
        "perl",
        "psmisc",
        "ripgrep",
        "rsync",
        "sqlite3",
    ),
    *("unzip", "wget", "xz-utils", "zip"),
)
"""Taken where they are installed: items and agents use some of them."""

_LEFT_OUT = re.compile(r"usr/share/(doc|man|info|locale|lintian|bug|doc-base|icons|pixmaps|i18n)/|var/(cache|log)/")
_PYTHON_LEFT_OUT = re.compile(r"(^|/)(site-packages|test|tests|idlelib|turtledemo|config-[^/]*|share)(/|$)|\.a$")
_ETC = (
    "ld.so.cache",
    "ssl/certs",
    "ssl/openssl.cnf",
    "localtime",
    "timezone",
    "services",
    "protocols",
    "mime.types",
    "os-release",
    "debian_version",
    "shells",
)
_TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_EMPTY = {"tmp": 0o1777, "var/tmp": 0o1777, "proc": 0o755, "sys": 0o755, "dev": 0o755, "run": 0o755, "root": 0o755}
_EMPTY |= {"home": 0o755, "opt": 0o755, "srv": 0o755, "etc": 0o755}
_ACCOUNTS = {"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n"}
"""For those who build on the image; a trial's own are in its layer."""


def build() -> tuple[str, str]:
    """Make the image and return its name and id. Raises InfrastructureError."""
    from docker.errors import APIError

    name = machine_base()
    path = f"{os.path.dirname(bubblewrap.interpreter())}:{SYSTEM_PATH}"  # noqa: PTH120
    # The label comes first: by it what a killed build has left is found.
    recipe = f'FROM scratch\nLABEL {LABEL}.machine-base="1"\nADD layer.tar /\nENV PATH={path} LANG=C.UTF-8\n'
    try:
        with tempfile.TemporaryFile(prefix="paranoia-base-") as content, tempfile.TemporaryFile() as context:
            write(content)
            images.pack(recipe + 'CMD ["/bin/bash"]\n', content, context)
            with locks.building(REASON):
                DAEMON.call(
                    f"the image {name} cannot be built",
                    lambda client: images.send(client, context, name),
                    total=images.BUILD_SECONDS + images.SILENT_SECONDS,
                    reason=REASON,
                )
    except (APIError, OSError) as error:
        raise InfrastructureError(REASON, f"the image {name} cannot be built: {said(error)}") from error
    found = DAEMON.call(f"look for the image {name}", lambda client: inspect(client, name), reason=REASON)
    return name, str(found["Id"])


def write(target: IO[bytes]) -> None:
    """Write the files of the image as a tar file. Raises InfrastructureError on a machine without dpkg."""
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, mode in sorted(_EMPTY.items()):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, mode
            tar.addfile(info)
        for name, text in _ACCOUNTS.items():
            layer.add_text(tar, name, text)
        seen = {*_EMPTY, *_ACCOUNTS}
        for name in _TOP:  # links into /usr on a merged system
            if Path("/", name).is_symlink():
                _add(tar, Path("/", name), seen)
        for path in (*_of_packages(), *_of_etc(), *_of_python()):
            _add(tar, path, seen)


def _add(tar: tarfile.TarFile, path: Path, seen: set[str]) -> None:
    """Add a file under its real folder's name, with the folders on the way."""
    real = Path(os.path.realpath(path.parent), path.name)
    name = str(real).lstrip("/")
    if name in seen or not name or not os.path.lexists(real):
        return
    if str(real.parent) != "/":
        _add(tar, real.parent, seen)
    seen.add(name)
    kind = real.lstat().st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISLNK(kind)):
        return
    info = tar.gettarinfo(real, name)
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    if info.islnk():
        info.type, info.linkname, info.size = tarfile.REGTYPE, "", real.lstat().st_size
    # Nothing in there may give anybody another user's rights, and all of it may be read.
    info.mode = 0o755 if info.isdir() or info.mode & stat.S_IXUSR else 0o644
    try:
        if info.isfile():
            with real.open("rb") as stream:
                tar.addfile(info, stream)
        else:
            tar.addfile(info)
    except PermissionError:  # not for this user, so nothing a trial needs
        return


# -- what goes in --------------------------------------------------------------------------------------------------


def _of_packages() -> Iterator[Path]:
    for name in sorted(closure(_installed(), PACKAGES, OPTIONAL)):
        for line in _run("dpkg", "--listfiles", name).splitlines():
            path = line.strip().lstrip("/")
            if path and path != "." and not _LEFT_OUT.match(path + "/"):
                full = Path("/", path)
                if not full.is_dir() or full.is_symlink():
                    yield full


def _of_etc() -> Iterator[Path]:
    for name in _ETC:
        path = Path("/etc", name)
        yield path
        if path.is_dir():
            for found in path.iterdir():
                yield found
                if found.is_symlink():
                    yield Path(os.path.realpath(found))
    # Debian's names for whichever program of a kind is installed: awk, pager, cc.
    for found in Path("/etc/alternatives").iterdir():
        if not found.name.endswith((".gz", ".1")):
            yield found
            yield Path("/usr/bin", found.name)


def _of_python() -> Iterator[Path]:
    """Yield the tests' interpreter and its standard library, where no package holds them, and what it loads."""
    python = Path(bubblewrap.interpreter())
    if not python.is_relative_to("/usr/bin"):
        prefix = Path(sys.base_prefix)
        library = prefix / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        yield from (found for found in python.parent.glob("python*") if "config" not in found.name)
        yield from prefix.glob("lib/libpython*.so*")
        for folder, folders, files in os.walk(library):
            here = Path(folder)
            folders[:] = [name for name in folders if not _PYTHON_LEFT_OUT.search(name)]
            yield from (here / name for name in files if not _PYTHON_LEFT_OUT.search(name))
        yield from _libraries([python, *library.glob("lib-dynload/*.so")])


def _libraries(programs: Sequence[Path]) -> Iterator[Path]:
    """Return the shared libraries that programs load, and the files that their names lead to."""
    for line in _run("ldd", *map(str, programs)).splitlines():
        found = re.search(r"=> (/\S+)", line)
        if found:
            path = Path(found.group(1))
            yield path
            while path.is_symlink():
                path = path.parent / path.readlink()
                yield path


def closure(installed: dict[str, dict[str, str]], needed: Iterable[str], wished: Iterable[str]) -> set[str]:
    """Return the names of packages and of all they depend on. Raises InfrastructureError where a needed one is missing.

    *installed* are the paragraphs of dpkg's status file by package.
    """
    providers: dict[str, str] = {}
    for name, fields in installed.items():
        for provided in fields.get("Provides", "").split(","):
            providers.setdefault(re.split(r"[\s(:]", provided.strip())[0], name)
    missing = [name for name in needed if name not in installed and name not in providers]
    if missing:
        raise InfrastructureError(REASON, f"this machine lacks the packages {', '.join(missing)}: install them first")
    found: set[str] = set()
    waiting = [*needed, *(name for name in wished if name in installed)]
    while waiting:
        name = waiting.pop()
        name = name if name in installed else providers.get(name, "")
        if not name or name in found:
            continue
        found.add(name)
        fields = installed[name]
        for clause in f"{fields.get('Depends', '')},{fields.get('Pre-Depends', '')}".split(","):
            choices = [re.split(r"[\s(:]", choice.strip())[0] for choice in clause.split("|")]
            waiting += [choice for choice in choices if choice in installed or choice in providers][:1]
    return found


def _installed() -> dict[str, dict[str, str]]:
    try:
        text = Path("/var/lib/dpkg/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise InfrastructureError(
            REASON,
            "this is no Debian machine: name a base image with --paranoia-docker-base, for example one from a "
            "registry that was brought here with `docker save` and `docker load`",
        ) from None
    packages: dict[str, dict[str, str]] = {}
    for paragraph in text.split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", paragraph, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            packages.setdefault(fields.get("Package", ""), fields)
    return packages


def _run(*argv: str) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfrastructureError(REASON, f"{argv[0]} cannot be run: {error}") from error
