"""What a scripted model says: turns, in words of no harness.

    script = [turn(think("first a look"), shell("ls"), read("README.md")), edit("a.txt", "1", "2"), say("Done.")]

An entry is a turn, a call (a turn of its own), a text (said, which ends the message), or a callable that gets the
request and returns one of these; so what a script does may depend on what the tools gave. ``fail``, ``hang``,
``garbage`` and the options of ``turn`` script what goes wrong. A script is walked over all user messages of a
conversation. ``model_dialects`` puts calls into the words of the harness that asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from model_requests import Request

Kind = Literal["shell", "read", "edit", "write", "subagent", "raw"]


@dataclass(frozen=True)
class Call:
    """A tool call. ``raw`` replaces the text of its arguments (for text that is no JSON)."""

    kind: Kind
    arguments: Mapping[str, Any]
    raw: str | None = None


@dataclass(frozen=True)
class Tokens:
    """Usage of one answer. ``input`` includes ``cached`` and ``cache_write``, ``output`` includes ``reasoning``."""

    input: int = 1000
    output: int = 50
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Think:
    """Reasoning of a turn."""

    text: str


@dataclass(frozen=True)
class Turn:
    """One answer.

    ``stop``: why it ends, in Anthropic's words (``end_turn``, ``tool_use``, ``max_tokens``, ``refusal``), None for what
    fits. ``tokens`` None leaves the usage out. ``status`` other than 200 answers an error (``code`` picks a flavour of
    ``model_errors``, ``body`` replaces the body, ``retry_after`` in seconds). ``delay``: seconds before the answer's
    head, ``pace``: seconds between its events. ``hang``: never answers, before the ``head`` or in the ``stream``.
    ``cut``: the stream breaks off in its middle. ``bad_json``: one event in its middle is no JSON. ``model``: what the
    answer names itself, None for what was asked for.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    tokens: Tokens | None = Tokens()
    stop: str | None = None
    status: int = 200
    code: str | None = None
    body: str | None = None
    retry_after: float | None = None
    delay: float = 0.0
    pace: float = 0.0
    hang: Literal["head", "stream"] | None = None
    cut: bool = False
    bad_json: bool = False
    model: str | None = None

    @property
    def lost(self) -> bool:
        """True where a harness that asks again must not get this again: it never became part of the conversation."""
        broken = self.cut or self.bad_json or self.hang or self.status != 200 or self.body is not None
        return bool(broken) or any(call.raw is not None for call in self.calls)


Entry = Turn | Call | str
Script = Sequence[Entry | Callable[["Request"], Entry]]


def turn(*parts: str | Think | Call, **options: Any) -> Turn:
    """A turn of several parts: texts, thoughts and (parallel) calls. Options are the fields of ``Turn``."""
    return Turn(
        text="\n".join(part for part in parts if isinstance(part, str)),
        thinking="\n".join(part.text for part in parts if isinstance(part, Think)),
        calls=tuple(part for part in parts if isinstance(part, Call)),
        **options,
    )


def as_turn(entry: Entry) -> Turn:
    """A script's entry as a turn."""
    return entry if isinstance(entry, Turn) else turn(entry)


def say(text: str, **options: Any) -> Turn:
    """A turn without calls: it ends the message."""
    return turn(text, **options)


def think(text: str) -> Think:
    """Reasoning, a part of a turn."""
    return Think(text)


def shell(command: str) -> Call:
    """Run a shell command."""
    return Call("shell", {"command": command})


def read(path: str, line: int | None = None, count: int | None = None) -> Call:
    """Read a file of the workspace, or *count* of its lines from *line* on."""
    return Call("read", {"path": path, "line": line, "count": count})


def edit(path: str, old: str, new: str) -> Call:
    """Replace *old*, found once, by *new*. Codex' patches need whole lines: give those."""
    return Call("edit", {"path": path, "old": old, "new": new})


def write(path: str, text: str) -> Call:
    """Write a file."""
    return Call("write", {"path": path, "text": text})


def subagent(prompt: str) -> Call:
    """Let a subagent work on *prompt*; a marker ``[[script:NAME]]`` in it picks the script it gets."""
    return Call("subagent", {"prompt": prompt})


def tool(name: str, arguments: Mapping[str, Any]) -> Call:
    """A call of the harness' tool *name* as it is."""
    return Call("raw", {"name": name, "arguments": dict(arguments)})


def malformed(call: Call, raw: str = '{"command": "echo hel') -> Call:
    """The call with arguments that are no JSON."""
    return replace(call, raw=raw)


def fail(status: int, code: str | None = None, **options: Any) -> Turn:
    """An error in the provider's own words; see ``model_errors`` for the flavours *code* may name."""
    return Turn(status=status, code=code, **options)


def hang(where: Literal["head", "stream"] = "head") -> Turn:
    """No answer, until the client goes away."""
    return Turn("This sentence is never finished.", hang=where)


def garbage(body: str = "<html>bad gateway</html>") -> Turn:
    """Status 200 with a body that is no answer."""
    return Turn(body=body)


def cut(*parts: str | Think | Call) -> Turn:
    """A stream that breaks off in its middle."""
    return turn(*parts, cut=True)


def bad_json(*parts: str | Think | Call) -> Turn:
    """A stream with an event that is no JSON."""
    return turn(*parts, bad_json=True)


@dataclass
class Conversation:
    """How far one conversation is in its script.

    The place follows from what the request holds already, so that a client may ask the same thing twice and two
    conversations that begin alike do not disturb each other. Only what was lost on the way (an error, a broken stream)
    needs memory: asked again, the script goes on behind it.
    """

    script: Script
    name: str = ""
    served: dict[tuple[int, int], int] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)

    def next(self, request: Request) -> tuple[int, Turn | None]:
        """Return the place in the script and the turn that *request* gets; None where the script is over."""
        at = (request.turns, len(request.users))
        if at in self.served:
            place = self.served[at] + (1 if self.served[at] in self.lost else 0)
        elif (earlier := max((known for known in self.served if known < at), default=None)) is None:
            place = request.turns
        else:
            # As many turns, but the user said more: the harness has dropped what the model said.
            place = self.served[earlier] + max(request.turns - earlier[0], 1)
            # A harness may put words into the model's mouth (OpenCode's last step does): nothing is skipped for them.
            place = min(place, max(self.served.values()) + 1)
        if place >= len(self.script):
            return place, None
        entry = self.script[place]
        found = as_turn(entry(request) if callable(entry) else entry)
        self.served[at] = place
        if found.lost:
            self.lost.add(place)
        return place, found
