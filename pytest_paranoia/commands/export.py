"""``paranoia export RUN``: every table as CSV, Parquet, LaTeX or JSON."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_paranoia.commands import base
from pytest_paranoia.reporting.text import one_line


def register(commands: base.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "export",
        help="write every table of a run as CSV, Parquet, LaTeX or JSON",
        description="Write every table of RUN into DIR, one file each: the papers' tables in the papers' layout, and "
        "every statistic.",
    )
    parser.add_argument("name", metavar="RUN", help="folder of a run, or the name of one below reports")
    parser.add_argument("--format", choices=base.FORMATS, action="append", help="repeatable (default: csv)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the files; made if missing")
    parser.add_argument(
        "--published", action="store_true", help="add the rows the papers published, each marked as published"
    )
    base.add_statistics(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the tables."""
    opened = base.open_run(options.name)
    records = opened.records()
    from pytest_paranoia.metrics.analysis import analyse
    from pytest_paranoia.reporting.tables.build import all_tables
    from pytest_paranoia.reporting.tables.files import write_tables

    for problem in records.problems:
        base.complain(ValueError(f"{problem.path}: {problem.reason}; left out"))
    tables = all_tables(analyse(records.records, **base.statistics(options)), published=options.published)
    for form in dict.fromkeys(options.format or ["csv"]):
        written = write_tables(tables, options.out, form)
        base.say([f"{form}: {len(written)} tables in {one_line(str(options.out), base.encoding())}"])
    return base.OK
