"""Agents, environments and judges by name: entry points, so that third parties add theirs without a change here."""

from __future__ import annotations

import difflib
from functools import lru_cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from pytest_paranoia.agents.base import AgentChoice, Harness
    from pytest_paranoia.agents.models import ModelRegistry
    from pytest_paranoia.environments.base import EnvironmentProvider
    from pytest_paranoia.judging.base import Judge

GROUPS = {
    "agent": "pytest_paranoia.agents",
    "environment": "pytest_paranoia.environments",
    "judge": "pytest_paranoia.judges",
}
_PARTS = {
    "agent": ("name", "scripted", "calls_from", "protocols", "choose", "info", "missing", "mounts", "open"),
}
SCRIPTED = {"minimal", "responsive", "paranoid"}


@lru_cache
def _names(kind: str) -> tuple[str, ...]:
    return tuple(sorted({point.name for point in entry_points(group=GROUPS[kind])}))


@lru_cache
def _load(kind: str, name: str) -> Any:
    for point in entry_points(group=GROUPS[kind], name=name):
        try:
            loaded = point.load()
        except Exception as error:
            raise pytest.UsageError(f"{kind} {name!r} ({point.value}) cannot be loaded: {error!r}") from error
        if lacking := [part for part in _PARTS.get(kind, ()) if not hasattr(loaded, part)]:
            raise pytest.UsageError(
                f"{kind} {name!r} ({point.value}) is no harness: it lacks {', '.join(lacking)} (see "
                "`paranoia docs agents`)"
            )
        return loaded
    raise LookupError(name)


def close_to(name: str, names: list[str]) -> str | None:
    """Return the one of *names* that *name* may have been meant to be."""
    return next(iter(difflib.get_close_matches(name, names, n=1)), None)


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


def is_judge(name: str) -> bool:
    """Return whether a judge is registered under *name*; other judges are models."""
    return name in _names("judge")


def judges() -> list[str]:
    """Return the names of the registered judges."""
    return list(_names("judge"))


def judge(name: str) -> Judge:
    """Return the registered judge called *name*."""
    return cast("Judge", _load("judge", name))


def harness(name: str) -> Harness:
    """Return the harness called *name*. Raises ``pytest.UsageError`` where there is none: a model's entry names it."""
    return cast("Harness", _load("agent", known("agent", name, "--model")))


def scripted(run: str) -> AgentChoice:
    """Return the agent that plays the reference run *run*."""
    return harness("scripted").choose(run)


def agent(name: str, models: ModelRegistry, effort: str | None = None, max_turns: int | None = None) -> AgentChoice:
    """Resolve one name of ``--model``. Raises ``pytest.UsageError``."""
    from pytest_paranoia.agents.models import resolve

    harness_name, _, model = name.partition(":")
    harness_name = harness_name.partition("@")[0]
    if name in SCRIPTED:
        harness_name, model = "scripted", name
    if name not in models.models and harness_name not in _names("agent"):
        everything = [*sorted(SCRIPTED), *models.names(), *(f"{known}:…" for known in _names("agent")), "replay:RUN"]
        raise _unknown("agent", name, "--model", everything)
    if name not in models.models and harness(harness_name).calls_from is None:
        return harness(harness_name).choose(model or None)
    return resolve(name, models, harness, effort=effort, max_turns=max_turns)
