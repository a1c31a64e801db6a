"""What some tests need of the machine: they skip without it, unless it is required to be there."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable

import pytest
import small_model

from pytest_paranoia.agents import install
from pytest_paranoia.environments import bubblewrap

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


def _no_latex() -> str | None:
    if shutil.which("pdflatex") is None:
        return "no pdflatex on PATH (Debian: apt-get install texlive-latex-base texlive-latex-recommended)"
    found = subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True, check=False)
    return None if found.returncode == 0 else "no booktabs.sty (Debian: apt-get install texlive-latex-recommended)"


MISSING: dict[str, Callable[[], str | None]] = {
    "bubblewrap": bubblewrap.unavailable,
    "tmpfs": _small_disk,
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
