"""From the text of a tool call to the programs it runs: keywords, assignments and wrappers taken off."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache

from pytest_paranoia.scoring.sensors.shell import Piece, split, words
from pytest_paranoia.scoring.sensors.texts import PROGRAMS, word_set

_KEYWORDS = re.compile(r"(?:(?:then|do|else|elif|if|while|until|time|\{|!)(?=\s)\s*)+")
_LOOP = re.compile(r"(?P<kind>for|while|until|select)\b(?P<head>.*)", re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_RANGE = re.compile(r"\{(\d{1,6})\.\.(\d{1,6})\}")
_SEQ = re.compile(r"seq\s+(?:(\d{1,6})\s+)?(?:\d{1,6}\s+)?(\d{1,6})\s*\)")
_END = frozenset({"fi", "esac", "}", "then", "do", "else", "{", "in"})
_MOST = 1_000

# Wrappers that run the rest of their words as a command, with those of their options that take a value.
_WRAPPERS: dict[str, frozenset[str]] = {
    "env": frozenset({"-u", "--unset", "-C", "--chdir", "-S"}),
    "timeout": frozenset({"-k", "--kill-after", "-s", "--signal"}),
    "nice": frozenset({"-n", "--adjustment"}),
    "ionice": frozenset({"-c", "-n", "-p"}),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "sudo": frozenset({"-u", "-g", "-C", "-D"}),
    "xargs": frozenset({"-n", "-I", "-P", "-L", "-d", "-a", "-s", "-E"}),
    "watch": frozenset({"-n", "--interval", "-d"}),
    "strace": frozenset({"-e", "-o", "-p"}),
    "taskset": frozenset(),
    "flock": frozenset({"-w", "--timeout"}),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "time": frozenset({"-f", "-o"}),
    "exec": frozenset({"-a"}),
    "command": frozenset(),
    "builtin": frozenset(),
    "parallel": frozenset({"-j", "--jobs", "-n"}),
    "xvfb-run": frozenset({"-s", "-n", "-e"}),
}
_RUNNERS: dict[str, tuple[str, ...]] = {
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "rye": ("run",),
    "conda": ("run",),
    "pipx": ("run",),
    "coverage": ("run",),
    "uvx": (),
    "npx": (),
}
_RUNNER_VALUES = word_set(
    "--with --with-requirements --with-editable --python -p --extra --group --project --directory"
    " --env-file --index --index-url --package --refresh-package -n --name --rcfile --source --include"
    " --omit --data-file --from --spec -e --env --color --cache-dir --config-file --only-group --no-group"
    " --no-extra --link-mode --resolution"
)
_POSITIONAL = frozenset({"timeout", "taskset", "flock"})
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ash", "ksh"})
_VERSIONED = re.compile(r"(python|pypy|pip|pytest)-?\d+(?:\.\d+)*$")


@dataclass(frozen=True, slots=True)
class Simple:
    """One program a command runs.

    ``words`` are the program and its arguments, wrappers off; ``raw`` a verbatim slice of the tool call's command that
    holds it; ``times`` how often a loop runs it (2 where that is unknown); ``cwd`` the folder a ``cd`` before it chose.
    """

    words: tuple[str, ...]
    raw: str
    redirects: tuple[tuple[str, str], ...] = ()
    heredoc: str = ""
    before: str = ""
    cwd: str = ""
    times: int = 1

    @property
    def program(self) -> str:
        """The program's name without folder and version (``python3.12`` is ``python``)."""
        if not self.words:
            return ""
        name = posixpath.basename(self.words[0])
        versioned = _VERSIONED.match(name)
        return versioned.group(1) if versioned else name


def _loop_times(head: str) -> int:
    if found := _RANGE.search(head):
        return min(abs(int(found.group(2)) - int(found.group(1))) + 1, _MOST)
    if found := _SEQ.search(head):
        return min(max(int(found.group(2)) - int(found.group(1) or 1) + 1, 1), _MOST)
    if (marker := head.find(" in ")) >= 0:
        items = head[marker + 4 :].split()
        # A substitution or a glob gives a number of items that the text does not tell.
        return 2 if any(char in item for item in items for char in "$`*?") else max(1, min(len(items), _MOST))
    return 2


def _runner_rest(rest: list[str], subcommands: tuple[str, ...]) -> list[str] | None:
    """Return the command that a project runner (``uv run …``) starts, or None where it starts none."""
    at = 0
    if subcommands:
        while at < len(rest) and rest[at].startswith("-"):
            at += 2 if rest[at] in _RUNNER_VALUES else 1
        if at >= len(rest) or rest[at] not in subcommands:
            return None
        at += 1
    module = False
    while at < len(rest) and rest[at].startswith("-"):
        option = rest[at]
        at += 1
        if option == "--":
            break
        if option in ("-m", "--module"):
            module = True
            break
        if option in _RUNNER_VALUES:
            at += 1
    tail = rest[at:]
    return ["python", "-m", *tail] if module else tail


def _unwrap(found: list[str]) -> list[str]:
    """Take assignments and wrappers off the front of *found*."""
    for _ in range(12):
        while found and _ASSIGNMENT.match(found[0]):
            found = found[1:]
        if not found:
            return found
        name = posixpath.basename(found[0])
        if name == "command" and found[1:2] and found[1] in ("-v", "-V", "-pv", "-pV"):
            return found  # asks where a program is and runs none
        if name in _WRAPPERS:
            at = 1
            while at < len(found) and found[at].startswith("-"):
                at += 2 if found[at] in _WRAPPERS[name] else 1
            if name in _POSITIONAL:
                at += 1
            if name == "env":
                while at < len(found) and _ASSIGNMENT.match(found[at]):
                    at += 1
            if at >= len(found):
                return found
            found = found[at:]
        elif name in _RUNNERS:
            rest = _runner_rest(found[1:], _RUNNERS[name])
            if not rest:
                return found
            found = rest
        elif name.startswith("python") and found[1:4] == ["-m", "coverage", "run"]:
            rest = _runner_rest(found[3:], ("run",))
            if not rest:
                return found
            found = rest
        elif name == "find" and ("-exec" in found or "-execdir" in found):
            marker = found.index("-exec" if "-exec" in found else "-execdir")
            if marker + 1 >= len(found):
                return found
            found = [word for word in found[marker + 1 :] if word not in ("{}", ";", "+")]
        else:
            return found
    return found


def _script_of(found: list[str]) -> str | None:
    """Return the script of ``bash -c '…'`` (and ``eval …``), or None where *found* runs none."""
    if not found:
        return None
    name = posixpath.basename(found[0])
    if name == "eval":
        return " ".join(found[1:])
    if name in _SHELLS:
        for at, word in enumerate(found[1:], start=1):
            if word.startswith("-") and not word.startswith("--") and word.endswith("c") and at + 1 < len(found):
                return found[at + 1]
            if not word.startswith("-"):
                return None
    return None


def _join(cwd: str, folder: str) -> str:
    return posixpath.normpath(posixpath.join(cwd, folder)) if folder not in ("-", "") else ""


def _expand(pieces: tuple[Piece, ...], outer: str | None, cwd: str, times: int, depth: int) -> list[Simple]:
    out: list[Simple] = []
    loops: list[int] = []
    for piece in pieces:
        text = piece.text
        raw = text if outer is None else outer
        if loop := _LOOP.match(text):
            loops.append(_loop_times(loop.group("head")) if loop.group("kind") == "for" else 2)
            if loop.group("kind") in ("for", "select"):
                continue
        if text == "done" or text.startswith(("done ", "done<", "done>")):
            if loops:
                loops.pop()
            continue
        if keyword := _KEYWORDS.match(text):
            text = text[keyword.end() :]
            if (inner_loop := _LOOP.match(text)) and inner_loop.group("kind") == "for":
                loops.append(_loop_times(inner_loop.group("head")))
                continue
        if not text or text in _END:
            continue
        found, redirects = words(text)
        found = _unwrap(found)
        repeat = times
        for count in loops:
            repeat = min(repeat * count, _MOST)
        script = _script_of(found)
        if script is None and found and piece.heredoc and posixpath.basename(found[0]) in _SHELLS:
            script = piece.heredoc
        if script is not None and depth < 3:
            out.extend(_expand(split(script), raw, cwd, repeat, depth + 1))
            continue
        if found and found[0] in ("cd", "pushd") and len(found) > 1 and not piece.inner:
            cwd = _join(cwd, found[1])
        out.append(Simple(tuple(found), raw, tuple(redirects), piece.heredoc, piece.before, cwd, repeat))
    return out


@lru_cache(maxsize=2048)
def simple_commands(command: str) -> tuple[Simple, ...]:
    """Return every program that *command* runs, in order."""
    return tuple(_expand(split(command), None, "", 1, 0)[:PROGRAMS])
