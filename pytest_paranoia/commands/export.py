"""``paranoia export RUN``: every table as CSV, Parquet, LaTeX or JSON; ``paranoia export harbor``: scenarios."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_paranoia.commands import base, harbor_export
from pytest_paranoia.reporting.text import one_line


def register(commands: base.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "export",
        help="write every table of a run as CSV, Parquet, LaTeX or JSON; or scenarios as tasks for Harbor",
        description="Write every table of RUN into DIR, one file each: the papers' tables in the papers' layout, and "
        "every statistic. `export harbor SCENARIO … --to DIR` writes scenarios as task directories instead.",
    )
    parser.add_argument("name", metavar="RUN", help="folder of a run, or the name of one below reports; or: harbor")
    harbor_export.add_options(parser)
    parser.add_argument("--format", choices=base.FORMATS, action="append", help="repeatable (default: csv)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the files (required); made if missing")
    parser.add_argument(
        "--published", action="store_true", help="add the rows the papers published, each marked as published"
    )
    base.add_statistics(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the tables, or hand over to ``export harbor``."""
    if options.name == harbor_export.FORMAT:
        return harbor_export.run(options)
    if options.scenario or options.to or options.items:
        raise base.UsageProblem(f"export {options.name}: SCENARIO, --to and --items belong to `export harbor`")
    if options.out is None:
        raise base.UsageProblem(f"export {options.name}: name a folder for the files with --out DIR")
    opened = base.open_run(options.name)
    records = opened.records()
    from pytest_paranoia.metrics.analysis import analyse
    from pytest_paranoia.reporting.tables.build import all_tables
    from pytest_paranoia.reporting.tables.files import write_tables

    for problem in records.problems:
        base.complain(ValueError(f"{problem.path}: {problem.reason}; left out"))
    analysis = analyse(records.records, **base.statistics(options))
    tables = all_tables(analysis, opened.manifest.subjects(), published=options.published)
    for form in dict.fromkeys(options.format or ["csv"]):
        written = write_tables(tables, options.out, form)
        base.say([f"{form}: {len(written)} tables in {one_line(str(options.out), base.encoding())}"])
    return base.OK
