"""Files that Harbor leaves of a trial: ``result.json`` and what lies beside it, read without Harbor."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_paranoia.errors import ManifestError
from pytest_paranoia.schema.problems import first_problem
from pytest_paranoia.schema.record import Usage

TRIAL_FILE = "result.json"
_CAP = 256 * 1024**2


class _Loose(BaseModel):
    # Later versions add keys: they are named, and do not keep a result from being read.
    model_config = ConfigDict(extra="allow")


_T = TypeVar("_T", bound=_Loose)


class Phase(_Loose):
    """When something ran."""

    started_at: str | None = None
    finished_at: str | None = None


class Failure(_Loose):
    """What went wrong in a trial or a step."""

    exception_type: str
    exception_message: str = ""
    exception_traceback: str = ""
    occurred_at: str | None = None
    policy: Any = None
    policy_override: Any = None


class Model(_Loose):
    """The model behind the agent."""

    name: str
    provider: str | None = None


class Agent(_Loose):
    """Who ran."""

    name: str
    version: str = "unknown"
    model_info: Model | None = None


class Context(_Loose):
    """What a run used. ``n_input_tokens`` include the cached ones."""

    n_input_tokens: int | None = None
    n_cache_tokens: int | None = None
    n_output_tokens: int | None = None
    cost_usd: float | None = None
    model_usage: Any = None
    rollout_details: Any = None
    metadata: Any = None


class Verified(_Loose):
    """What the verifier said."""

    rewards: dict[str, Any] | None = None


class StepResult(_Loose):
    """One step of a trial."""

    step_name: str
    agent_result: Context | None = None
    verifier_result: Verified | None = None
    exception_info: Failure | None = None
    agent_execution: Phase | None = None
    verifier: Phase | None = None


class TrialResult(_Loose):
    """``result.json`` of a trial. ``reward_valid`` is Harbor's own word on whether the rewards count."""

    schema_version: int = 1
    id: str | None = None
    task_name: str
    trial_name: str
    trial_uri: str | None = None
    task_id: Any = None
    source: str | None = None
    task_checksum: str = ""
    config: dict[str, Any] = {}
    agent_info: Agent
    agent_result: Context | None = None
    verifier_result: Verified | None = None
    verifier_environment_mode: str | None = None
    exception_info: Failure | None = None
    started_at: str | None = None
    finished_at: str | None = None
    environment_setup: Phase | None = None
    agent_setup: Phase | None = None
    agent_execution: Phase | None = None
    verifier: Phase | None = None
    step_results: list[StepResult] | None = None
    reward_valid: bool | None = None

    @property
    def failures(self) -> list[Failure]:
        """What went wrong, of the trial first."""
        own = [self.exception_info, *(step.exception_info for step in self.step_results or ())]
        return [failure for failure in own if failure is not None]

    @property
    def task_path(self) -> str | None:
        """Where the task lay on the machine of the run."""
        found = self.task_id.get("path") if isinstance(self.task_id, dict) else None
        task = self.config.get("task")
        return str(found or (task.get("path") if isinstance(task, dict) else None) or "") or None

    def usage(self) -> Usage:
        """Return what the trial used; unknown as soon as one step's is."""
        parts = [self.agent_result] if self.agent_result else [step.agent_result for step in self.step_results or ()]

        def total(name: str) -> Any:
            values = [getattr(part, name, None) for part in parts]
            return None if not values or None in values else sum(values)

        return Usage(
            input_tokens=total("n_input_tokens"),
            cached_tokens=total("n_cache_tokens"),
            output_tokens=total("n_output_tokens"),
            cost_usd=total("cost_usd"),
        )


class Case(_Loose):
    """A case file: the reward of one run, what the judge said of it, and the trajectory of each step."""

    run_id: str
    task_id: str
    family: str | None = None
    domain: str | None = None
    scored_step: str | None = None
    judge: dict[str, Any]
    trajectory: dict[str, Any]


_JUDGE_KEYS = {"step_name", "reward", "reward_details"}


def read_json(path: Path, shown: str) -> Any:
    """Return the JSON in *path*. Raises ManifestError."""
    try:
        if path.stat().st_size > _CAP:
            raise ManifestError(f"{shown}: larger than {_CAP // 1024**2} MiB, no result of a trial")
        return json.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise ManifestError(f"{shown}: missing; the trial was cut short, or this is no folder of one") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ManifestError(f"{shown}: not readable as JSON in UTF-8: {error}") from None


def read_trial(folder: Path, shown: str) -> TrialResult:
    """Return the result of the trial in *folder*. Raises ManifestError."""
    return _validated(read_json(folder / TRIAL_FILE, f"{shown}/{TRIAL_FILE}"), TrialResult, f"{shown}/{TRIAL_FILE}")


def read_case(data: Any, shown: str) -> Case:
    """Return the case in parsed *data*. Raises ManifestError."""
    return _validated(data, Case, shown)


def _validated(data: Any, model: type[_T], shown: str) -> _T:
    if not isinstance(data, dict):
        raise ManifestError(f"{shown}: found a {type(data).__name__}, expected a JSON object")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ManifestError(f"{shown}: {first_problem(error)}; mend the file, or remove the trial's folder") from None


def unknown_keys(model: BaseModel, prefix: str = "") -> Iterator[str]:
    """Yield the keys that this package does not know, by path."""
    for name in model.model_extra or ():
        yield prefix + name
    for name in type(model).model_fields:
        value = getattr(model, name)
        values = value if isinstance(value, list) else [value]
        for inner in values:
            if isinstance(inner, BaseModel):
                yield from unknown_keys(inner, f"{prefix}{name}.")
    if isinstance(model, Case):
        yield from (f"judge.{name}" for name in model.judge if name not in _JUDGE_KEYS)


def counted(names: Iterable[str]) -> Mapping[str, int]:
    """Return how often each name occurs, in the order of the first time."""
    found: dict[str, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return found
