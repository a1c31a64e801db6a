"""``--model replay:RUN``: the agents of an earlier run, answered from its recorded model calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_paranoia import registry, resuming
from pytest_paranoia.acting import WIRE_ARCHIVE
from pytest_paranoia.agents.base import AgentChoice
from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.relay import wire
from pytest_paranoia.relay.contract import Protocol, Provider
from pytest_paranoia.store import RunDirectory, StoreError


def agents(name: str, config: pytest.Config) -> list[AgentChoice]:
    """Return the agents of run *name* that have recorded model calls. Raises ``pytest.UsageError`` with the remedy."""
    base = config.invocation_params.dir
    reports = base / (config.getoption("paranoia_reports") or "reports")
    try:
        run = RunDirectory.open(resuming.find(name, reports, base, option="--model: replay"))
    except StoreError as error:
        raise pytest.UsageError(f"--model: replay:{name}: {error}") from None
    found = []
    for agent in run.manifest.agents:
        try:
            harness = registry.harness(registry.known("agent", agent.harness, "--model"))
        except pytest.UsageError as error:
            raise pytest.UsageError(f"--model: replay:{name}: {error}") from None
        if harness.calls_from is None:
            continue
        spoken = _spoken(run, agent.name)
        if not spoken:
            raise pytest.UsageError(f"--model: replay:{name}: the run holds no recorded model calls of {agent.name}")
        # No address: an answer that is not recorded must not be asked for elsewhere.
        provider = Provider(agent.provider or "recorded", "http://recorded.invalid/v1", protocols=spoken)
        found.append(
            AgentChoice(
                name=agent.name,
                harness=agent.harness,
                model=agent.model,
                provider=provider,
                effort=agent.effort,
                context=agent.context,
                max_output=_number(run, agent.name, "max_output"),
                max_turns=_number(run, agent.name, "max_turns"),
                replay=run.path.resolve(),
                # Another version asks other things than what the recording answers.
                version=agent.version,
            )
        )
    if not found:
        raise pytest.UsageError(
            f"--model: replay:{name}: none of its agents calls a model "
            f"({', '.join(agent.name for agent in run.manifest.agents)}); "
            "name them with --model instead, they need no recording"
        )
    return found


def refuse_other_instructions(
    agents: Sequence[AgentChoice], sha256: str | None, arms: dict[str, Any] | None = None
) -> None:
    """Answers recorded under other instructions would be told as those under *sha256*: raise ``pytest.UsageError``.

    The same holds of *arms*, as run manifests write them.
    """
    for path in dict.fromkeys(agent.replay for agent in agents if agent.replay is not None):
        options = RunDirectory.open(path).manifest.options
        resuming.refuse_other_arms(f"--model: replay:{path.name}", options.get("arms"), arms)
        then = options.get("instructions")
        if then != sha256:
            raise pytest.UsageError(
                f"--model: replay:{path.name}: its answers were recorded with instructions {then or 'none'}, this "
                f"session has {sha256 or 'none'}; give the same --paranoia-instructions"
            )


def _number(run: RunDirectory, agent: str, name: str) -> int | None:
    """Return a number of ``AgentChoice.settings`` as *run* had it; runs of earlier versions do not tell."""
    number = (run.manifest.agent_settings(agent) or {}).get(name)
    return number if isinstance(number, int) else None


def _spoken(run: RunDirectory, agent: str) -> tuple[Protocol, ...]:
    """Return the protocols of the agent's recorded calls: those of the first trial that has any."""
    for record in run.records().records:
        path = run.trial_folder(record.trial) / WIRE_ARCHIVE
        if record.agent.name != agent or not path.is_file():
            continue
        try:
            spoken = {exchange.protocol: None for exchange in wire.read_wire(path) if exchange.protocol is not None}
        except ParanoiaError:
            continue  # told when that trial is replayed
        if spoken:
            return tuple(spoken)
    return ()
