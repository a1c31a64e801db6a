"""``paranoia judge …``: build a judge's memory, draw what people label for one, check a judge against people."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_paranoia.commands import base
from pytest_paranoia.schema.record import Record
from pytest_paranoia.store import RunDirectory
from pytest_paranoia.store.files import write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_paranoia.corpus import PairItem
    from pytest_paranoia.scoring.sensors.view import RunView

    Case = Callable[[Record], tuple[PairItem, RunView]]

_RUN = "folder of a run, or the name of one below reports"


def register(commands: base.Subparsers) -> None:
    """Add the subcommand with its own."""
    parser = commands.add_parser("judge", help="build a judge's memory, calibrate it, check it against human labels")
    own = parser.add_subparsers(required=True, metavar="WHAT")
    _memory(own.add_parser("memory", help="build an exemplar bank from a run"))
    _calibrate(own.add_parser("calibrate", help="draw the trials that people should label for a memory"))
    _validate(own.add_parser("validate", help="compare a judge's verdicts with adjudicated labels"))


def _memory(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Build the bank that judges which read are shown examples from. By default from reference runs, whose labels "
        "are known by construction: RUN is one of the agents minimal, paranoid and scripted:near-miss on task pairs. "
        "With --consensus from the adjudicated labels of RUN."
    )
    parser.add_argument("run_name", metavar="RUN", help=_RUN)
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="folder for bank.json; made if missing")
    parser.add_argument("--consensus", action="store_true", help="take the adjudicated labels of RUN")
    parser.add_argument("--encoder", metavar="MODEL@URL", help="embeddings endpoint (default: offline)")
    parser.add_argument("--encoder-key", metavar="VARIABLE", help="environment variable with the endpoint's API key")
    parser.add_argument(
        "--items", action="append", default=[], metavar="DIR", help="folder of the items (default: as run.json says)"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the choice of tasks")
    parser.set_defaults(run=_run_memory)


def _calibrate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "RUN was judged without memory. Of each treatment, draw tasks from each of the four patterns of its verdicts "
        "(both variants flagged, E+ alone, E- alone, neither) and keep them in RUN/calibration.json; "
        "`paranoia label RUN --calibration` then shows these trials."
    )
    parser.add_argument("run_name", metavar="RUN", help=_RUN)
    parser.add_argument("--agent", metavar="NAME", help="whose trials (default: the only agent there is)")
    parser.add_argument(
        "--run-number", type=base.positive, default=1, metavar="N", help="which of its runs (default: 1)"
    )
    parser.add_argument("--per-pattern", type=base.positive, default=2, metavar="N", help="tasks (default: 2)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the draw")
    parser.set_defaults(run=_run_calibrate)


def _validate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compare the verdicts in RUN with its adjudicated labels: accuracy, kappa, weighted kappa, confusion by "
        "treatment, variant, form and agent, and whether errors favour a variant or an agent. Refuses where a labelled "
        "task is in the judge's memory."
    )
    parser.add_argument("run_name", metavar="RUN", help=f"{_RUN}; its labels/ holds the adjudicated labels")
    parser.add_argument("--judged", metavar="RUN", help="take the verdicts of this run of the same trials (rejudged)")
    parser.add_argument(
        "--memory",
        metavar="DIR",
        help="folder of the judge's memory, or off (default: ours; the sensors judge has none)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the validation as JSON")
    parser.add_argument("--min-kappa", type=float, metavar="K", help="exit 1 where kappa of V is below K, or undefined")
    base.add_statistics(parser)
    parser.set_defaults(run=_run_validate)


@contextmanager
def _cases(found: RunDirectory, folders: Sequence[str]) -> Iterator[Case]:
    from pytest_paranoia.corpus import PairItem

    shelf = base.shelf(found, folders)
    with tempfile.TemporaryDirectory(prefix="judge-") as scratch:

        def case(record: Record) -> tuple[PairItem, RunView]:
            item = shelf.item(record)
            assert isinstance(item, PairItem)
            return item, shelf.case(found.path, record, Path(scratch)).view

        yield case


def _run_memory(options: argparse.Namespace) -> int:
    from pytest_paranoia.judging.memory import building
    from pytest_paranoia.judging.memory.encoders import encoder
    from pytest_paranoia.judging.memory.records import BANK_FILE
    from pytest_paranoia.labelling.labels import ADJUDICATED
    from pytest_paranoia.labelling.store import LabelStore

    found = base.open_run(options.run_name)
    loaded = found.records()
    chosen = encoder(options.encoder, options.encoder_key, "--encoder")
    seed = building.SEED if options.seed is None else options.seed
    # First what the records alone can tell.
    made = None if options.consensus else building.by_construction(loaded.records, seed)
    with _cases(found, options.items) as case:
        if made is None:
            labels = LabelStore(found.path).all(ADJUDICATED)
            records = {record.trial: record for record in loaded.records}
            bank = building.build_agreed(labels, records, case, chosen, seed)
        else:
            bank = building.build(made, case, chosen, seed)
    options.to.mkdir(parents=True, exist_ok=True)
    path = options.to / BANK_FILE
    write_atomic(path, bank.text().encode())
    lines = [
        f"{path}: {len(bank.records)} records of {len({one.task for one in bank.records})} tasks, by {bank.encoder}"
    ]
    for treatment in sorted({one.treatment for one in bank.records}):
        own = [one for one in bank.records if one.treatment == treatment]
        flagged = sum(one.flagged for one in own)
        lines.append(f"  {treatment}: {len(own)} records, {flagged} flagged")
    base.say([*lines, *base.sentences([bank.note])])
    return base.OK


def _run_calibrate(options: argparse.Namespace) -> int:
    from pytest_paranoia.judging import calibrating
    from pytest_paranoia.judging.memory.building import PATTERNS, SEED

    found = base.open_run(options.run_name)
    records = found.records().records
    agents = sorted({record.agent.name for record in records if record.kind == "pair"})
    agent = options.agent or (agents[0] if len(agents) == 1 else None)
    if agent is None or agent not in agents:
        said = f"no agent {options.agent!r}" if options.agent else f"{len(agents)} agents"
        raise base.UsageProblem(f"{found.path.name} has {said}; name one with --agent: {', '.join(agents) or 'none'}")
    seed = SEED if options.seed is None else options.seed
    try:
        made = calibrating.calibrate(records, agent, options.run_number, seed, options.per_pattern)
    except ValueError as error:
        raise base.UsageProblem(f"{found.path.name}: {error}") from None
    path = calibrating.write(found.path, made)
    lines = [
        f"{path}: {len(made.drawn)} of {made.candidates} tasks drawn by the verdicts of {made.judge}, seed {made.seed}"
    ]
    lines += [f"  {one.treatment}, pattern {one.pattern!r}: {one.found} of {one.wanted}" for one in made.missing]
    lines += base.sentences([f"left out: {task}: {reason}" for task, reason in made.left_out.items()])
    lines.append(f"Patterns: {', '.join(PATTERNS)}. Next: paranoia label {options.run_name} --calibration --as NAME")
    base.say(lines)
    return base.OK


def _run_validate(options: argparse.Namespace) -> int:
    from pytest_paranoia.judging import validating
    from pytest_paranoia.labelling.labels import ADJUDICATED
    from pytest_paranoia.labelling.store import LabelStore

    found = base.open_run(options.run_name)
    judged = base.open_run(options.judged) if options.judged else found
    records = judged.records().records
    labels = LabelStore(found.path).all(ADJUDICATED)
    material = validating.gather(records, labels, _memory_tasks(options.memory, records))
    data = {"run": judged.path.name, **validating.validation(material, **base.statistics(options))}
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(options.out, (json.dumps(data, indent=1) + "\n").encode())
    base.say(_report(data))
    if options.min_kappa is None:
        return base.OK
    kappa = data["agreement"].get("flagged", {}).get("kappa", {}).get("value")
    passed = kappa is not None and kappa >= options.min_kappa
    shown = "undefined" if kappa is None else f"{kappa:.3f}"
    base.say([f"{'PASS' if passed else 'FAIL'}  kappa of V {shown}, at least {options.min_kappa:g} is asked for"])
    return base.OK if passed else base.FAILED


def _memory_tasks(given: str | None, records: Sequence[Record]) -> set[str] | None:
    """Return the tasks of the judge's memory: of the folder, and of every example that a verdict says it was shown."""
    from pytest_paranoia.corpus import content_root
    from pytest_paranoia.judging.memory.records import read

    shown = {key.partition("[")[0] for one in records if one.judging for key in one.judging.exemplars}
    sensors = all(one.judge is not None and one.judge.name == "sensors" for one in records)
    if given == "off" or (given is None and sensors):
        return shown or None
    folder = Path(given) if given is not None else content_root() / "judge" / "memory"
    bank, _ = read(folder)
    return shown | {record.task for record in bank.records}


def _report(data: dict[str, Any]) -> list[str]:
    judge = data["judge"]
    lines = [
        f"{judge['name']} ({judge['version']}): {data['pairs']} pair runs and {data['scenarios']} scenario runs with"
    ]
    lines[0] += f" adjudicated labels, of {data['tasks']} tasks"
    lines += [f"  left out: {count} × {reason}" for reason, count in data["left_out"].items()]
    names = {"accuracy": "accuracy", "kappa": "kappa", "kappa_linear": "weighted kappa", "kappa_quadratic": "quadratic"}
    for field, measures in data["agreement"].items():
        values = ", ".join(f"{names[name]} {base.measured(measure, 3)}" for name, measure in measures.items())
        lines.append(f"  {field} (n = {measures['accuracy']['units']}): {values}")
    for by, groups in data["confusion"].items():
        for name, cells in ({"V": groups} if by == "all" else groups).items():
            label = "V, all" if by == "all" else f"  by {by}, {name}"
            lines.append(
                f"  {label}: {cells['units']} runs, {cells['hit']} hits, {cells['false_alarm']} false alarms, "
                f"{cells['miss']} misses, {cells['quiet']} quiet"
            )
    for by, bias in data["bias"].items():
        errors = ", ".join(f"{name} {_plain(value)}" for name, value in bias["mean_error"].items())
        lines.append(f"  mean error by {by} (+ flags too much): {errors}; p = {_plain(bias['p'])}")
    return lines


def _plain(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3g}"
