"""Agents, environments and judges by name: entry points, so that third parties add theirs without a change here."""

from __future__ import annotations

import difflib
from functools import lru_cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from pytest_paranoia.agents.base import AgentChoice, Harness
    from pytest_paranoia.environments.base import EnvironmentProvider
    from pytest_paranoia.judging.base import Judge

GROUPS = {
    "agent": "pytest_paranoia.agents",
    "environment": "pytest_paranoia.environments",
    "judge": "pytest_paranoia.judges",
}
SCRIPTED = {"minimal", "responsive", "paranoid"}


@lru_cache
def _names(kind: str) -> tuple[str, ...]:
    return tuple(sorted({point.name for point in entry_points(group=GROUPS[kind])}))


@lru_cache
def _load(kind: str, name: str) -> Any:
    for point in entry_points(group=GROUPS[kind], name=name):
        try:
            return point.load()
        except Exception as error:
            raise pytest.UsageError(f"{kind} {name!r} ({point.value}) cannot be loaded: {error!r}") from error
    raise LookupError(name)


def _unknown(kind: str, name: str, option: str, known: list[str]) -> pytest.UsageError:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return pytest.UsageError(f"{option}: unknown {kind} {name!r}; {hint}known: {', '.join(known)}")


def known(kind: str, name: str, option: str) -> str:
    """Return *name* if a *kind* is registered under it. Raises ``pytest.UsageError`` with what is."""
    if name not in _names(kind):
        raise _unknown(kind, name, option, list(_names(kind)))
    return name


def environment(name: str) -> EnvironmentProvider:
    """Return the environment provider called *name*."""
    return cast("EnvironmentProvider", _load("environment", name))


def judge(name: str) -> Judge:
    """Return the judge called *name*."""
    return cast("Judge", _load("judge", name))


def harness(name: str) -> Harness:
    """Return the harness called *name*."""
    return cast("Harness", _load("agent", name))


def agent(name: str) -> AgentChoice:
    """Resolve ``minimal``, ``HARNESS:MODEL`` or a bare harness name to an agent. Raises ``pytest.UsageError``."""
    harness_name, _, model = name.partition(":")
    if name in SCRIPTED:
        harness_name, model = "scripted", name
    if harness_name not in _names("agent"):
        everything = [*sorted(SCRIPTED), *(f"{known}:…" for known in _names("agent"))]
        raise _unknown("agent", name, "--model", everything)
    return harness(harness_name).choose(model or None)
