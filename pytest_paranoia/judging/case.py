"""What a judge is given and what it gives back: one finished run as a case, one judgement of it.

A case is built from a trial that has just ended (``trial``) or from its archive (``archive``); no judge can tell which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from pytest_paranoia.corpus import PairItem, ScenarioItem
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.schema.evaluator import Card, Truth
from pytest_paranoia.schema.manifest import Pair, Scenario
from pytest_paranoia.schema.record import AgentInfo, Judging, OracleResult, ReplayResult
from pytest_paranoia.schema.taxonomy import Variant
from pytest_paranoia.schema.verdict import AccusationVerdict, Verdict
from pytest_paranoia.scoring.sensors import RunView, count

if TYPE_CHECKING:
    from pytest_paranoia.environments.base import EnvironmentProvider

V_co = TypeVar("V_co", Verdict, AccusationVerdict, covariant=True)


@dataclass(frozen=True)
class Means:
    """What a judge that reads may use beside the case itself.

    ``start`` is the pristine start tree on the host (with ``.git`` for pairs); never written to. ``scratch`` is an
    existing private folder. ``relay`` is the address of the run's relay, None where none runs. ``trial`` is the trial's
    key. ``agent`` says who ran: for the warning that judge and agent are of one model family, and for neutralising; no
    judge is ever shown it.
    """

    start: Path
    provider: EnvironmentProvider
    scratch: Path
    trial: str
    agent: AgentInfo
    relay: str | None = None


@dataclass(frozen=True)
class PairCase:
    """One run of a task pair. ``name`` is the item's, ``sensors`` the counts of the general sensors by name."""

    view: RunView
    name: str
    card: Card
    pair: Pair
    variant: Variant
    oracle: OracleResult
    sensors: Mapping[str, int] = field(default_factory=dict)
    means: Means | None = None

    @property
    def messages(self) -> tuple[str, ...]:
        """The user messages of the task in order."""
        return (self.pair.instruction_for(self.variant),)


@dataclass(frozen=True)
class ScenarioCase:
    """One run of an accusation scenario."""

    view: RunView
    name: str
    truth: Truth
    scenario: Scenario
    replay: ReplayResult
    sensors: Mapping[str, int] = field(default_factory=dict)
    means: Means | None = None

    @property
    def messages(self) -> tuple[str, ...]:
        """The user messages that the agent got, in order."""
        return tuple(step.text for step in self.view.trajectory.steps if step.source == "user")


Case = PairCase | ScenarioCase


def case_of(
    item: PairItem | ScenarioItem,
    variant: Variant | None,
    view: RunView,
    checked: OracleResult | ReplayResult,
    means: Means | None,
) -> Case:
    """Return the case of a run of *item*; *checked* is what its oracle or replay said."""
    if isinstance(checked, OracleResult):
        assert isinstance(item, PairItem)
        sensors = count(view, item.card.scope)
        return PairCase(view, item.name, item.card, item.pair, variant or "E+", checked, sensors, means)
    assert isinstance(item, ScenarioItem)
    return ScenarioCase(view, item.name, item.truth, item.scenario, checked, count(view, None), means)


@dataclass(frozen=True)
class Judgement(Generic[V_co]):
    """A verdict and how it came about: ``judging`` goes into the record, ``artifacts`` beside it (name to content)."""

    verdict: V_co
    judging: Judging | None = None
    artifacts: Mapping[str, bytes] = field(default_factory=dict)


class Unjudged(InfrastructureError):
    """The judge came to no verdict: the run is unscored. What was asked and what it cost is kept all the same."""

    def __init__(
        self,
        reason: str,
        message: str,
        judging: Judging | None = None,
        artifacts: Mapping[str, bytes] | None = None,
    ) -> None:
        super().__init__(reason, message)
        self.judging = judging
        self.artifacts: Mapping[str, bytes] = artifacts or {}
