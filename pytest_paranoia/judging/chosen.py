"""From ``--paranoia-judge`` and the options beside it to one judge; every usage error comes before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_paranoia import registry, resuming
from pytest_paranoia.agents.models import missing_key

if TYPE_CHECKING:
    from pytest_paranoia.agents.base import AgentChoice
    from pytest_paranoia.judging.base import Judge

DEFAULT = "sensors"
_OPTIONS = ("effort", "max-turns", "timeout", "memory", "encoder", "cache", "triage", "votes", "reading")


def parse(option: Any, config: pytest.Config) -> Judge:
    """Return the judge that the options name. Raises ``pytest.UsageError`` for anything that cannot be meant."""
    spec = option("paranoia_judge") or DEFAULT
    if registry.is_judge(spec):
        given = [name for name in _OPTIONS if option(f"paranoia_judge_{name.replace('-', '_')}") not in (None, False)]
        if given:
            raise pytest.UsageError(
                f"--paranoia-judge-{given[0]}: the judge {spec!r} asks no model, so it would change nothing; leave it "
                "out, or name a judge such as chat:MODEL with --paranoia-judge"
            )
        return registry.judge(spec)
    from pytest_paranoia.judging.llm import settings  # what it needs is only imported where a model judges

    return settings.parse(spec, option, config)


def folder_or_off(given: str | None, option: str, config: pytest.Config, default: Path | None) -> Path | None:
    """Return the folder that an option names: None for ``off``, *default* where it was not given."""
    if given is None:
        return default
    if given == "off":
        return None
    if not given.strip():
        raise pytest.UsageError(f"{option}: no folder named; expected DIR or off")
    path: Path = config.invocation_params.dir / given
    return path


def model_of(judge: Judge) -> AgentChoice | None:
    """Return the model that *judge* asks, None where it asks none."""
    choice: AgentChoice | None = getattr(judge, "choice", None)
    return choice


def refuse_incomplete(judge: Judge) -> None:
    """Before any trial: raise ``pytest.UsageError`` where the judge's key or program is not here."""
    choice = model_of(judge)
    if choice is None:
        return
    lacks = missing_key(choice) or registry.harness(choice.harness).missing(choice)
    if lacks:
        raise pytest.UsageError(f"--paranoia-judge: {choice.name}: {lacks}")


def refuse_unisolated(judge: Judge, reason: str | None) -> None:
    """Raise ``pytest.UsageError`` where the judge is a program and there is no isolation, because of *reason*."""
    choice = model_of(judge)
    if reason is not None and choice is not None and choice.harness != "chat":
        raise pytest.UsageError(f"--paranoia-judge: {choice.name} cannot run without isolation: {reason}")


def clashes(judge: Judge, agents: Sequence[AgentChoice]) -> list[str]:
    """Return what to warn of where judge and agents are of one model family."""
    choice = model_of(judge)
    if choice is None:
        return []
    from pytest_paranoia.judging.llm.families import warnings

    return warnings(choice, agents)


def rejudged(option: Any, config: pytest.Config, reports: Path) -> Path | None:
    """Return the run that ``--paranoia-rejudge`` names, None without it. Raises ``pytest.UsageError``."""
    name = option("paranoia_rejudge")
    if name is None:
        return None
    if not name:
        raise pytest.UsageError("--paranoia-rejudge: no run named; give the name or the folder of a run")
    for other in ("resume", "model", "validate", "instructions", "gate", "arm", "runs", "part"):
        if option(f"paranoia_{other}", None) not in (None, False, []):
            raise pytest.UsageError(
                f"--paranoia-rejudge judges the archived trials of a run and runs none; leave --paranoia-{other} out"
            )
    return resuming.find(name, reports, config.invocation_params.dir, option="--paranoia-rejudge").resolve()
