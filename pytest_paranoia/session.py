"""The session object: thin hooks of pytest into collection, store and reports; registered only when active."""

from __future__ import annotations

import gc
import hashlib
import json
import re
from collections.abc import Generator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_paranoia import canaries, collection, fixtures, options, registry, repeats, steady
from pytest_paranoia.acting import STOPPING, Conduct
from pytest_paranoia.collection import ParanoiaItem, TrialItem
from pytest_paranoia.corpus import PairItem
from pytest_paranoia.errors import InfrastructureError, ParanoiaError
from pytest_paranoia.harbor import collecting
from pytest_paranoia.harbor.items import HarborRoot
from pytest_paranoia.interventions.arms import combined
from pytest_paranoia.judging import chosen
from pytest_paranoia.options import Settings
from pytest_paranoia.reporting import junit, status
from pytest_paranoia.reporting.text import foreign_lines, one_line
from pytest_paranoia.schema.record import Record
from pytest_paranoia.store import RunDirectory, StoreError
from pytest_paranoia.store.files import printable
from pytest_paranoia.workspaces.spares import SPARES

if TYPE_CHECKING:
    from pytest_paranoia.environments.base import EnvironmentProvider
    from pytest_paranoia.rejudging import Rejudging
    from pytest_paranoia.trial import Trial

WORKER_KEY = "paranoia"
WORD, LETTER = "paranoia.verdict", "paranoia.letter"
_COLOURS = {"VIOLATION": {"red": True}, "excess": {"yellow": True}, "invalid": {"yellow": True}}


def activate(config: pytest.Config) -> None:
    """Parse the options and register what an active session needs. Raises ``pytest.UsageError``."""
    settings = options.parse(config)
    repeats.refuse(config)
    gc.unfreeze()  # the items of an earlier session in this process, if there was one (see pytest_collection)
    config.add_cleanup(SPARES.close)
    session = Paranoia(config, settings)
    session.refuse_unisolated()
    for name, text in collection.MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {text} (pytest-paranoia)")
    # A bad manifest must not keep the other items from running; the exit status still tells.
    config.option.continue_on_collection_errors = True
    _point_at_items(config, settings)
    config.pluginmanager.register(session, "paranoia-session")
    config.pluginmanager.register(fixtures, "paranoia-fixtures")
    if not hasattr(config, "workerinput"):
        from pytest_paranoia.controller import Controller

        config.pluginmanager.register(Controller(session), "paranoia-controller")
        _register_displays(config, session)
    if settings.rejudge is not None:
        from pytest_paranoia import rejudging

        session.rejudging = rejudging.Rejudging(session, RunDirectory.open(settings.rejudge))
        config.pluginmanager.register(session.rejudging, "paranoia-rejudging")
        if not hasattr(config, "workerinput"):
            session.rejudging.refuse_strangers()
            config.pluginmanager.register(rejudging.Changes(session.rejudging, session), "paranoia-changes")


def _register_displays(config: pytest.Config, session: Paranoia) -> None:
    """Register what else shows a session: what is still to be fetched, the live line, the page of pytest-html."""
    from pytest_paranoia.announcing import Announcement
    from pytest_paranoia.reporting import foreign, live

    config.pluginmanager.register(live.LiveLine(trial_key), "paranoia-live")
    config.pluginmanager.register(Announcement(config, session.settings), "paranoia-announcement")
    if (target := foreign.wanted(config)) is not None:
        config.pluginmanager.register(foreign.ForeignReport(session, target), "paranoia-html")


def _point_at_items(config: pytest.Config, settings: Settings) -> None:
    """Collect the items where no path was given; accept the node ids of items that lie elsewhere as they are shown."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = [str(root.tasks) for root in settings.roots]
        declared = (canaries.place(root) for root in settings.roots if settings.validate)
        config.args += [str(path) for path in declared if path.is_file()]
        return
    base = config.invocation_params.dir
    resolved = []
    for argument in config.args:
        path, separator, rest = argument.partition("::")
        if not (base / path).exists():
            for root in settings.roots:
                inside = path.removeprefix(root.prefix)
                tops = ("",) if isinstance(root, HarborRoot) else ("tasks", "oracles")
                if path.startswith(tuple(root.prefix + top for top in tops)) and (root.folder / inside).exists():
                    argument = f"{root.folder / inside}{separator}{rest}"
                    break
        resolved.append(argument)
    config.args = resolved


class Paranoia:
    """Shared by controller and workers."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.config = config
        self.settings = settings
        self.run: RunDirectory | None = None
        self.done: frozenset[str] = frozenset()
        # Of a resumed run: what it planned. A resumed run never grows: other trials belong to a run of their own.
        self.plan: frozenset[str] | None = None
        self.unplanned = 0
        # Address of the run's model relay, which the controller starts where an agent needs it.
        self.relay: str | None = None
        # What judges the trials of an earlier run again, where that is asked for.
        self.rejudging: Rejudging | None = None
        self._begun = repeats.Begun()
        given = getattr(config, "workerinput", {}).get(WORKER_KEY)
        if given:
            handed = json.loads(given)
            self.run = RunDirectory.open(Path(handed["run"])) if handed["run"] else None
            self.done = frozenset(handed["done"])
            self.plan = frozenset(handed["plan"]) if handed["plan"] is not None else None
            self.relay = handed["relay"]

    @cached_property
    def provider(self) -> EnvironmentProvider:
        """The chosen kind of environment, with its options. Raises ``pytest.UsageError`` for one that has no sense."""
        return registry.environment(self.settings.environment).for_session(self.settings.environment_options)

    def refuse_unisolated(self) -> None:
        """Without isolation only scripted agents run. Raises ``pytest.UsageError`` with the remedy."""
        reason = self.provider.isolation()
        if reason is None:
            return
        if not self.settings.validate:
            chosen.refuse_unisolated(self.settings.judge, reason)
        if foreign := [root.label for root in self.settings.roots if isinstance(root, HarborRoot)]:
            raise pytest.UsageError(
                f"--paranoia-items: {foreign[0]}: Harbor tasks name paths of the machine they run on, such as /app, "
                f"and never run without isolation; the {self.settings.environment} environment has none here: {reason}"
            )
        real = [agent.name for agent in self.settings.agents if not registry.harness(agent.harness).scripted]
        if real and not self.settings.validate:
            raise pytest.UsageError(
                f"--model: {', '.join(real)} cannot run without isolation, and the {self.settings.environment} "
                f"environment has none here: {reason}"
            )

    def new_trial(self, node: TrialItem, scratch: Path) -> Trial:
        """Return the trial of an item. Raises InfrastructureError where it has had its run in this session."""
        from pytest_paranoia.trial import Trial  # needed only where trials run

        self._begun.add(node.spec.key)
        return Trial(
            spec=node.spec,
            nodeid=node.nodeid,
            provider=self.provider.for_trial(self.run.path.name if self.run else "", node.spec.key),
            environment_name=self.settings.environment,
            judged_by=self.settings.judge,
            scratch=scratch,
            timeout=self.settings.timeout,
            check_timeout=self.settings.check_timeout,
            conduct=self._conduct(node.spec.arm),
        )

    def _conduct(self, name: str | None) -> Conduct:
        settings = self.settings
        arm = next((arm for arm in settings.arms if arm.name == name), None)
        common = (settings.gate,) if settings.gate is not None else ()
        gates = (*common, *(arm.gates if arm is not None else ()))
        return Conduct(self.relay, combined(settings.instructions, arm), gates, settings.caps)

    def refuse_altered(self, trial: Trial) -> None:
        """Raise InfrastructureError where what an ended trial rests on is not what it was."""
        item = trial.item
        steady.refuse_altered(item, self.run.manifest.items.get(item.name) if self.run else None, trial.stage)

    def write(self, record: Record, trial: Trial) -> None:
        """Write a record into the run directory, and what its pair's variants differ in. Raises StoreError."""
        if self.run is None:
            return
        known = trial.environment is None or self.run.has_variants(record.item, record.item_hash)
        if isinstance(trial.item, PairItem) and not known:
            from pytest_paranoia.workspaces.evidence import archived

            # First, so that no scored trial is there without the fact that it is about.
            if (variants := archived(trial.item)) is not None:
                self.run.write_variants(variants)
        self.run.write_trial(record, trial.artifacts())

    # -- collection

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Keep the garbage collector out: what is collected stays to the end, so searching it is in vain.

        Of 10,000 items every later search takes a tenth of a second, and the end of the process has several.
        """
        enabled = gc.isenabled()
        gc.disable()
        try:
            return (yield)
        finally:
            gc.freeze()
            if enabled:
                gc.enable()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Take over the folders of items: their content is not collected as Python tests."""
        root = collection.root_of(path, self.settings.roots)
        return None if root is None else collecting.folder(parent, path, root, self)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a manifest that was named on its own, and where items are proved the declaration of a canary."""
        if self.settings.validate and file_path.name == canaries.DECLARATION:
            from pytest_paranoia.validation.items import CanaryFile

            owners = [root for root in self.settings.roots if canaries.place(root) == file_path]
            return CanaryFile.build(parent, file_path, owners[0]) if owners else None
        root = collection.root_of(file_path, self.settings.roots)
        return None if root is None else collecting.file(parent, file_path, root, self)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out other parts of the items; on resume also what has a score, and what the run never planned."""
        kept: list[pytest.Item] = []
        left: list[pytest.Item] = []
        keys: set[str | None] = set()
        part = self._part(items)
        for item in items:
            if part is not None and isinstance(item, ParanoiaItem) and (item.of or item.nodeid) not in part:
                left.append(item)
                continue
            key = item.spec.key if isinstance(item, TrialItem) else None
            foreign = key is not None and self.plan is not None and key not in self.plan
            self.unplanned += foreign
            # --keep-duplicates with a folder and a manifest in it, for example, names a trial twice.
            again = key is not None and key in keys
            keys.add(key)
            (left if foreign or again or key in self.done else kept).append(item)
        if left:
            config.hook.pytest_deselected(items=left)
            items[:] = kept

    def _part(self, items: Sequence[pytest.Item]) -> frozenset[str] | None:
        """Return the names of the items in this session's part, None where all of them are."""
        if self.settings.part is None:
            return None
        number, count = self.settings.part
        # Equal in size, and mixed: neighbours in the alphabet are of one repository.
        names = {item.of for item in items if isinstance(item, ParanoiaItem) and item.of is not None}
        mixed = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
        # What belongs to no item belongs to every part.
        whole = {item.nodeid for item in items if isinstance(item, ParanoiaItem) and item.of is None}
        return frozenset({*mixed[number - 1 :: count], *whole})

    # -- reports

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Write the record of a trial that broke, and put what reports need on the report, as plain strings."""
        report = yield
        if (
            isinstance(item, ParanoiaItem)
            and call.excinfo is not None
            and isinstance(call.excinfo.value, ParanoiaError)
        ):
            # Our own errors say what is wrong; a traceback through this package would only bury it.
            error = call.excinfo.value
            text = f"{error.reason}: {error}" if isinstance(error, InfrastructureError) else str(error)
            # What an agent's files are called may be no UTF-8, which a worker could not send.
            report.longrepr = foreign_lines(text) if isinstance(item, TrialItem) else printable(text)
        if not isinstance(item, TrialItem):
            return report
        record = item.stash.get(fixtures.OUTCOME, None)
        if record is None and call.excinfo is not None and call.when in ("setup", "call"):
            record = self._unscored(item, call.excinfo.value, report)
        if record is not None and (call.when == "call" or report.failed):
            letter, word = status.word_and_letter(record)
            known = {name for name, _ in report.user_properties}
            for name, value in [(WORD, word), (LETTER, letter), *junit.properties(record)]:
                if name not in known:
                    report.user_properties.append((name, value))
            item.user_properties[:] = report.user_properties
            if record.reason in STOPPING and not item.session.shouldstop:
                # Under xdist this ends the worker, and its controller then the others.
                item.session.shouldstop = f"paranoia: {record.reason}: {one_line(record.message, 'utf-8')}"
        return report

    def _unscored(self, item: TrialItem, error: BaseException, report: pytest.TestReport) -> Record | None:
        trial = item.stash.get(fixtures.TRIAL, None)
        if trial is None or isinstance(error, (KeyboardInterrupt, SystemExit, pytest.exit.Exception)):
            return None
        try:
            record = trial.record(error)
            item.stash[fixtures.OUTCOME] = record
            if not isinstance(error, StoreError):
                self.write(record, trial)
        except Exception as failure:
            # The trial is missing then, and the summary says so; the other trials go on.
            text = str(failure) if isinstance(failure, ParanoiaError) else repr(failure)
            report.sections.append(("paranoia: no record of this trial", foreign_lines(text)))
        return item.stash.get(fixtures.OUTCOME, None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, str | tuple[str, dict[str, bool]]] | None:
        """Show the verdict's letter and word; the category stays pytest's, so that counts and exit status hold."""
        properties = dict(getattr(report, "user_properties", ()))
        word = properties.get(WORD)
        if word is None or not isinstance(report, pytest.TestReport):
            return None
        letter = str(properties[LETTER])
        if report.when == "call" and report.passed:
            # Green for a violation would say the opposite of what was found.
            return "passed", letter, (str(word), _COLOURS.get(str(word), {"green": True}))
        if report.when == "call" and report.failed:
            return "failed", "F" if letter == "." else letter, f"FAILED ({_why(str(word), properties)})"
        if report.when == "call" and report.skipped:
            return "skipped", letter, str(word)
        if report.when == "setup" and report.failed:
            return "error", letter, f"ERROR ({word})"
        return None


def _why(word: str, properties: dict[str, object]) -> str:
    """Return why an item failed. A word for work that was not excessive would say the opposite of what happened."""
    if properties.get("paranoia.tsr") != "0":
        return word
    return f"task not done, {word}" if properties.get("paranoia.V") == "1" else "task not done"


_NODEID = re.compile(
    r"(?:.*/)?(?P<group>[^/]+)/(?P<item>[^/]+)/(?:pair|scenario|task)\.toml::test_\w+\[(?P<identity>.*)\]$"
)


def trial_key(nodeid: str) -> str | None:
    """Return the trial key of a node id, None for anything that is no trial."""
    match = _NODEID.match(nodeid)
    return f"{match['group']}/{match['item']}[{match['identity']}]" if match else None
