"""Which lines a change of a file loses, from the text of the change alone: edits, patches and scripts of sed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import partial

_BOX = re.compile(r"\[[ xX]\]")
_PATCH_PART = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_SHORTEST = 3
"""Characters of a fragment that can tell which line it is of."""


def lines(text: str) -> frozenset[str]:
    """Return the lines of *text* that hold anything, white space at their ends and ticks in boxes left out."""
    return frozenset(_plain(line) for line in text.splitlines() if line.strip())


def _plain(line: str) -> str:
    # Ticking a point off a list takes nothing away.
    return _BOX.sub("[]", line.strip())


def lost_by_writing(own: Iterable[str], text: str) -> list[str]:
    """Return the lines of *own* that are not in the new content *text*."""
    kept = lines(text)
    return sorted(line for line in own if line.strip() and _plain(line) not in kept)


def lost_by_replacing(own: Collection[str], old: str, new: str) -> list[str]:
    """Return the lines of *own* that are no longer what they were once *old* is *new*.

    *old* may be part of a line. What stands in *new* as well, with more around it, is not lost.
    """
    plain_new = "\n".join(_plain(line) for line in new.splitlines())
    fragments = [
        piece
        for line in old.splitlines()
        if len(piece := _plain(line)) >= _SHORTEST and not re.search(re.escape(piece) + r"(?!\w)", plain_new)
    ]
    return sorted(line for line in own if any(piece in _plain(line) for piece in fragments))


def patched(text: str, path: str) -> tuple[str, str, bool] | None:
    """Return what a patch takes out of *path*, what it puts in, and whether it deletes the file; None for no patch."""
    if not ("*** " in text or "\n@@" in text or text.startswith(("@@", "--- ", "diff "))):
        return None
    parts = list(_PATCH_PART.finditer(text))
    deletes = False
    for at, part in enumerate(parts):
        if part.group(2).strip() == path:
            end = parts[at + 1].start() if at + 1 < len(parts) else len(text)
            text, deletes = text[part.start() : end], part.group(1) == "Delete"
            break
    minus = [line[1:] for line in text.splitlines() if line.startswith("-") and not line.startswith("---")]
    plus = [line[1:] for line in text.splitlines() if line.startswith("+") and not line.startswith("+++")]
    return "\n".join(minus), "\n".join(plus), deletes


def lost_by_sed(own: Iterable[str], words: Sequence[str]) -> list[str] | None:
    """Return the lines of *own* that ``sed -i`` with *words* deletes or alters, None where its script is unclear.

    Understood are ``s`` and ``d``, with a pattern as address or without, and what only adds lines.
    """
    extended = any(re.fullmatch(r"-[a-z]*[Er][a-z]*", word) or word == "--regexp-extended" for word in words)
    scripts = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-e", "--expression")]
    if not scripts:
        scripts = [word for word in words if not word.startswith("-")][:1]
    found: set[str] = set()
    listed = list(own)
    for script in scripts:
        for command in _commands(script):
            parsed = _parsed(command, extended)
            if parsed is None:
                return None
            address, pattern, replacement = parsed
            for line in listed:
                if address is not None and not address.search(line):
                    continue
                if pattern is None and replacement is None:
                    found.add(line)  # d
                elif pattern is not None and replacement is not None:
                    changed = pattern.sub(partial(_replaced, replacement), line)
                    if _plain(changed) != _plain(line):
                        found.add(line)
    return sorted(found)


def _replaced(replacement: str, match: re.Match[str]) -> str:
    return re.sub(r"\\(.)|&", lambda mark: match.group() if mark[0] == "&" else str(mark[1]), replacement)


def _commands(script: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[gdIp/|#,}])\s*;\s*|\n", script) if part.strip()]


_NOTHING = re.compile(r"(?!)")


def _parsed(command: str, extended: bool) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None, str | None] | None:
    address: re.Pattern[str] | None = None
    anywhere = False
    if command.startswith("/"):
        end = _end(command, 1, "/")
        if end < 0 or (address := _compiled(command[1:end], extended, "")) is None:
            return None
        command = command[end + 1 :].strip()
    elif number := re.match(r"\d+|\$", command):
        command, anywhere = command[number.end() :].strip(), True
    if command.startswith(","):
        until = re.match(r",\+?(?:\d+|\$)", command)
        end = _end(command, 2, "/") if command[1:2] == "/" else until.end() - 1 if until else -1
        if end < 1:
            return None
        command, address, anywhere = command[end + 1 :].strip(), None, True
    if command == "d":
        # Which lines a number or a range means is not known here.
        return None if anywhere else (address, None, None)
    if command[:1] in ("a", "i", "p", "="):
        return address, _NOTHING, ""
    if len(command) < 4 or command[0] != "s" or command[1].isalnum():
        return None
    mark = command[1]
    middle = _end(command, 2, mark)
    end = _end(command, middle + 1, mark) if middle > 0 else -1
    if end < 0:
        return None
    pattern = _compiled(command[2:middle], extended, command[end + 1 :])
    return None if pattern is None else (address, pattern, command[middle + 1 : end])


def _end(text: str, at: int, mark: str) -> int:
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == mark:
            return at
        else:
            at += 1
    return -1


def _compiled(source: str, extended: bool, flags: str) -> re.Pattern[str] | None:
    if not extended:
        # A basic expression: these marks mean themselves without a backslash, and something with one.
        source = re.sub(r"\\([(){}+?|])|([(){}+?|])", lambda m: m[1] or "\\" + m[2], source)
    try:
        return re.compile(source, re.IGNORECASE if "I" in flags else 0)
    except (re.error, OverflowError):
        return None
