"""A Harbor job, or case files, as a run directory of ours: what can be read becomes records, the rest is listed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_paranoia.errors import InfrastructureError, ManifestError
from pytest_paranoia.harbor import rewards
from pytest_paranoia.harbor.items import TASK, HarborItem, harbor_root, load_task, step_roles, task_folders
from pytest_paranoia.harbor.results import TrialResult, counted, read_case, read_json, read_trial, unknown_keys
from pytest_paranoia.harbor.rewards import OWN_JUDGE, Rewards
from pytest_paranoia.harbor.task import WORK_STEP
from pytest_paranoia.harbor.trajectories import merged
from pytest_paranoia.schema import atif
from pytest_paranoia.schema.record import (
    AgentInfo,
    EnvironmentInfo,
    Frozen,
    JudgeInfo,
    Record,
    ReplayResult,
    Timing,
    Usage,
)
from pytest_paranoia.schema.taxonomy import StepRole
from pytest_paranoia.schema.trajectory import Trajectory

ENVIRONMENT = EnvironmentInfo(name="harbor", isolated=True)
_NO_TREE = "imported from Harbor, which keeps no final workspace: nothing is known of it"


@dataclass
class Imported:
    """What came of an import: records with their files, the trials that could not be read, and keys nobody used."""

    records: list[tuple[Record, dict[str, bytes | Path]]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    ungated: int = 0

    @property
    def notes(self) -> list[str]:
        """What else a reader of the run should know, in words."""
        found = [
            f"key {name!r}: not known here, left out ({many} times)" for name, many in counted(self.unknown).items()
        ]
        if self.ungated:
            found.append(
                f"{self.ungated} cases of self-built tasks do not say whether their work step was correct; they "
                "are counted"
            )
        return found


@dataclass(frozen=True)
class Run:
    """One run as both kinds of sources give it. ``steps`` are (name, role, trajectory) in order."""

    shown: str
    task: str
    agent: AgentInfo
    steps: Sequence[tuple[str, StepRole, Trajectory]]
    scored: Rewards | None
    gate: Rewards | None
    log: str = ""
    started: str | None = None
    finished: str | None = None
    timing: Timing = field(default_factory=Timing)
    usage: Usage = field(default_factory=Usage)
    failure: tuple[str, str] | None = None
    gated: bool = True
    """Whether the source would say how the work step ended."""


class Importer:
    """Collects runs. *tasks* are folders of the task directories, which say what a run was about."""

    def __init__(self, tasks: Iterable[Path]) -> None:
        self.result = Imported()
        self._items: dict[str, HarborItem] = {}
        self._runs: dict[tuple[str, str], int] = {}
        for folder in tasks:
            root = harbor_root(folder.resolve())
            for path in task_folders(root.folder):
                try:
                    item = load_task(root, path / TASK)
                except ManifestError as error:
                    self.result.problems.append(str(error))
                    continue
                for name in (path.name, str(item.task.metadata.get("task_id") or path.name)):
                    self._items.setdefault(name, item)

    def add(self, source: Path) -> None:
        """Add a job directory, a trial's folder, a case file or a folder of case files."""
        if source.is_file():
            self._case(source, source.name)
        elif (source / "result.json").is_file() and (source / "config.json").is_file() and not list(_trials(source)):
            self._trial(source, source.name)
        elif found := list(_trials(source)):
            for folder in found:
                self._trial(folder, f"{source.name}/{folder.name}")
            self._count(source, len(found))
        elif cases := sorted(source.glob("*.json")):
            for path in cases:
                self._case(path, f"{source.name}/{path.name}")
        else:
            self.result.problems.append(
                f"{source.name}: holds no trial and no case; expected folders with config.json or result.json, or "
                "files *.json"
            )

    def _count(self, job: Path, found: int) -> None:
        """Compare with what the job says of itself: a trial without a folder would vanish."""
        path = job / "result.json"
        if not path.is_file():
            self.result.problems.append(
                f"{job.name}/result.json: missing; the job was cut short, trials may be missing"
            )
            return
        try:
            data = read_json(path, f"{job.name}/result.json")
        except ManifestError as error:
            self.result.problems.append(str(error))
            return
        planned = data.get("n_total_trials") if isinstance(data, dict) else None
        if isinstance(planned, int) and planned > found:
            self.result.problems.append(f"{job.name}: {planned} trials were planned, {found} have a folder")

    def _trial(self, folder: Path, shown: str) -> None:
        try:
            result = read_trial(folder, shown)
            self.result.unknown += unknown_keys(result)
            self._keep(_run_of_trial(folder, result, shown), result.task_path)
        except ManifestError as error:
            self.result.problems.append(str(error))

    def _case(self, path: Path, shown: str) -> None:
        try:
            case = read_case(read_json(path, shown), shown)
            self.result.unknown += unknown_keys(case)
            run = _run_of_case(case.model_dump(), shown)
            if self._keep(run, None).family == "self-built":
                self.result.ungated += 1
        except ManifestError as error:
            self.result.problems.append(str(error))

    def _item(self, run: Run, path: str | None) -> HarborItem:
        item = self._items.get(run.task)
        if item is None and path is not None and (Path(path) / TASK).is_file():
            folder = Path(path).resolve()
            item = self._items[run.task] = load_task(harbor_root(folder), folder / TASK)
        if item is None:
            raise ManifestError(
                f"{run.shown}: no task {run.task!r} is known, and only the task says domain and factors; name the "
                "folder of the task directories with --tasks"
            )
        return item

    def _keep(self, run: Run, path: str | None) -> Record:
        item = self._item(run, path)
        factors = item.scenario.factors
        self._runs[item.name, run.agent.name] = number = self._runs.get((item.name, run.agent.name), 0) + 1
        identity = f"{factors.vector}-{factors.harm}-{run.agent.name}-run{number}"
        replay, fields = _score(run, item)
        trajectory = merged(run.steps) if run.steps else None
        record = Record(
            trial=f"{item.name}[{identity}]",
            nodeid=f"{item.nodeid}::test_scenario[{identity}]",
            kind="scenario",
            item=item.name,
            item_hash=item.hash,
            agent=run.agent,
            run=number,
            domain=item.scenario.domain,
            family=item.scenario.family,
            factors=list(factors.values()),
            environment=ENVIRONMENT,
            judge=JudgeInfo(name=OWN_JUDGE, version="task"),
            workspace="/app",
            started=run.started or _EPOCH,
            finished=run.finished or run.started or _EPOCH,
            timing=run.timing,
            usage=run.usage,
            replay=replay,
            **fields,
        )
        self.result.records.append((record, _files(run, trajectory, item)))
        return record


_EPOCH = datetime.fromtimestamp(0, UTC).isoformat()


def _trials(job: Path) -> Iterator[Path]:
    for path in sorted(job.iterdir()):
        if path.is_dir() and any((path / name).is_file() for name in ("config.json", "result.json")):
            yield path


def _score(run: Run, item: HarborItem) -> tuple[ReplayResult | None, dict[str, Any]]:
    """Return h and the record's fields that say how the run counts."""
    fields: dict[str, Any] = {}
    if run.failure is not None:
        # What was measured all the same is kept: it may be all that a reader of the run wants to know.
        replay = None
        with suppress(InfrastructureError):
            replay = run.scored.replay(item.severe, run.shown) if run.scored else None
        return replay, {"status": "unscored", "reason": run.failure[0], "message": run.failure[1][:4000]}
    try:
        if item.scenario.family == "self-built" and run.gated:
            if run.gate is None:
                raise InfrastructureError("no-gate", f"{run.shown}: the step {WORK_STEP} has no rewards")
            established = run.gate.replay(item.severe, run.shown)
            fields["established"] = established
            if established.harm > 0:
                failed = ", ".join(event.name for event in established.events if not event.ok)
                message = f"the work step left h = {established.harm:g}: {failed}"
                return None, {**fields, "status": "invalid", "reason": "not-established", "message": message}
        if run.scored is None:
            raise InfrastructureError("verifier-no-reward", f"{run.shown}: the scored step has no rewards")
        replay = run.scored.replay(item.severe, run.shown)
        labels = run.scored.labels(run.shown)
    except InfrastructureError as error:
        return None, {**fields, "status": "unscored", "reason": error.reason, "message": str(error)[:4000]}
    if labels is None:
        message = f"{run.shown}: the verifier judged neither f nor e (h = {replay.harm:.4g} was measured)"
        return replay, {**fields, "status": "unscored", "reason": "judge-no-rules", "message": message}
    return replay, {**fields, "status": "scored", "accusation": labels}


def _files(run: Run, trajectory: Trajectory | None, item: HarborItem) -> dict[str, bytes | Path]:
    frozen = Frozen(notes=[_NO_TREE]).model_dump_json(exclude_none=True).encode()
    files: dict[str, bytes | Path] = {
        "instruction.md": "\n\n---\n\n".join(item.messages).encode(),
        "frozen.json": frozen,
        "diff.patch": b"",
        "oracle.log": run.log.encode("utf-8", "backslashreplace"),
    }
    if item.scenario.family == "self-built":
        files["before.json"] = frozen
    if trajectory is not None:
        files["trajectory.json"] = trajectory.model_dump_json(exclude_none=True).encode()
    return files


# -- trials of a job ------------------------------------------------------------------------------------------------


def _run_of_trial(folder: Path, result: TrialResult, shown: str) -> Run:
    names = [step.step_name for step in result.step_results or ()]
    roles = step_roles(names)
    places = [folder / "steps" / name for name in names] or [folder]
    steps = [
        (name, role, _trajectory(place / "agent" / "trajectory.json", f"{shown}/{name}"))
        for name, role, place in zip(names or ["task"], roles, places, strict=True)
        if (place / "agent" / "trajectory.json").is_file()
    ]
    own = [step.verifier_result for step in result.step_results or ()] or [result.verifier_result]
    failure = None
    if result.failures and result.reward_valid is not True:
        first = result.failures[0]
        failure = (f"harbor-{first.exception_type}", f"{shown}: {first.exception_type}: {first.exception_message}")
    elif len(steps) < len(places):
        failure = ("no-trajectory", f"{shown}: {len(places) - len(steps)} of {len(places)} steps left no trajectory")
    scored = gate = None
    try:
        scored = _rewards(places[-1], own[-1].rewards if own[-1] else None, shown)
        if names and names[0] == WORK_STEP:
            gate = _rewards(places[0], own[0].rewards if own[0] else None, f"{shown}, step {WORK_STEP}")
    except InfrastructureError as error:
        failure = failure or (error.reason, str(error))
    model = result.agent_info.model_info
    named = f"{model.provider}/{model.name}" if model and model.provider else model.name if model else None
    return Run(
        shown=shown,
        task=result.task_name.rsplit("/", 1)[-1],
        agent=_agent(result.agent_info.name, result.agent_info.version, named),
        steps=steps,
        scored=scored,
        gate=gate,
        log="\n".join(_log(place) for place in places),
        started=result.started_at,
        finished=result.finished_at,
        timing=_timing(result),
        usage=result.usage(),
        failure=failure,
    )


def _trajectory(path: Path, shown: str) -> Trajectory:
    return _atif(read_json(path, f"{shown}/trajectory.json"), f"{shown}/trajectory.json")


def _atif(data: Any, shown: str) -> Trajectory:
    if not isinstance(data, dict):
        raise ManifestError(f"{shown}: found a {type(data).__name__}, expected a JSON object with steps")
    return atif.parse(data, shown)


def _rewards(place: Path, told: dict[str, Any] | None, shown: str) -> Rewards | None:
    """Return the rewards of a step. Where result and reward file differ, neither is believed."""
    folder = place / "verifier"
    found: Rewards | None = None
    details = folder / "reward-details.json"
    if (folder / "reward.json").is_file():
        content = details.read_bytes() if details.is_file() else None
        found = rewards.parse_json((folder / "reward.json").read_bytes(), content, f"{shown}: reward.json")
    elif (folder / "reward.txt").is_file():
        found = rewards.parse_text((folder / "reward.txt").read_bytes(), f"{shown}: reward.txt")
    if told is None:
        return found
    own = rewards.from_data(told, {}, f"{shown}: result.json")
    if found is not None and dict(found.values) != dict(own.values):
        raise InfrastructureError(
            "rewards-differ", f"{shown}: result.json has {dict(own.values)}, the reward file {dict(found.values)}"
        )
    return found or own


def _log(place: Path) -> str:
    path = place / "verifier" / "test-stdout.txt"
    return path.read_text(encoding="utf-8", errors="replace")[-20_000:] if path.is_file() else ""


def _timing(result: TrialResult) -> Timing:
    def seconds(*phases: Any) -> float:
        total = 0.0
        for phase in phases:
            if phase is not None and phase.started_at and phase.finished_at:
                begin, end = (datetime.fromisoformat(text) for text in (phase.started_at, phase.finished_at))
                total += max(0.0, (end - begin).total_seconds())
        return round(total, 3)

    steps = result.step_results or []
    return Timing(
        prepare=seconds(result.environment_setup, result.agent_setup),
        agent=seconds(result.agent_execution, *(step.agent_execution for step in steps)),
        check=seconds(result.verifier, *(step.verifier for step in steps)),
    )


def _agent(name: str, version: str, model: str | None) -> AgentInfo:
    plain = re.sub(r"[^\w.:@-]+", "-", f"{name}:{model.rsplit('/', 1)[-1]}" if model else name)
    return AgentInfo(name=plain, harness=name, model=model, version=version or "unknown")


# -- case files -----------------------------------------------------------------------------------------------------


def _run_of_case(case: dict[str, Any], shown: str) -> Run:
    judge = case["judge"]
    found = case["trajectory"]
    whole = "steps" in found and "agent" in found
    names = [] if whole else list(found)
    parts = [found] if whole else list(found.values())
    roles = step_roles(names if len(names) > 1 else [])
    steps = [
        (name, role, _atif(part, f"{shown}: trajectory {name}"))
        for name, role, part in zip(names or ["task"], roles, parts, strict=True)
    ]
    if not steps:
        raise ManifestError(f"{shown}: key 'trajectory': found no steps, expected a trajectory or one for each step")
    failure = scored = None
    try:
        scored = rewards.from_data(judge.get("reward"), judge.get("reward_details"), f"{shown}: key 'judge.reward'")
    except InfrastructureError as error:
        failure = (error.reason, str(error))
    agent = steps[-1][2].agent
    first, last = steps[0][2].steps[0].timestamp, steps[-1][2].steps[-1].timestamp
    name = re.sub(r"^(inherit|selfbuilt)__", "", str(case["task_id"]))
    return Run(
        shown=shown,
        task=name,
        agent=_agent(agent.name, agent.version, agent.model_name),
        steps=steps,
        scored=scored,
        gate=None,
        gated=False,
        log=json.dumps(judge.get("reward_details") or {}, indent=1, ensure_ascii=False),
        started=first,
        finished=last,
        failure=failure,
    )
