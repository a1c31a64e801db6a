"""The manifest of a Harbor task: every key of ``task.toml`` (Harbor 0.26), and which of them mean something here.

A key that Harbor does not have is refused with a suggestion. Of those it has, some are met, some make no difference to
a score (``notes`` names them), and some would change what is measured: such a task is refused, never run halfway.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from pytest_paranoia.schema.manifest import Text

WORK_STEP = "s0_dowork"
"""First step of a self-built task: ordinary work, after which the verifier has to find no harm (the validity gate)."""

_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _step_name(name: str) -> str:
    if not name.strip() or name in {".", ".."} or any(mark in name for mark in '<>:"/\\|?*\0') or name[-1] in ". ":
        raise ValueError(f"{name!r} is no name of a step; expected the name of a folder below steps/")
    return name


class _Phase(_Table):
    network_mode: Literal["no-network", "public", "allowlist"] | None = None
    allowed_hosts: list[str] | None = None
    user: str | int | None = None


class Agent(_Phase):
    """``[agent]``: ``timeout_sec`` is the wall clock over all steps. One session is kept over all steps anyway."""

    timeout_sec: _Seconds | None = None
    resume_trajectory: bool | None = None


class Healthcheck(_Table):
    """``[…healthcheck]``, not met here."""

    command: str
    interval_sec: float = 5.0
    timeout_sec: float = 30.0
    start_period_sec: float = 0.0
    start_interval_sec: float = 5.0
    retries: int = 3


class McpServer(_Table):
    """``[[environment.mcp_servers]]``, not met here."""

    name: str
    transport: str = "sse"
    url: str | None = None
    command: str | None = None
    args: list[str] = []
    headers: dict[str, str] = {}


class Tpu(_Table):
    """``[environment.tpu]``, not met here."""

    type: str
    topology: str


class Environment(_Table):
    """``[environment]``. ``memory`` and ``storage`` are the older spelling of the sizes."""

    build_timeout_sec: _Seconds = 600.0
    docker_image: str | None = None
    os: str = "linux"
    cpus: float | None = None
    memory_mb: Annotated[int, Field(gt=0)] | None = None
    memory: str | None = None
    storage_mb: int | None = None
    storage: str | None = None
    gpus: int | None = None
    gpu_types: list[str] | None = None
    tpu: Tpu | None = None
    mcp_servers: list[McpServer] = []
    env: dict[str, str] = {}
    skills_dir: str | None = None
    healthcheck: Healthcheck | None = None
    workdir: str | None = None
    network_mode: Literal["no-network", "public", "allowlist"] | None = None
    allowed_hosts: list[str] | None = None
    allow_internet: bool | None = None


class Collect(_Table):
    """``[[verifier.collect]]``, not met here."""

    command: str
    service: str = "main"
    timeout_sec: float = 60.0
    user: str | int | None = None


class Verifier(_Phase):
    """``[verifier]``: ``timeout_sec`` bounds one verification. It always has an environment of its own here."""

    timeout_sec: _Seconds = 600.0
    env: dict[str, str] = {}
    environment_mode: Literal["shared", "separate"] | None = None
    environment: Environment | None = None
    collect: list[Collect] = []


class Artifact(_Table):
    """An entry of ``artifacts``."""

    source: str
    destination: str | None = None
    exclude: list[str] = []
    service: str | None = None


class Step(_Table):
    """``[[steps]]``: ``name`` is the folder below ``steps/``."""

    name: Annotated[str, AfterValidator(_step_name)]
    agent: Agent = Agent()
    verifier: Verifier | None = None
    min_reward: float | dict[str, float] | None = None
    healthcheck: Healthcheck | None = None
    artifacts: list[str | Artifact] = []


class Author(_Table):
    """An entry of ``task.authors``."""

    name: str
    email: str | None = None


class Package(_Table):
    """``[task]``: who made the task; nothing here depends on it."""

    name: str
    version: str | None = None
    description: str = ""
    authors: list[Author] = []
    keywords: list[str] = []


class Solution(_Table):
    """``[solution]``: variables of the reference solution."""

    env: dict[str, str] = {}


class TaskFile(_Table):
    """``task.toml`` as a whole. ``version`` is the older name of ``schema_version``."""

    schema_version: Text | None = None
    version: Text | None = None
    task: Package | None = None
    metadata: dict[str, Any] = {}
    verifier: Verifier = Verifier()
    agent: Agent = Agent()
    environment: Environment = Environment()
    solution: Solution = Solution()
    source: str | None = None
    multi_step_reward_strategy: Literal["mean", "final"] | None = None
    steps: list[Step] = []
    artifacts: list[str | Artifact] = []

    @property
    def agent_seconds(self) -> float | None:
        """Wall clock of the agent over all steps in seconds, None where the task bounds no step."""
        given = [step.agent.timeout_sec or self.agent.timeout_sec for step in self.steps] or [self.agent.timeout_sec]
        return None if None in given else sum(seconds for seconds in given if seconds is not None)

    @model_validator(mode="after")
    def _names_differ(self) -> TaskFile:
        names = [step.name.casefold() for step in self.steps]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"key 'steps': found {repeated[0]!r} twice, expected names that differ")
        return self


def refusals(task: TaskFile) -> Iterator[str]:
    """Yield what of *task* cannot be met here and would change what is measured: key, found, remedy."""
    environment = task.environment
    if environment.os.lower() != "linux":
        yield f"key 'environment.os': found {environment.os!r}, only 'linux' runs here"
    wanted: dict[str, object] = {
        "environment.mcp_servers": environment.mcp_servers,
        "environment.healthcheck": environment.healthcheck,
        "environment.skills_dir": environment.skills_dir,
        "environment.gpus": environment.gpus,
        "environment.gpu_types": environment.gpu_types,
        "environment.tpu": environment.tpu,
        "verifier.environment": task.verifier.environment,
        "verifier.collect": task.verifier.collect,
    }
    for number, step in enumerate(task.steps):
        wanted[f"steps[{number}].min_reward"] = step.min_reward
        wanted[f"steps[{number}].healthcheck"] = step.healthcheck
        if step.verifier is not None:
            wanted[f"steps[{number}].verifier.environment"] = step.verifier.environment
            wanted[f"steps[{number}].verifier.collect"] = step.verifier.collect
    for key, value in wanted.items():
        if value:
            yield f"key {key!r}: Harbor has it, this package does not; the task would measure something else without it"
    open_env = {f"environment.env.{name}": text for name, text in environment.env.items()}
    open_env |= {f"solution.env.{name}": text for name, text in task.solution.env.items()}
    for key, text in open_env.items():
        if template(text) is None:
            yield (
                f"key {key!r}: found {text!r}, which needs a variable of this machine; a trial gets none of them: give "
                "a value, or a default as in ${NAME:-default}"
            )
    if len(task.steps) > 1 and task.multi_step_reward_strategy != "final":
        found = repr(task.multi_step_reward_strategy) if task.multi_step_reward_strategy else "nothing (Harbor: 'mean')"
        yield f"key 'multi_step_reward_strategy': found {found}, expected 'final': only the last step is scored here"


def notes(task: TaskFile) -> list[str]:
    """Return the keys of *task* that make no difference here, each with the reason."""
    found: list[str] = []
    phases: dict[str, Any] = {"agent": task.agent, "verifier": task.verifier, "environment": task.environment}
    for number, step in enumerate(task.steps):
        phases |= {f"steps[{number}].agent": step.agent, f"steps[{number}].verifier": step.verifier}
    for name, table in phases.items():
        if table is None:
            continue
        if table.network_mode in ("public", "allowlist") or table.allowed_hosts:
            found.append(f"{name}.network_mode: a trial reaches its model and nothing else")
        if getattr(table, "user", None) is not None:
            found.append(f"{name}.user: everything runs as the environment's own user")
        if getattr(table, "allow_internet", None):
            found.append(f"{name}.allow_internet: a trial reaches its model and nothing else")
    sizes = ("cpus", "memory_mb", "memory", "storage_mb", "storage")
    given = [key for key in sizes if getattr(task.environment, key) is not None]
    found += [f"environment.{key}: the limits of this package's environments hold" for key in given]
    if task.verifier.environment_mode == "shared":
        found.append("verifier.environment_mode: verification always has an environment of its own")
    tables = [task.verifier, *(step.verifier for step in task.steps if step.verifier is not None)]
    closed = sorted({name for table in tables for name, value in table.env.items() if template(value) is None})
    found += [
        f"verifier.env.{name}: not passed on, nothing outside can be reached from a verification" for name in closed
    ]
    if task.artifacts or any(step.artifacts for step in task.steps):
        found.append("artifacts: the record of a trial keeps every changed file of the workspace instead")
    return found


def template(value: str) -> str | None:
    """Return what a value of an ``env`` table gives without this machine's variables, None where it needs one.

    ``${NAME:-default}`` gives the default: a trial's outcome must not depend on who runs it.
    """
    text, position = "", 0
    while (start := value.find("${", position)) >= 0:
        end = value.find("}", start)
        if end < 0:
            break
        name, separator, default = value[start + 2 : end].partition(":-")
        if not separator or not name:
            return None
        text += value[position:start] + default
        position = end + 1
    return text + value[position:]
