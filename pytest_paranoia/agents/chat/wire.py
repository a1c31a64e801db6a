"""What both APIs share: asking with streaming, doing without options a server does not know, naming failures."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import openai

from pytest_paranoia.agents.base import AgentChoice
from pytest_paranoia.agents.chat.conversation import Answer, Conversation
from pytest_paranoia.agents.chat.tools import TOOLS, Tool
from pytest_paranoia.errors import InfrastructureError

_TRIES = 3
"""Times that an answer is asked for whose stream breaks off: the relay cannot repeat what has begun."""
_CONTEXT_FULL = re.compile(
    r"context.{0,20}(length|window|size|limit)|prompt is too long|too many tokens|maximum.{0,20}tokens|"
    r"exceeds? the (available )?context",
    re.IGNORECASE,
)


class ContextFull(Exception):
    """The API says that the conversation does not fit the model's context."""


class Late(Exception):
    """The agent's wall clock ran out. ``answer`` is what had come by then."""

    def __init__(self, answer: Answer | None = None) -> None:
        super().__init__()
        self.answer = answer


class BrokenStream(Exception):
    """An answer's stream ended, or could not be read, before the answer was complete."""


class Wire(ABC):
    """One of the APIs. ``optional`` are options of the request that a server may not know; they can be left out.

    ``left_out`` names those that a server refused, with what was asked of it.
    """

    def __init__(
        self, client: openai.OpenAI, choice: AgentChoice, deadline: float, tools: Sequence[Tool] = TOOLS
    ) -> None:
        self.client = client
        self.choice = choice
        self.deadline = deadline
        self.tools = [self.described(tool) for tool in tools]
        self.optional: dict[str, Any] = self.options()
        self.left_out: dict[str, Any] = {}

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Return the options that can be left out."""

    @abstractmethod
    def described(self, tool: Tool) -> dict[str, Any]:
        """Return what the API is told of a tool."""

    @abstractmethod
    def structured(self, name: str, schema: Mapping[str, Any]) -> None:
        """Ask for answers that follow a JSON schema; a server that does not know how may go without."""

    @abstractmethod
    def stream(self, conversation: Conversation, options: Mapping[str, Any]) -> Answer:
        """Ask once. Raises BrokenStream, Late and what ``openai`` raises."""

    def substitute(self, option: str) -> dict[str, Any]:  # noqa: ARG002
        """Return the options that stand in for one that the server does not know."""
        return {}

    def ask(self, conversation: Conversation) -> Answer:
        """Return the model's answer to *conversation*. Raises ContextFull, Late and InfrastructureError."""
        broken = 0
        while True:
            try:
                return self.stream(conversation, self.optional)
            except openai.BadRequestError as error:
                if not self._do_without(error):
                    raise self._named(error) from error
            except openai.APITimeoutError as error:
                raise Late from error
            except openai.APIStatusError as error:
                raise self._named(error) from error
            except (BrokenStream, openai.APIError, ValueError) as error:
                if self.late:
                    raise Late from error
                broken += 1
                if broken == _TRIES:
                    reason = "model-refused" if isinstance(error, openai.APIConnectionError) else "harness-output"
                    raise InfrastructureError(
                        reason, f"chat: no whole answer came in {_TRIES} tries: {_shown(error)}"
                    ) from error

    @property
    def left(self) -> float:
        """Seconds until the deadline, at least a moment."""
        return max(self.deadline - time.monotonic(), 0.05)

    @property
    def late(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self.deadline

    def _do_without(self, error: openai.BadRequestError) -> bool:
        """Leave out an option that the server names in its error; return False where it names none."""
        body = error.body if isinstance(error.body, Mapping) else {}
        named = str(body.get("param") or "")
        said = str(body.get("message") or error.message)
        for option in self.optional:
            if named.split(".")[0] == option or re.search(rf"\b{option}\b", said):
                self.left_out[option] = self.optional.pop(option)
                self.optional |= self.substitute(option)
                return True
        return False

    def _named(self, error: openai.APIStatusError) -> Exception:
        body = error.body if isinstance(error.body, Mapping) else {}
        if error.status_code in (400, 413) and (
            body.get("code") == "context_length_exceeded" or _CONTEXT_FULL.search(error.message)
        ):
            return ContextFull()
        return InfrastructureError("model-refused", f"chat: the API answered {error.status_code}: {_shown(error)}")


def _shown(error: Exception) -> str:
    return (str(error) or repr(error))[:1000]
