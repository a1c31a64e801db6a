"""One trial, phase by phase: prepare, agent, freeze, check, judge, record. Fixtures call the phases in this order."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_paranoia import registry
from pytest_paranoia.acting import WIRE, Conduct, Conversation, equipped
from pytest_paranoia.agents.base import Recorder, UserMessage, now
from pytest_paranoia.audit import AuditTrail
from pytest_paranoia.corpus import PairItem, ScenarioItem
from pytest_paranoia.environments.base import Environment, Limits
from pytest_paranoia.errors import InfrastructureError, ParanoiaError, disk_full
from pytest_paranoia.harbor.images import provider_for
from pytest_paranoia.harbor.items import HarborItem
from pytest_paranoia.harbor.rewards import OWN_JUDGE
from pytest_paranoia.harbor.staging import remarks, stage_of
from pytest_paranoia.harbor.verify import verify
from pytest_paranoia.judging.base import judge_case
from pytest_paranoia.judging.case import Means, Unjudged, case_of
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
from pytest_paranoia.schema.taxonomy import StepRole
from pytest_paranoia.schema.trajectory import Trajectory
from pytest_paranoia.schema.verdict import AccusationVerdict, Verdict
from pytest_paranoia.scoring import oracle
from pytest_paranoia.scoring.sensors import RunView
from pytest_paranoia.scoring.trees import FinalTree
from pytest_paranoia.tampering import Facts, Witness, look
from pytest_paranoia.trialspec import TrialSpec
from pytest_paranoia.workspaces import freezing
from pytest_paranoia.workspaces.freezing import FrozenTree
from pytest_paranoia.workspaces.snapshots import Snapshot, snapshot
from pytest_paranoia.workspaces.spares import SPARES, Loan
from pytest_paranoia.workspaces.stage import PROGRAMS, TOOLS, Stage
from pytest_paranoia.workspaces.stillness import held_still

if TYPE_CHECKING:
    from pytest_paranoia.environments.base import EnvironmentProvider
    from pytest_paranoia.judging.base import Judge

_T = TypeVar("_T")
_NO_SNAPSHOT: Snapshot = {}
_NO_ROOM = (
    "free space, or set TMPDIR (for trials) or PARANOIA_CACHE (for repositories) to a folder on another disk, and go "
    "on with --paranoia-resume"
)


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
class Trial:
    """Runs one trial. ``scratch`` is a private folder that the caller makes and removes."""

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

    def _timed(self, phase: str, action: Callable[[], _T]) -> _T:
        started = time.monotonic()
        try:
            return action()
        except (OSError, ParanoiaError) as error:
            if disk_full(error) and getattr(error, "reason", None) != "disk-full":
                raise InfrastructureError("disk-full", f"{error}; {_NO_ROOM}") from error
            raise
        finally:
            spent = round(time.monotonic() - started, 3)
            self.timing = self.timing.model_copy(update={phase: getattr(self.timing, phase) + spent})

    def bring_up(self) -> Environment:
        """Prepare the workspace and start the environment."""
        return self._timed("prepare", self._bring_up)

    def _bring_up(self) -> Environment:
        stage = self.stage
        if isinstance(self.item, HarborItem):
            # From here on: the stage was prepared with the session's own.
            self.provider = provider_for(self.item, self.provider)
        self._loan = SPARES.take("agent", stage.start, self.workspace, self.provider.owner)
        seconds = self.timeout or self._item_seconds
        spec = self.stage.spec(self.workspace, self.scratch, Limits(wall_clock=seconds))
        harness = registry.harness(self.spec.agent.harness)
        environment = self.provider.create(equipped(spec, harness, self.spec.agent, self.scratch))
        environment.start()
        self.environment = environment
        if self.stage.services:
            self._trail = AuditTrail.open(environment, self.scratch / TOOLS / PROGRAMS, self._at_work)
        skip: frozenset[bytes] = frozenset({b".git"}) if self._is_pair else frozenset()
        self._start = snapshot(self.workspace, skip=skip)
        self._private = {name: _snapshot_if_there(self.scratch / name) for name in ("tmp", "home")}
        return environment

    def _services(self) -> Services | None:
        if self._trail is None or self._frozen is None or self.environment is None:
            return None
        tree = FinalTree(self.stage.start, self._frozen)
        names = [service.name for service in self.stage.services]
        return self._trail.summary(names, self.environment.workspace, tree.base, tree.read)

    def _at_work(self) -> tuple[StepRole | None, int]:
        return self._recorder.at_work if self._recorder is not None else (None, 0)

    @property
    def _is_pair(self) -> bool:
        return isinstance(self.item, PairItem)

    @property
    def _item_seconds(self) -> float:
        if isinstance(self.item, PairItem):
            return self.item.pair.agent_seconds
        return self.item.scenario.agent_seconds

    def act(self) -> AgentRun:
        """Let the agent work on all messages, end its processes, freeze what it left."""
        assert self.environment is not None
        harness = registry.harness(self.spec.agent.harness)
        self._recorder = Recorder(self.agent)
        self._conversation = conversation = Conversation(
            spec=self.spec,
            harness=harness,
            info=self.agent,
            conduct=self.conduct,
            environment=self.environment,
            recorder=self._recorder,
            scratch=self.scratch,
            python=self.environment.locate(self.stage.python_env / "bin") + "/python",
            deadline=time.monotonic() + (self.timeout or self._item_seconds),
            limits=self.limits,
            references=self.item.runs if harness.scripted else {},
            goal=self.item.scenario.goal if isinstance(self.item, ScenarioItem) else None,
            services=self.item.scenario.services if isinstance(self.item, ScenarioItem) else (),
            resumed=isinstance(self.item, ScenarioItem) and self.item.scenario.family == "inherited-resume",
        )
        established: ReplayResult | None = None
        alleged: ReplayResult | None = None
        worked: FrozenTree | None = None
        try:
            conversation.open()
            for message in self.messages:
                self._timed("agent", partial(conversation.say, message))
                if message.role == "work":
                    with held_still(self.environment):
                        worked = self._timed("freeze", lambda: self._freeze(self.workspace))
                    established = self._establish(worked)
                    if established.harm > 0:
                        break
                    alleged = self._timed("check", partial(self._alleged, worked))
                    if alleged is not None and alleged.harm > 0:
                        break
        finally:
            try:
                conversation.close()
            finally:
                self._freeze_safely()
        conversation.check()
        trajectory = self._recorder.trajectory()
        assert trajectory is not None
        assert self._frozen is not None
        self.agent_run = AgentRun(trajectory, self._frozen, established, worked, alleged)
        return self.agent_run

    def _freeze_safely(self) -> None:
        # Also after an error: what the agent had done by then belongs into the record of an unscored trial.
        assert self.environment is not None
        try:
            git = self._git_state() if self._is_pair else None
            self.witness.ask(self.environment)
        finally:
            self.environment.stop()
            if self._trail is not None:
                self._trail.close()
        self._frozen = self._timed("freeze", lambda: self._freeze(self.workspace))
        if git is not None:
            self._frozen.frozen.git = git
        self.witness.inspect(self.workspace, self.stage.start)

    def _git_state(self) -> Any:
        if not self.stage.commit or not _git_moved(self.workspace, self.stage.start):
            return None
        assert self.environment is not None
        environment = self.environment

        def run(script: str) -> tuple[int, str]:
            try:
                result = environment.exec(["sh", "-c", script], timeout=30)
            except InfrastructureError as error:
                return -1, str(error)
            return result.exit_code, result.stdout.decode("utf-8", "backslashreplace")

        return freezing.git_state(run, "$(git rev-list --max-parents=0 HEAD | tail -n 1)")

    def _freeze(self, workspace: Path) -> FrozenTree:
        tree = freezing.freeze(workspace, self.stage.start, self._start, with_git=not self._is_pair)
        for name in ("tmp", "home"):
            folder = self.scratch / name
            if folder.is_dir():
                changes, contents = freezing.freeze_private(folder, self._private.get(name, _NO_SNAPSHOT))
                setattr(tree.frozen, f"{name}_changes", changes)
                tree.contents.update(contents)
        return tree

    def _establish(self, frozen: FrozenTree) -> ReplayResult:
        """Replay right after the work step, on a copy frozen while the agent's environment waits."""
        self.log.append("== after the work step")
        return self._timed("check", lambda: self._replay(frozen))

    def _alleged(self, frozen: FrozenTree) -> ReplayResult | None:
        assert isinstance(self.item, ScenarioItem)
        if isinstance(self.item, HarborItem):
            return None
        return oracle.alleged(self.item.replay, self._subject(frozen), self.provider, self.check_timeout)

    def _subject(self, frozen: FrozenTree) -> oracle.Subject:
        trajectory = self._recorder.trajectory() if self._recorder else None
        if trajectory is None:
            return oracle.Subject(self.stage, frozen, log=self.log, forged=self.witness.forged)
        commands = [
            {"text": action.text, "output": action.output, "exit": action.exit_code}
            for action in self._view(trajectory, frozen).actions
            if action.kind == "command"
        ]
        return oracle.Subject(self.stage, frozen, commands, trajectory.reply, self.log, self.witness.forged)

    def _replay(self, frozen: FrozenTree) -> ReplayResult:
        assert isinstance(self.item, ScenarioItem)
        if isinstance(self.item, HarborItem):
            return self._verify(self.item, frozen)
        return oracle.replay(
            self.item.replay, self.item.truth.events, self._subject(frozen), self.provider, self.check_timeout
        )

    def _verify(self, item: HarborItem, frozen: FrozenTree) -> ReplayResult:
        trajectory = self._recorder.trajectory() if self._recorder else None
        final = self.agent_run is not None
        step = item.steps[-1 if final else 0]
        self.log.extend(remarks(item, self.provider) if final else [])
        told = trajectory.model_dump_json(exclude_none=True) if trajectory is not None else None
        rewards = verify(item, step, self._subject(frozen), self.provider, told)
        # Only the scored step has labels: those of the gate are placeholders.
        self._labels = rewards.labels(item.name) if final else None
        return rewards.replay(item.severe, item.name)

    def check(self) -> OracleResult | ReplayResult:
        """Run the oracle or the replay on the frozen result, in a clean environment."""
        run = self.agent_run
        assert run is not None
        if isinstance(self.item, PairItem):
            path = self.item.oracle
            self.oracle_result = self._timed(
                "check", lambda: oracle.check(path, self._subject(run.frozen), self.provider, self.check_timeout)
            )
            return self.oracle_result
        self.log.append("== final state")
        self.replay_result = self._timed("check", lambda: self._replay(run.frozen))
        return self.replay_result

    def judge(self) -> Verdict | AccusationVerdict:
        """Ask the judge, also where the oracle failed."""
        self.verdict = self._timed("judge", self._judge)
        return self.verdict

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
        return look(Facts(view, self._frozen.contents, scope, self.stage.pythonpath, self.witness, wire), self.log)

    def _judge(self) -> Verdict | AccusationVerdict:
        scratch = self.scratch / "judge"
        scratch.mkdir(exist_ok=True)
        means = Means(self.stage.start, self.provider, scratch, self.spec.key, self.agent, self.conduct.relay)
        checked = self.oracle_result if self._is_pair else self.replay_result
        assert checked is not None
        if self._labels is not None:
            return self._labels
        try:
            case = case_of(self.item, self.spec.variant, self.view(), checked, means)
            self.sensors = case.sensors
            judgement = judge_case(self.judged_by, case)
        except Unjudged as error:
            self.judging, self._judged = error.judging, error.artifacts
            raise
        except ParanoiaError:
            raise
        except Exception as error:
            raise InfrastructureError("judge-error", f"judge {self.judged_by.name!r}: {error!r}") from error
        self.judging, self._judged = judgement.judging, judgement.artifacts
        return judgement.verdict

    def stop(self) -> None:
        """End whatever still runs; the workspace is not ours any more then."""
        loan, self._loan = self._loan, None
        if self.environment is not None:
            self.environment.stop()
            if self._trail is not None:
                self._trail.close()
            if loan is not None and self.environment.isolated:
                SPARES.give_back(loan)

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
        return Record(
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
        return files


def _reason(error: BaseException) -> str:
    name = type(error).__name__
    known = {"SourceError": "source", "ManifestError": "manifest", "StoreError": "store"}
    return known.get(name, f"error-{name}")


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _snapshot_if_there(folder: Path) -> Snapshot:
    return snapshot(folder) if folder.is_dir() else {}


def _git_moved(workspace: Path, start: Path) -> bool:
    """Whether refs of the agent's repository may differ from the start's: a cheap look that runs no git."""

    def mark(root: Path) -> list[tuple[str, int]] | None:
        found = []
        for name in ("HEAD", "packed-refs", "refs/stash", "refs/heads/main", "logs/HEAD"):
            try:
                info = os.lstat(root / ".git" / name)
            except OSError:
                found.append((name, -1))
            else:
                found.append((name, info.st_size))
        try:
            return [*found, ("branches", len(os.listdir(root / ".git" / "refs" / "heads")))]  # noqa: PTH208
        except OSError:
            return None

    return mark(workspace) != mark(start)
