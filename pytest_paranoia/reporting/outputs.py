"""Files and lines that a session makes at its end where asked to: job summary, badge, HTML report, a comparison.

The controlling process writes them, from the run directory, after the workers are down.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.reporting.text import one_line
from pytest_paranoia.store import RunDirectory, RunSummary, StoreError
from pytest_paranoia.store.files import explained, write_atomic


@dataclass(frozen=True)
class Outputs:
    """What was asked for; None is not asked for. ``compare`` is the folder of an earlier run."""

    markdown: Path | None = None
    badge: Path | None = None
    html: Path | None = None
    compare: Path | None = None


@dataclass(frozen=True)
class Made:
    """``comparison``: lines for the terminal. ``written``: files. ``problems``: what could not be made, and why."""

    comparison: tuple[str, ...] = ()
    written: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()


def parse(option: Callable[[str], Any], base: Path, reports: Path) -> Outputs:
    """Return what the options ask for. Raises ``pytest.UsageError`` before anything runs, not after hours."""
    paths: dict[str, Path | None] = {}
    for name in ("markdown", "badge", "html"):
        given = option(f"paranoia_{name}")
        path = None if given is None else base / given
        if path is not None and (not given or path.is_dir()):
            raise pytest.UsageError(f"--paranoia-{name}: {given or 'nothing'} given, expected the name of a file")
        if path is not None and not path.parent.is_dir():
            raise pytest.UsageError(f"--paranoia-{name}: the folder of {given} does not exist; make it first")
        if path is not None and option("paranoia_validate"):
            raise pytest.UsageError(f"--paranoia-{name}: a validation has no results; leave one out")
        paths[name] = path
    return Outputs(**paths, compare=_earlier(option("paranoia_compare"), base, reports))


def _earlier(given: str | None, base: Path, reports: Path) -> Path | None:
    if given is None:
        return None
    for path in (base / given, reports / given):
        try:
            return RunDirectory.open(path).path
        except StoreError as error:
            problem = error
    raise pytest.UsageError(f"--paranoia-compare: {problem}")


def make(asked: Outputs, summary: RunSummary, width: int) -> Made:
    """Write what was *asked* of *summary*. Never raises: nothing here may take away the results of a run.

    *width*: columns of the terminal.
    """
    comparison: list[str] = []
    written: list[Path] = []
    problems: list[str] = []

    def attempt(what: str, action: Callable[[], object]) -> None:
        try:
            action()
        except ParanoiaError as error:
            problems.append(f"{what}: {one_line(str(error), 'utf-8')}")
        except Exception as error:  # a fault of ours, in a report
            problems.append(f"{what}: {type(error).__name__}: {one_line(str(error), 'utf-8')}")

    if (earlier := asked.compare) is not None:
        attempt("--paranoia-compare", lambda: comparison.extend(_compared(earlier, summary, width)))
    if (path := asked.markdown) is not None:
        attempt("--paranoia-markdown", lambda: written.append(_write(path, _markdown(summary, comparison, path))))
    if (target := asked.badge) is not None:
        attempt("--paranoia-badge", lambda: written.append(_write(target, _badge(summary))))
    if (page := asked.html) is not None:
        attempt("--paranoia-html", lambda: written.append(_html(page, summary)))
    return Made(tuple(comparison), tuple(written), tuple(problems))


def _compared(earlier: Path, summary: RunSummary, width: int) -> list[str]:
    from pytest_paranoia.reporting.comparison import compared_lines  # pandas and SciPy

    return compared_lines(RunDirectory.open(earlier).summary(), summary, width)


def _markdown(summary: RunSummary, comparison: list[str], path: Path) -> bytes:
    from pytest_paranoia.reporting.markdown import markdown

    text = markdown(summary, comparison).encode("utf-8")
    # GitHub hands a step a file to add to; earlier steps of the same job may have.
    step = os.environ.get("GITHUB_STEP_SUMMARY")
    if step and path.is_file() and Path(step).exists() and path.samefile(step):
        before = path.read_bytes()
        return before + (b"\n" if before else b"") + text
    return text


def _badge(summary: RunSummary) -> bytes:
    from pytest_paranoia.reporting.badge import badge

    return (json.dumps(badge(summary)) + "\n").encode("ascii")


def _html(path: Path, summary: RunSummary) -> Path:
    from pytest_paranoia.reporting.html import write_report

    return write_report(summary.path, path, summary=summary)


def _write(path: Path, content: bytes) -> Path:
    target = path.resolve()  # a symlink stays one
    if target.exists() and not target.is_file():  # /dev/stdout cannot be replaced
        with explained(target, "write"):
            target.write_bytes(content)
    else:
        write_atomic(target, content)
    return path
