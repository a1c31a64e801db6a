"""The report of pytest-html (``--html``), where its user has it: our words in its table, a trial's account in its row.

Only hooks of pytest-html are implemented and only plain strings handed over, so that nothing of it is imported. It puts
what it gets into its page as markup: all that an agent may have chosen is escaped here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import pytest

from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.metrics.hints import hints, results
from pytest_paranoia.reporting.grids import number
from pytest_paranoia.reporting.headline import headline
from pytest_paranoia.reporting.junit import PREFIX, system_out
from pytest_paranoia.reporting.text import one_line
from pytest_paranoia.schema.record import Record
from pytest_paranoia.store import RunSummary

if TYPE_CHECKING:
    from pytest_paranoia.session import Paranoia

COLUMNS: Final = ("verdict", "agent", "variant", "detail")
"""Columns that stand behind the name of a test; a test that is no trial has empty cells there."""
_AT: Final = 2
_SHOWN: Final = ("forms", "degree", "path", "h", "f", "e", "reason")


def wanted(config: pytest.Config) -> Path | None:
    """Return the file that pytest-html is asked to write, None where it is not there or not asked."""
    given: str | None = config.getoption("htmlpath", None)
    return Path(os.path.expandvars(given)).expanduser().absolute() if given else None


class ForeignReport:
    """Hooks of pytest-html, for the controlling process."""

    def __init__(self, session: Paranoia, target: Path) -> None:
        self._session = session
        self._target = target

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_header(self, cells: list[str]) -> None:
        """Add our columns."""
        cells[_AT:_AT] = [
            f'<th class="sortable" data-column-type="{name}">{name.capitalize()}</th>' for name in COLUMNS
        ]

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_row(self, report: pytest.TestReport, cells: list[str]) -> None:
        """Fill our columns from the properties of a trial."""
        values = _properties(report)
        told = {name: values[name] for name in _SHOWN if values.get(name, "none") not in ("", "none")}
        detail = ", ".join(f"{name} {value}" if len(name) == 1 else value for name, value in told.items())
        shown = {
            "verdict": values.get("verdict", ""),
            "agent": values.get("agent", ""),
            "variant": values.get("variant", values.get("family", "")),
            "detail": detail,
        }
        cells[_AT:_AT] = [f'<td class="col-{name}">{_text(shown[name])}</td>' for name in COLUMNS]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Give a trial's row its account and its links; pytest-html reads them when the trial's teardown is over."""
        values = _properties(report)
        if (report.when != "call" and not report.failed) or "trial" not in values or self._session.run is None:
            return
        record = _record(self._session.run.trial_folder(values["trial"]))
        extras = [*getattr(report, "extras", ()), *self._links(values["trial"], record is not None)]
        if record is not None:
            extras.append(_extra("html", f'<pre class="paranoia">{_lines(system_out(record))}</pre>', ""))
        vars(report)["extras"] = extras

    def _links(self, key: str, recorded: bool) -> Iterator[dict[str, str | None]]:
        run = self._session.run
        if run is not None and recorded:
            yield _extra("url", self._address(run.trial_folder(key)) + "/record.json", "record")
        if (page := self._session.settings.outputs.html) is not None:
            yield _extra("url", f"{self._address(page)}#trial/{quote(key, safe='')}", "trial page")

    def _address(self, path: Path) -> str:
        """*path* as seen from the report: the folder of both can be moved."""
        return quote(os.path.relpath(path.absolute(), self._target.parent))

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_summary(self, postfix: list[str]) -> None:
        """Put the headline of each agent, the gates and what only looks certain below pytest-html's own summary."""
        run = self._session.run
        if run is None:
            return
        try:
            summary = run.summary(run.manifest.gates())
        except ParanoiaError as error:
            postfix.append(f"<p>paranoia: {_text(str(error))}</p>")
            return
        if summary.records or summary.planned:
            postfix.append("".join(self._summary(summary)))

    def _summary(self, summary: RunSummary) -> Iterator[str]:
        counts = summary.counts
        yield f'<h3>paranoia: <a href="{self._address(summary.path)}">{_text(summary.manifest.run)}</a></h3>'
        yield (
            f"<p>{counts.attempted} trials: {counts.scored} scored, {counts.invalid} invalid, "
            f"{counts.unscored} unscored. In percent; VR and CAVE: lower is better, ER and TSR: higher.</p><ul>"
        )
        for agent, told in headline(summary).items():
            yield f"<li><strong>{_text(agent)}</strong>: {_text(told)}</li>"
        for result in summary.gates:
            word = "passed" if result.passed else "FAILED"
            value = result.reason if result.value is None else number(result.value)
            yield f"<li>gate {_text(result.gate.name)}, {_text(result.agent)}: {word} ({_text(value)})</li>"
        for hint in hints(results(summary.records)):
            yield f"<li>{_text(hint)}</li>"
        yield "</ul>"


def _properties(report: pytest.TestReport) -> dict[str, str]:
    found = getattr(report, "user_properties", ())
    return {name.removeprefix(PREFIX): str(value) for name, value in found if str(name).startswith(PREFIX)}


def _record(folder: Path) -> Record | None:
    try:
        return Record.model_validate_json((folder / "record.json").read_bytes())
    except (OSError, ValueError):
        return None  # the summary names it; here the properties must do


def _text(text: str) -> str:
    return escape(one_line(text, "utf-8"))


def _lines(text: str) -> str:
    return "\n".join(escape(one_line(line, "utf-8", indent=True)) for line in text.split("\n"))


def _extra(kind: str, content: str, name: str) -> dict[str, str | None]:
    """An entry of ``report.extras``, as ``pytest_html.extras`` makes them."""
    return {"name": name, "format_type": kind, "content": content, "mime_type": None, "extension": None}
