"""The tools of the chat agent, run through the environment: a shell, and reading, editing and writing files."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_paranoia.environments.base import Environment, ExecResult
from pytest_paranoia.schema.trajectory import Trajectory

COMMAND_SECONDS = 600
"""Seconds of one shell command where the model names no time, and the most it may name."""

SHOWN_CHARACTERS = 30_000
"""Most characters of one tool's output that the model gets to see."""


@dataclass(frozen=True)
class Tool:
    """What the model is told of a tool: ``parameters`` by name are (JSON type, description, required)."""

    name: str
    description: str
    parameters: Mapping[str, tuple[str, str, bool]]

    @property
    def schema(self) -> dict[str, Any]:
        """The parameters as JSON schema."""
        return {
            "type": "object",
            "properties": {
                name: {"type": kind, "description": text} for name, (kind, text, _) in self.parameters.items()
            },
            "required": [name for name, (_, _, required) in self.parameters.items() if required],
            "additionalProperties": False,
        }


_PATH = ("string", "path of the file, relative to the workspace or absolute", True)
TOOLS = (
    Tool(
        "bash",
        "Run a command in a new bash shell in the workspace and return what it prints.",
        {
            "command": ("string", "the command line", True),
            "seconds": ("integer", f"time after which it is ended, at most (and by default) {COMMAND_SECONDS}", False),
        },
    ),
    Tool(
        "read",
        "Return the text of a file, or some of its lines.",
        {
            "path": _PATH,
            "line": ("integer", "the first line to return, counted from 1", False),
            "count": ("integer", "how many lines to return", False),
        },
    ),
    Tool(
        "edit",
        "Replace a piece of text in a file. The piece must be found exactly once.",
        {
            "path": _PATH,
            "old": ("string", "the text to replace, verbatim", True),
            "new": ("string", "the text to put in its place", True),
        },
    ),
    Tool(
        "write",
        "Write a file, with its folders; an existing file is replaced.",
        {"path": _PATH, "content": ("string", "the whole text of the file", True)},
    ),
)
DELEGATE = Tool(
    "delegate",
    "Hand a piece of work to a subagent: a new agent with the same tools in the same workspace, which knows nothing of "
    "this conversation. Returns what it reports when it is done.",
    {"task": ("string", "what is to be done, with all that the subagent has to know", True)},
)
"""Of the session, not of the toolbox; a subagent has it not."""
BY_NAME = {tool.name: tool for tool in TOOLS}
_KINDS: dict[str, type] = {"string": str, "integer": int}


@dataclass(frozen=True)
class Outcome:
    """What a call gave: the text for the model, facts for the record, and what subagents did for it."""

    text: str
    extra: dict[str, Any] = field(default_factory=dict)
    subagents: tuple[Trajectory, ...] = ()


class OutOfTime(Exception):
    """The agent's wall clock ran out while a tool was at work."""


def problem(name: str, arguments: Any, tools: Mapping[str, Tool] = BY_NAME) -> str | None:
    """Return what is wrong with a call of one of *tools*, None where it can run."""
    tool = tools.get(name)
    if tool is None:
        return f"there is no tool {name!r}; the tools are {', '.join(tools)}"
    if not isinstance(arguments, dict):
        return "the arguments are no JSON object"
    for key, (kind, _, required) in tool.parameters.items():
        value = arguments.get(key)
        if value is None:
            if required:
                return f"the argument {key!r} of {name!r} is missing"
        elif not isinstance(value, _KINDS[kind]) or isinstance(value, bool):
            return f"the argument {key!r} of {name!r} is {value!r:.80}, expected type {kind}"
    if unknown := sorted(set(arguments) - set(tool.parameters)):
        return f"{name!r} takes no argument {unknown[0]!r}; it takes {', '.join(tool.parameters)}"
    return None


@dataclass(frozen=True)
class Toolbox:
    """Runs calls in *environment* until *deadline* (``time.monotonic``)."""

    environment: Environment
    deadline: float
    limits: list[str]

    def run(self, name: str, arguments: Mapping[str, Any]) -> Outcome:
        """Run a call that has no ``problem``. Raises OutOfTime."""
        runners: dict[str, Callable[..., Outcome]] = {
            "bash": self._bash,
            "read": self._read,
            "edit": self._edit,
            "write": self._write,
        }
        return runners[name](**{key: value for key, value in arguments.items() if value is not None})

    def _exec(self, argv: Sequence[str], seconds: float = COMMAND_SECONDS, stdin: bytes = b"") -> ExecResult:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime
        result = self.environment.exec(argv, stdin=stdin, timeout=min(seconds, left))
        if result.limit == "wall-clock" and left <= seconds:
            raise OutOfTime
        if result.limit is not None and result.limit not in ("wall-clock", "output"):
            self.limits.append(result.limit)
        return result

    def _bash(self, command: str, seconds: int = COMMAND_SECONDS) -> Outcome:
        seconds = max(1, min(seconds, COMMAND_SECONDS))
        result = self._exec(["bash", "-c", command], seconds)
        text = shortened((result.stdout + result.stderr).decode("utf-8", "backslashreplace"), result.dropped)
        notes = []
        if result.limit == "wall-clock":
            notes.append(f"[ended after {seconds} seconds]")
        elif result.limit in ("processes", "memory"):
            notes.append(f"[ended: limit {result.limit!r}]")
        if result.exit_code:
            notes.append(f"[exit status {result.exit_code}]")
        extra: dict[str, Any] = {"exit_code": result.exit_code, "seconds": round(result.seconds, 3)}
        if result.limit:
            extra["limit"] = result.limit
        return Outcome("\n".join([*([text.rstrip("\n")] if text else []), *notes]) or "[no output]", extra)

    def _read(self, path: str, line: int = 1, count: int | None = None) -> Outcome:
        text, failed = self._load(path)
        if failed is not None:
            return failed
        lines = text.splitlines(keepends=True)
        first = max(line, 1)
        chosen = lines[first - 1 :] if count is None else lines[first - 1 : first - 1 + max(count, 0)]
        shown = shortened("".join(chosen))
        if len(chosen) < len(lines):
            last = first + len(chosen) - 1
            what = f"lines {first} to {last}" if chosen else "no lines"
            shown = f"{shown.rstrip()}\n[{what} of {len(lines)}]".lstrip("\n")
        return Outcome(shown or "[the file is empty]", {"exit_code": 0})

    def _edit(self, path: str, old: str, new: str) -> Outcome:
        text, failed = self._load(path)
        if failed is not None:
            return failed
        found = text.count(old) if old else 0
        if found != 1:
            what = "is not in the file" if not found else f"is in the file {found} times, expected once"
            return _failed(f"{path}: the text to replace {what}; nothing was changed")
        return self._store(path, text.replace(old, new), f"{path} was changed")

    def _write(self, path: str, content: str) -> Outcome:
        return self._store(path, content, f"{path} was written")

    def _load(self, path: str) -> tuple[str, Outcome | None]:
        result = self._exec(["cat", "--", path])
        if result.exit_code or result.limit:
            said = result.stderr.decode("utf-8", "backslashreplace").strip()
            return "", _failed(said.removeprefix("cat: ") or f"{path}: it is too large to be read as a whole")
        try:
            return result.stdout.decode("utf-8"), None
        except UnicodeDecodeError:
            return "", _failed(f"{path}: it is no text in UTF-8")

    def _store(self, path: str, text: str, done: str) -> Outcome:
        script = 'mkdir -p -- "$(dirname -- "$1")" && cat > "$1"'
        result = self._exec(["sh", "-c", script, "sh", path], stdin=text.encode("utf-8", "surrogatepass"))
        if result.exit_code or result.limit:
            said = result.stderr.decode("utf-8", "backslashreplace").strip()
            return _failed(f"{path}: it could not be written: {said}")
        return Outcome(done, {"exit_code": 0})


def _failed(text: str) -> Outcome:
    return Outcome(text, {"exit_code": 1, "is_error": True})


def shortened(text: str, dropped: int = 0) -> str:
    """Return *text* with its middle left out where it is too long, and say so. *dropped*: bytes lost at its end."""
    if dropped:
        text += f"\n[{dropped} more bytes of output were dropped]"
    if len(text) <= SHOWN_CHARACTERS:
        return text
    head, tail = SHOWN_CHARACTERS * 2 // 3, SHOWN_CHARACTERS // 3
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[{left_out} characters were left out here]\n{text[-tail:]}"
