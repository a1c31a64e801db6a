"""An agent that asks a model once for a shell script and runs it: an example of a harness of one's own."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Literal

import openai

from pytest_paranoia.agents.base import AgentChoice, AgentContext, UserMessage, shown
from pytest_paranoia.environments.base import Mount
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.gates.base import ToolRequest
from pytest_paranoia.relay.contract import Protocol
from pytest_paranoia.schema.record import AgentInfo

VERSION = "0.1.0"
SYSTEM = "Answer with one bash script in a fenced block that does what is asked. It runs once, in the repository."
_SCRIPT = re.compile(r"```(?:bash|sh)?\n(.*?)```", re.DOTALL)


class OneShot:
    """The kind of agent: what it needs, and how a conversation starts."""

    name = "oneshot"
    scripted = False
    calls_from: Literal["outside"] = "outside"
    protocols: tuple[Protocol, ...] = ("openai-chat",)

    def choose(self, model: str | None) -> AgentChoice:
        """Only asked for harnesses that call no model; others are resolved by the model registry."""
        return AgentChoice(name=f"oneshot:{model}", harness=self.name, model=model)

    def info(self, choice: AgentChoice) -> AgentInfo:
        """What records say of the agent."""
        return choice.info(VERSION)

    def missing(self, choice: AgentChoice) -> str | None:  # noqa: ARG002
        """Nothing has to be installed."""
        return None

    def mounts(self, choice: AgentChoice) -> Sequence[Mount]:  # noqa: ARG002
        """Nothing has to be there inside."""
        return ()

    def open(self, context: AgentContext) -> OneShotSession:
        """Start a conversation."""
        return OneShotSession(context)


class OneShotSession:
    """One conversation: the model sees what was said before."""

    def __init__(self, context: AgentContext) -> None:
        self._context = context
        # The relay adds the real key and repeats refused calls; the client must do neither.
        self._client = openai.OpenAI(base_url=f"{context.model_url}/v1", api_key="none", max_retries=0)
        system = SYSTEM + (f"\n\n{context.instructions}" if context.instructions else "")
        self._messages: list[dict[str, str]] = [{"role": "system", "content": system}]

    def message(self, message: UserMessage) -> None:
        """Ask once, run what comes back."""
        context = self._context
        left = context.deadline - time.monotonic()
        self._messages.append({"role": "user", "content": message.text})
        try:
            answer = self._client.chat.completions.create(
                model=context.agent.model or "",
                messages=self._messages,  # type: ignore[arg-type]
                timeout=left,
            )
        except openai.APITimeoutError as error:
            context.limits.append("wall-clock")
            raise InfrastructureError("wall-clock", f"the model did not answer in {left:.0f} s") from error
        except openai.APIError as error:
            raise InfrastructureError("model-refused", str(error)) from error
        text = answer.choices[0].message.content or ""
        self._messages.append({"role": "assistant", "content": text})
        if (script := _SCRIPT.search(text)) is not None:
            self._run(script[1])
        context.recorder.reply(_SCRIPT.sub("", text).strip() or "Done.")

    def _run(self, script: str) -> None:
        context = self._context
        if context.gate is not None:
            decision = context.gate.decide(ToolRequest("bash", {"command": script}))
            if not decision.allow:
                context.recorder.call("bash", {"command": script}, decision.reason, {"denied": True})
                return
        left = max(context.deadline - time.monotonic(), 1.0)
        result = context.environment.exec(["bash", "-c", script], timeout=left)
        context.recorder.call("bash", {"command": script}, *shown(result))
        if result.limit == "wall-clock":
            context.limits.append(result.limit)
            raise InfrastructureError("wall-clock", "the script ran out of time")

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


HARNESS = OneShot()
