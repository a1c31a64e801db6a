"""The tools of each harness: which harness asks, and what a scripted call is in its words."""

from __future__ import annotations

import json
import posixpath
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from model_requests import Request
from model_script import Call

Dialect = Literal["claude-code", "codex", "codex-js", "opencode", "hermes", "chat", "judge"]


@dataclass(frozen=True)
class Spoken:
    """A call in a harness' words. ``arguments`` is an object, or free text for a ``custom`` tool."""

    name: str
    arguments: Any
    custom: bool = False

    @property
    def text(self) -> str:
        """The arguments as text."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)


def dialect(request: Request) -> Dialect:
    """Which harness asks, told by its tools. Raises ValueError for one the server does not know."""
    if not request.tools or request.tool("submit_verdict"):
        return "judge"
    if request.tool("Bash"):
        return "claude-code"
    if (exec_tool := request.tool("exec")) and exec_tool.custom:
        return "codex-js"
    if request.tool("exec_command"):
        return "codex"
    if request.tool("terminal"):
        return "hermes"
    if request.tool("bash") and (reader := request.tool("read")):
        return "opencode" if "filePath" in reader.keys else "chat"
    raise ValueError(f"no harness known with the tools {[tool.name for tool in request.tools]}")


def spoken(call: Call, request: Request, directory: str) -> Spoken:
    """Return *call* as *request*'s harness would get it from a model; *directory* is its workspace."""
    if call.kind == "raw":
        name = str(call.arguments["name"])
        offered = request.tool(name)
        return Spoken(name, call.arguments["arguments"], custom=bool(offered and offered.custom))
    tables: dict[Dialect, Callable[[Call, str], Spoken]] = {
        "claude-code": _claude,
        "codex": _codex,
        "codex-js": _codex_js,
        "opencode": _opencode,
        "hermes": _hermes,
        "chat": _chat,
        "judge": _chat,
    }
    found = tables[dialect(request)](call, request.directory or directory)
    if found.name == "apply_patch" and request.tool("apply_patch") is None:
        # Models that Codex does not know have no tool for it; the command is there for all.
        return Spoken("exec_command", {"cmd": f"apply_patch <<'PATCH'\n{found.arguments}PATCH"})
    return found


def _range(call: Call, first: str, count: str) -> dict[str, Any]:
    """Where to read, under the harness' own names."""
    found = {}
    if call.arguments.get("line"):
        found[first] = call.arguments["line"]
    if call.arguments.get("count"):
        found[count] = call.arguments["count"]
    return found


def _claude(call: Call, directory: str) -> Spoken:
    given = call.arguments
    if call.kind == "shell":
        return Spoken("Bash", {"command": given["command"], "description": "Run a command"})
    if call.kind == "subagent":
        task = {"description": "Part of the work", "prompt": given["prompt"], "subagent_type": "general-purpose"}
        return Spoken("Agent", {**task, "run_in_background": False})
    path = posixpath.join(directory, given["path"])
    if call.kind == "read":
        return Spoken("Read", {"file_path": path, **_range(call, "offset", "limit")})
    if call.kind == "edit":
        return Spoken("Edit", {"file_path": path, "old_string": given["old"], "new_string": given["new"]})
    return Spoken("Write", {"file_path": path, "content": given["text"]})


def _opencode(call: Call, directory: str) -> Spoken:
    given = call.arguments
    if call.kind == "shell":
        return Spoken("bash", {"command": given["command"], "description": "Run a command"})
    if call.kind == "subagent":
        task = {"description": "Part of the work", "prompt": given["prompt"], "subagent_type": "general"}
        return Spoken("task", task)
    path = posixpath.join(directory, given["path"])
    if call.kind == "read":
        return Spoken("read", {"filePath": path, **_range(call, "offset", "limit")})
    if call.kind == "edit":
        return Spoken("edit", {"filePath": path, "oldString": given["old"], "newString": given["new"]})
    return Spoken("write", {"filePath": path, "content": given["text"]})


def _hermes(call: Call, directory: str) -> Spoken:
    given = call.arguments
    if call.kind == "shell":
        return Spoken("terminal", {"command": given["command"]})
    if call.kind == "subagent":
        task = {"goal": given["prompt"], "context": f"The workspace is {directory}."}
        return Spoken("delegate_task", {**task, "background": False})
    path = posixpath.join(directory, given["path"])
    if call.kind == "read":
        return Spoken("read_file", {"path": path, **_range(call, "offset", "limit")})
    if call.kind == "edit":
        change = {"old_string": given["old"], "new_string": given["new"]}
        return Spoken("patch", {"mode": "replace", "path": path, **change})
    return Spoken("write_file", {"path": path, "content": given["text"]})


def _chat(call: Call, directory: str) -> Spoken:  # noqa: ARG001 -- paths are relative to the workspace
    given = call.arguments
    if call.kind == "shell":
        return Spoken("bash", {"command": given["command"]})
    if call.kind == "read":
        return Spoken("read", {"path": given["path"], **_range(call, "line", "count")})
    if call.kind == "edit":
        return Spoken("edit", {"path": given["path"], "old": given["old"], "new": given["new"]})
    if call.kind == "write":
        return Spoken("write", {"path": given["path"], "content": given["text"]})
    return Spoken("delegate", {"task": given["prompt"]})


def _reading(call: Call) -> str:
    path, line, count = (call.arguments[key] for key in ("path", "line", "count"))
    if line or count:
        first = line or 1
        last = first + count - 1 if count else "$"
        return f"sed -n '{first},{last}p' {shlex.quote(path)}"
    return f"cat {shlex.quote(path)}"


def _codex(call: Call, directory: str) -> Spoken:  # noqa: ARG001 -- Codex works in the workspace by itself
    if call.kind == "shell":
        return Spoken("exec_command", {"cmd": call.arguments["command"]})
    if call.kind == "read":
        return Spoken("exec_command", {"cmd": _reading(call)})
    if call.kind == "subagent":
        return Spoken("spawn_agent", {"message": call.arguments["prompt"]})
    return Spoken("apply_patch", _patch(call), custom=True)


def _codex_js(call: Call, directory: str) -> Spoken:
    plain = _codex(call, directory)
    argument = json.dumps(plain.arguments, ensure_ascii=False)
    if plain.name == "exec_command":
        script = f"const r = await tools.exec_command({argument});\ntext(r.output);\n"
    else:
        script = f"text(await tools.{plain.name}({argument}));\n"
    return Spoken("exec", script, custom=True)


def _patch(call: Call) -> str:
    path = call.arguments["path"]
    if call.kind == "write":
        lines = [f"*** Add File: {path}", *("+" + line for line in call.arguments["text"].splitlines())]
    else:
        old = ["-" + line for line in call.arguments["old"].splitlines()]
        new = ["+" + line for line in call.arguments["new"].splitlines()]
        lines = [f"*** Update File: {path}", "@@", *old, *new]
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"]) + "\n"
