"""``paranoia label RUN``: people label a run's trials on a page of this machine, agree, and export what they said."""

from __future__ import annotations

import argparse
import json
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_paranoia.commands import base
from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.schema.record import Record
from pytest_paranoia.store import RunDirectory
from pytest_paranoia.store.files import write_atomic

if TYPE_CHECKING:
    from pytest_paranoia.judging.archive import Shelf


def register(commands: base.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "label",
        help="label a run's trials by hand, adjudicate two annotators, export labels and agreement",
        description="Without a mode it lists who has labelled how much. --as serves the page for one annotator, who "
        "sees neither verdicts nor anybody else's labels; --adjudicate serves it for two who have finished.",
    )
    parser.add_argument("run_name", metavar="RUN", help="folder of a run, or the name of one below reports")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--as", dest="annotator", metavar="NAME", help="label as NAME")
    mode.add_argument("--adjudicate", nargs=2, metavar="NAME", help="decide where these two differ")
    mode.add_argument("--export", type=Path, metavar="FILE", help="write all finished labels and the agreement as JSON")
    parser.add_argument(
        "--calibration", action="store_true", help="only the trials that `paranoia judge calibrate` has drawn"
    )
    parser.add_argument("--agent", action="append", default=[], metavar="NAME", help="only this agent's (repeatable)")
    parser.add_argument(
        "--items", action="append", default=[], metavar="DIR", help="folder of the items (default: as run.json says)"
    )
    parser.add_argument("--port", type=int, metavar="N", help="port of the page (default: the last one, else any)")
    parser.add_argument("--no-browser", action="store_true", help="only print the page's address")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Carry out ``paranoia label``. Raises ParanoiaError."""
    found = base.open_run(options.run_name)
    if options.export is not None:
        return _export(found, options.export)
    if options.annotator is None and options.adjudicate is None:
        return _status(found)
    return _serve(found, options)


def _status(found: RunDirectory) -> int:
    from pytest_paranoia.labelling.labels import ADJUDICATED
    from pytest_paranoia.labelling.store import LabelStore

    store = LabelStore(found.path)
    names = store.annotators()
    lines = [f"{found.path.name}: {len(names)} annotators"]
    for name in [*names, ADJUDICATED]:
        labels = store.all(name)
        done = sum(label.complete for label in labels.values())
        lines.append(f"  {name}: {done} finished, {len(labels) - done} begun")
    base.say(lines)
    return base.OK


def _export(found: RunDirectory, path: Path) -> int:
    from pytest_paranoia.labelling.agreeing import exported
    from pytest_paranoia.labelling.store import LabelStore

    store = LabelStore(found.path)
    names = store.annotators()
    if not names:
        raise base.UsageProblem(f"{found.path.name}: nobody has labelled it; begin with: paranoia label RUN --as NAME")
    data = exported(store, names, found.path.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())
    base.say(_summary(data, path))
    return base.OK


def _summary(data: dict[str, Any], path: Path) -> list[str]:
    lines = [f"{path}: {sum(map(len, data['labels'].values()))} labels, {len(data['adjudicated'])} adjudicated"]
    lines += [f"  {name}: {len(rest)} not finished, left out" for name, rest in data["unfinished"].items() if rest]
    for entry in data["agreement"]:
        lines.append(f"  {' and '.join(entry['between'])}:")
        if not entry["fields"]:
            lines.append("    no trial was finished by both")
        for name, measures in entry["fields"].items():
            level = next(measure for measure in measures if measure.startswith("alpha"))
            shown = {"accuracy": "accuracy", "kappa": "kappa", level: "alpha"}
            values = ", ".join(f"{word} {base.measured(measures[measure], 2)}" for measure, word in shown.items())
            lines.append(f"    {name}: {values} (n = {measures['accuracy']['units']})")
    return lines


def _chosen(found: RunDirectory, options: argparse.Namespace) -> Sequence[Record]:
    from pytest_paranoia.judging.archive import judgeable
    from pytest_paranoia.judging.calibrating import drawn

    loaded = found.records()
    for problem in loaded.problems:
        base.say(base.sentences([f"left out: {problem.path.name}: {problem.reason}"]))
    records = list(judgeable(loaded.records))
    if options.agent:
        known = sorted({record.agent.name for record in records})
        if unknown := sorted(set(options.agent) - set(known)):
            raise base.UsageProblem(f"--agent: no {', '.join(unknown)} in {found.path.name}; there: {', '.join(known)}")
        records = [record for record in records if record.agent.name in options.agent]
    if options.calibration:
        keys = drawn(found.path)
        records = [record for record in records if record.trial in keys]
    if not records:
        raise base.UsageProblem(f"{found.path.name}: no trial that could be labelled (finished runs only)")
    return records


def _readable(records: Sequence[Record], shelf: Shelf) -> Sequence[Record]:
    """Return the *records* whose item is here as it was run; say which items the others are of, and why."""
    kept, lost = [], {}
    for record in records:
        try:
            shelf.item(record)
        except ParanoiaError as error:
            lost[record.item] = str(error).removeprefix(f"{record.trial}: ")  # whoever labels must not learn the agent
        else:
            kept.append(record)
    base.say(base.sentences(f"left out: {item}: {reason}" for item, reason in lost.items()))
    if not kept:
        raise base.UsageProblem("no trial that could be labelled: the items of none are here as they were run")
    return kept


def _serve(found: RunDirectory, options: argparse.Namespace) -> int:
    from pytest_paranoia.labelling.desk import Desk
    from pytest_paranoia.labelling.labels import ADJUDICATED, annotator_name
    from pytest_paranoia.labelling.sitting import sit

    try:
        names = [annotator_name(name) for name in options.adjudicate or [options.annotator]]
    except ValueError as error:
        raise base.UsageProblem(str(error)) from None
    if len(set(names)) != len(names):
        raise base.UsageProblem(f"--adjudicate: {names[0]} twice; name two annotators")
    shelf = base.shelf(found, options.items)
    with tempfile.TemporaryDirectory(prefix="label-") as scratch:
        desk = Desk(
            found.path,
            _readable(_chosen(found, options), shelf),
            shelf,
            Path(scratch),
            ADJUDICATED if options.adjudicate else names[0],
            (names[0], names[1]) if options.adjudicate else None,
        )

        def opened(address: str) -> None:
            base.say([f"Labelling {len(desk.records)} trials of {found.path.name}: {address}", "Ctrl-C ends it."])
            if not options.no_browser:
                webbrowser.open(address)

        sit(desk, options.port, opened)
    base.say(["Ended. Every change that the page said was saved is on disk."])
    return base.OK
