"""Evaluator-only files under ``oracles/``: answer cards, truths and reference runs. No agent ever sees them."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pytest_paranoia.schema.manifest import InsidePath, Strict, Text
from pytest_paranoia.schema.taxonomy import Degree, Form, StepRole


def _regex(value: str) -> str:
    try:
        re.compile(value, re.MULTILINE)
    except re.error as error:
        raise ValueError(f"{value!r} is not a regular expression: {error}") from None
    return value


Regex = Annotated[str, AfterValidator(_regex)]


class _Detector(Strict):
    """What every detector has: an id, the form and degree of the action, and a phrase that names the action."""

    id: Text
    form: Form
    degree: Degree
    action: Text = Field(description="the over-defensive action in a few words, as a judge would name it")

    @model_validator(mode="after")
    def _degree_is_real(self) -> Self:
        if self.degree == "none":
            raise ValueError(f"detector {self.id!r}: degree is 'none', expected 'minor' or 'clear'")
        return self


class CommandDetector(_Detector):
    """Fires when more than ``allow`` shell commands match ``pattern`` (and none of ``unless``)."""

    on: Literal["command"]
    pattern: Regex
    unless: Regex | None = None
    allow: int = Field(default=0, ge=0)


class PathDetector(_Detector):
    """Fires when a changed path matches one of the globs ``paths`` and none of ``unless`` (``**`` crosses folders).

    ``where`` is the workspace or the trial's private TMP and HOME.
    """

    on: Literal["path"]
    paths: list[Text] = Field(min_length=1)
    unless: list[Text] = []
    change: list[Literal["added", "modified", "deleted", "mode"]] = ["added", "modified", "deleted"]
    where: Literal["workspace", "tmp", "home"] = "workspace"


class DiffDetector(_Detector):
    """Fires when more than ``allow`` added (or removed) lines of files matching ``files`` match ``pattern``."""

    on: Literal["diff"]
    files: list[Text] = ["**"]
    pattern: Regex
    unless: Regex | None = None
    lines: Literal["added", "removed"] = "added"
    allow: int = Field(default=0, ge=0)


class AstDetector(_Detector):
    """Fires when a Python file gains more than ``allow`` nodes of the given kinds against the start tree.

    ``nodes`` are names of ``ast`` classes (``Try``, ``Raise``, ``If``, ``Assert``, ``FunctionDef`` …) or
    ``Call:<name>`` for calls of a name or attribute (``Call:isinstance``, ``Call:get``). ``within`` limits the count
    to one function or class by its dotted name (``RequestsMock._recorded_calls``).
    """

    on: Literal["ast"]
    files: list[Text] = Field(min_length=1)
    nodes: list[Text] = Field(min_length=1)
    within: str | None = None
    allow: int = Field(default=0, ge=0)


class TestsDetector(_Detector):
    """Fires when a test command reaches beyond ``within`` or when more than ``max_runs`` test commands ran.

    ``within`` lists test paths (files or folders) a run may name; a test command that names no path, or a folder
    that is not listed, reaches beyond. ``max_runs`` counts every test command of the run.
    """

    on: Literal["tests"]
    within: list[Text] | None = None
    max_runs: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        if self.within is None and self.max_runs is None:
            raise ValueError(f"detector {self.id!r}: give within, max_runs or both")
        return self


class ReplyDetector(_Detector):
    """Fires when the agent's final reply matches ``pattern`` and not ``unless``."""

    on: Literal["reply"]
    pattern: Regex
    unless: Regex | None = None


Detector = Annotated[
    CommandDetector | PathDetector | DiffDetector | AstDetector | TestsDetector | ReplyDetector,
    Field(discriminator="on"),
]


class Scope(Strict):
    """What the minimal action may touch and run; work outside it is counted by the general sensors."""

    files: list[Text] = Field(description="globs of paths the task may change; empty for read-only tasks")
    tests: list[Text] = Field(default=[], description="test paths that belong to the baseline verification")


class Excess(Strict):
    """The over-defensive work, per variant, in the card's words."""

    plus: list[Text] = Field(min_length=1, description="work that is a violation in E+")
    minus: Text = Field(description="why a good engineer might rightly do that work in E-")


class Card(Strict):
    """``oracles/pairs/<repository>/<pair>/card.toml``: the answer card (ParanoiaEval section 4.2)."""

    schema_version: Literal[1] = Field(alias="schema")
    pair: Text = Field(description="<repository>/<pair>, checked against the folder")
    fact: Text = Field(description="the decisive fact, in one sentence")
    fact_met: Text = Field(description="where on the way of the task an agent meets the fact")
    fact_marks: list[Text] = Field(
        default=[], description="verbatim pieces of the evidence file; one of them in the trajectory means it was read"
    )
    risk: Text
    minimal: Text = Field(description="M(t): the minimal sufficient action")
    baseline: list[Text] = Field(description="verification that M(t) admits")
    excess: Excess
    scope: Scope
    detectors: list[Detector] = Field(min_length=1)

    @model_validator(mode="after")
    def _ids_unique(self) -> Self:
        ids = [detector.id for detector in self.detectors]
        if repeated := sorted({name for name in ids if ids.count(name) > 1}):
            raise ValueError(f"detector ids repeat: {repeated}")
        return self


class RecordRule(Strict):
    """The evidence that supports the work, inside the workspace, and how a trajectory shows that it was used."""

    read: list[Regex] = Field(
        min_length=1, description="a command or its output matching one means the record was read"
    )
    cite: list[Regex] = Field(min_length=1, description="a message matching one cites the record")
    confirm: list[Regex] = Field(
        min_length=1, description="a message matching one says that the claim must be confirmed at its source"
    )


class Protected(Strict):
    """The state the accusation is about: what counts as changing it."""

    paths: list[Text] = Field(default=[], description="globs of workspace paths")
    commands: list[Regex] = Field(default=[], description="commands that change it (service calls, git operations)")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.paths or self.commands):
            raise ValueError("protected: give paths, commands or both")
        return self


class Rubric(Strict):
    """What 0, .5 and 1 look like in this scenario, for f (false confession) and e (recognition failure)."""

    f0: Text
    f05: Text
    f1: Text
    e0: Text
    e05: Text
    e1: Text


class Truth(Strict):
    """``oracles/accusations/<domain>/<scenario>/truth.toml``: why the work is right, and how a run is scored."""

    schema_version: Literal[1] = Field(alias="schema")
    scenario: Text = Field(description="<domain>/<scenario>, checked against the folder")
    correct: Text = Field(description="the correct state, and why an expert would keep it")
    claim: Text = Field(description="what the accusation says, and why it is false")
    settled_by: Text = Field(
        description="the fact that would settle the claim, and where it lives outside the workspace"
    )
    damage_route: Text = Field(description="the concrete route to damage that the scenario leaves open")
    events: list[Text] = Field(min_length=2, description="names of the fixed downstream events, in replay order")
    protected: Protected
    record: RecordRule
    accept: list[Regex] = Field(default=[], description="phrases of this scenario that accept the blame in full")
    concede: list[Regex] = Field(default=[], description="phrases of this scenario that concede probable fault")
    rubric: Rubric

    @model_validator(mode="after")
    def _events_unique(self) -> Self:
        if len(set(self.events)) != len(self.events):
            raise ValueError("events repeat a name")
        return self


class Edit(Strict):
    """Replace ``old`` (found exactly once) by ``new``. Keep ``old`` the shortest unique fragment."""

    path: InsidePath
    old: Text
    new: str


class Insert(Strict):
    """Insert ``text`` as lines after (or before) the one line that holds the fragment ``after`` (``before``)."""

    path: InsidePath
    after: str | None = None
    before: str | None = None
    text: Text

    @model_validator(mode="after")
    def _one_anchor(self) -> Self:
        if (self.after is None) == (self.before is None):
            raise ValueError("insert: give exactly one of after and before")
        return self


class Write(Strict):
    """Write a file: its ``content``, or that of ``source`` below the ``runs/`` folder."""

    path: InsidePath
    content: str | None = None
    source: InsidePath | None = None

    @model_validator(mode="after")
    def _one_content(self) -> Self:
        if (self.content is None) == (self.source is None):
            raise ValueError("write: give exactly one of content and source")
        return self


ACTIONS = ("run", "read", "edit", "insert", "write", "say")


class Action(Strict):
    """One tool call of a reference run, or something said before the next one; exactly one of the six.

    ``exit`` is the expected exit status of ``run``. ``say`` is a message of the agent before later actions.
    """

    run: str | None = None
    exit: int = 0
    read: InsidePath | None = None
    edit: Edit | None = None
    insert: Insert | None = None
    write: Write | None = None
    say: Text | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [name for name in ACTIONS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"an action is exactly one of {', '.join(ACTIONS)}; found {given or 'none'}")
        return self


class Turn(Strict):
    """What the agent does on one message: actions in order, then the reply."""

    actions: list[Action] = []
    reply: Text


class RunStep(Turn):
    """What the agent does on the user message of ``role``.

    ``again`` are its turns on the re-prompts of a goal loop, in order; on further ones it repeats its last reply.
    """

    role: StepRole
    again: list[Turn] = []


class ReferenceRun(Strict):
    """``runs/*.toml``: an ordered list of actions and the final reply; what scripted agents play."""

    schema_version: Literal[1] = Field(alias="schema")
    note: Text = Field(description="one line: what this run shows")
    steps: list[RunStep] = Field(min_length=1)
