"""``run.json``: what an invocation ran, with which versions, where."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from pytest_paranoia import __version__
from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.schema.record import AgentInfo, EnvironmentInfo, JudgeInfo

if TYPE_CHECKING:
    from pytest_paranoia.metrics.gates import Gate

RUN_SCHEMA: Final = 1


def host_facts() -> dict[str, str | int | float]:
    """Return what explains speed and behaviour of a machine. No host name, user, path or address: runs get shared.

    ``memory`` is bytes of physical memory, ``cpus`` the processors this process may use.
    """
    facts: dict[str, str | int | float] = {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    }
    if {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(os.sysconf_names):
        facts["memory"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return facts


def tool_versions() -> dict[str, str]:
    """Return the versions of the programs that trials rest on, "missing" for one that is not there."""
    found = {"uv": _installed("uv"), "pytest-xdist": _installed("pytest-xdist")}
    for name in ("bwrap", "git"):
        try:
            done = subprocess.run([name, "--version"], capture_output=True, text=True, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):
            found[name] = "missing"
        else:
            found[name] = done.stdout.strip().splitlines()[0] if done.stdout.strip() else "unknown"
    return found


def _installed(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown"


class Resumption(BaseModel):
    """A later session that went on with the run: when (UTC), with which versions and options."""

    model_config = ConfigDict(extra="forbid")

    at: str
    package: str
    python: str
    pytest: str
    options: dict[str, JsonValue] = {}


class RunManifest(BaseModel):
    """The manifest of a run. ``run`` is filled in by ``RunDirectory.create``, ``resumed`` by ``RunDirectory.extend``.

    ``created`` is UTC in ISO 8601. ``tools`` maps names of external programs and packages to versions. ``items`` maps
    an item to the hash of its content, so that a resumed run notices a changed item. Which trials are planned is
    known only after collection and lives in a file of its own (``RunDirectory.plan``).
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    schema_version: Literal[1] = Field(default=RUN_SCHEMA, alias="schema")
    run: str = ""
    created: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    package: str = __version__
    python: str = Field(default_factory=platform.python_version)
    pytest: str = Field(default_factory=lambda: _installed("pytest"))
    tools: dict[str, str] = {}
    options: dict[str, JsonValue] = {}
    agents: list[AgentInfo] = []
    judge: JudgeInfo | None = None
    environment: EnvironmentInfo | None = None
    host: dict[str, str | int | float] = Field(default_factory=host_facts)
    items: dict[str, str] = {}
    resumed: list[Resumption] = []

    def gates(self) -> list[Gate]:
        """Return the gates that the last session of the run declared, as ``options`` keeps them ("max vr 20").

        Raises ParanoiaError where one of them is no gate.
        """
        from pytest_paranoia.metrics.gates import Gate  # as summaries do: a session needs it at its end only

        options = self.resumed[-1].options if self.resumed else self.options
        listed = options.get("gates")
        try:
            return [Gate.declared(str(text)) for text in listed] if isinstance(listed, list) else []
        except ValueError as error:
            raise ParanoiaError(f"run.json of {self.run}: key 'options.gates': {error}") from error

    def arms(self) -> dict[str, dict[str, JsonValue]]:
        """Return the arms of the run by name, the baseline first, as ``options`` keeps them; {} for a run without."""
        found = self.options.get("arms")
        return {name: arm for name, arm in found.items() if isinstance(arm, dict)} if isinstance(found, dict) else {}

    def baseline(self) -> str | None:
        """Return the name of the arm that adds nothing, None in a run without arms."""
        return next((name for name, arm in self.arms().items() if arm.get("baseline")), None)

    def subjects(self) -> list[str]:
        """Return whose trials the run has, as ``Record.subject`` names them, in the order in which they were given."""
        arms: list[str | None] = [*self.arms()] or [None]
        return [agent.name if arm is None else f"{agent.name}+{arm}" for agent in self.agents for arm in arms]

    def agent_settings(self, agent: str) -> dict[str, JsonValue] | None:
        """Return ``AgentChoice.settings`` of an agent, None where the run is of a version that did not keep them."""
        listed = self.options.get("agent_settings")
        found = listed.get(agent, {}) if isinstance(listed, dict) else None
        return found if isinstance(found, dict) else None

    def extended(self, session: RunManifest) -> RunManifest:
        """Return this manifest with what a resumed *session* adds: its agents and items, and that it took place."""
        known = {agent.name for agent in self.agents}
        entry = Resumption(
            at=session.created,
            package=session.package,
            python=session.python,
            pytest=session.pytest,
            options=session.options,
        )
        return self.model_copy(
            update={
                "agents": [*self.agents, *(agent for agent in session.agents if agent.name not in known)],
                "items": self.items | session.items,
                "tools": self.tools | session.tools,
                "resumed": [*self.resumed, entry],
            }
        )


class Plan(BaseModel):
    """``plan.json``: the trial keys a run means to make, in collection order."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    schema_version: Literal[1] = Field(default=RUN_SCHEMA, alias="schema")
    trials: list[str]


def default_run_name(now: datetime | None = None) -> str:
    """Return a run name that sorts by time, such as ``20261018T101112Z-3f9a1c``."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    return f"{moment:%Y%m%dT%H%M%SZ}-{os.urandom(3).hex()}"


def describe_path(path: Path) -> str:
    """Return what *path* is, for a message: missing, a file, an empty folder, a folder with these names."""
    if not path.exists():
        return "does not exist"
    if not path.is_dir():
        return "is a file"
    names = sorted(entry.name for entry in path.iterdir())
    return f"holds {', '.join(names[:4])}{' …' if len(names) > 4 else ''}" if names else "is an empty folder"
