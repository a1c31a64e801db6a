"""What some tests need of the machine: they skip without it, unless it is required to be there."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import small_model

from pytest_paranoia.agents import install
from pytest_paranoia.environments import bubblewrap
from pytest_paranoia.errors import SourceError
from pytest_paranoia.harbor import rewardkit

VARIABLE = "PARANOIA_REQUIRE"
"""Names, separated by commas, of what must not be missing: a pipeline sets it, so that nothing is skipped unseen."""


def _small_disk() -> str | None:
    try:
        done = subprocess.run(
            ["unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/mnt"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        return str(error)
    return f"no small file system can be mounted here: {done.stderr.strip()}" if done.returncode else None


def browser() -> str | None:
    """Path of the system's Chromium, None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def _no_browser() -> str | None:
    if importlib.util.find_spec("playwright") is None:
        return "the package playwright, which drives it, is not installed"
    return None if browser() else "no chromium on PATH (Debian: apt-get install chromium)"


def _no_agent(name: str) -> Callable[[], str | None]:
    def missing() -> str | None:
        if install.find(name) is not None:
            return None
        return f"{name} is not installed here (paranoia agents install {name})"

    return missing


HARBOR = "PARANOIA_HARBOR"
"""Names the Python (3.12 or newer, an environment of its own) that Harbor is installed for."""


def _no_harbor() -> str | None:
    python = os.environ.get(HARBOR)
    if not python:
        return f"{HARBOR} names no Python with Harbor (python3.13 -m venv there; there/bin/pip install harbor==0.26.0)"
    done = subprocess.run([python, "-c", "import harbor"], capture_output=True, text=True, check=False)
    return f"{python}: {done.stderr.strip()}" if done.returncode else None


def _no_rewardkit() -> str | None:
    try:
        rewardkit.interpreter()
    except SourceError as error:
        return str(error)
    return None


def _no_latex() -> str | None:
    if shutil.which("pdflatex") is None:
        return "no pdflatex on PATH (Debian: apt-get install texlive-latex-base texlive-latex-recommended)"
    found = subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True, check=False)
    return None if found.returncode == 0 else "no booktabs.sty (Debian: apt-get install texlive-latex-recommended)"


@functools.cache
def _no_docker() -> str | None:
    from pytest_paranoia.environments.docker.provider import PROVIDER

    # Also finds a daemon that is there and without a base image, or without a way to our files.
    return PROVIDER.unusable()


def _no_dockerd() -> str | None:
    if os.geteuid() != 0:
        return "only root starts a Docker daemon of its own"
    return None if shutil.which("dockerd") else "no dockerd on PATH (Debian: apt-get install docker.io)"


def _no_memory_group() -> str | None:
    base = next((path for path in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")) if path.is_dir()), None)
    if base is None:
        return "no control groups are mounted here"
    group = base / f"paranoia-probe-{os.getpid()}"
    try:
        group.mkdir()
        try:
            limits = [name for name in ("memory.limit_in_bytes", "memory.max") if (group / name).exists()]
            return None if limits else f"{base} hands no memory limits on to its groups"
        finally:
            group.rmdir()
    except OSError as error:
        return f"no control group can be made in {base}: {error.strerror}"


MISSING: dict[str, Callable[[], str | None]] = {
    "bubblewrap": bubblewrap.unavailable,
    "rewardkit": _no_rewardkit,
    "harbor": _no_harbor,
    "docker": _no_docker,
    "dockerd": _no_dockerd,
    "tmpfs": _small_disk,
    "memory-cgroup": _no_memory_group,
    "chromium": _no_browser,
    "pdflatex": _no_latex,
    "openssl": lambda: None if shutil.which("openssl") else "no openssl on PATH (Debian: apt-get install openssl)",
    **{name: _no_agent(name) for name in install.tools()},
    "small-model": small_model.missing,
}
"""By name, what tells why the machine lacks it (None: it does not)."""


def require(name: str) -> None:
    """Skip the test where the machine lacks this; fail it where ``PARANOIA_REQUIRE`` names it."""
    reason = MISSING[name]()
    if reason is None:
        return
    if name in (word.strip() for word in os.environ.get(VARIABLE, "").split(",")):
        pytest.fail(f"{name} is required by {VARIABLE} but missing: {reason}", pytrace=False)
    pytest.skip(f"needs {name}: {reason}")
