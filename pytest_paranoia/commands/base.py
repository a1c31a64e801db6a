"""What subcommands share: exit codes, naming a run, options of the statistics."""

from __future__ import annotations

import argparse
import difflib
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.reporting.text import one_line, wrapped
from pytest_paranoia.store import RunDirectory, StoreError
from pytest_paranoia.store.directory import RUN_FILE

if TYPE_CHECKING:
    from pytest_paranoia.judging.archive import Shelf

OK: Final = 0
FAILED: Final = 1
UNUSABLE: Final = 2
INTERRUPTED: Final = 130
REPORTS: Final = "reports"
FORMATS: Final = ("csv", "parquet", "latex", "json")
"""Of exported tables; the encoders are in ``reporting.tables.files``, which needs pandas."""
_LISTED: Final = 5


class UsageProblem(ParanoiaError):
    """Something asked for that cannot be meant."""


class Subparsers(Protocol):
    """What ``ArgumentParser.add_subparsers`` returns, as far as it is used."""

    def add_parser(self, name: str, **kwargs: Any) -> argparse.ArgumentParser:
        """Add a subcommand."""


def find_run(name: str, base: Path | None = None) -> Path:
    """Return the folder of the run *name*: a folder, or the name of one below ``reports``. Raises StoreError."""
    here = Path.cwd() if base is None else base
    reports = here / REPORTS
    for path in (here / name, reports / name):
        if (path / RUN_FILE).exists():
            return path if Path(name).is_absolute() else path.relative_to(here)
    known = sorted((path.parent.name for path in reports.glob(f"*/{RUN_FILE}")), reverse=True)
    close = difflib.get_close_matches(Path(name).name, known, n=1)
    there = ", ".join(known[:_LISTED]) + (" …" if len(known) > _LISTED else "")
    remedy = f"Did you mean {close[0]}? " if close else ""
    raise StoreError(
        Path(name),
        f"no run directory: neither this folder nor one of that name in {REPORTS} holds {RUN_FILE}",
        f"{remedy}There: {there}" if there else f"Give the folder of a run, one that holds {RUN_FILE}",
    )


def open_run(name: str) -> RunDirectory:
    """Open the run *name* for reading. Raises StoreError."""
    return RunDirectory.open(find_run(name))


def add_statistics(parser: argparse.ArgumentParser) -> None:
    """Add the options that decide how intervals and p-values are made."""
    # Not the constants themselves: importing them would load NumPy for every subcommand, also for --help.
    parser.add_argument(
        "--resamples", type=positive, metavar="N", help="bootstrap resamples and permutations (default: 10,000)"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="seed of both; the same seed gives the same numbers")


def statistics(options: argparse.Namespace) -> dict[str, Any]:
    """Return the given options of ``add_statistics`` as arguments of a statistic."""
    given = {"resamples": options.resamples, "seed": options.seed}
    return {name: value for name, value in given.items() if value is not None}


def positive(text: str) -> int:
    """Return *text* as a whole number of at least 1, for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} given, expected a whole number of at least 1")
    return value


def measured(measure: Mapping[str, Any], digits: int) -> str:
    """Return a measure with its interval in words: ``value``, ``lo`` and ``hi``, each None where undefined."""
    if measure["value"] is None:
        return "undefined"
    interval = "" if measure["lo"] is None else f" [{measure['lo']:.2f}, {measure['hi']:.2f}]"
    return f"{measure['value']:.{digits}f}{interval}"


def shelf(run: RunDirectory, folders: Sequence[str]) -> Shelf:
    """Return the shelf for the archive of *run*, whose items lie in *folders*, by default where run.json says.

    Raises UsageProblem where a folder does not exist, or not one item of the run is there.
    """
    from pytest_paranoia import registry
    from pytest_paranoia.judging import places
    from pytest_paranoia.judging.archive import Shelf, judgeable

    here = Path.cwd()
    for name in folders:
        if name != places.BUILTIN and not (here / name.removeprefix(f"{places.HARBOR}:")).is_dir():
            raise UsageProblem(f"--items: {name} is no folder; give one that holds tasks/ and oracles/")
    names = folders or places.recorded(run.manifest, (here, run.path.resolve().parent.parent)) or [places.BUILTIN]
    roots = [places.root_of(name, here) for name in names]
    records = run.records().records
    lacking = places.strangers(records, roots)
    if lacking and set(lacking) == {record.item for record in judgeable(records)}:
        raise UsageProblem(
            f"{run.path.name} is of items that are not in {', '.join(root.label for root in roots)}: "
            f"{places.named(lacking)}; name their folder with --items DIR"
        )
    return Shelf(roots, registry.environment("local"), option="--items")


def width() -> int:
    """Return how wide the output may be: the terminal, or 110 columns where there is none; never below 80."""
    return max(80, shutil.get_terminal_size((110, 24)).columns)


def encoding() -> str:
    """Return what standard output can show."""
    return getattr(sys.stdout, "encoding", None) or "ascii"


def say(lines: list[str]) -> None:
    """Print *lines*, of none nothing."""
    if lines:
        print("\n".join(lines), flush=True)


def sentences(texts: Iterable[str]) -> list[str]:
    """Return *texts* as lines that can be printed, none of them cut."""
    return [line for text in texts for line in wrapped(one_line(text, encoding()), width(), "  ", "    ")]


def complain(error: Exception) -> None:
    """Print *error* as one line on stderr."""
    print(f"paranoia: {' '.join(str(error).split())}", file=sys.stderr, flush=True)
