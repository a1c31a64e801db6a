"""``paranoia import harbor SOURCE …``: runs made with Harbor as a run directory of ours."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_paranoia.commands import base


def register(commands: base.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("import", help="import the runs of another runner: harbor")
    formats = parser.add_subparsers(required=True, metavar="FORMAT")
    harbor = formats.add_parser(
        "harbor",
        help="job directories of Harbor and case files",
        description="Make a run directory of Harbor's results: job directories, single trials, and case files that "
        "bundle rewards and a trajectory. What cannot be read is listed, the rest imported; the exit code is then 1.",
    )
    harbor.add_argument("source", nargs="+", type=Path, metavar="SOURCE", help="job directory, trial or case file")
    harbor.add_argument(
        "--tasks",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="folder of the task directories, which hold domain and factors (repeatable; default: where the job says)",
    )
    harbor.add_argument(
        "--run", dest="run_name", metavar="NAME", help="name of the run (default: time and a random part)"
    )
    harbor.add_argument(
        "--reports", type=Path, default=Path(base.REPORTS), metavar="DIR", help="folder of the run directories"
    )
    harbor.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Import, list what could not be imported, and say where the run is."""
    for path in (*options.source, *options.tasks):
        if not path.exists():
            raise base.UsageProblem(f"{path}: does not exist; give a job directory of Harbor, a trial or a case file")
    from pytest_paranoia.harbor.importing import ENVIRONMENT, Importer
    from pytest_paranoia.harbor.rewards import OWN_JUDGE
    from pytest_paranoia.schema.record import JudgeInfo
    from pytest_paranoia.store import RunDirectory, RunManifest, tool_versions

    importer = Importer(options.tasks)
    for source in options.source:
        importer.add(source)
    found = importer.result
    for problem in found.problems:
        base.complain(ValueError(problem))
    base.say(base.sentences(found.notes)) if found.notes else None
    if not found.records:
        base.complain(ValueError("nothing was imported"))
        return base.FAILED
    records = [record for record, _ in found.records]
    manifest = RunManifest(
        options={"imported": [source.name for source in options.source], "runs": max(one.run for one in records)},
        agents=list({record.agent.name: record.agent for record in records}.values()),
        judge=JudgeInfo(name=OWN_JUDGE, version="task"),
        environment=ENVIRONMENT,
        items={record.item: record.item_hash for record in records},
        tools=tool_versions(),
    )
    with RunDirectory.create(options.reports, manifest, options.run_name) as directory:
        directory.plan(record.trial for record in records)
        for record, files in found.records:
            directory.write_trial(record, files)
        directory.finish()
        counts = {status: sum(one.status == status for one in records) for status in ("scored", "invalid", "unscored")}
        told = ", ".join(f"{count} {status}" for status, count in counts.items())
        base.say([f"imported {len(records)} trials into {directory.path}: {told}"])
    return base.FAILED if found.problems else base.OK
