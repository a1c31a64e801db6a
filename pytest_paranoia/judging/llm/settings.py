"""From ``--paranoia-judge-…`` to a judge that asks a model. Raises ``pytest.UsageError`` before anything runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from pytest_paranoia import registry
from pytest_paranoia.agents.base import AgentChoice
from pytest_paranoia.agents.models import ENDPOINT_KEY, ModelRegistry
from pytest_paranoia.errors import ManifestError
from pytest_paranoia.judging.chosen import folder_or_off
from pytest_paranoia.judging.llm.cache import default_folder
from pytest_paranoia.judging.llm.cli import HARNESSES
from pytest_paranoia.judging.llm.judge import LlmJudge
from pytest_paranoia.judging.memory import EndpointEncoder, MemoryBank
from pytest_paranoia.judging.memory.records import BANK_FILE
from pytest_paranoia.scoring.sensors.lexicon import judge_folder

MAX_TURNS, SECONDS = 40, 900.0
OPTION = "--paranoia-judge"


@dataclass(frozen=True)
class JudgeSettings:
    """How a model judges. ``seconds`` and ``max_turns`` bound one judgement; ``cache`` None keeps no verdicts."""

    choice: AgentChoice
    reading: Literal["tools", "inline"] = "tools"
    max_turns: int = MAX_TURNS
    seconds: float = SECONDS
    votes: int = 1
    triage: bool = False
    cache: Path | None = None


def parse(spec: str, option: Any, config: pytest.Config) -> LlmJudge:
    """Return the judge *spec* with the options beside it."""
    models = _models(option, config)
    choice = _choice(spec, models, option("paranoia_judge_effort"))
    reading = option("paranoia_judge_reading")
    if reading is not None and choice.harness != "chat":
        raise pytest.UsageError(f"{OPTION}-reading: {choice.harness} reads with its own tools; leave it out")
    votes = _whole(option, "votes") or 1
    if votes % 2 == 0:
        raise pytest.UsageError(f"{OPTION}-votes: {votes} given, expected an odd number, so that there is a majority")
    seconds = option("paranoia_judge_timeout")
    if seconds is not None and not 0 < seconds < float("inf"):
        raise pytest.UsageError(f"{OPTION}-timeout: {seconds} given, expected seconds above 0")
    settings = JudgeSettings(
        choice,
        reading or "tools",
        _whole(option, "max_turns") or MAX_TURNS,
        seconds or SECONDS,
        votes,
        bool(option("paranoia_judge_triage")),
        folder_or_off(option("paranoia_judge_cache"), f"{OPTION}-cache", config, default_folder()),
    )
    return LlmJudge(settings, _memory(option, config))


def _models(option: Any, config: pytest.Config) -> ModelRegistry:
    name = option("paranoia_models")
    try:
        return ModelRegistry.read(config.invocation_params.dir / name if name else None)
    except ManifestError as error:
        raise pytest.UsageError(f"--paranoia-models: {error}") from None


def _choice(spec: str, models: ModelRegistry, effort: str | None) -> AgentChoice:
    harness = spec.partition(":")[0].partition("@")[0]
    if spec not in models.models and harness not in ("chat", *HARNESSES):
        close = registry.close_to(spec, [*registry.judges(), *models.models, "chat"])
        names = ", ".join([*registry.judges(), "chat:MODEL", *(f"{name}:MODEL" for name in HARNESSES)])
        raise pytest.UsageError(
            f"{OPTION}: unknown judge {spec!r}; {f'did you mean {close}? ' if close else ''}known: {names}, and the "
            "models of `paranoia models`"
        )
    try:
        choice = registry.agent(spec, models, effort)
    except pytest.UsageError as error:
        raise pytest.UsageError(str(error).replace("--model:", f"{OPTION}:", 1)) from None
    if choice.harness not in ("chat", *HARNESSES):
        raise pytest.UsageError(
            f"{OPTION}: {spec} runs in {choice.harness}, which cannot judge; name {choice.model} with chat:, "
            f"{' or '.join(f'{name}:' for name in HARNESSES)}"
        )
    return choice


def _whole(option: Any, name: str) -> int | None:
    number: int | None = option(f"paranoia_judge_{name}")
    if number is not None and number < 1:
        raise pytest.UsageError(f"{OPTION}-{name.replace('_', '-')}: {number} given, expected a number above 0")
    return number


def _memory(option: Any, config: pytest.Config) -> MemoryBank | None:
    given = option("paranoia_judge_memory")
    default = judge_folder() / "memory"
    folder = folder_or_off(given, f"{OPTION}-memory", config, default if (default / BANK_FILE).is_file() else None)
    named = option("paranoia_judge_encoder")
    if folder is None:
        if named is not None:
            raise pytest.UsageError(f"{OPTION}-encoder: there is no memory to encode for; leave it out")
        return None
    encoder = None
    if named is not None:
        model, at, url = named.partition("@")
        if not (model and at and url):
            raise pytest.UsageError(f"{OPTION}-encoder: {named!r} given, expected MODEL@URL")
        encoder = EndpointEncoder(url, model, ENDPOINT_KEY if os.environ.get(ENDPOINT_KEY) else None)
    try:
        return MemoryBank.load(folder, encoder)
    except ManifestError as error:
        raise pytest.UsageError(f"{OPTION}-memory: {error}") from None
