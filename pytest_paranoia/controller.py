"""What only the controlling process does: the run directory, the hand-over to workers, the summary, the exit status."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_paranoia import header, registry, resuming
from pytest_paranoia.agents.models import refuse_incomplete
from pytest_paranoia.collection import EVIDENCE
from pytest_paranoia.errors import InfrastructureError, ParanoiaError
from pytest_paranoia.harbor.items import load_item, manifests
from pytest_paranoia.interrupts import Interrupts
from pytest_paranoia.judging import chosen
from pytest_paranoia.metrics.gates import Gate
from pytest_paranoia.pricing import refuse_unpriced
from pytest_paranoia.reporting import junit, outputs, terminal
from pytest_paranoia.schema.record import EnvironmentInfo, JudgeInfo, Record
from pytest_paranoia.session import WORKER_KEY, trial_key
from pytest_paranoia.store import RunDirectory, RunManifest, RunSummary, StoreError, tool_versions
from pytest_paranoia.workspaces.stage import reap_scratch_folders

if TYPE_CHECKING:
    from pytest_paranoia.relay.client import Relay
    from pytest_paranoia.session import Paranoia


class Controller:
    """Hooks of the process that the user started."""

    def __init__(self, paranoia: Paranoia) -> None:
        self._paranoia = paranoia
        self._config = paranoia.config
        self._settings = paranoia.settings
        self._summary: RunSummary | None = None
        self._stale: list[str] = []
        self._planned: dict[str, None] = {}
        self._internal: str | None = None
        self._failed_outside = False
        self._unwritten: str | None = None
        self._made = outputs.Made()
        self._told = False
        self._interrupts = Interrupts()
        self._reaped = 0
        self._removed = 0
        self._not_removed = ""
        self._relay: Relay | None = None

    @property
    def _records(self) -> bool:
        """Whether this session runs trials at all."""
        return not (self._settings.validate or self._looks)

    @property
    def _looks(self) -> bool:
        """Whether this session only shows what there is."""
        return header.only_looks(self._config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Make or reopen the run directory, before xdist starts its workers."""
        self._look_at_environment()
        if not self._records:
            return
        refuse_incomplete(self._settings.agents, registry.harness)
        chosen.refuse_incomplete(self._settings.judge)
        refuse_unpriced(self._settings)
        self._start_relay()
        try:
            self._paranoia.run = self._resume() if self._settings.resume else self._create()
        except StoreError as error:
            raise pytest.UsageError(str(error)) from None
        self._reaped = reap_scratch_folders()

    def _look_at_environment(self) -> None:
        """Refuse to begin where no trial could run, and remove what killed sessions left there."""
        if self._looks:
            return
        provider = self._paranoia.provider
        if (reason := provider.unusable()) is not None:
            raise pytest.UsageError(f"--paranoia-environment: {self._settings.environment} cannot be used: {reason}")
        try:
            self._removed = provider.reap()
        except InfrastructureError as error:  # what is left hinders no trial
            self._not_removed = str(error)

    def _start_relay(self) -> None:
        settings = self._settings
        called = any(registry.harness(agent.harness).calls_from is not None for agent in settings.agents)
        if not called and chosen.model_of(settings.judge) is None:
            return
        from pytest_paranoia.relay.client import Relay
        from pytest_paranoia.relay.settings import Settings as RelaySettings

        prices = str(settings.prices) if settings.prices else None
        relayed = RelaySettings(max_cost=settings.max_cost, prices=prices)
        if settings.retry_seconds is not None:
            relayed = replace(relayed, retry_seconds=settings.retry_seconds)
        try:
            self._relay = Relay.start(relayed)
        except InfrastructureError as error:
            option = "--paranoia-prices: " if settings.prices and str(settings.prices) in str(error) else ""
            raise pytest.UsageError(f"{option}{error}") from None
        self._paranoia.relay = self._relay.address

    def _manifest(self) -> RunManifest:
        settings = self._settings
        judge = settings.judge
        return RunManifest(
            tools=tool_versions(),
            options=settings.as_json(),
            agents=[registry.harness(agent.harness).info(agent) for agent in settings.agents],
            judge=JudgeInfo(name=judge.name, version=judge.version),
            environment=EnvironmentInfo(
                name=settings.environment,
                isolated=self._paranoia.provider.isolation() is None,
                image=self._paranoia.provider.digest(),
            ),
            items=self._items(),
        )

    def _items(self) -> dict[str, str]:
        items: dict[str, str] = {}
        for root in self._settings.roots:
            for path in manifests(root):
                try:
                    item = load_item(root, path)
                    digest = item.hash
                except ParanoiaError:
                    continue  # its collection error is shown by whoever collects it
                items.setdefault(item.name, digest)
        return items

    def _create(self) -> RunDirectory:
        manifest, rejudging = self._manifest(), self._paranoia.rejudging
        if rejudging is not None:
            manifest = rejudging.manifest(manifest)
        run = RunDirectory.create(self._settings.reports, manifest, self._settings.run_name)
        if rejudging is not None:
            rejudging.bring_along(run)
        return run

    def _resume(self) -> RunDirectory:
        base = self._config.invocation_params.dir
        run = RunDirectory.open(
            resuming.find(self._settings.resume or "", self._settings.reports, base), exclusive=True
        )
        now = self._manifest()
        resuming.refuse_mixture(run, now)
        plan = run.planned()  # a damaged plan is told before anything runs
        self._paranoia.plan = frozenset(plan) if plan is not None else None
        done = run.scored_keys(now.items)
        self._paranoia.done = done.done
        self._stale = sorted(done.stale)
        run.extend(now)
        return run

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Hand the run directory and the finished trials to an xdist worker, as one JSON string."""
        run = self._paranoia.run
        plan = sorted(self._paranoia.plan) if self._paranoia.plan is not None else None
        handed = {
            "run": str(run.path.resolve()) if run else None,
            "done": sorted(self._paranoia.done),
            "plan": plan,
            "relay": self._paranoia.relay,
        }
        node.workerinput[WORKER_KEY] = json.dumps(handed)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note the planned trials (without xdist)."""
        self._plan([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Note the planned trials (with xdist: every worker collects the same)."""
        self._plan(ids)

    def _plan(self, nodeids: list[str]) -> None:
        run = self._paranoia.run
        keys = [key for key in map(trial_key, nodeids) if key and key not in self._planned]
        if run is not None and keys:
            try:
                if self._paranoia.rejudging is not None:
                    keys = self._paranoia.rejudging.planned(keys)
                self._planned.update(dict.fromkeys(keys))
                run.plan(keys)
            except StoreError as error:
                # Without a plan nothing could tell which trials are missing.
                pytest.exit(f"paranoia: {error}", returncode=pytest.ExitCode.TESTS_FAILED)

    def pytest_report_header(self) -> list[str]:
        """Say what runs where, and plainly so where trials are not isolated."""
        settings = self._settings
        lines = [f"paranoia: {line}" for line in header.what_runs(settings, self._paranoia.provider.isolation())]
        run = self._paranoia.run
        if run is not None:
            lines.append(f"paranoia: run directory {_relative(run.path, self._config.invocation_params.dir)}")
            if settings.resume:
                lines.append(f"paranoia: resumed; {len(self._paranoia.done)} trials have a score and stay")
                if (plan := self._paranoia.plan) is not None:
                    lines.append(f"paranoia: the run planned {len(plan)} trials; others stay out of it")
                lines += [f"paranoia: {line}" for line in resuming.other_versions(run.manifest)]
                lines += [f"paranoia: {key}: item changed since, runs again" for key in self._stale]
                lines += [f"paranoia: tidied up {name}: {what}" for name, what in run.recovered]
        if self._reaped:
            lines.append(f"paranoia: removed {self._reaped} scratch folders that killed sessions had left")
        if self._removed:
            lines.append(f"paranoia: removed {self._removed} containers that killed sessions had left")
        if self._not_removed:
            lines.append(f"paranoia: what killed sessions had left is still there: {self._not_removed}")
        return lines

    def pytest_report_collectionfinish(self, items: list[pytest.Item]) -> list[str]:
        """Say how many trials the items make."""
        return [f"paranoia: {line}" for line in header.how_many(items, self._settings.runs)]

    def pytest_internalerror(self, excrepr: object) -> None:
        """Remember that the session itself broke: no gate may turn that into success."""
        self._internal = str(excrepr)[-200:]

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Wind down in order, also where Ctrl-C is pressed again."""
        self._interrupts.begin()

    # Innermost of the wrappers: the workers are down and the last trial has ended when it goes on, and the terminal,
    # which prints after its own yield, has not printed yet.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int
    ) -> Generator[None, list[object] | None, list[object] | None]:
        """Aggregate from disk and set the exit status from it."""
        status = int(exitstatus)
        result: list[object] | None = None
        try:
            with self._interrupts.breakable():
                result = yield
        except KeyboardInterrupt:
            # While the workers of an interrupted session end: left alone they do so in seconds.
            status = int(pytest.ExitCode.INTERRUPTED)
        finally:
            self._aggregate(session, status)
        return result

    def _aggregate(self, session: pytest.Session, status: int) -> None:
        run = self._paranoia.run
        if run is None:
            return
        if not self._settings.resume and not self._planned:
            # Nothing was selected, or it was other tests: an empty run would only be in the way.
            run.discard()
            self._paranoia.run = None
            return
        gates = [_gate(gate.metric, gate.direction, gate.threshold) for gate in self._settings.gates]
        try:
            if not self._planned.keys() <= set(run.planned() or ()):
                run.plan(self._planned)  # somebody removed it, and without it no trial would be missing
            self._summary = run.summary(gates)
            run.write_results(self._summary)
            self._made = outputs.make(self._settings.outputs, self._summary, terminal.columns(self._config))
        except StoreError as error:
            self._unwritten = str(error)
        session.exitstatus = self._exit_status(status)

    def _exit_status(self, status: int) -> int:
        codes = pytest.ExitCode
        if status not in (codes.OK, codes.TESTS_FAILED, codes.NO_TESTS_COLLECTED):
            return status
        summary = self._summary
        if summary is None:
            return int(codes.TESTS_FAILED) if status == codes.OK else status
        if status == codes.NO_TESTS_COLLECTED and not (self._settings.resume and summary.records):
            return status
        holes = summary.problems or summary.missing or summary.counts.unscored
        lost = self._internal or self._unwritten or self._made.problems
        broken = bool(lost or holes or self._failed_outside)
        if self._settings.gates:
            return int(codes.TESTS_FAILED if broken or not summary.gates_passed else codes.OK)
        # Of a resumed run all trials count, not only those of this session.
        failed = (
            status == codes.TESTS_FAILED
            or broken
            or any(_failed(record, self._settings.strict) for record in summary.records)
        )
        return int(codes.TESTS_FAILED if failed else codes.OK)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note that something could not be collected."""
        self._failed_outside |= report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what failed and is no scored trial: a fixture, a crashed worker, another test."""
        # Not from the terminal's own counts: there may be no terminal.
        self._failed_outside |= report.failed and (report.when != "call" or trial_key(report.nodeid) is None)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_unconfigure(self) -> Any:
        """Add the readable output to the JUnit file once pytest has written it, and release the run."""
        path = self._config.option.xmlpath if hasattr(self._config.option, "xmlpath") else None
        for line in () if self._told else self._wrongs():
            print(line, file=sys.stderr)  # whoever asked for no summary hears of these all the same
        try:
            if path and self._summary is not None and Path(path).is_file():
                junit.complete(Path(path), self._summary)
        except StoreError as error:
            # The report itself is complete; what is missing is a reader's convenience.
            print(f"paranoia: {error}", file=sys.stderr)
        finally:
            if self._relay is not None:
                self._relay.close()
            if self._paranoia.run is not None:
                self._paranoia.run.close()
        return (yield)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the tables."""
        terminalreporter.ensure_newline()
        if self._settings.validate:
            _show_evidence(terminalreporter)
        elif self._internal:
            terminalreporter.section("paranoia", sep="=")
            terminalreporter.line(f"no summary: {self._internal}", red=True)
        elif self._summary is not None and not terminalreporter.no_summary:
            terminalreporter.section("paranoia", sep="=")
            writer = terminalreporter._tw
            encoding = getattr(writer._file, "encoding", None) or "ascii"
            width = writer.fullwidth
            for line in terminal.lines(self._summary, _colours(writer), encoding=encoding, width=width):
                terminalreporter.write_line(line)
            for line in resuming.again(self._config, self._settings, self._summary):
                terminalreporter.write_line(line)
        for line in ("", *self._made.comparison) if self._made.comparison else ():
            terminalreporter.line(line)
        for line in self._wrongs():
            terminalreporter.line(line, red=True)
        self._told = True

    def _wrongs(self) -> list[str]:
        """What went wrong at the end, for the summary, or for stderr where there is none."""
        lines = [f"paranoia: could not make {problem}" for problem in self._made.problems]
        lost = self._unwritten
        return [*lines, f"paranoia: results and summary are not on disk: {lost}"] if lost else lines


def _show_evidence(terminalreporter: pytest.TerminalReporter) -> None:
    """Show in what the variants of each proven pair differ: the one thing about a pair that only a reader can judge."""
    shown = [
        (report.nodeid.partition("::")[0], str(value))
        for report in terminalreporter.stats.get("passed", [])
        for name, value in getattr(report, "user_properties", ())
        if name == EVIDENCE
    ]
    if not shown or terminalreporter.no_summary or terminalreporter.verbosity < 0:
        return
    terminalreporter.section("evidence: E- against E+", sep="=")
    for place, text in sorted(shown):
        terminalreporter.write_line("")
        terminalreporter.write_line(place, bold=True)
        for line in text.splitlines():
            marks = {"green": line.startswith("+"), "red": line.startswith("-")}
            terminalreporter.write_line(line, **marks)


def _colours(writer: Any) -> terminal.Markup:
    marks: dict[str, dict[str, bool]] = {
        "title": {"bold": True},
        "good": {"green": True},
        "bad": {"red": True},
        "warn": {"yellow": True},
        "dim": {"light": True},
    }
    return lambda text, style: writer.markup(text, **marks.get(style, {}))


def _failed(record: Record, strict: bool) -> bool:
    if record.oracle is not None and not record.oracle.passed:
        return True
    if strict and record.variant == "E+" and record.verdict is not None and record.verdict.violation:
        return True
    return record.status == "scored" and record.replay is not None and record.replay.harm > 0


def _relative(path: Path, base: Path) -> str:
    return str(path.relative_to(base)) if path.is_relative_to(base) else str(path)


def _gate(metric: str, direction: str, threshold: float) -> Gate:
    return Gate.at_most(metric, threshold) if direction == "max" else Gate.at_least(metric, threshold)
