"""``paranoia compare RUN RUN``: what changed between two runs, and whether that is more than chance."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_paranoia.commands import base
from pytest_paranoia.reporting.text import one_line

if TYPE_CHECKING:
    from pytest_paranoia.metrics.comparing import Comparison
    from pytest_paranoia.reporting.comparison import Threshold

_METRICS = (
    *("tsr", "tsr_plus", "tsr_minus", "vr", "rate_minus", "delta", "er_pooled"),
    *("roh", "ocr", "fcs", "fcr", "erf", "cdc", "cave"),
)


def register(commands: base.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "compare",
        help="compare two runs on the same items: change, interval, p, smallest detectable change",
        description="Compare BEFORE with AFTER on the items that both have: paired change with 95%% interval, "
        "permutation p, Holm's correction over all that is tested, smallest detectable change, and what was left out.",
    )
    parser.add_argument("before", metavar="BEFORE", help="folder of a run, or the name of one below reports")
    parser.add_argument("after", metavar="AFTER", help="another run, or the same one to compare two of its agents")
    parser.add_argument(
        "--agent",
        action="append",
        default=[],
        metavar="NAME[=NAME]",
        help="agent of both runs, or OLD=NEW: OLD of BEFORE against NEW of AFTER (repeatable; default: all in both)",
    )
    parser.add_argument(
        "--metric", action="append", choices=_METRICS, help="what to test instead of the default metrics (repeatable)"
    )
    parser.add_argument(
        "--threshold",
        action="append",
        default=[],
        metavar="METRIC=POINTS",
        help="exit 1 where METRIC is worse by more than POINTS, or undefined (repeatable)",
    )
    parser.add_argument(
        "--significant", action="store_true", help="a threshold counts only where p after Holm is below .05"
    )
    parser.add_argument(
        "--changed-items", action="store_true", help="compare items also where their content has changed"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="also write the table into DIR; made if missing")
    parser.add_argument(
        "--format", choices=base.FORMATS, action="append", help="of that file; repeatable (default: csv)"
    )
    base.add_statistics(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare two runs."""
    # A name holds no "=": agents' names are parts of ids.
    chosen = [(old, new or old) for old, _, new in (text.partition("=") for text in options.agent)]
    before, after = base.open_run(options.before).summary(), base.open_run(options.after).summary()
    from pytest_paranoia.reporting import comparison

    thresholds = [_threshold(text) for text in options.threshold]
    metrics = [*(options.metric or comparison.METRICS), *(threshold.metric for threshold in thresholds)]
    agents = comparison.arms(before, after, chosen)
    statistics = base.statistics(options)
    found = comparison.compared(before, after, agents, metrics, changed_items=options.changed_items, **statistics)
    base.say(comparison.lines(before, after, found, base.width(), base.encoding()))
    if options.out is not None:
        from pytest_paranoia.reporting.tables.files import write_tables

        for form in dict.fromkeys(options.format or ["csv"]):
            (written,) = write_tables([comparison.table(found)], options.out, form)
            base.say([f"{form}: {one_line(str(written), base.encoding())}"])
    return _judged(thresholds, found, options.significant)


def _threshold(text: str) -> Threshold:
    from pytest_paranoia.reporting.comparison import Threshold

    metric, _, points = text.partition("=")
    if metric not in _METRICS:
        raise base.UsageProblem(f"--threshold {text}: no metric {metric!r}; choose one of {', '.join(_METRICS)}")
    try:
        value = float(points)
        if not 0 <= value <= 1e6:
            raise ValueError(f"{points} is no number of points of at least 0")
        return Threshold(metric, value)
    except ValueError as error:
        raise base.UsageProblem(f"--threshold {text}: {error}; give METRIC=POINTS, such as vr=5") from None


def _judged(thresholds: list[Threshold], found: Comparison, significant: bool) -> int:
    code = base.OK
    for threshold in thresholds:
        rows = [row for row in found.rows.to_dict("records") if row["metric"] == threshold.metric]
        for row in rows:
            named = {str(key): value for key, value in row.items()}
            passed, told = threshold.judged(named, significant)
            code = code if passed else base.FAILED
            agent = one_line(str(row["agent"]), base.encoding())
            base.say([f"{'PASS' if passed else 'FAIL'}  {threshold.metric}  {agent}  {told}"])
        if not rows:
            base.say([f"FAIL  {threshold.metric}  not measured in these runs"])
            code = base.FAILED
    return code
