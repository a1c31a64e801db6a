"""From the command line to one frozen ``Settings`` object, with every usage error named before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_paranoia import corpus, registry
from pytest_paranoia.acting import Instructions
from pytest_paranoia.agents import replaying
from pytest_paranoia.agents.models import ModelRegistry
from pytest_paranoia.errors import ManifestError
from pytest_paranoia.interventions import arms
from pytest_paranoia.judging import chosen, validated
from pytest_paranoia.plugin import GATES
from pytest_paranoia.relay.contract import Caps
from pytest_paranoia.reporting import outputs
from pytest_paranoia.reporting.outputs import Outputs
from pytest_paranoia.scoring.oracle import ORACLE_SECONDS
from pytest_paranoia.store import RunDirectory, StoreError

if TYPE_CHECKING:
    from pytest_paranoia.agents.base import AgentChoice
    from pytest_paranoia.gates.chain import GateChoice
    from pytest_paranoia.judging.base import Judge

BUILTIN, HARBOR = "builtin", "harbor"
ENVIRONMENT_OPTIONS = ("docker-base", "docker-starts")
"""Options that only an environment understands, without ``--paranoia-``."""

DEFAULT_AGENTS = ("minimal", "responsive", "paranoid")


@dataclass(frozen=True)
class Gate:
    """A threshold on an aggregate: ``metric`` in percent, ``direction`` "max" or "min"."""

    metric: str
    direction: str
    threshold: float


@dataclass(frozen=True)
class Settings:
    """What this invocation is to do."""

    validate: bool
    roots: tuple[corpus.ItemRoot, ...]
    agents: tuple[AgentChoice, ...]
    instructions: Instructions | None
    gate: GateChoice | None
    arms: tuple[arms.Arm, ...]
    caps: Caps
    max_cost: float | None
    retry_seconds: float | None
    prices: Path | None
    part: tuple[int, int] | None
    runs: int
    judge: Judge
    judge_validation: dict[str, Any] | None
    environment: str
    environment_options: Mapping[str, Any]
    reports: Path
    run_name: str | None
    resume: str | None
    rejudge: Path | None
    timeout: float | None
    check_timeout: float
    strict: bool
    gates: tuple[Gate, ...]
    outputs: Outputs

    def as_json(self) -> dict[str, Any]:
        """What the run manifest keeps of it: the options that decide what a number means."""
        return {
            "items": [str(root.label) for root in self.roots],
            "agents": [agent.name for agent in self.agents],
            "agent_settings": {agent.name: found for agent in self.agents if (found := agent.settings())},
            "instructions": self.instructions.sha256 if self.instructions else None,
            "gate": self.gate.shown if self.gate else None,
            "arms": {arm.name: arm.as_json() for arm in self.arms} or None,
            "trial_caps": asdict(self.caps),
            "max_cost": self.max_cost,
            "runs": self.runs,
            "judge": self.judge.name,
            "judge_validation": self.judge_validation,
            "judge_settings": dict(getattr(self.judge, "settings", None) or {}),
            "environment": self.environment,
            "timeout": self.timeout,
            "check_timeout": self.check_timeout,
            "strict": self.strict,
            "gates": [f"{gate.direction} {gate.metric} {gate.threshold:g}" for gate in self.gates],
        }


def parse(config: pytest.Config) -> Settings:
    """Return the settings of *config*. Raises ``pytest.UsageError`` for anything that cannot be meant."""
    option = config.getoption
    validate = bool(option("paranoia_validate"))
    if validate and option("paranoia_resume"):
        raise pytest.UsageError("--paranoia-resume: a validation has no run directory to resume; leave one out")
    if option("paranoia_resume") == "":
        raise pytest.UsageError("--paranoia-resume: no run named; give the name or the folder of a run")
    if option("paranoia_run") and option("paranoia_resume"):
        raise pytest.UsageError("--paranoia-run names a new run and --paranoia-resume an old one; leave one out")
    runs = option("paranoia_runs")
    if runs is not None and runs < 1:
        raise pytest.UsageError(f"--paranoia-runs: {runs} given, expected a whole number of at least 1")
    reports = config.invocation_params.dir / (option("paranoia_reports") or "reports")
    rejudge = chosen.rejudged(option, config, reports)
    agents = _agents(option, config) if rejudge is None else ()
    instructions = _instructions(option("paranoia_instructions"), config, agents)
    gate = option("paranoia_gate")
    base = config.invocation_params.dir
    chosen_arms = arms.parse(option("paranoia_arm") or (), base, _only_scripted(agents))
    if validate and chosen_arms:
        raise pytest.UsageError(
            "--paranoia-arm: a validation runs no agents, so there is nothing to add; leave one out"
        )
    added = {arm.name: arm.as_json() for arm in chosen_arms} or None
    replaying.refuse_other_instructions(agents, instructions.sha256 if instructions else None, added)
    judge = chosen.parse(option, config)
    return Settings(
        validate=validate,
        roots=_roots(option("paranoia_items") or _archived(rejudge, config), config),
        agents=agents,
        instructions=instructions,
        gate=arms.gate_choice(gate, base, "--paranoia-gate") if gate is not None else None,
        arms=chosen_arms,
        caps=Caps(
            requests=_above_zero(option, "trial-requests"),
            tokens=_above_zero(option, "trial-tokens"),
            cost=_above_zero(option, "trial-cost"),
        ),
        max_cost=_above_zero(option, "max-cost"),
        retry_seconds=_above_zero(option, "retry-seconds"),
        prices=_file(option("paranoia_prices"), "--paranoia-prices", config),
        part=_part(option("paranoia_part")),
        runs=runs or 1,
        judge=judge,
        judge_validation=validated.required(option, config, judge),
        environment=registry.known("environment", option("paranoia_environment") or "local", "--paranoia-environment"),
        environment_options={name: option(f"paranoia_{name.replace('-', '_')}") for name in ENVIRONMENT_OPTIONS},
        reports=reports,
        run_name=option("paranoia_run"),
        resume=option("paranoia_resume"),
        rejudge=rejudge,
        timeout=_seconds(option, "timeout"),
        check_timeout=_seconds(option, "check-timeout") or ORACLE_SECONDS,
        strict=bool(option("paranoia_strict")),
        gates=tuple(_gates(option)),
        outputs=outputs.parse(option, config.invocation_params.dir, reports),
    )


def _above_zero(option: Any, name: str) -> Any:
    number = option(f"paranoia_{name.replace('-', '_')}")
    if number is not None and not 0 < number < float("inf"):
        raise pytest.UsageError(f"--paranoia-{name}: {number} given, expected a number above 0")
    return number


def _part(given: str | None) -> tuple[int, int] | None:
    if given is None:
        return None
    number, separator, count = given.partition("/")
    if not (separator and number.isascii() and number.isdigit() and count.isascii() and count.isdigit()):
        raise pytest.UsageError(f"--paranoia-part: {given!r} given, expected K/N, such as 3/8 for the third of eight")
    if not 1 <= int(number) <= int(count):
        raise pytest.UsageError(f"--paranoia-part: {given!r} given, expected K from 1 to {int(count)}")
    return int(number), int(count)


def _seconds(option: Any, name: str) -> float | None:
    seconds: float | None = option(f"paranoia_{name.replace('-', '_')}")
    if seconds is not None and not seconds > 0:
        raise pytest.UsageError(f"--paranoia-{name}: {seconds} given, expected seconds above 0")
    return seconds


def _file(name: str | None, option: str, config: pytest.Config) -> Path | None:
    if name is None:
        return None
    path = config.invocation_params.dir / name
    if not path.is_file():
        found = "is no file" if path.exists() else "does not exist"
        raise pytest.UsageError(f"{option}: {name} {found}")
    return path


def _instructions(name: str | None, config: pytest.Config, agents: Sequence[AgentChoice]) -> Instructions | None:
    path = _file(name, "--paranoia-instructions", config)
    if path is None:
        return None
    if _only_scripted(agents):
        raise pytest.UsageError(
            "--paranoia-instructions: the scripted agents read no instructions, so the file would seem to change "
            "nothing; name a real agent with --model"
        )
    text = arms.read_text(path, f"--paranoia-instructions: {name}")
    return Instructions(path.name, text, hashlib.sha256(text.encode()).hexdigest())


def _only_scripted(agents: Sequence[AgentChoice]) -> bool:
    return all(registry.harness(agent.harness).scripted for agent in agents)


def _gates(option: Any) -> list[Gate]:
    gates = []
    for name, (_, direction) in GATES.items():
        threshold = option(f"paranoia_{direction}_{name}")
        if threshold is None:
            continue
        if not -1e6 < threshold <= 100:
            raise pytest.UsageError(
                f"--paranoia-{direction}-{name}: {threshold} given, expected a percentage of at most 100"
            )
        gates.append(Gate(name, direction, threshold))
    return gates


def _roots(given: Sequence[str] | None, config: pytest.Config) -> tuple[corpus.ItemRoot, ...]:
    roots: list[corpus.ItemRoot] = []
    for name in given or [BUILTIN]:
        if name == BUILTIN:
            roots.append(corpus.builtin_root())
            continue
        kind, _, place = name.rpartition(":")
        folder = (config.invocation_params.dir / (place if kind == HARBOR else name)).resolve()
        if not folder.is_dir():
            found = "is not a folder" if folder.exists() else "does not exist"
            raise pytest.UsageError(f"--paranoia-items: {name} {found}; give a folder that holds tasks/ and oracles/")
        # Before plugins are known pytest takes the value of "--paranoia-items DIR" for a path to test, so a DIR
        # elsewhere moves a rootdir that no configuration file fixes. Node ids must not depend on that.
        fixed = config.inipath is not None or folder.is_relative_to(config.invocation_params.dir)
        if kind == HARBOR:
            root = _harbor(folder, name, bool(config.getoption("paranoia_validate")))
        else:
            root = corpus.user_root(folder, config.rootpath if fixed else None)
        if kind != HARBOR and not any(corpus.manifests(root)):
            raise pytest.UsageError(
                f"--paranoia-items: {name} holds no items: expected tasks/pairs/<repository>/<pair>/pair.toml or "
                "tasks/accusations/<domain>/<scenario>/scenario.toml below it (see `paranoia docs writing-pairs`)"
            )
        if root.folder not in [known.folder for known in roots]:
            roots.append(root)
    return tuple(roots)


def _archived(rejudge: Path | None, config: pytest.Config) -> Sequence[str]:
    """Return the folders of the items of the run that is judged again, as far as they are here."""
    if rejudge is None:
        return ()
    from pytest_paranoia.judging import places

    bases = (config.rootpath, config.invocation_params.dir, rejudge.parent.parent)
    try:
        return places.recorded(RunDirectory.open(rejudge).manifest, bases)
    except StoreError as error:
        raise pytest.UsageError(f"--paranoia-rejudge: {error}") from None


def _harbor(folder: Path, name: str, validate: bool) -> corpus.ItemRoot:
    if validate:
        raise pytest.UsageError(
            f"--paranoia-items: {name}: --paranoia-validate proves items by their truth and reference runs, which "
            "Harbor tasks have not; run them with --paranoia"
        )
    from pytest_paranoia.harbor.items import harbor_root, task_folders

    if not any(task_folders(folder)):
        raise pytest.UsageError(
            f"--paranoia-items: {name} holds no Harbor task: expected task.toml in the folder or below it "
            "(see `paranoia docs harbor`)"
        )
    return harbor_root(folder)


def _agents(option: Any, config: pytest.Config) -> tuple[AgentChoice, ...]:
    names = [
        part.strip() for text in option("paranoia_model") or DEFAULT_AGENTS for part in text.split(",") if part.strip()
    ]
    if not names:
        raise pytest.UsageError("--model: no agent named; leave the option out for the scripted ones")
    try:
        models = ModelRegistry.read(_file(option("paranoia_models"), "--paranoia-models", config))
    except ManifestError as error:
        raise pytest.UsageError(f"--paranoia-models: {error}") from None
    effort, turns = option("paranoia_effort"), _above_zero(option, "max-turns")
    agents: list[AgentChoice] = []
    for name in names:
        if name.startswith("replay:"):
            agents += replaying.agents(name.removeprefix("replay:"), config)
        else:
            agents.append(registry.agent(name, models, effort, turns))
    if repeated := sorted({agent.name for agent in agents if [a.name for a in agents].count(agent.name) > 1}):
        raise pytest.UsageError(f"--model: {', '.join(repeated)} named twice; use --paranoia-runs for repeated runs")
    return tuple(agents)
