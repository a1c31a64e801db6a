"""Model families: a judge of the agent's own family may favour it, so a clash is warned of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pytest_paranoia.agents.base import AgentChoice

FAMILIES: Final[dict[str, re.Pattern[str]]] = {
    family: re.compile(rf"(?<![a-z])(?:{words})", re.IGNORECASE)
    for family, words in {
        "Claude": "claude|opus|sonnet|haiku",
        "GPT": r"gpt|chatgpt|o[1345](?![a-z0-9])|codex",
        "Gemini": "gemini|gemma",
        "Llama": "llama",
        "Qwen": "qwen|qwq",
        "DeepSeek": "deepseek",
        "Mistral": "mistral|mixtral|codestral|devstral",
        "Kimi": "kimi|moonshot",
        "GLM": "glm|chatglm",
        "Grok": "grok",
        "Hermes": "hermes",
    }.items()
}


def family(model: str | None) -> str | None:
    """Return the family of a model by its provider's id, None for one that is not known."""
    return next((name for name, pattern in FAMILIES.items() if model and pattern.search(model)), None)


def clash(judge: str | None, agent: str | None) -> str | None:
    """Return the family that a judge and an agent share, None where they share none that is known."""
    if judge and judge == agent:
        return family(judge) or judge
    return found if (found := family(judge)) is not None and found == family(agent) else None


def warnings(judge: AgentChoice, agents: Sequence[AgentChoice]) -> list[str]:
    """Return one line for each family that the judge shares with agents."""
    shared: dict[str, list[str]] = {}
    for agent in agents:
        if found := clash(judge.model, agent.model if agent.provider is not None else None):
            shared.setdefault(found, []).append(agent.name)
    return [
        f"judge {judge.name} and {', '.join(names)} are of one model family ({found}): a judge may favour its own; "
        "another family is recommended"
        for found, names in shared.items()
    ]
