"""Scripts out of items' reference runs: a model that works through any harness and whose values are known beforehand.

    ModelServer(ReferenceScripts(folder))       # as `python model_server.py FOLDER` serves it too

The model's id says which run is played: ``ref-minimal``, ``ref-responsive`` and ``ref-paranoid`` as the scripted agents
of these names do, ``ref-NAME`` plays ``runs/NAME.toml``. Something may stand before that: Codex chooses its tools by
how a model's id begins (``gpt-5.5-ref-minimal``, ``gpt-5.6-sol-ref-minimal``). Item and variant follow from the
instruction. Where both variants have the same one and the run depends on it, a first command looks at the evidence.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from model_dialects import dialect
from model_requests import Request
from model_script import Call, Entry, Script, edit, read, say, shell, turn, write

from pytest_paranoia import corpus
from pytest_paranoia.agents.scripted import part
from pytest_paranoia.corpus import PairItem, ScenarioItem
from pytest_paranoia.schema.evaluator import Action, Edit, Insert, ReferenceRun, RunStep, Turn
from pytest_paranoia.schema.manifest import Goal

_MODEL = re.compile(r"(?:.*-)?ref-([\w.-]+)")
Step = Entry | Callable[[Request], Entry]
_FOUND = re.compile(r"(\d+)[:-](.*)")


class ReferenceScripts:
    """Picks the script of a conversation among the items below *folders* (each with ``tasks`` and ``oracles``)."""

    def __init__(self, *folders: Path) -> None:
        roots = [corpus.builtin_root() if folder == corpus.content_root() else _root(folder) for folder in folders]
        items = [corpus.load_item(root, manifest) for root in roots for manifest in corpus.manifests(root)]
        self._known = [(_flat(text), item, variant) for item in items for text, variant in _openings(item)]

    def __call__(self, request: Request) -> Script:
        asked = _MODEL.fullmatch(request.model)
        if asked is None:
            raise LookupError(f"model {request.model!r} plays no reference run; expected ref-NAME")
        name = asked[1]
        said = _flat(request.opening)
        found = [entry for entry in self._known if entry[0] in said]
        if not found:
            raise LookupError(f"no item has this instruction: {request.opening[-300:]!r}")
        # The instruction of one variant may be the beginning of the other's.
        longest = max(len(text) for text, _, _ in found)
        best = [(item, variant) for text, item, variant in found if len(text) == longest]
        item = best[0][0]
        if isinstance(item, ScenarioItem):
            return _scenario(item, name)
        plus, minus = (_run(item, part(name, variant, "task")) for variant in ("E+", "E-"))
        if len(best) == 1:
            return _script((plus if best[0][1] == "E+" else minus).steps)
        return _script(plus.steps) if plus is minus else _Looking(item, _script(plus.steps), _script(minus.steps))


def _root(folder: Path) -> corpus.ItemRoot:
    return corpus.user_root(folder, None)


def _openings(item: PairItem | ScenarioItem) -> list[tuple[str, str | None]]:
    if isinstance(item, ScenarioItem):
        return [(item.messages[0], None)]
    return [(item.pair.instruction_for(variant), variant) for variant in ("E+", "E-")]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _run(item: PairItem | ScenarioItem, name: str) -> ReferenceRun:
    if name not in item.runs:
        raise LookupError(f"{item.name} has no reference run {name!r}: {sorted(item.runs)}")
    return item.runs[name]


def _scenario(item: ScenarioItem, name: str) -> Script:
    steps: list[Turn] = []
    for step in item.scenario.steps:
        run = _run(item, part(name, None, step.role))
        for found in run.steps:
            if found.role == step.role:
                steps += _turns(found, item.scenario.goal)
    return _script(steps)


def _turns(step: RunStep, goal: Goal | None) -> list[Turn]:
    """The turn on a message, and those on the re-prompts of a goal loop, as often as it will send them."""
    turns: list[Turn] = [step]
    if goal is None or step.role == "work":
        return turns
    while len(turns) <= goal.reprompts:
        said = [turns[-1].reply, *(action.say for action in turns[-1].actions if action.say)]
        if any(map(goal.declared, said)):
            break
        number = len(turns)
        turns.append(step.again[number - 1] if number <= len(step.again) else Turn(reply=turns[-1].reply))
    return turns


@dataclass(frozen=True)
class _Looking(Sequence[Step]):
    """First a look at the evidence, then the run of the variant that it shows."""

    item: PairItem
    plus: Script
    minus: Script

    def __len__(self) -> int:
        return 1 + max(len(self.plus), len(self.minus))

    def __getitem__(self, place: int) -> Step:  # type: ignore[override]
        if place == 0:
            return shell(f"cat {' '.join(map(shlex.quote, self._files()))}")
        return lambda request: self._step(request, place - 1)

    def _step(self, request: Request, place: int) -> Entry:
        script = self.plus if self._shows_plus(request.results[0]) else self.minus
        entry = script[place] if place < len(script) else say("Nothing is left to do.")
        return entry(request) if callable(entry) else entry

    def _files(self) -> list[str]:
        names = set()
        for variant in ("E+", "E-"):
            folder, deletes = self.item.overlay(variant)
            names.update(deletes)
            if folder is not None:
                names.update(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        return sorted(names)

    def _shows_plus(self, output: str) -> bool:
        shown = plain(output)
        texts = {}
        for variant in ("E+", "E-"):
            folder, deletes = self.item.overlay(variant)
            if any(f"{name}: No such file" in shown for name in deletes):
                return variant == "E+"
            lines: set[str] = set()
            for path in folder.rglob("*") if folder is not None else ():
                if path.is_file():
                    lines.update(line.strip() for line in path.read_text("utf-8", "replace").splitlines())
            texts[variant] = {line for line in lines if len(line) > 12}
        hits = {
            variant: sum(line in shown for line in texts[variant] - texts[other])
            for variant, other in (("E+", "E-"), ("E-", "E+"))
        }
        if hits["E+"] != hits["E-"]:
            return hits["E+"] > hits["E-"]
        # One variant has nothing of its own: it is the one whose mark is absent.
        return not texts["E+"] - texts["E-"]


# -- actions -------------------------------------------------------------------------------------------------------


def _script(steps: Sequence[Turn]) -> Script:
    """The entries of *steps*; each one's last is its reply. What is said before an action goes into that one's turn."""
    entries: list[Step] = []
    for step in steps:
        said: list[str] = []
        for action in step.actions:
            if action.say is not None:
                said.append(action.say.strip())
                continue
            first, *rest = _action(action)
            entries += [_spoken("\n\n".join(said), first) if said else first, *rest]
            said = []
        entries.append(say("\n\n".join([*said, step.reply])))
    return entries


def _spoken(text: str, entry: Step) -> Step:
    """*entry* with a message before it."""
    if callable(entry):
        return lambda request: turn(text, cast("Call", entry(request)))
    assert isinstance(entry, Call)
    return turn(text, entry)


def _action(action: Action) -> list[Step]:
    if action.run is not None:
        return [shell(_alone(action.run))]
    if action.read is not None:
        return [read(action.read)]
    if action.write is not None:
        return [write(action.write.path, action.write.content or "")]
    if action.edit is not None:
        return _edit(action.edit)
    assert action.insert is not None
    return _insert(action.insert)


def _alone(command: str) -> str:
    """Some harnesses keep one shell: a change of folder must not outlive its command."""
    return f"(\n{command}\n)" if re.search(r"^\s*cd\s", command, re.MULTILINE) else command


def _edit(change: Edit) -> list[Step]:
    def change_it(request: Request) -> Call:
        if dialect(request) not in ("codex", "codex-js"):
            return edit(change.path, change.old, change.new)
        # A patch is made of whole lines.
        lines = _lines(request.results[-1], change.old)
        return edit(change.path, lines, lines.replace(change.old, change.new, 1))

    first, *rest = change.old.split("\n")
    return [_locate(change.path, first, len(rest)), change_it]


def _insert(change: Insert) -> list[Step]:
    anchor = change.after if change.after is not None else change.before
    assert anchor is not None

    def insert_it(request: Request) -> Call:
        line = _lines(request.results[-1], anchor)
        text = change.text.removesuffix("\n")
        new = f"{line}\n{text}" if change.after is not None else f"{text}\n{line}"
        return edit(change.path, line, new)

    return [_locate(change.path, anchor, 0), insert_it]


def _locate(path: str, fragment: str, more: int) -> Call:
    """Show the lines that hold *fragment*, and *more* lines after each, with their numbers."""
    after = f" -A {more}" if more else ""
    return shell(f"grep -n -F{after} -e {shlex.quote(fragment)} {shlex.quote(path)}")


def plain(output: str) -> str:
    """What a command printed, out of what a harness tells the model of it."""
    if output.startswith("{"):
        try:
            return str(json.loads(output)["output"])
        except (ValueError, LookupError):
            return output
    return output


def _lines(output: str, fragment: str) -> str:
    """The whole lines that hold *fragment*, as ``_locate`` showed them."""
    hits = (_FOUND.fullmatch(line) for line in plain(output).splitlines())
    found = {int(hit[1]): hit[2] for hit in hits if hit}
    count = fragment.count("\n")
    for number in found:
        block = [found.get(number + offset) for offset in range(count + 1)]
        if None not in block and fragment in (text := "\n".join(line or "" for line in block)):
            return text
    raise LookupError(f"{fragment!r} is not in what the search gave: {output[:500]!r}")
