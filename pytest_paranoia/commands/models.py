"""``paranoia models``: which models ``--model`` knows, what runs them, and what is missing here to use them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pytest_paranoia.commands import base


def register(commands: base.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "models",
        help="list the models that --model knows, and what is missing to use them",
        description="List the models that --model knows: harness, provider, the provider's id, settings, and what is "
        "missing on this machine (a key, a command-line agent) with the way to get it. Asks no provider.",
    )
    parser.add_argument("name", nargs="*", metavar="NAME", help="only these; exit code 1 where one cannot be used here")
    parser.add_argument("--models", type=Path, metavar="FILE", help="TOML file with models and providers of your own")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """List the registry."""
    # Here: the other subcommands need no model, and pay nothing for them.
    import pytest

    from pytest_paranoia import registry
    from pytest_paranoia.agents.models import ModelRegistry, missing_key, resolve

    models = ModelRegistry.read(options.models)
    names = options.name or models.names()
    rows: list[dict[str, Any]] = []
    for name in names:
        try:
            if name not in models.models and ":" not in name:
                registry.agent(name, models)  # says what was probably meant
            choice = resolve(name, models, registry.harness)
        except pytest.UsageError as error:
            raise base.UsageProblem(str(error).removeprefix("--model: ")) from None
        lacks = [lack for lack in (missing_key(choice), registry.harness(choice.harness).missing(choice)) if lack]
        entry = models.models.get(name)
        rows.append(
            {
                "name": name,
                "harness": choice.harness,
                "provider": choice.provider.name if choice.provider else None,
                "id": choice.model,
                "effort": choice.effort,
                "context": choice.context,
                "max_output": choice.max_output,
                "papers": entry.papers if entry else [],
                "missing": lacks,
            }
        )
    if options.json:
        base.say([json.dumps(rows, indent=1)])
    else:
        _show(rows)
    return base.FAILED if options.name and any(row["missing"] for row in rows) else base.OK


def _show(rows: list[dict[str, Any]]) -> None:
    table = [["NAME", "HARNESS", "PROVIDER", "ID", "EFFORT", "READY"]]
    for row in rows:
        ready = "yes" if not row["missing"] else "no"
        table.append([str(row[key] or "-") for key in ("name", "harness", "provider", "id", "effort")] + [ready])
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    for line in table:
        base.say(["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()])
    lacking: dict[str, list[str]] = {}
    for row in rows:
        for lack in row["missing"]:
            lacking.setdefault(lack, []).append(row["name"])
    if lacking:
        base.say(["", "missing here:"])
        base.say([f"  {lack} (for {', '.join(names)})" for lack, names in lacking.items()])
