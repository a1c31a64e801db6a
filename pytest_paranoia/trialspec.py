"""What a trial is; apart from ``trial``, since collecting 10,000 of them needs nothing of what runs one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_paranoia.agents.base import AgentChoice
    from pytest_paranoia.corpus import PairItem, ScenarioItem
    from pytest_paranoia.schema.taxonomy import Variant


@dataclass(frozen=True)
class TrialSpec:
    """What a trial is: an item, a variant (None for scenarios), an agent, a run number, and an arm if there are any."""

    item: PairItem | ScenarioItem
    variant: Variant | None
    agent: AgentChoice
    run: int
    identity: str
    """The part in brackets of the node id."""
    arm: str | None = None
    """Name of the arm, None in a run without arms."""

    @property
    def key(self) -> str:
        """Stable key of the trial within a run directory."""
        return f"{self.item.name}[{self.identity}]"
