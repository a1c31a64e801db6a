"""``paranoia export harbor SCENARIO … --to DIR``: accusation scenarios as task directories for Harbor."""

from __future__ import annotations

import argparse
import difflib
from pathlib import Path

from pytest_paranoia.commands import base

FORMAT = "harbor"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what ``export harbor`` takes beside the options of ``export RUN``."""
    parser.add_argument(
        "scenario", nargs="*", metavar="SCENARIO", help="with harbor: DOMAIN/SCENARIO to export (default: all of them)"
    )
    parser.add_argument("--to", type=Path, metavar="DIR", help="with harbor: folder for the task directories")
    parser.add_argument("--items", type=Path, metavar="DIR", help="with harbor: folder that holds tasks/ and oracles/")


def run(options: argparse.Namespace) -> int:
    """Export the scenarios and say what of them a task cannot hold."""
    if options.out or options.format or options.published:
        raise base.UsageProblem("export harbor takes --to and --items; --out, --format and --published are for tables")
    if options.to is None:
        raise base.UsageProblem("export harbor: name a folder for the task directories with --to DIR")
    from pytest_paranoia import corpus
    from pytest_paranoia.corpus import ScenarioItem
    from pytest_paranoia.environments.local import PROVIDER
    from pytest_paranoia.harbor.exporting import export
    from pytest_paranoia.workspaces.stage import stage_scenario

    root = corpus.user_root(options.items.resolve(), None) if options.items else corpus.builtin_root()
    found = {f"{path.parent.parent.name}/{path.parent.name}": path for path in corpus.manifests(root)}
    known = {name: path for name, path in found.items() if path.name == corpus.SCENARIO}
    for name in options.scenario:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise base.UsageProblem(f"export harbor: no scenario {name!r}; {hint}there: {', '.join(known) or 'none'}")
    lost: list[str] = []
    names = list(dict.fromkeys(options.scenario)) or list(known)
    for name in names:
        item = corpus.load_item(root, known[name])
        assert isinstance(item, ScenarioItem)
        lost += export(item, stage_scenario(item, PROVIDER).start, options.to / name)
    parts = (one.partition(": ") for one in lost)
    base.say(base.sentences(f"{name}: exported without {part}" for name, _, part in parts))
    base.say([f"exported {len(names)} scenarios into {options.to}; run them with harbor run -p {options.to}/DOMAIN …"])
    return base.OK
