"""``paranoia report RUN``: the tables in the terminal, and the HTML report."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from pytest_paranoia.commands import base
from pytest_paranoia.reporting.text import one_line
from pytest_paranoia.store.files import write_atomic

_SHOWN = ("table3", "table5", "table18", "cave")


def register(commands: base.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "report",
        help="show the tables of a run and write its report.html",
        description="Show the summary of RUN with intervals and tests, and write its HTML report.",
    )
    parser.add_argument("name", metavar="RUN", help="folder of a run, or the name of one below reports")
    parser.add_argument("--html", type=Path, metavar="FILE", help="where the report goes (default: RUN/report.html)")
    parser.add_argument("--pages", action="store_true", help="also a page for each trial, in a folder beside it")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write summary.json with intervals, tests and hints to FILE"
    )
    parser.add_argument("--no-html", action="store_true", help="show the tables only")
    parser.add_argument(
        "--open", choices=("yes", "no"), default="no", help="open the report in a browser (default: no)"
    )
    base.add_statistics(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show and write the report."""
    opened = base.open_run(options.name)
    summary = opened.summary(opened.manifest.gates())
    # Heavy: pandas and SciPy, only after the run has turned out to be readable.
    from pytest_paranoia.metrics.analysis import analyse
    from pytest_paranoia.reporting import terminal
    from pytest_paranoia.reporting.tables.grid import grid
    from pytest_paranoia.reporting.tables.papers import paper_tables

    base.say(terminal.lines(summary, encoding=base.encoding(), width=base.width()))
    analysis = analyse(summary.records, **base.statistics(options))
    for table in paper_tables(analysis):
        if table.name in _SHOWN:
            ordered = table.in_order(list(summary.agents))
            base.say(["", f"{table.title} ({table.source})", *grid(ordered, base.width(), base.encoding())])
    if analysis.notes:
        base.say(["", "left out", *base.sentences(analysis.notes)])
    base.say(["", f"intervals: 95 %, {analysis.resamples} resamples of whole pairs or scenarios, seed {analysis.seed}"])
    if options.json is not None:
        from pytest_paranoia.reporting.intervals import with_intervals

        write_atomic(options.json, with_intervals(summary, analysis))
        base.say([f"summary with intervals: {one_line(str(options.json), base.encoding())}"])
    if not options.no_html:
        from pytest_paranoia.reporting.html import pages_of, write_report

        written = write_report(opened, options.html, pages=options.pages, summary=summary, analysis=analysis)
        base.say([f"report: {one_line(str(written), base.encoding())}"])
        if options.pages:
            base.say([f"a page for each trial: {one_line(str(pages_of(written)), base.encoding())}"])
        if options.open == "yes":
            webbrowser.open(written.resolve().as_uri())
    return base.OK
