"""``paranoia plan``: how many pairs and runs a wanted interval needs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pytest_paranoia.commands import base
from pytest_paranoia.reporting.text import one_line

if TYPE_CHECKING:
    from pytest_paranoia.metrics.planning import Components

_METRICS = ("delta", "vr", "roh", "ocr", "fcs", "fcr", "erf", "cdc", "cave")


def register(commands: base.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "plan",
        help="how many pairs (or scenarios) and runs a wanted interval needs",
        description="Say how wide the interval of a pilot RUN is, or what assumed rates lead to, and how many pairs "
        "or scenarios each number of runs needs for an interval of the wanted width.",
    )
    parser.add_argument("name", nargs="?", metavar="RUN", help="a pilot: folder of a run, or a name below reports")
    parser.add_argument(
        "--rates",
        nargs="+",
        type=_percent,
        metavar="PERCENT",
        help="assume rates instead: excess in E+ and E- for delta, or one rate for vr",
    )
    parser.add_argument("--metric", choices=_METRICS, help="default: delta, or cave where the pilot has no pairs")
    parser.add_argument("--agent", action="append", metavar="NAME", help="agent of the pilot (default: all)")
    parser.add_argument("--width", type=float, default=10.0, metavar="POINTS", help="wanted width (default: 10)")
    parser.add_argument("--runs", nargs="+", type=base.positive, metavar="N", help="numbers of runs to plan for")
    parser.add_argument(
        "--between-share",
        type=_percent,
        default=0.5,
        metavar="PERCENT",
        help="with --rates: share of the variance that lies between pairs, not between runs of one (default: 50)",
    )
    parser.add_argument("--stopping", metavar="TEXT", help="the stopping rule that was declared; it is printed along")
    parser.set_defaults(run=run)


def _percent(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text} given, expected a percentage from 0 to 100")
    return value / 100


def run(options: argparse.Namespace) -> int:
    """Print a plan for each agent, or for the assumed rates."""
    if (options.name is None) == (options.rates is None):
        raise base.UsageProblem("plan: give either a pilot RUN or --rates")
    if not 0 < options.width < float("inf"):
        raise base.UsageProblem(f"--width {options.width:g}: expected a positive number of percentage points")
    found = _pilot(options) if options.rates is None else _assumed(options)
    from pytest_paranoia.metrics.planning import plan

    given = {"runs": options.runs} if options.runs else {}
    for title, metric, components in found:
        made = plan(components, options.width, metric=metric, stopping=options.stopping, **given)
        base.say([title, *(f"  {line}" for line in made.text().splitlines())])
    return base.OK


def _pilot(options: argparse.Namespace) -> list[tuple[str, str, Components]]:
    summary = base.open_run(options.name).summary()
    from pytest_paranoia.metrics.frame import frame
    from pytest_paranoia.metrics.planning import pilot

    names = options.agent or list(summary.agents)
    if unknown := [name for name in names if name not in summary.agents]:
        raise base.UsageProblem(
            f"{summary.path}: no agent {unknown[0]} in this run; there: {', '.join(summary.agents)}"
        )
    trials = frame(summary.records)
    found = []
    for name in names:
        metric = options.metric or ("delta" if summary.agents[name].pairs is not None else "cave")
        found.append((one_line(name, base.encoding()), metric, pilot(trials, metric, name)))
    if not found:
        raise base.UsageProblem(f"{summary.path}: no trials to plan from; give --rates instead")
    return found


def _assumed(options: argparse.Namespace) -> list[tuple[str, str, Components]]:
    from pytest_paranoia.metrics.planning import assumed_delta, assumed_rate

    rates = options.rates
    metric = options.metric or ("delta" if len(rates) == 2 else "vr")
    wanted = {"delta": 2, "vr": 1, "ocr": 1, "fcr": 1}
    if wanted.get(metric) != len(rates):
        raise base.UsageProblem(
            f"--rates: {len(rates)} given for {metric}; delta takes two (E+ and E-), vr, ocr and fcr take one"
        )
    make = assumed_delta if metric == "delta" else assumed_rate
    shown = " and ".join(f"{100 * rate:g}" for rate in rates)
    return [(f"assumed: {shown} percent", metric, make(*rates, between_share=options.between_share))]
