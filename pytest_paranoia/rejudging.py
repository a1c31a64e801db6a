"""``--paranoia-rejudge RUN``: the archived trials of a run judged again, into a new run directory, without agents."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_paranoia import fixtures
from pytest_paranoia.acting import STOPPING
from pytest_paranoia.agents.base import now
from pytest_paranoia.errors import InfrastructureError, ParanoiaError
from pytest_paranoia.judging import archive, chosen, places
from pytest_paranoia.judging.base import judge_case
from pytest_paranoia.judging.case import Unjudged
from pytest_paranoia.reporting import junit, status
from pytest_paranoia.reporting.text import foreign_lines, one_line
from pytest_paranoia.schema.record import JudgeInfo, Record
from pytest_paranoia.schema.verdict import Verdict
from pytest_paranoia.secrecy import Mask
from pytest_paranoia.session import LETTER, WORD
from pytest_paranoia.store import RunDirectory, RunManifest
from pytest_paranoia.store.directory import EVIDENCE
from pytest_paranoia.store.files import printable, write_atomic
from pytest_paranoia.workspaces.stage import scratch_folder

if TYPE_CHECKING:
    from pytest_paranoia.session import Paranoia

CHANGES_FILE = "rejudged.json"
LISTED = 30
_OF_JUDGE = ("judge.jsonl", "judge-wire")


class RejudgedItem(pytest.Item):
    """One archived trial under its own node id."""

    record: Record
    rejudging: Rejudging

    def setup(self) -> None:
        """Judge the trial again; what fails here is infrastructure, as in a run."""
        self.stash[fixtures.OUTCOME] = self.record
        with scratch_folder() as scratch:
            self.rejudging.judge(self, scratch)

    def runtest(self) -> None:
        """Pass or fail as the trial did: oracle and replay are those of the run."""
        record = self.stash[fixtures.OUTCOME]
        if record.status != "scored":
            pytest.skip(f"{record.status}: {record.reason}, as in the run that is judged again")
        if record.kind == "scenario":
            fixtures.scenario_body(record)
        else:
            fixtures.assert_pair(record, self.rejudging.strict)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Point at the item's manifest by its node id."""
        return self.path, None, self.name


class Rejudging:
    """Collects the trials of a run, judges each, and tells which verdicts changed."""

    def __init__(self, paranoia: Paranoia, run: RunDirectory) -> None:
        self._paranoia = paranoia
        self._config = paranoia.config
        self._old = run
        self._shelf: archive.Shelf | None = None

    @property
    def strict(self) -> bool:
        """Whether a violation fails its item."""
        return self._paranoia.settings.strict

    @property
    def run(self) -> RunDirectory:
        """The run that is judged again."""
        return self._old

    def manifest(self, now_: RunManifest) -> RunManifest:
        """Return the manifest of the new run: the old one's, with this session's judge, versions and options."""
        old = self._old.manifest
        options = {
            **old.options,
            **{name: now_.options[name] for name in ("judge", "judge_settings", "gates", "strict")},
        }
        kept = {"agents": old.agents, "environment": old.environment, "items": old.items}
        return now_.model_copy(update={**kept, "options": {**options, "rejudged": self._old.path.name}})

    @cached_property
    def unjudged(self) -> tuple[str, ...]:
        """The trials that the run planned and of which it holds no record that can be read. Raises StoreError."""
        recorded = {record.trial for record in self._old.records().records}
        return tuple(key for key in self._old.planned() or () if key not in recorded)

    def planned(self, keys: Sequence[str]) -> list[str]:
        """Return what the new run plans: *keys*, and where they are all of the old run's, what that one lacks as well.

        So a run that ended early does not pass for a whole one because it is judged again. Raises StoreError.
        """
        whole = {record.trial for record in self._old.records().records} <= set(keys)
        return [*keys, *(self.unjudged if whole else ())]

    def bring_along(self, run: RunDirectory) -> None:
        """Copy what belongs to the run and to no trial: what the variants of its pairs differ in."""
        if (self._old.path / EVIDENCE).is_dir():
            shutil.copytree(self._old.path / EVIDENCE, run.path / EVIDENCE, dirs_exist_ok=True)

    def refuse_strangers(self) -> None:
        """Raise ``pytest.UsageError`` where not one item of the run is here: nothing could be judged."""
        roots = self._paranoia.settings.roots
        records = self._old.records().records
        lacking = places.strangers(records, roots)
        if lacking and set(lacking) == {record.item for record in archive.judgeable(records)}:
            raise pytest.UsageError(
                f"--paranoia-rejudge: {self._old.path.name} is of items that are not in "
                f"{', '.join(root.label for root in roots)}: {places.named(lacking)}; name their folder with "
                "--paranoia-items"
            )

    # -- collection ----------------------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> object:
        """Take the run's trials for the items of this session."""
        if self._config.pluginmanager.has_plugin("dsession"):
            return None  # its workers collect
        items: list[pytest.Item] = [self._item(session, record) for record in self._selected()]
        hook = self._config.hook
        # As a collector would: the terminal counts what such reports hold.
        hook.pytest_collectreport(report=pytest.CollectReport(session.nodeid, "passed", None, [*items]))
        hook.pytest_collection_modifyitems(session=session, config=self._config, items=items)
        session.items = items
        hook.pytest_collection_finish(session=session)
        session.testscollected = len(items)
        return True

    def _selected(self) -> list[Record]:
        records = list(self._old.records().records)
        if self._config.args_source is not pytest.Config.ArgsSource.ARGS:
            return records
        wanted = [str(argument) for argument in self._config.option.file_or_dir]
        named = [record for record in records if any(record.nodeid.startswith(one) for one in wanted)]
        if not named:
            raise pytest.UsageError(
                f"--paranoia-rejudge: no trial of {self._old.path.name} has a node id that begins with "
                f"{' or '.join(wanted)}"
            )
        return named

    def _item(self, session: pytest.Session, record: Record) -> RejudgedItem:
        name = record.nodeid.rpartition("::")[2]
        item: RejudgedItem = RejudgedItem.from_parent(session, name=name, nodeid=record.nodeid)
        item.record, item.rejudging = record, self
        words = [record.agent.name, record.item, record.treatment, record.domain, record.variant]
        item.extra_keyword_matches |= {word for word in words if word}
        if record.variant is not None:
            item.extra_keyword_matches.add("Eplus" if record.variant == "E+" else "Eminus")
        return item

    # -- judging -------------------------------------------------------------------------------------------------------

    def judge(self, item: RejudgedItem, scratch: Path) -> None:
        """Judge the record of *item* and write the new one. Raises InfrastructureError, after it is written."""
        folder = self._old.trial_folder(item.record.trial)
        kept = {name: content for name, content in archive.artifacts(folder).items() if not name.startswith(_OF_JUDGE)}
        if item.record not in list(archive.judgeable([item.record])):
            self._write(item, item.record, archive.artifacts(folder))
            return
        try:
            record, made = self._judged(item.record, scratch)
        except ParanoiaError as error:
            self._write(item, _unscored(item.record, error, self._judge_info), {**kept, **_made(error)})
            raise
        self._write(item, record, {**kept, **made})

    @property
    def _judge_info(self) -> JudgeInfo:
        judge = self._paranoia.settings.judge
        return JudgeInfo(name=judge.name, version=judge.version)

    def _judged(self, record: Record, scratch: Path) -> tuple[Record, dict[str, bytes]]:
        settings = self._paranoia.settings
        if self._shelf is None:
            self._shelf = archive.Shelf(settings.roots, self._paranoia.provider, self._paranoia.relay)
        case = self._shelf.case(self._old.path, record, scratch)
        started = time.monotonic()
        try:
            judgement = judge_case(settings.judge, case)
        except ParanoiaError:
            raise
        except Exception as error:
            raise InfrastructureError("judge-error", f"judge {settings.judge.name!r}: {error!r}") from error
        pair = isinstance(judgement.verdict, Verdict)
        update = {
            "status": "scored",
            "reason": None,
            "message": "",
            "verdict": judgement.verdict if pair else None,
            "accusation": None if pair else judgement.verdict,
            "judge": self._judge_info,
            "judging": judgement.judging,
            "sensors": dict(case.sensors),
            "finished": now(),
            "timing": record.timing.model_copy(update={"judge": round(time.monotonic() - started, 3)}),
        }
        return Record.model_validate(record.model_copy(update=update).model_dump(by_alias=True)), dict(
            judgement.artifacts
        )

    def _write(self, item: RejudgedItem, record: Record, artifacts: dict[str, bytes | Path]) -> None:
        judge = chosen.model_of(self._paranoia.settings.judge)
        mask = Mask(judge.provider if judge is not None else None)
        # The old run's own record is told apart by being the very same object.
        item.stash[fixtures.OUTCOME] = masked = mask.model(record)
        if self._paranoia.run is not None:
            self._paranoia.run.write_trial(masked, mask.files(artifacts))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put what reports need on the report, as plain strings."""
        report = yield
        if isinstance(item, RejudgedItem) and call.excinfo is not None:
            error = call.excinfo.value
            if isinstance(error, ParanoiaError):
                # Not by the item's repr_failure, which pytest asks for what fails in a call only. A traceback through
                # this package would bury what is wrong.
                text = f"{error.reason}: {error}" if isinstance(error, InfrastructureError) else str(error)
                report.longrepr = foreign_lines(text)
        record = item.stash.get(fixtures.OUTCOME, None)
        if isinstance(item, RejudgedItem) and record is not None and (call.when == "call" or report.failed):
            letter, word = status.word_and_letter(record)
            report.user_properties += [(WORD, word), (LETTER, letter), *junit.properties(record)]
            if record.reason in STOPPING and record is not item.record and not item.session.shouldstop:
                item.session.shouldstop = f"paranoia: {record.reason}: {one_line(record.message, 'utf-8')}"
        return report


def _unscored(record: Record, error: ParanoiaError, judge: JudgeInfo) -> Record:
    reason = error.reason if isinstance(error, InfrastructureError) else "source"
    update = {
        "status": "unscored",
        "reason": reason,
        "message": printable(str(error))[:4000],
        "verdict": None,
        "accusation": None,
        "judge": judge,
        "judging": error.judging if isinstance(error, Unjudged) else None,
        "finished": now(),
    }
    return record.model_copy(update=update)


def _made(error: ParanoiaError) -> dict[str, bytes]:
    return dict(error.artifacts) if isinstance(error, Unjudged) else {}


# -- what changed ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Changed:
    """One trial whose verdict is another now. ``decided``: V, f or e changed, or whether there is a verdict at all."""

    trial: str
    before: str
    after: str
    decided: bool


def changes(before: Sequence[Record], after: Sequence[Record]) -> tuple[list[Changed], int]:
    """Return the trials whose verdicts differ, and how many trials both have."""
    old = {record.trial: record for record in before}
    both = [(old[record.trial], record) for record in after if record.trial in old]
    found = [
        Changed(now_.trial, _word(was), _word(now_), _decision(was) != _decision(now_))
        for was, now_ in both
        if _word(was) != _word(now_)
    ]
    return found, len(both)


def _word(record: Record) -> str:
    if record.verdict is not None:
        degree = f" ({record.verdict.degree})" if record.verdict.degree != "none" else ""
        return f"{record.verdict.kind}{degree}"
    if (label := record.accusation) is not None:
        return f"f={label.false_confession:g} e={label.recognition_failure:g}"
    return f"{record.status} ({record.reason})"


def _decision(record: Record) -> object:
    if record.verdict is not None:
        return record.verdict.violation
    if (label := record.accusation) is not None:
        return (label.false_confession, label.recognition_failure)
    return record.status


class Changes:
    """Of the controller: says at the end which verdicts changed, in the terminal and in ``rejudged.json``."""

    def __init__(self, rejudging: Rejudging, paranoia: Paranoia) -> None:
        self._rejudging = rejudging
        self._old = rejudging.run
        self._paranoia = paranoia
        self._found: list[Changed] = []
        self._both = 0
        self._problem: str | None = None

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Compare from disk, once the workers are down."""
        result = yield
        run = self._paranoia.run
        if run is not None and run.path.is_dir():
            self._found, self._both = changes(self._old.records().records, run.records().records)
            data = {
                "rejudged": self._old.path.name,
                "judge_before": self._judge(self._old),
                "judge_after": self._judge(run),
                "trials": self._both,
                "changed": [vars(one) for one in self._found],
                "unjudged": list(self._rejudging.unjudged),
            }
            try:
                write_atomic(run.path / CHANGES_FILE, json.dumps(data, indent=1, ensure_ascii=True).encode() + b"\n")
            except ParanoiaError as error:
                self._problem = str(error)
        return result

    @staticmethod
    def _judge(run: RunDirectory) -> str | None:
        judge = run.manifest.judge
        return f"{judge.name} {judge.version}" if judge else None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table."""
        if not self._both or terminalreporter.no_summary:
            return
        decided = sum(one.decided for one in self._found)
        terminalreporter.section("judged again", sep="=")
        line = terminalreporter.write_line
        line(f"{self._old.path.name}: {self._judge(self._old)} before")
        if lacking := len(self._rejudging.unjudged):
            line(f"{self._old.path.name} has no record of {lacking} of the trials that it planned", yellow=True)
        for problem in self._old.records().problems:
            where = problem.path.relative_to(self._old.path)
            line(one_line(f"{self._old.path.name}: {where}: {problem.reason}", "utf-8"), yellow=True)
        line(f"verdicts that changed: {len(self._found)} of {self._both}; decisions (V, f, e) that changed: {decided}")
        width = max((len(one.trial) for one in self._found[:LISTED]), default=0)
        for one in self._found[:LISTED]:
            line(f"  {one_line(one.trial, 'utf-8'):<{width}}  {one.before} -> {one.after}", yellow=one.decided)
        if (more := len(self._found) - LISTED) > 0:
            line(f"  ... and {more} more, in {CHANGES_FILE}")
        if self._problem is not None:
            line(f"paranoia: {CHANGES_FILE} is not on disk: {self._problem}", red=True)
