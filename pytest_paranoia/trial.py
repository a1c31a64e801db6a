"""One trial, phase by phase: prepare, agent, freeze, check, judge, record. Fixtures call the phases in this order."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pytest_paranoia import registry, steady
from pytest_paranoia.acting import Conversation, equipped
from pytest_paranoia.agents.base import Recorder
from pytest_paranoia.audit import AuditTrail
from pytest_paranoia.corpus import PairItem, ScenarioItem
from pytest_paranoia.environments.base import Environment, Limits
from pytest_paranoia.errors import InfrastructureError, ParanoiaError, disk_full
from pytest_paranoia.harbor.images import provider_for
from pytest_paranoia.harbor.items import HarborItem
from pytest_paranoia.harbor.staging import remarks
from pytest_paranoia.harbor.verify import verify
from pytest_paranoia.judging.base import judge_case
from pytest_paranoia.judging.case import Means, Unjudged, case_of
from pytest_paranoia.schema.record import OracleResult, ReplayResult
from pytest_paranoia.schema.taxonomy import StepRole
from pytest_paranoia.schema.verdict import AccusationVerdict, Verdict
from pytest_paranoia.scoring import oracle
from pytest_paranoia.trialstate import AgentRun, TrialState
from pytest_paranoia.workspaces import freezing
from pytest_paranoia.workspaces.freezing import FrozenTree
from pytest_paranoia.workspaces.snapshots import Snapshot, snapshot
from pytest_paranoia.workspaces.spares import SPARES
from pytest_paranoia.workspaces.stage import PROGRAMS, TOOLS
from pytest_paranoia.workspaces.stillness import held_still

_T = TypeVar("_T")
_NO_SNAPSHOT: Snapshot = {}
_NO_ROOM = (
    "free space, or set TMPDIR (for trials) or PARANOIA_CACHE (for repositories) to a folder on another disk, and go "
    "on with --paranoia-resume"
)


@dataclass
class Trial(TrialState):
    """Runs one trial; see ``TrialState`` for what it holds."""

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
        steady.note(stage)
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

    def _at_work(self) -> tuple[StepRole | None, int]:
        return self._recorder.at_work if self._recorder is not None else (None, 0)

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
            own = self._conversation.sessions if self._conversation is not None else frozenset()
            self.witness.ask(self.environment, own)
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
