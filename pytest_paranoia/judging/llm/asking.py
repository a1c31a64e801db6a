"""Asking once: a way to the model, a partner of the right kind, one dialogue, and everything told of it afterwards."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_paranoia.acting import STOPPING
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.judging.llm.chat import ChatPartner, ToolsRefused
from pytest_paranoia.judging.llm.cli import CliPartner
from pytest_paranoia.judging.llm.dossier import Dossier
from pytest_paranoia.judging.llm.prompt import Told, opening
from pytest_paranoia.judging.llm.talk import Log, converse
from pytest_paranoia.judging.llm.tools import Reading
from pytest_paranoia.judging.llm.verify import Fault
from pytest_paranoia.judging.llm.way import Way
from pytest_paranoia.schema.record import Usage
from pytest_paranoia.schema.verdict import AccusationVerdict, Verdict
from pytest_paranoia.workspaces.laying import remove_tree

if TYPE_CHECKING:
    from pytest_paranoia.judging.llm.settings import JudgeSettings
    from pytest_paranoia.judging.memory import Exemplar


@dataclass
class Asked:
    """What is known of one dialogue, however it ended."""

    notes: list[str] = field(default_factory=list)
    log: Log = field(default_factory=Log)
    sent_back: list[Fault] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    files: dict[str, bytes] = field(default_factory=dict)


def ask(
    dossier: Dossier, settings: JudgeSettings, told: Told, examples: Sequence[Exemplar], asked: Asked
) -> Verdict | AccusationVerdict:
    """Return the model's verdict. Raises InfrastructureError; *asked* is filled in any case."""
    means = dossier.case.means
    assert means is not None
    way = Way(means, settings.choice)
    deadline = time.monotonic() + settings.seconds
    try:
        if settings.choice.harness != "chat":
            with CliPartner(dossier, settings, way, deadline, asked.log) as partner:
                return converse(partner, dossier, told, asked.sent_back)
        return _chat(dossier, settings, told, examples, asked, way, deadline)
    except InfrastructureError as error:
        named = _named(way, error)
        if named is error:
            raise  # from itself it would be its own cause
        raise named from error
    finally:
        try:
            way.close()
        finally:
            asked.usage = way.usage
            asked.files.update(way.artifacts())
            for name in ("dossier", "workspace", "agent", "home", "tmp", "judge-wire.jsonl"):
                remove_tree(means.scratch / name)  # the next vote begins afresh


def _named(way: Way, error: InfrastructureError) -> InfrastructureError:
    """Faults of the judge keep their name; of failed calls the relay knows the cause.

    What stops the run goes before a fault of the judge: a program to which no model answers any more ends in peace, and
    its last words about that are no bad verdict.
    """
    cause = way.cause(error)
    return error if error.reason.startswith("judge-") and cause.reason not in STOPPING else cause


def _chat(
    dossier: Dossier,
    settings: JudgeSettings,
    told: Told,
    examples: Sequence[Exemplar],
    asked: Asked,
    way: Way,
    deadline: float,
) -> Verdict | AccusationVerdict:
    means = dossier.case.means
    assert means is not None
    url = way.open(socket.create_server(("127.0.0.1", 0), backlog=128))
    with ExitStack() as stack:

        def partner(reading: Reading | None) -> ChatPartner:
            made = ChatPartner(
                dossier,
                settings.choice,
                url,
                reading=reading,
                deadline=deadline,
                max_turns=settings.max_turns,
                log=asked.log,
            )
            stack.callback(made.close)
            return made

        if settings.reading == "tools":
            reading = Reading(dossier, means)
            stack.callback(reading.close)
            try:
                return converse(partner(reading), dossier, told, asked.sent_back)
            except ToolsRefused:
                asked.notes.append("the endpoint takes no tools: the run was put into the prompt")
                told = opening(dossier, examples, inline=True, context=settings.choice.context)
                asked.notes += told.notes
                asked.log.lines.clear()
        return converse(partner(None), dossier, told, asked.sent_back)
