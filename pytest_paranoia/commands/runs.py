"""``paranoia runs [DIR]``: which runs there are."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_paranoia.commands import base
from pytest_paranoia.reporting.headline import headline
from pytest_paranoia.reporting.text import clip, one_line
from pytest_paranoia.store import RunDirectory, StoreError
from pytest_paranoia.store.directory import RUN_FILE


def register(commands: base.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "runs",
        help="list run directories with date, agents, counts and headline figures",
        description="List the run directories in DIR, the latest first. Runs that cannot be read are named, "
        "and the exit code then is 2.",
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(base.REPORTS), metavar="DIR")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """List the runs of ``options.folder``."""
    folder: Path = options.folder
    if not folder.is_dir():
        found = "is no folder" if folder.exists() else "does not exist"
        raise StoreError(folder, found, "Give the folder that holds run directories")
    paths = sorted((path.parent for path in folder.glob(f"*/{RUN_FILE}")), key=lambda path: path.name, reverse=True)
    if (folder / RUN_FILE).exists():
        paths = [folder]
    code, listed = base.OK, []
    for path in paths:
        try:
            opened = RunDirectory.open(path)
            listed.append((opened.manifest.created, path, opened.summary()))
        except StoreError as error:
            code = base.UNUSABLE
            base.complain(error)
    if not paths:
        base.say([f"no runs in {one_line(str(folder), base.encoding())}"])
    room = base.width()
    for created, path, summary in sorted(listed, key=lambda entry: (entry[0], entry[1].name), reverse=True):
        counts = summary.counts
        planned = "" if summary.planned is None else f" of {len(summary.planned)}"
        state = [f"{counts.scored} scored{planned}"]
        named = {"invalid": counts.invalid, "unscored": counts.unscored, "problems on disk": len(summary.problems)}
        state += [f"{count} {name}" for name, count in named.items() if count]
        base.say([f"{one_line(path.name, base.encoding())}  {created[:16].replace('T', ' ')}  {', '.join(state)}"])
        for agent, text in headline(summary).items():
            base.say([clip(f"  {one_line(agent, base.encoding())}: {text}", room)])
    return code
