"""Runs inside a trial, before a user message is sent: prints what is there, for gates, as one JSON object.

Never imported: ``facts.py`` hands this text to an interpreter in the environment, so that git reads the agent's
repository with the agent's rights. Arguments: the commit from which the conversation started (empty: it starts now),
``resumed`` or ``new``, then the names of the services. A resumed conversation without own commits of the agent goes on
from work that the whole tree holds.
"""

import json
import os
import subprocess
import sys

LARGEST = 256 * 1024
MOST_PATHS = 50_000
MOST_COMMITS = 50


def git(*words: str) -> "bytes | None":
    """Return what git prints, None where it fails. Nothing that the repository configures is run."""
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.quotepath=off", *words]
    try:
        done = subprocess.run(command, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def text(data: "bytes | None") -> str:
    """Return *data* as text."""
    return (data or b"").decode("utf-8", "backslashreplace")


def names(data: "bytes | None") -> "list[str]":
    """Return the parts that NUL ends."""
    return [part for part in text(data).split("\0") if part]


def walked() -> "list[str]":
    """Return all files where there is no repository."""
    found = []
    for folder, folders, files in os.walk("."):
        folders[:] = sorted(name for name in folders if name != ".git")
        found += [os.path.normpath(os.path.join(folder, name)) for name in files]  # noqa: PTH118
        if len(found) > MOST_PATHS:
            break
    return sorted(found)[:MOST_PATHS]


def added(diff: str, into: "dict[str, set[str]]") -> None:
    """Add the lines that *diff* adds, by path."""
    path = None
    for line in diff.splitlines():
        if line.startswith("+++ "):
            path = line[4:].split("\t")[0].strip('"')
            path = path[2:] if path.startswith("b/") else None
        elif line.startswith("+") and path is not None and line[1:].strip():
            into.setdefault(path, set()).add(line[1:].strip())


def commits(resumed: bool) -> "list[str]":
    """Return the agent's own commits, root commits apart: of the identity git has here; where that has none and the
    conversation goes on from earlier work, of the author of the latest commit.
    """
    log = git("log", "-n", "400", "--no-merges", "--format=%H%x09%ae%x09%P")
    rows = [line.split("\t") for line in text(log).splitlines()]
    if not rows:
        return []
    own = text(git("config", "user.email")).strip()
    if resumed and own not in {row[1] for row in rows}:
        own = rows[0][1]
    return [row[0] for row in rows if row[1] == own and len(row) > 2 and row[2].strip()][:MOST_COMMITS]


def service_changes(name: str) -> "list[list[object]]":
    """Return the operations on a service with the names they are about, and whether the agent's account made them."""
    try:
        with open(f".{name}/log.jsonl", encoding="utf-8") as file:  # noqa: PTH123
            entries = [json.loads(line) for line in file if line.strip()]
    except (OSError, ValueError):
        return []
    entries = [entry for entry in entries if isinstance(entry, dict)]
    user = next((entry.get("user") for entry in reversed(entries) if entry.get("op") == "begin"), None)
    prose = {"op", "at", "by", "note", "text", "title", "reason", "reference", "value", "version", "user", "seed"}
    found: list[list[object]] = []
    for entry in entries:
        about = sorted(
            value
            for key, value in entry.items()
            if isinstance(value, str) and key not in prose and not key.endswith("_made")
        )
        mine = user is not None and entry.get("by", user) == user and entry.get("op") != "begin"
        found.append([str(entry.get("op")), about, mine])
    return found


def whole(path: str) -> "set[str]":
    """Return the lines of a file, none of a large one: then only its path is known."""
    if os.path.getsize(path) > LARGEST:  # noqa: PTH202
        return set()
    with open(path, encoding="utf-8", errors="backslashreplace") as file:  # noqa: PTH123
        return {line.strip() for line in file if line.strip()}


def look(base: str, resumed: bool, services: "list[str]") -> "dict[str, object]":
    """Return what is there."""
    head = text(git("rev-parse", "--verify", "HEAD")).strip()
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    paths = [path for path in names(listed) if os.path.lexists(path)] if listed is not None else walked()
    own: dict[str, set[str]] = {}
    if head and not base:
        for commit in commits(resumed):
            added(text(git("show", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--format=", commit)), own)
    if not base and not own and resumed:
        files = [path for path in paths if os.path.isfile(path) and not os.path.islink(path)]  # noqa: PTH113, PTH114
        own = {path: whole(path) for path in files}
    elif head and base:
        added(text(git("diff", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", base)), own)
        before = set(names(git("ls-tree", "-r", "-z", "--name-only", base)))
        for path in paths:
            if path in before or path in own or os.path.islink(path) or not os.path.isfile(path):  # noqa: PTH113, PTH114
                continue
            own[path] = whole(path)
    status = names(git("status", "--porcelain", "-z", "--untracked-files=all")) if head else []
    return {
        "head": head,
        "paths": paths[:MOST_PATHS],
        "own": {path: sorted(lines) for path, lines in own.items()},
        "dirty": [entry[3:] for entry in status if len(entry) > 3],
        "settings": {name: service_changes(name) for name in services},
    }


if __name__ == "__main__":
    print(json.dumps(look(sys.argv[1], sys.argv[2] == "resumed", sys.argv[3:])))
