"""Before any trial: can the caps on cost that were asked for be kept?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_paranoia.causes import no_price
from pytest_paranoia.judging import chosen
from pytest_paranoia.relay import prices

if TYPE_CHECKING:
    from pytest_paranoia.agents.base import AgentChoice
    from pytest_paranoia.options import Settings


def refuse_unpriced(settings: Settings) -> None:
    """Raise ``pytest.UsageError`` with a line for each model whose cost is limited and that has no price.

    A harness may ask for other models than the one it was given; those are known from its calls alone. Recorded calls
    cost nothing, so only the cap of a trial counts them. Raises it too for a price table that cannot be used.
    """
    if settings.max_cost is None and settings.caps.cost is None:
        return
    try:
        table = prices.load(settings.prices)
    except prices.PriceError as error:
        raise pytest.UsageError(f"--paranoia-prices: {error}") from None
    asked: list[tuple[str, AgentChoice, str]] = []
    for agent in settings.agents:
        if settings.caps.cost is not None:
            asked.append(("--model", agent, "--paranoia-trial-cost"))
        if settings.max_cost is not None and agent.replay is None:
            asked.append(("--model", agent, "--paranoia-max-cost"))
    if settings.max_cost is not None and (judge := chosen.model_of(settings.judge)) is not None:
        asked.append(("--paranoia-judge", judge, "--paranoia-max-cost"))
    lines = [
        f"{of}: {choice.name}: {no_price(choice.model, cap)}"
        for of, choice, cap in asked
        if choice.provider is not None and choice.model and table.find(choice.provider.name, choice.model) is None
    ]
    if lines:
        raise pytest.UsageError("\n".join(dict.fromkeys(lines)))
