"""The command line of the sandbox: what a trial sees of the machine, and whether the machine lets us build it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest_paranoia
from pytest_paranoia.environments.base import EnvironmentSpec, Limits, Mount

WORKSPACE = "/workspace"
HOME = "/home/agent"
TMP = "/tmp"
HIDE_VARIABLE = "PARANOIA_NO_BUBBLEWRAP"
"""Set to anything but empty or 0, this makes a machine look as if it had no bubblewrap."""

HOST_NAME = "dev"
USER = "agent"
USER_ID = 1000

HOSTS = f"127.0.0.1 localhost {HOST_NAME}\n::1 localhost\n"
NSSWITCH = "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n"
HOST_CONF = "multi off\n"
"""A name has its first address: programs that listen on localhost and those that call it mean 127.0.0.1."""

_SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC_FILES = {
    "passwd": f"root:x:0:0:root:/root:/bin/sh\n{USER}:x:{USER_ID}:{USER_ID}::{HOME}:/bin/sh\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": f"root:x:0:\n{USER}:x:{USER_ID}:\nnogroup:x:65534:\n",
    "hosts": HOSTS,
    "hostname": f"{HOST_NAME}\n",
    "nsswitch.conf": NSSWITCH,
    "host.conf": HOST_CONF,
}
_ETC_FROM_HOST = (
    # What the dynamic linker, Debian's alternatives, TLS libraries, clocks and Java read; no keys, no accounts.
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "services", "protocols", "mime.types"),
    *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "ca-certificates", "pki/tls/certs", "pki/ca-trust/extracted"),
    *("localtime", "timezone", "os-release", "debian_version"),
)
_KERNEL_SETTINGS = ("sys", "sysrq-trigger", "irq", "bus", "fs", "mtrr", "pressure", "acpi", "scsi")
"""Below /proc. Started by root, a trial's processes still are the host's user 0, who may write many of these files
without any capability (a core_pattern is a command that the kernel runs on the host)."""

_PROBE_SECONDS = 30.0


def find() -> str | None:
    """Return the path of ``bwrap``, or None."""
    if os.environ.get(HIDE_VARIABLE, "0") not in ("", "0"):
        return None
    return shutil.which("bwrap")


def interpreter() -> str:
    """Return the real interpreter below this one: a virtual environment's own lies outside the sandbox."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def interpreter_folders() -> list[Path]:
    """Return the folders to mount for it: none when the system's folders hold it already."""
    python = Path(interpreter())
    folders = [Path(sys.base_prefix), Path(os.path.realpath(sys.base_prefix))]
    if not any(python.is_relative_to(folder) for folder in folders):
        folders.append(python.parent)
    return [folder for folder in dict.fromkeys(folders) if not folder.is_relative_to("/usr")]


def prepare(scratch: Path) -> None:
    """Write the trial's own ``/etc`` and the empty folder that covers what must not be seen."""
    etc = scratch / "etc"
    etc.mkdir(exist_ok=True)
    (scratch / "empty").mkdir(exist_ok=True)
    for name, text in _ETC_FILES.items():
        (etc / name).write_text(text, encoding="utf-8")


def arguments(bwrap: str, spec: EnvironmentSpec) -> list[str]:
    """Return the command that starts its further arguments inside the sandbox.

    ``prepare`` was called for ``spec.scratch``, which also holds ``home`` and ``tmp``.
    """
    python = interpreter_folders()
    return [
        bwrap,
        *("--unshare-user", "--uid", str(USER_ID), "--gid", str(USER_ID)),
        *("--unshare-pid", "--as-pid-1", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--unshare-net"),
        *("--hostname", HOST_NAME, "--die-with-parent", "--new-session", "--clearenv"),
        # Started by root, bubblewrap would leave root's capabilities in place; and in a user namespace of its own an
        # agent would have all of them over what it can mount there, such as the control groups of the host's root.
        *("--cap-drop", "ALL", "--disable-userns"),
        # Made on the way to a mount, a folder would be closed to others and look odd.
        *(word for name in ("/etc", "/home", "/var") for word in ("--perms", "0755", "--dir", name)),
        *_system(),
        *_etc(spec.scratch),
        *(word for folder in python for word in ("--ro-bind", str(folder), str(folder))),
        *_cover([Path("/usr"), *python], spec.scratch),
        *("--proc", "/proc"),
        *(word for name in _KERNEL_SETTINGS for word in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")),
        *("--dev", "/dev"),
        # The rest of the memory limit is for processes: a full /dev/shm must not get the next command killed.
        *("--perms", "1777", "--size", str(max(spec.limits.memory // 2, 1)), "--tmpfs", "/dev/shm"),
        *("--bind", str(spec.workspace), spec.inside or WORKSPACE),
        *("--bind", str(spec.scratch / "home"), HOME),
        *("--bind", str(spec.scratch / "tmp"), TMP),
        *("--dir", "/run", "--symlink", TMP, "/var/tmp"),
        *_mounts(spec.mounts, spec.scratch),
        *(word for mount in spec.writable for word in ("--bind", str(mount.source), mount.target)),
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *("--chdir", "/", "--"),
    ]


def _system() -> list[str]:
    """Return the read-only system folders and the few files of ``/etc``."""
    words = ["--ro-bind", "/usr", "/usr"]
    for name in _SYSTEM_FOLDERS:
        words += _same(Path(name))
    return words


def _same(path: Path) -> list[str]:
    """Return the words that show a host path inside at the same place, links as links."""
    if path.is_symlink():
        return ["--symlink", str(path.readlink()), str(path)]
    return ["--ro-bind", str(path), str(path)] if path.exists() else []


def _etc(scratch: Path) -> list[str]:
    words: list[str] = []
    for name in _ETC_FILES:
        words += ["--ro-bind", str(scratch / "etc" / name), f"/etc/{name}"]
    for name in (*_ETC_FROM_HOST, *(folder.name for folder in Path("/etc").glob("java-*-openjdk"))):
        words += _same(Path("/etc", name))
    return words


def _mounts(mounts: Sequence[Mount], scratch: Path) -> list[str]:
    """Return the caller's mounts, in its order, each with our own code covered where it would be seen."""
    words: list[str] = []
    for mount in mounts:
        words += ["--ro-bind", str(mount.source), mount.target]
        words += _cover([mount.source], scratch, mount.target)
    return words


def _cover(sources: Sequence[Path], scratch: Path, target: str | None = None) -> list[str]:
    """Hide the folder that this package is installed in (and its data: cards, oracles) if a source holds it."""
    words: list[str] = []
    own = Path(pytest_paranoia.__file__).resolve().parent.parent
    for source in sources:
        real = source.resolve()
        if own.is_relative_to(real):
            words += ["--ro-bind", str(scratch / "empty"), str(Path(target or source, own.relative_to(real)))]
    return words


# -- can this machine do it? ---------------------------------------------------------------------------------------


def unavailable() -> str | None:
    """Return None where a sandbox can be built, else why not and what helps, in one line."""
    bwrap = find()
    if bwrap is None:
        return "bubblewrap (bwrap) was not found: install it, for example `apt-get install bubblewrap`"
    return _probe(bwrap)


@functools.cache
def _probe(bwrap: str) -> str | None:
    """Build a real sandbox once per process; a version or a sysctl alone does not tell."""
    with tempfile.TemporaryDirectory(prefix="probe-") as name:
        folder = Path(name)
        for part in ("workspace", "home", "tmp"):
            (folder / part).mkdir()
        prepare(folder)
        spec = EnvironmentSpec(folder / "workspace", folder, limits=Limits(memory=1 << 20))
        try:
            done = subprocess.run(
                [*arguments(bwrap, spec), "/usr/bin/env", "true"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PROBE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bubblewrap does not work here: {error}"
    return None if done.returncode == 0 else diagnose(done.stderr)


def diagnose(stderr: str) -> str:
    """Turn what bubblewrap said into a reason with a remedy."""
    said = (stderr.strip().splitlines() or ["no message"])[-1].removeprefix("bwrap: ")
    if "Unknown option" in said:
        return f"bubblewrap is too old ({said}): install 0.8 or newer"
    return f"bubblewrap may not create a sandbox here ({said}): {_remedy()}"


def _remedy() -> str:
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1" and os.geteuid() != 0:
        return (
            "AppArmor restricts user namespaces; allow them with "
            "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` or an AppArmor profile for bwrap"
        )
    if _setting("kernel/unprivileged_userns_clone") == "0" and os.geteuid() != 0:
        return "user namespaces are off; allow them with `sysctl -w kernel.unprivileged_userns_clone=1`"
    if _setting("user/max_user_namespaces") == "0":
        return "user namespaces are off; allow them with `sysctl -w user.max_user_namespaces=15000`"
    if any(Path(name).exists() for name in ("/.dockerenv", "/run/.containerenv")):
        return (
            "this is a container; start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined "
            "--security-opt systempaths=unconfined`"
        )
    return "allow user namespaces to this user"


def _setting(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
