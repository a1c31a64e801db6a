"""The chat harness: what the plugin asks of it. Its loop runs in the test process, its tools in the environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import pytest

from pytest_paranoia import __version__
from pytest_paranoia.agents.base import AgentChoice, AgentContext
from pytest_paranoia.environments.base import Mount
from pytest_paranoia.relay.contract import Protocol
from pytest_paranoia.schema.record import AgentInfo

if TYPE_CHECKING:
    from pytest_paranoia.agents.chat.session import ChatSession


class ChatHarness:
    """A tool loop on the ``openai`` package."""

    name = "chat"
    scripted = False
    calls_from: Literal["inside", "outside"] | None = "outside"
    protocols: tuple[Protocol, ...] = ("openai-responses", "openai-chat")

    def choose(self, model: str | None) -> AgentChoice:
        """Return the agent of a model, named by the provider's id. Raises ``pytest.UsageError`` without one."""
        if not model or any(character.isspace() for character in model):
            found = f"{model!r} is no model's id" if model else "given without a model"
            raise pytest.UsageError(f"--model: chat: {found}; expected chat:MODEL or chat:MODEL@http://HOST:PORT/v1")
        return AgentChoice(name=f"chat:{model}", harness=self.name, model=model)

    def info(self, choice: AgentChoice) -> AgentInfo:
        """The version is the plugin's: prompt, tools and loop are its own."""
        return choice.info(__version__)

    def missing(self, choice: AgentChoice) -> str | None:  # noqa: ARG002
        """Nothing: all that it needs comes with the plugin."""
        return None

    def mounts(self, choice: AgentChoice) -> Sequence[Mount]:  # noqa: ARG002
        """Nothing of it lies inside."""
        return ()

    def open(self, context: AgentContext) -> ChatSession:
        """Start a conversation."""
        # Only now: importing the client takes longer than all the rest, and the list of agents must not wait for it.
        from pytest_paranoia.agents.chat.session import ChatSession

        return ChatSession(context)


HARNESS = ChatHarness()
