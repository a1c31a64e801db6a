"""The frozen changes as a unified diff."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from pytest_paranoia.schema.record import Change, FileState

DIFF_FILE_CAP = 256 * 1024
DIFF_TOTAL_CAP = 4 * 1024**2


def unified(changes: Sequence[Change], contents: dict[str, bytes]) -> str:
    """Return a unified diff; binary and large files by a line that says so, the whole capped, and that said too."""
    texts: dict[int, str] = {}
    total = 0
    # Changes to what was there at the start come first, so that new files cannot crowd them out.
    for position, change in sorted(enumerate(changes), key=lambda found: found[1].kind == "added"):
        if change.path.startswith(".git/"):
            continue
        text = _one(change, contents)
        total += len(text)
        if total > DIFF_TOTAL_CAP:
            texts[len(changes)] = f"(diff cut at {DIFF_TOTAL_CAP} characters)\n"
            break
        texts[position] = text
    return "".join(text for _, text in sorted(texts.items()))


def _one(change: Change, contents: dict[str, bytes]) -> str:
    if change.kind == "mode" and change.before and change.after:
        return f"mode of {change.path}: {change.before.mode:04o} -> {change.after.mode:04o}\n"
    old = "/dev/null" if change.before is None else f"a/{change.path}"
    new = "/dev/null" if change.after is None else f"b/{change.path}"
    before, after = _lines(change.before, contents), _lines(change.after, contents)
    if before is None or after is None:
        state = change.after or change.before
        size = state.size if state else 0
        return f"--- {old}\n+++ {new}\n(binary or too large for a diff, {size} bytes)\n"
    lines = difflib.unified_diff(before, after, old, new)
    text = "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)
    return text or f"--- {old}\n+++ {new}\n(empty)\n"


def _lines(state: FileState | None, contents: dict[str, bytes]) -> list[str] | None:
    if state is None:
        return []
    if state.type == "symlink":
        return [f"symbolic link to {state.target}\n"]
    if state.type != "file":
        return [f"{state.type}\n"]
    data = contents.get(state.sha256 or "")
    if state.binary or data is None or len(data) > DIFF_FILE_CAP:
        return None
    # Only a line feed ends a line: splitlines would also cut at form feeds and the like.
    lines = data.decode("utf-8", "backslashreplace").split("\n")
    return [line + "\n" for line in lines[:-1]] + [line for line in lines[-1:] if line]
