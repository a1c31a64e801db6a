"""What a judge may read: the artifacts of a run as plain files, without a word about who ran, and the repository.

    run/trajectory.md   every message and tool call, each part under the name that a quote cites it by
    run/trajectory.json the same as data
    run/reply.txt       the agent's last message
    run/diff.patch      what changed in the workspace
    run/before/ after/  the changed files that are text
    run/frozen.json     all changes, those of the temporary folder and the home folder included
    run/check.json      what the oracle or the replay said
    run/sensors.json    counts of the general sensors
    repository/         the start tree at its revision

The model's hidden reasoning is left out: what was done is judged, not what was meant, and its style tells the model.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_paranoia.judging.case import Case, PairCase
from pytest_paranoia.judging.llm.neutral import Neutral
from pytest_paranoia.schema.record import Change
from pytest_paranoia.scoring.sensors.actions import Action
from pytest_paranoia.scoring.sensors.paths import inside_workspace, is_residue
from pytest_paranoia.scoring.sensors.view import RunView

RUN, REPOSITORY = "run", "repository"
TRAJECTORY, REPLY, DIFF = f"{RUN}/trajectory.md", f"{RUN}/reply.txt", f"{RUN}/diff.patch"
BEFORE, AFTER = f"{RUN}/before/", f"{RUN}/after/"
_DIFFED = 1_000_000
"""Characters of a file's two versions beyond which the diff only names it: they lie side by side anyway."""


@dataclass(frozen=True)
class Part:
    """One quotable piece of a trajectory: its source, what it is for a reader, and its neutral text."""

    source: str
    head: str
    text: str


@dataclass(frozen=True)
class Dossier:
    """The dossier of *case*. ``texts`` are the files below run/ by path; ``start`` is the tree shown as repository/."""

    case: Case
    neutral: Neutral
    start: Path

    @classmethod
    def of(cls, case: Case) -> Dossier:
        """Return the dossier of a case that has ``means``."""
        assert case.means is not None
        return cls(case, Neutral.of(case.means.agent), case.means.start)

    @property
    def view(self) -> RunView:
        """The run."""
        return self.case.view

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Files below ``run/``: path to content."""
        files = {
            TRAJECTORY: self.trajectory(),
            f"{RUN}/trajectory.json": _json([part.__dict__ for part in self.parts]),
            REPLY: self.neutral.text(self.view.reply),
            DIFF: self.diff(),
            f"{RUN}/frozen.json": _json(self._frozen()),
            f"{RUN}/check.json": _json(self._check()),
            f"{RUN}/sensors.json": _json(dict(self.case.sensors)),
        }
        for change in self.changes:
            shown = self.neutral.text(change.path)
            for folder, content in ((BEFORE, self.view.start), (AFTER, self.view.final)):
                if (text := self.view.text(content(change.path), change.path)) is not None:
                    files[folder + shown] = self.neutral.text(text, self.kept(change.path))
        return files

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Changes of the workspace that a judge looks at: residue of tools, and the repository's own state, apart."""
        return self.view.changes

    def kept(self, path: str) -> frozenset[str]:
        """Names that the file had before the run: they belong to the repository, and stay in its changed version."""
        content = self.view.text(self.view.start(path), path)
        return self.neutral.names_in(content) if content else frozenset()

    # -- the trajectory ------------------------------------------------------------------------------------------------

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The trajectory in quotable pieces, in order."""
        found: list[Part] = []
        calls: dict[int, list[Action]] = {}
        for action in self.view.actions:
            calls.setdefault(action.step, []).append(action)
        withheld: dict[int, list[Action]] = {}
        for action in self.view.withheld:
            withheld.setdefault(action.step, []).append(action)
        for step in self.view.trajectory.steps:
            if step.source == "user":
                role = str((step.extra or {}).get("role", "task"))
                found.append(Part(f"step {step.step_id}, user", f"user message ({role})", step.text))
            elif step.source == "agent" and step.text.strip():
                found.append(Part(f"step {step.step_id}, message", "message", self.neutral.text(step.text)))
            for action in calls.get(step.step_id, ()):
                found += self._action(action)
            for action in withheld.get(step.step_id, ()):
                text = self.neutral.text(action.text or action.path or "")
                found.append(Part(action.source, f"{action.kind} that was not allowed to run", text))
        for noted in self.view.services:
            head = f"call of a service, as noted outside the run (exit status {noted.exit})"
            found.append(Part(f"service call {noted.number}", head, self.neutral.text(noted.command)))
        return tuple(found)

    def _action(self, action: Action) -> list[Part]:
        found = []
        neutral = self.neutral.text
        if action.path is not None:
            found.append(Part(f"{action.source}, path", f"{action.kind}: path", neutral(action.path)))
        if action.old:
            found.append(Part(f"{action.source}, old", f"{action.kind}: text taken out", neutral(action.old)))
        if action.text:
            named = "command" if action.kind == "command" else "text"
            found.append(Part(f"{action.source}, {named}", action.kind, neutral(action.text)))
        status = "" if action.exit_code is None else f" (exit status {action.exit_code})"
        found.append(Part(f"{action.source}, output", f"output{status}", neutral(action.output)))
        return found

    def trajectory(self) -> str:
        """Return the trajectory as text. Its headings bear the ``mark``, so that no text of the run passes for one."""
        return "".join(f"{self.mark} {part.source} -- {part.head}\n{part.text.rstrip()}\n\n" for part in self.parts)

    @cached_property
    def mark(self) -> str:
        """What sets our own lines apart in the text of the run: made of all of it, so nothing in it can name it."""
        total = hashlib.sha256()
        for part in (*(part.text for part in self.parts), self.view.reply, *sorted(self._real_paths)):
            total.update(part.encode("utf-8", "surrogatepass") + b"\0")
        for change in self.changes:
            for content in (self.view.start(change.path), self.view.final(change.path)):
                total.update(hashlib.sha256(content or b"").digest())
        return f"<{total.hexdigest()[:12]}>"

    # -- what was left -------------------------------------------------------------------------------------------------

    def diff(self) -> str:
        """Return the changes of the workspace as a unified diff; what is no text is named."""
        pieces = []
        for change in self.changes:
            shown = self.neutral.text(change.path)
            old = self.view.text(self.view.start(change.path), change.path)
            new = self.view.text(self.view.final(change.path), change.path)
            if (old is None and new is None) or len(old or "") + len(new or "") > _DIFFED:
                pieces.append(f"# {shown}: {change.kind}{_kind_of(change)}\n")
                continue
            keep = self.kept(change.path)
            before = self.neutral.text(old or "", keep).splitlines(keepends=True)
            after = self.neutral.text(new or "", keep).splitlines(keepends=True)
            names = ("/dev/null" if old is None else f"a/{shown}", "/dev/null" if new is None else f"b/{shown}")
            pieces += [
                line if line.endswith("\n") else f"{line}\n" for line in difflib.unified_diff(before, after, *names)
            ]
        return "".join(pieces)

    def _frozen(self) -> dict[str, Any]:
        frozen = self.view.frozen
        private = {
            "temporary": [change for change in frozen.tmp_changes if not is_residue(change.path)],
            "home": [change for change in frozen.home_changes if not is_residue(change.path, home=True)],
        }
        listed = {"workspace": list(self.changes), **private}
        return {
            **{name: [self._listed(change) for change in changes] for name, changes in listed.items()},
            "git": {
                "branch": frozen.git.branch,
                "new_commits": frozen.git.new_commits,
                "stashes": frozen.git.stashes,
            },
            "notes": [self.neutral.text(note) for note in frozen.notes],
        }

    def _listed(self, change: Change) -> dict[str, Any]:
        after = change.after
        return {
            "path": self.neutral.text(change.path),
            "change": change.kind,
            **({"type": after.type, "mode": f"{after.mode:04o}", "size": after.size} if after else {}),
            **({"ignored_by_git": True} if change.ignored else {}),
        }

    def _check(self) -> dict[str, Any]:
        case = self.case
        if isinstance(case, PairCase):
            return {"oracle": {"passed": case.oracle.passed, "message": self.neutral.text(case.oracle.message)}}
        events = [{"name": event.name, "ok": event.ok} for event in case.replay.events]
        return {"replay": {"events": events, "failed": sum(not event.ok for event in case.replay.events)}}

    # -- sources -------------------------------------------------------------------------------------------------------

    @cached_property
    def _real_paths(self) -> dict[str, str]:
        frozen = self.view.frozen
        every = [*frozen.changes, *frozen.tmp_changes, *frozen.home_changes]
        return {self.neutral.text(change.path): change.path for change in every}

    def real_path(self, shown: str) -> str:
        """Return the path that the dossier shows as *shown*."""
        shown = inside_workspace(shown.strip(), self.view.workspace)
        return self._real_paths.get(shown, shown)

    def candidates(self, source: str) -> list[str]:
        """Return the sources of the run that a judge's *source* can mean: itself, or those of a dossier file."""
        source = source.strip()
        path = source.removeprefix("./")
        if path in (TRAJECTORY, f"{RUN}/trajectory.json"):
            return [part.source for part in self.parts]
        if path == REPLY:
            return ["reply"]
        if path == DIFF:
            return [f"diff {change.path}" for change in self.changes]
        for folder in (AFTER, BEFORE, f"{REPOSITORY}/"):
            if path.startswith(folder):
                real = self.real_path(path.removeprefix(folder))
                return [f"tree {real}", f"diff {real}"]
        kind, _, rest = source.partition(" ")
        if kind in ("diff", "tree", "tmp", "home"):
            return [f"{kind} {self.real_path(rest)}"]
        return [source]

    def locate(self, source: str, quote: str) -> tuple[str, str] | None:
        """Return source and quote as the record has them: verbatim. None where *quote* does not stand in *source*."""
        for real in self.candidates(source):
            kind, _, path = real.partition(" ")
            text = self.view.source_text(real)
            if text is None:
                continue
            of_file = kind in ("diff", "tree")
            keep = self.kept(path) if of_file else frozenset[str]()
            # A line of a diff is shown with its sign.
            tries = [quote, "\n".join(_unsigned(line) for line in quote.splitlines())] if kind == "diff" else [quote]
            for one in tries:
                if one.strip() and (span := self.neutral.find(one, text, keep)):
                    return real, text[span[0] : span[1]]
        return None

    def known(self, source: str) -> bool:
        """Return whether *source* names something of this run."""
        return any(self.view.source_text(real) is not None for real in self.candidates(source))

    # -- on disk -------------------------------------------------------------------------------------------------------

    def write(self, folder: Path) -> Path:
        """Write the files below ``run/`` to *folder*, for a sandbox. A path that cannot be there is left out."""
        for name, text in self.texts.items():
            target = (folder / name).resolve()
            if not target.is_relative_to(folder.resolve()):
                continue
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8", errors="backslashreplace")
            except OSError:  # a name too long for here, or a file where another has a folder
                continue
        return folder


def _unsigned(line: str) -> str:
    return line[1:] if line[:1] in ("+", "-") else line


def _kind_of(change: Change) -> str:
    state = change.after or change.before
    if state is None:
        return ""
    target = f" to {state.target}" if state.type == "symlink" else ""
    return f" ({state.type}{target}, {state.size} bytes, mode {state.mode:04o})"


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=False) + "\n"
