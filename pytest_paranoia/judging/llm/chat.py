"""A chat model as judge: our tool loop over any OpenAI-compatible endpoint, with read-only tools or with none."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from typing import Any

from pytest_paranoia.agents.base import AgentChoice
from pytest_paranoia.agents.chat.completions import Completions
from pytest_paranoia.agents.chat.conversation import Answer as ModelAnswer
from pytest_paranoia.agents.chat.conversation import CallMade, Conversation, ToolGave, UserSaid
from pytest_paranoia.agents.chat.responses import Responses
from pytest_paranoia.agents.chat.session import new_client
from pytest_paranoia.agents.chat.tools import Tool, problem
from pytest_paranoia.agents.chat.wire import ContextFull, Late, Wire
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.judging.case import PairCase
from pytest_paranoia.judging.llm.dossier import Dossier
from pytest_paranoia.judging.llm.prompt import SUBMIT, Told, fence
from pytest_paranoia.judging.llm.talk import Answer, Log
from pytest_paranoia.judging.llm.tools import TOOLS, Reading, signature
from pytest_paranoia.judging.llm.verify import answer_schema

SAME_CALLS = 4
"""How often the very same call may come in one dialogue: it gives the same each time."""
_NO_TOOLS = re.compile(r"\btools?\b|\bfunction.?call", re.IGNORECASE)
_UNREAD = "This call could not be read: {}."


class ToolsRefused(Exception):
    """The endpoint takes no tools."""


class _Submit(Tool):
    """The tool that takes the verdict; its parameters are the schema of the answer."""

    def __init__(self, pair: bool) -> None:
        super().__init__(SUBMIT, "Hand in the verdict; this ends your work.", {})
        object.__setattr__(self, "_form", answer_schema(pair))

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of the answer."""
        form: dict[str, Any] = self.__dict__["_form"]
        return form


class ChatPartner:
    """One dialogue with a chat model. *reading* None: all is in the prompt, and the answer is asked for by schema."""

    def __init__(
        self,
        dossier: Dossier,
        choice: AgentChoice,
        url: str,
        *,
        reading: Reading | None,
        deadline: float,
        max_turns: int,
        log: Log,
    ) -> None:
        self._dossier = dossier
        self._reading = reading
        self._deadline = deadline
        self._max_turns = max_turns
        self._log = log
        self._client = new_client(f"{url}/v1")
        self._conversation = Conversation("")
        self._open: str | None = None
        self._made: Counter[str] = Counter()
        pair = isinstance(dossier.case, PairCase)
        self._tools = {tool.name: tool for tool in (*TOOLS, _Submit(pair))} if reading is not None else {}
        kind = Responses if choice.protocol(("openai-responses", "openai-chat")) == "openai-responses" else Completions
        self._wire: Wire = kind(self._client, choice, deadline, tuple(self._tools.values()))
        if reading is None:
            self._wire.structured("verdict", answer_schema(pair))

    def close(self) -> None:
        """Close the connections to the model."""
        self._client.close()

    def begin(self, told: Told) -> Answer:
        """Open the dialogue; see ``Partner``. Raises ToolsRefused where the endpoint takes no tools."""
        self._conversation.system = told.system
        self._log.add("system", told.system)
        return self._say(told.case)

    def again(self, text: str) -> Answer:
        """Send the verdict back; see ``Partner``."""
        if self._open is None:
            return self._say(text)
        self._gave(self._open, text)
        self._open = None
        return self._work()

    def _say(self, text: str) -> Answer:
        self._conversation.add(UserSaid(text))
        self._log.add("user", text)
        return self._work()

    def _work(self) -> Answer:
        """Let the model read until it offers a verdict."""
        while True:
            if self._log.turns >= self._max_turns:
                raise InfrastructureError("judge-loop", f"no verdict within {self._max_turns} turns of the model")
            answer = self._ask()
            self._conversation.add(answer)
            calls = [{"name": call.name, "arguments": call.arguments} for call in answer.calls]
            tokens = {"input": answer.input_tokens, "output": answer.output_tokens}
            self._log.add("judge", answer.text, calls=calls, stop=answer.stop, tokens=tokens)
            if answer.stop == "length":
                raise InfrastructureError("judge-truncated", "the answer was cut at the limit of output tokens")
            if answer.stop in ("refusal", "content-filter"):
                raise InfrastructureError(
                    "judge-refused", f"the judge refused: {answer.text.strip()[:300] or answer.stop}"
                )
            if not answer.calls:
                return answer.text
            if (verdict := self._take(answer.calls)) is not None:
                return verdict

    def _take(self, calls: tuple[CallMade, ...]) -> Answer | None:
        """Run *calls*; return the verdict that one of them hands in."""
        submitted: Answer | None = None
        for number, call in enumerate(calls):
            identity = call.call_id or f"call-{self._log.turns}-{number}"
            arguments = _arguments(call)
            if call.name == SUBMIT and SUBMIT in self._tools and submitted is None:
                submitted = arguments if isinstance(arguments, dict) else call.arguments
                self._open = identity
                continue
            self._gave(identity, self._run(call, arguments))
        return submitted

    def _run(self, call: CallMade, arguments: Any) -> str:
        if call.name == SUBMIT:
            return "A verdict was handed in already."
        if (trouble := problem(call.name, arguments, self._tools)) is not None:
            return _UNREAD.format(trouble)
        same = signature(call.name, arguments)
        self._made[same] += 1
        if self._made[same] > SAME_CALLS:
            raise InfrastructureError("judge-loop", f"the same call came {self._made[same]} times: {same[:200]}")
        if self._late:
            raise self._out_of_time()
        assert self._reading is not None
        return fence(self._dossier, self._reading.run(call.name, arguments))

    def _gave(self, identity: str, text: str) -> None:
        self._conversation.add(ToolGave(identity, text))
        self._log.add("tool", text, call=identity)

    def _ask(self) -> ModelAnswer:
        if self._late:
            raise self._out_of_time()
        while True:
            try:
                answer = self._wire.ask(self._conversation)
            except ContextFull:
                if not self._conversation.elide(max(self._conversation.tokens() // 3, 1)):
                    raise InfrastructureError(
                        "judge-context", "the dialogue does not fit the judge's context"
                    ) from None
            except Late:
                raise self._out_of_time() from None
            except InfrastructureError as error:
                refused = self._tools and self._log.turns == 0 and "answered 400" in str(error)
                if refused and _NO_TOOLS.search(str(error)):
                    raise ToolsRefused(str(error)) from error
                raise
            else:
                self._log.turns += 1
                return _with_ids(answer, self._log.turns)

    @property
    def _late(self) -> bool:
        return time.monotonic() >= self._deadline

    def _out_of_time(self) -> InfrastructureError:
        return InfrastructureError("judge-timeout", "the judge's wall clock ran out (--paranoia-judge-timeout)")


def _with_ids(answer: ModelAnswer, turn: int) -> ModelAnswer:
    """Give every call an id of its own: some servers give none, or the same ones again."""
    ids = [call.call_id for call in answer.calls]
    if all(ids) and len(set(ids)) == len(ids):
        return answer
    calls = tuple(
        CallMade(f"{call.call_id or 'call'}-{turn}-{number}", call.name, call.arguments)
        for number, call in enumerate(answer.calls)
    )
    fields = {name: getattr(answer, name) for name in ModelAnswer.__dataclass_fields__}
    return ModelAnswer(**{**fields, "calls": calls})


def _arguments(call: CallMade) -> Any:
    try:
        return json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return None
