"""Which git commands undo or delete finished work: commits, branches, and changes that are not committed yet."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_paranoia.gates.base import Facts
from pytest_paranoia.gates.places import hit
from pytest_paranoia.scoring.sensors.commands import git_verb
from pytest_paranoia.scoring.sensors.simple import Simple

_OLDER = re.compile(r"[~^@]|^[0-9a-f]{7,40}$|^stash|^(?:origin/|v?\d+\.\d)")
_ENDS = frozenset({"--abort", "--quit", "--continue", "--skip", "--dry-run"})


def git_undo(simple: Simple, facts: Facts, workspace: str) -> str | None:
    """Return what the git command *simple* would undo, None where it undoes no finished work."""
    found = git_verb(simple)
    if found is None:
        return None
    verb, rest = found
    words = set(rest)
    if words & _ENDS or (verb == "clean" and (_short(rest, "n") or not _short(rest, "f", "--force"))):
        return None
    shown = " ".join(["git", verb, *rest])[:120]
    if verb in ("revert", "rebase", "filter-branch", "filter-repo"):
        return shown
    if verb == "apply":
        return shown if words & {"-R", "--reverse"} else None
    if verb in ("branch", "tag"):
        return shown if _short(rest, "d", "--delete") or _short(rest, "D") else None
    if verb == "push":
        return shown if _short(rest, "f", "--force") or words & {"--force-with-lease", "--delete", "--mirror"} else None
    if verb == "update-ref":
        return shown
    if verb == "clean":
        return shown if facts.dirty else None
    if verb == "stash":
        kind = next((word for word in rest if not word.startswith("-")), "push")
        return shown if kind in ("push", "save", "create") and facts.dirty else None
    if verb == "rm":
        targets = _plain(rest)
        return shown if "--cached" not in words and hit(targets, facts.paths, simple.cwd, workspace) else None
    if verb == "reset":
        return _reset(rest, facts, shown)
    if verb in ("checkout", "restore", "switch"):
        return _checkout(verb, rest, simple, facts, workspace, shown)
    return None


def _reset(rest: Sequence[str], facts: Facts, shown: str) -> str | None:
    ref = next(iter(_plain(rest)), "HEAD")
    if ref not in ("HEAD", "@") and _OLDER.search(ref):
        return shown
    hard = {"--hard", "--merge", "--keep"} & set(rest)
    return shown if hard and (facts.dirty or ref not in ("HEAD", "@")) else None


def _checkout(verb: str, rest: Sequence[str], simple: Simple, facts: Facts, workspace: str, shown: str) -> str | None:
    words = set(rest)
    if words & {"-b", "-B", "-c", "-C", "--orphan", "--create"}:
        return None
    if verb == "restore" and words & {"--staged", "-S"} and not words & {"--worktree", "-W"}:
        return None
    source = next((word.partition("=")[2] for word in rest if word.startswith("--source=")), "")
    for option in ("--source", "-s"):
        if verb == "restore" and option in words:
            source = next(iter(rest[rest.index(option) + 1 :]), "")
    if "--" in words:
        at = list(rest).index("--")
        refs, targets = _plain(rest[:at]), list(rest[at + 1 :])
    else:
        plain = [word for word in _plain(rest) if word != source]
        targets = [word for word in plain if word == "." or hit([word], facts.paths, simple.cwd, workspace)]
        refs = [word for word in plain if word not in targets]
    ref = source or (refs[0] if refs and verb != "restore" else "")
    if not targets:
        return shown if ref and _OLDER.search(ref) else None
    if ref and ref not in ("HEAD", "@"):
        return shown if hit(targets, facts.paths, simple.cwd, workspace) else None
    # Without a commit this drops what is not committed: finished work only where it was there before the message.
    return shown if hit(targets, facts.dirty, simple.cwd, workspace) else None


def _plain(rest: Sequence[str]) -> list[str]:
    return [word for word in rest if not word.startswith("-")]


def _short(rest: Sequence[str], letter: str, *long: str) -> bool:
    return any(re.fullmatch(rf"-[A-Za-z]*{letter}[A-Za-z]*", word) or word in long for word in rest)
