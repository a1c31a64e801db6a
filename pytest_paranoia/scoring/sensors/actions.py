"""The actions of a trajectory, whatever the harness calls its tools.

Our own agents record ``bash``, ``read``, ``edit``, ``insert`` and ``write``; the real command-line agents have names of
their own (docs of each harness). A tool nobody knows is an action of kind ``other``: counted, never guessed at.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from pytest_paranoia.schema.taxonomy import StepRole
from pytest_paranoia.schema.trajectory import ObservationResult, Step, ToolCall, Trajectory

ActionKind = Literal["command", "read", "edit", "write", "search", "other"]

_NAMES: dict[ActionKind, str] = {
    "command": "bash shell exec_command terminal run run_command execute execute_bash local_shell shell_command exec"
    " container.exec execute_command run_terminal_cmd command_execution run_shell_command",
    "read": "read read_file view cat open open_file notebookread readfile view_file",
    "edit": "edit patch multiedit apply_patch insert str_replace edit_file search_replace replace notebookedit"
    " str_replace_editor str_replace_based_edit_tool replace_in_file file_change",
    "write": "write write_file create_file create writefile write_to_file",
    "search": "grep glob ls list list_dir search find search_files list_files codesearch",
}
_TOOLS: dict[str, ActionKind] = {name: kind for kind, text in _NAMES.items() for name in text.split()}
_PATH_KEYS = ("path", "file_path", "filePath", "filename", "file", "notebook_path", "target_file")
_COMMAND_KEYS = ("command", "cmd", "script", "input", "code")
_NEW_KEYS = ("new", "new_string", "newString", "new_str", "text", "content", "file_text", "insert_text", "new_source")
_OLD_KEYS = ("old", "old_string", "oldString", "old_str")
_PATCH_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
_DIFF_FILE = re.compile(r"^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)
# Codex' freeform `exec` takes JavaScript in which commands are string literals.
_JS_COMMAND = re.compile(r"""\b(?:cmd|command)\s*:\s*("(?:[^"\\]|\\.){0,20000}"|'(?:[^'\\]|\\.){0,20000}')""")


@dataclass(frozen=True, slots=True)
class Action:
    """One tool call: ``text`` is the command, or what an edit or write puts in; ``old`` what an edit takes out.

    ``source`` locates it for a reader of the record (``step 3, call 2``; ``subagent 1, step 3, call 2``). ``role`` is
    that of the user message it answers, ``step`` the position of its step in the main trajectory. ``withheld``: a gate
    did not let it run.
    """

    kind: ActionKind
    text: str
    path: str | None
    output: str
    exit_code: int | None
    source: str
    old: str = ""
    role: StepRole | None = None
    step: int = 0
    withheld: bool = False

    @property
    def failed(self) -> bool:
        """True where the call is known to have failed or to have been withheld by a gate."""
        return self.exit_code not in (None, 0)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return _argv(value)
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return repr(value)[:10_000]


def _argv(parts: list[str]) -> str:
    """Return the command line of an argument vector; the script itself for ``["bash", "-lc", script]``."""
    if len(parts) == 3 and parts[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh") and parts[1].endswith("c"):
        return parts[2]
    return shlex.join(parts)


def _first(arguments: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((arguments[key] for key in keys if arguments.get(key) is not None), None)


def _output(result: ObservationResult | None) -> tuple[str, int | None]:
    if result is None:
        return "", None
    content = result.content
    text = content if isinstance(content, str) else "\n".join(part.text or "" for part in content or ())
    extra = result.extra or {}
    code = extra.get("exit_code", extra.get("exit"))
    if isinstance(code, bool) or not isinstance(code, int):
        code = 1 if extra.get("denied") or extra.get("is_error") else None
    return text, code


def _results(step: Step) -> list[ObservationResult | None]:
    """Return the result of every call of *step*, by id where given, else by position."""
    calls = step.tool_calls or []
    results = list(step.observation.results) if step.observation else []
    by_id = {result.source_call_id: result for result in results if result.source_call_id is not None}
    loose = [result for result in results if result.source_call_id is None]
    return [by_id.get(call.tool_call_id) or (loose.pop(0) if loose else None) for call in calls]


def _call(call: ToolCall, output: str, code: int | None, source: str) -> list[Action]:
    name, arguments = call.function_name, call.arguments
    kind: ActionKind = _TOOLS.get(name.lower().rsplit("__", 1)[-1], "other")
    path_value = _first(arguments, _PATH_KEYS)
    path = path_value if isinstance(path_value, str) else None
    if kind == "command":
        text = _text(_first(arguments, _COMMAND_KEYS))
        if name.lower() == "exec" and (found := _JS_COMMAND.findall(text)):
            return [Action("command", _js_string(literal), None, output, code, source) for literal in found]
        return [Action("command", text, None, output, code, source)]
    if kind == "edit":
        verb = arguments.get("command")
        if verb == "view":
            return [Action("read", "", path, output, code, source)]
        if verb == "create":
            kind = "write"
        new, old = _text(_first(arguments, _NEW_KEYS)), _text(_first(arguments, _OLD_KEYS))
        if isinstance(edits := arguments.get("edits"), list):
            parts = [edit for edit in edits if isinstance(edit, dict)]
            new = "\n".join(_text(_first(part, _NEW_KEYS)) for part in parts)
            old = "\n".join(_text(_first(part, _OLD_KEYS)) for part in parts)
        if path is None:
            return _patch(arguments, output, code, source)
        return [Action(kind, new, path, output, code, source, old)]
    if kind == "write":
        return [Action("write", _text(_first(arguments, _NEW_KEYS)), path, output, code, source)]
    text = "" if kind == "read" else _text(arguments)
    return [Action(kind, text, path, output, code, source)]


def _patch(arguments: dict[str, Any], output: str, code: int | None, source: str) -> list[Action]:
    """Return one edit for each file a patch names; a list of changes (Codex' ``file_change``) likewise."""
    if isinstance(changes := arguments.get("changes"), list):
        paths = [_text(change.get("path")) for change in changes if isinstance(change, dict)]
        return [Action("edit", "", path, output, code, source) for path in paths if path]
    text = _text(_first(arguments, ("patch", "input", "diff", *_COMMAND_KEYS)))
    named = [first or second for first, second in _PATCH_FILE.findall(text)] or _DIFF_FILE.findall(text)
    paths = list(dict.fromkeys(name.strip() for name in named))
    return [Action("edit", text, path, output, code, source) for path in paths] or [
        Action("edit", text, None, output, code, source)
    ]


def _js_string(literal: str) -> str:
    try:
        return str(json.loads('"' + literal[1:-1].replace("\\'", "'") + '"' if literal[0] == "'" else literal))
    except ValueError:
        return literal[1:-1]


def _walk(trajectory: Trajectory, prefix: str, role: StepRole | None, at: int | None) -> Iterator[Action]:
    children = {
        key: (index, child)
        for index, child in enumerate(trajectory.subagent_trajectories or (), start=1)
        for key in (child.trajectory_id, child.session_id)
        if key is not None
    }
    # Codex' scripts call tools of their own: where what they ran is known, the script itself adds nothing.
    scripts = {(call.extra or {}).get("within") for step in trajectory.steps for call in step.tool_calls or ()}
    seen: set[int] = set()
    for step in trajectory.steps:
        if step.source == "user" and at is None:
            role = step_role(step) or role
        for number, (call, result) in enumerate(zip(step.tool_calls or (), _results(step), strict=True), start=1):
            if call.tool_call_id in scripts:
                continue
            output, code = _output(result)
            source = f"{prefix}step {step.step_id}, call {number}"
            for action in _call(call, output, code, source):
                yield _placed(action, role, at or step.step_id, _denied(result))
            for reference in (result.subagent_trajectory_ref or ()) if result else ():
                key = reference.get("trajectory_id") or reference.get("session_id")
                if key in children and children[key][0] not in seen:
                    index, child = children[key]
                    seen.add(index)
                    yield from _walk(child, f"{prefix}subagent {index}, ", role, at or step.step_id)
    # A subagent that no result refers to worked at an unknown time: after the last message, the careful reading.
    for index, child in enumerate(trajectory.subagent_trajectories or (), start=1):
        if index not in seen:
            yield from _walk(child, f"{prefix}subagent {index}, ", role, at or len(trajectory.steps))


def _denied(result: ObservationResult | None) -> bool:
    return bool(result is not None and (result.extra or {}).get("denied"))


def _placed(action: Action, role: StepRole | None, at: int, withheld: bool) -> Action:
    return Action(
        action.kind,
        action.text,
        action.path,
        action.output,
        action.exit_code,
        action.source,
        action.old,
        role,
        at,
        withheld,
    )


def step_role(step: Step) -> StepRole | None:
    """Return the role a user message carries under ``extra`` (task, work, accuse, insist)."""
    value = (step.extra or {}).get("role")
    return cast("StepRole", value) if value in ("task", "work", "accuse", "insist") else None


def requested(tool: str, arguments: Mapping[str, Any]) -> list[Action]:
    """Return the actions of a tool call that has not run yet, as a harness names it."""
    return _call(ToolCall(tool_call_id="", function_name=tool, arguments=dict(arguments)), "", None, "")


def actions_of(trajectory: Trajectory) -> tuple[Action, ...]:
    """Return every tool call of *trajectory* in order, those of subagents where they were called."""
    return tuple(_walk(trajectory, "", None, None))
