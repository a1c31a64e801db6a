"""What is known of a trial at whatever point it ended, and what is written of it: the record and its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_paranoia import registry
from pytest_paranoia.acting import WIRE, Conduct, Conversation
from pytest_paranoia.agents.base import Recorder, UserMessage, now
from pytest_paranoia.audit import AuditTrail
from pytest_paranoia.corpus import PairItem, ScenarioItem
from pytest_paranoia.environments.base import Environment
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.harbor.rewards import OWN_JUDGE
from pytest_paranoia.harbor.staging import stage_of
from pytest_paranoia.judging import chosen
from pytest_paranoia.schema.record import (
    AgentInfo,
    EnvironmentInfo,
    JudgeInfo,
    Judging,
    OracleResult,
    Record,
    ReplayResult,
    Services,
    Timing,
    Usage,
)
from pytest_paranoia.schema.services import SERVICES_FILE
from pytest_paranoia.schema.tampering import Sign
from pytest_paranoia.schema.trajectory import Trajectory
from pytest_paranoia.schema.verdict import AccusationVerdict, Verdict
from pytest_paranoia.scoring import oracle
from pytest_paranoia.scoring.sensors import RunView
from pytest_paranoia.scoring.trees import FinalTree
from pytest_paranoia.secrecy import Mask
from pytest_paranoia.tampering import Facts, Witness, look
from pytest_paranoia.trialspec import TrialSpec
from pytest_paranoia.workspaces.freezing import FrozenTree
from pytest_paranoia.workspaces.snapshots import Snapshot
from pytest_paranoia.workspaces.spares import Loan
from pytest_paranoia.workspaces.stage import Stage

if TYPE_CHECKING:
    from pytest_paranoia.environments.base import EnvironmentProvider
    from pytest_paranoia.judging.base import Judge


@dataclass(frozen=True)
class AgentRun:
    """What an agent left: its trajectory and the frozen tree. ``established`` is set for self-built scenarios.

    ``alleged`` is the check of what is going to be alleged, where the replay has one and the state is correct.
    """

    trajectory: Trajectory
    frozen: FrozenTree
    established: ReplayResult | None = None
    before_accusation: FrozenTree | None = None
    alleged: ReplayResult | None = None

    @property
    def invalid(self) -> bool:
        """True where a self-built state was not correct before the accusation, or was as it is then alleged to be.

        Such a run is not scored: the accusation would be true.
        """
        return any(result is not None and result.harm > 0 for result in (self.established, self.alleged))

    @property
    def why_invalid(self) -> tuple[str, str]:
        """The reason in a word, and a message that names the failing events."""
        correct = self.established is None or self.established.harm == 0
        result = self.alleged if correct else self.established
        failed = [event.name for event in result.events if not event.ok] if result else []
        if correct:
            return "alleged-true", f"the work step left what is then alleged: {', '.join(failed[:5])}"
        return "not-established", f"the work step left {len(failed)} failing events: {', '.join(failed[:5])}"


@dataclass
class TrialState:
    """State of one trial. ``scratch`` is a private folder that the caller makes and removes."""

    spec: TrialSpec
    nodeid: str
    provider: EnvironmentProvider
    environment_name: str
    judged_by: Judge
    scratch: Path
    timeout: float | None = None
    check_timeout: float = oracle.ORACLE_SECONDS
    started: str = field(default_factory=now)
    timing: Timing = field(default_factory=Timing)
    log: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    conduct: Conduct = field(default_factory=Conduct)
    environment: Environment | None = None
    agent_run: AgentRun | None = None
    oracle_result: OracleResult | None = None
    replay_result: ReplayResult | None = None
    verdict: Verdict | AccusationVerdict | None = None
    sensors: Mapping[str, int] = field(default_factory=dict)
    judging: Judging | None = None
    witness: Witness = field(default_factory=Witness)
    _judged: Mapping[str, bytes] = field(default_factory=dict)
    _labels: AccusationVerdict | None = None
    """What a Harbor task's own verifier says of f and e."""
    _trail: AuditTrail | None = None
    _recorder: Recorder | None = None
    _conversation: Conversation | None = None
    _loan: Loan | None = None
    _frozen: FrozenTree | None = None
    _start: Snapshot = field(default_factory=dict)
    _private: dict[str, Snapshot] = field(default_factory=dict)

    @property
    def item(self) -> PairItem | ScenarioItem:
        """The item of the trial."""
        return self.spec.item

    @cached_property
    def agent(self) -> AgentInfo:
        """The agent as records name it."""
        return registry.harness(self.spec.agent.harness).info(self.spec.agent)

    @cached_property
    def stage(self) -> Stage:
        """Where the item is set, prepared on first use. Raises SourceError."""
        return stage_of(self.item, self.spec.variant, self.provider)

    @property
    def workspace(self) -> Path:
        """Host folder of the trial's workspace."""
        return self.scratch / "workspace"

    @cached_property
    def messages(self) -> list[UserMessage]:
        """The user messages in order."""
        if isinstance(self.item, PairItem):
            return [UserMessage("task", self.item.pair.instruction_for(self.spec.variant or "E+"))]
        steps = self.item.scenario.steps
        return [UserMessage(step.role, text) for step, text in zip(steps, self.item.messages, strict=True)]

    def _services(self) -> Services | None:
        if self._trail is None or self._frozen is None or self.environment is None:
            return None
        tree = FinalTree(self.stage.start, self._frozen)
        names = [service.name for service in self.stage.services]
        return self._trail.summary(names, self.environment.workspace, tree.base, tree.read)

    @property
    def _is_pair(self) -> bool:
        return isinstance(self.item, PairItem)

    def view(self) -> RunView:
        """The finished run as sensors and judges see it."""
        run = self.agent_run
        assert run is not None
        return self._view(run.trajectory, run.frozen, run.before_accusation)

    def _view(self, trajectory: Trajectory, frozen: FrozenTree, before: FrozenTree | None = None) -> RunView:
        final = FinalTree(self.stage.start, frozen)
        return RunView(
            trajectory=trajectory,
            frozen=frozen.frozen,
            start=final.base,
            final=final.read,
            before=FinalTree(self.stage.start, before).read if before is not None else None,
            made=tuple(change.path for change in before.frozen.changes) if before is not None else (),
            workspace=self.environment.workspace if self.environment is not None else "",
            services=self._trail.calls if self._trail is not None else (),
        )

    def tampering(self) -> list[Sign] | None:
        """The signs of tampering, None where the trial never got as far as a frozen result."""
        trajectory = self._recorder.trajectory() if self._recorder else None
        if trajectory is None or self._frozen is None:
            return None
        before = self.agent_run.before_accusation if self.agent_run else None
        scope = self.item.card.scope.files if isinstance(self.item, PairItem) else None
        view = self._view(trajectory, self._frozen, before)
        inside = registry.harness(self.spec.agent.harness).calls_from == "inside"
        wire = self.scratch / WIRE if inside and self.agent_run is not None else None
        services = self._services()
        past = services.disagreements if services is not None else ()
        told = self.item.truth if isinstance(self.item, ScenarioItem) else None
        phrases = (*told.accept, *told.concede) if told is not None else ()
        facts = Facts(view, self._frozen.contents, scope, self.stage.pythonpath, self.witness, wire, past, phrases)
        return look(facts, self.log)

    def record(self, error: BaseException | None = None) -> Record:
        """Return the record: scored, invalid, or unscored because of *error*."""
        run = self.agent_run
        reason: str | None = None
        message = ""
        if error is not None:
            status = "unscored"
            reason = error.reason if isinstance(error, InfrastructureError) else _reason(error)
            message = str(error) or repr(error)
        elif run is not None and run.invalid:
            status = "invalid"
            reason, message = run.why_invalid
        else:
            status = "scored"
        item = self.item
        conversation = self._conversation
        fields: dict[str, Any] = {}
        if isinstance(item, PairItem):
            fields = {
                "variant": self.spec.variant,
                "treatment": item.pair.treatment,
                "situation": item.pair.situation,
                "repository": item.folder.parent.name,
            }
        else:
            fields = {
                "domain": item.scenario.domain,
                "family": item.scenario.family,
                "factors": list(item.scenario.factors.values()),
            }
        judge = JudgeInfo(name=self.judged_by.name, version=self.judged_by.version)
        if self._labels is not None:
            judge = JudgeInfo(name=OWN_JUDGE, version="task")
        record = Record(
            trial=self.spec.key,
            nodeid=self.nodeid,
            kind="pair" if self._is_pair else "scenario",
            item=item.name,
            item_hash=item.hash,
            agent=self.agent,
            run=self.spec.run,
            arm=self.spec.arm,
            environment=EnvironmentInfo(
                name=self.environment_name,
                # Where none came up nothing ran, and nothing ran unguarded.
                isolated=self.environment.isolated if self.environment else self.provider.isolation() is None,
                image=self.environment.image if self.environment is not None else None,
            ),
            judge=judge,
            judging=self.judging,
            workspace=self.environment.workspace if self.environment is not None else "",
            services=self._services(),
            started=self.started,
            finished=now(),
            timing=self.timing,
            usage=conversation.usage if conversation else Usage(),
            intervention=conversation.intervention if conversation else None,
            status=status,
            reason=reason,
            message=_clean(message)[:4000],
            oracle=self.oracle_result,
            replay=self.replay_result,
            established=run.established if run else None,
            verdict=self.verdict if isinstance(self.verdict, Verdict) else None,
            accusation=self.verdict if isinstance(self.verdict, AccusationVerdict) else None,
            sensors=dict(self.sensors),
            limits=list(dict.fromkeys(self.limits)),
            tampering=self.tampering(),
            **fields,
        )
        return self._mask.model(record)

    def artifacts(self) -> dict[str, bytes | Path]:
        """The files archived beside the record."""
        files: dict[str, bytes | Path] = {
            "instruction.md": "\n\n---\n\n".join(message.text for message in self.messages).encode()
        }
        trajectory = self._recorder.trajectory() if self._recorder else None
        if trajectory is not None:
            files["trajectory.json"] = trajectory.model_dump_json(exclude_none=True).encode()
        if self._frozen is not None:
            files["frozen.json"] = self._frozen.frozen.model_dump_json(exclude_none=True).encode()
            files["diff.patch"] = self._frozen.diff.encode("utf-8", "backslashreplace")
            for digest, content in self._frozen.contents.items():
                files[f"files/{digest}"] = content
        if self.agent_run is not None and (before := self.agent_run.before_accusation) is not None:
            files["before.json"] = before.frozen.model_dump_json(exclude_none=True).encode()
            for digest, content in before.contents.items():
                files[f"files/{digest}"] = content
        if self._conversation is not None:
            files |= self._conversation.artifacts()
        if self._trail is not None:
            files[SERVICES_FILE] = self._trail.lines()
        files |= self._judged
        if self.log:
            files["oracle.log"] = "\n".join(self.log).encode("utf-8", "backslashreplace")
        return self._mask.files(files)

    @property
    def _mask(self) -> Mask:
        judge = chosen.model_of(self.judged_by)
        return Mask(self.spec.agent.provider, judge.provider if judge is not None else None)


def _reason(error: BaseException) -> str:
    name = type(error).__name__
    known = {"SourceError": "source", "ManifestError": "manifest", "StoreError": "store"}
    return known.get(name, f"error-{name}")


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
