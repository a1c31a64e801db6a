"""A conversation in no API's words, and what is left out of it where the model's context would not hold it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Stop = Literal["stop", "tool-calls", "length", "content-filter", "refusal"]

ELIDED = "[The output of this call was left out to save room in the context. Call again if it is needed.]"
_CHARACTERS_PER_TOKEN = 3.5
"""Low on purpose: where the API tells no usage, the context must rather be thought fuller than it is."""
_KEPT_OUTPUTS = 2
_SMALL = 400


@dataclass(frozen=True)
class CallMade:
    """A tool call of the model; ``arguments`` is the text that it wrote."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Answer:
    """One answer of the model.

    ``native`` is what the API must get back of it in its own words (its items, or the name of the reasoning's field).
    ``input_tokens`` and ``output_tokens`` are None where the API did not tell.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[CallMade, ...] = ()
    stop: Stop = "stop"
    model: str | None = None
    native: Any = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    partial: bool = False


@dataclass(frozen=True)
class UserSaid:
    """A user message."""

    text: str


@dataclass
class ToolGave:
    """The output of a tool call, or the note that stands for it."""

    call_id: str
    text: str
    elided: bool = False

    @property
    def shown(self) -> str:
        """What the model gets to see."""
        return ELIDED if self.elided else self.text


Entry = UserSaid | Answer | ToolGave


@dataclass
class Conversation:
    """All that was said, in order. ``system`` comes first."""

    system: str
    entries: list[Entry] = field(default_factory=list)
    _measured: tuple[int, int] | None = None

    def add(self, entry: Entry) -> None:
        """Append *entry*; an answer with known usage tells how full the context is."""
        self.entries.append(entry)
        if isinstance(entry, Answer) and entry.input_tokens is not None:
            self._measured = (len(self.entries), entry.input_tokens + (entry.output_tokens or 0))

    def tokens(self) -> int:
        """Return about how many tokens the next request has: what the API told last, and an estimate of the rest."""
        if self._measured is None:
            return _estimate([self.system]) + sum(_size(entry) for entry in self.entries)
        at, known = self._measured
        return known + sum(_size(entry) for entry in self.entries[at:])

    def elide(self, wanted: int) -> int:
        """Leave out older tool outputs, oldest first, until about *wanted* tokens are saved; return how many were.

        The newest outputs and those too small to matter stay.
        """
        outputs = [(index, entry) for index, entry in enumerate(self.entries) if isinstance(entry, ToolGave)]
        at, known = self._measured or (0, 0)
        saved = 0
        for index, entry in outputs[: max(len(outputs) - _KEPT_OUTPUTS, 0)]:
            if saved >= wanted:
                break
            if not entry.elided and len(entry.text) > _SMALL:
                before = _size(entry)
                entry.elided = True
                saved += before - _size(entry)
                if index < at:  # what came after the count is estimated anew anyway
                    known -= before - _size(entry)
        if self._measured is not None:
            self._measured = (at, max(known, 0))
        return saved

    @property
    def since_user(self) -> int:
        """Index of the first entry after the last user message."""
        return max((at + 1 for at, entry in enumerate(self.entries) if isinstance(entry, UserSaid)), default=0)


def readable(arguments: str) -> str:
    """Return *arguments* as the API gets them back: servers choke on text that is no JSON object."""
    try:
        if isinstance(json.loads(arguments or "{}"), dict):
            return arguments or "{}"
    except (ValueError, RecursionError):
        pass
    return json.dumps({"malformed": arguments})


def _size(entry: Entry) -> int:
    if isinstance(entry, Answer):
        return _estimate([entry.text, entry.reasoning, *(call.name + call.arguments for call in entry.calls)])
    return _estimate([entry.text if isinstance(entry, UserSaid) else entry.shown])


def _estimate(texts: Sequence[str]) -> int:
    return int(sum(len(text.encode("utf-8", "replace")) for text in texts) / _CHARACTERS_PER_TOKEN) + 4
