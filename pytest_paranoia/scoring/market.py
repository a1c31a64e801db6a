"""Frozen market series for replays over the trading service, and the lines that its ``close`` command reads.

Provenance: the series are made up. ``generated`` draws them from ``random.Random`` seeded with ``SEED`` and the series'
name; a step is a sum of twelve uniform numbers, scaled, plus a pull back to the level it started from. No price of any
real market went in. ``market.csv`` keeps the result, so that a replay does not hang on the generator: one close for
each weekday from ``FIRST`` to ``LAST``, in whole cents, and for ``fx`` and ``coin`` the funding of the day in
millionths. A test makes the file again and compares.

``python -m pytest_paranoia.scoring.market COPPER-SEP=metal --from 2026-05-04 --to 2026-06-02`` prints closes as entries
of a seed log for ``trading init``.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import sys
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

SEED = "pytest-paranoia market series 1"
FIRST, LAST = date(2026, 1, 5), date(2026, 12, 31)
# series -> level in cents, size of a day's step, pull back to the level, funding a day in millionths at most
SERIES = {
    "metal": (936_400, 0.011, 0.010, 0),
    "grain": (21_850, 0.013, 0.015, 0),
    "power": (7_940, 0.031, 0.060, 0),
    "gas": (3_215, 0.028, 0.040, 0),
    "index": (482_700, 0.009, 0.005, 0),
    "fx": (10_840, 0.004, 0.012, 60),
    "coin": (218_300, 0.034, 0.008, 400),
}
FILE = Path(__file__).with_name("market.csv")


def weekdays(first: date, last: date) -> Iterator[date]:
    """Yield the weekdays from *first* to *last*."""
    day = first
    while day <= last:
        if day.weekday() < 5:
            yield day
        day += timedelta(days=1)


def generated() -> Iterator[tuple[str, str, int, int]]:
    """Yield the rows of ``market.csv``: series, day, close in cents, funding in millionths."""
    for name, (level, step, pull, most) in SERIES.items():
        rng = random.Random(f"{SEED}/{name}")
        price = float(level)
        for day in weekdays(FIRST, LAST):
            bell = sum(rng.random() for _ in range(12)) - 6.0
            price = max(price * (1.0 + step * bell) + pull * (level - price), 1.0)
            funding = round(most * (2.0 * rng.random() - 0.8)) if most else 0
            yield name, f"{day}", round(price), funding


@cache
def frozen() -> Mapping[str, Mapping[str, tuple[int, int]]]:
    """Return the series of ``market.csv``: name → day → (close in cents, funding in millionths)."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    with FILE.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            found.setdefault(row["series"], {})[row["day"]] = (int(row["close"]), int(row["funding"]))
    return found


def closes(symbols: Mapping[str, str], first: str, last: str) -> list[dict[str, Any]]:
    """Return the closes from *first* to *last* (``YYYY-MM-DD``) of *symbols*, each mapped to its series.

    Raises KeyError for a series that does not exist and ValueError for days beyond the series.
    """
    begin, end = date.fromisoformat(first), date.fromisoformat(last)
    if begin < FIRST or end > LAST:
        raise ValueError(f"{first} to {last}: the series run from {FIRST} to {LAST}")
    series = {symbol: frozen()[name] for symbol, name in symbols.items()}
    found = []
    for day in map(str, weekdays(begin, end)):
        funding = {symbol: each[day][1] for symbol, each in series.items() if each[day][1]}
        found.append({"day": day, "prices": {symbol: each[day][0] for symbol, each in series.items()}})
        if funding:
            found[-1]["funding"] = funding
    return found


def lines(symbols: Mapping[str, str], first: str, last: str) -> str:
    """Return the closes as ``trading close`` reads them from standard input."""
    return "".join(json.dumps(each) + "\n" for each in closes(symbols, first, last))


def _main() -> None:
    parser = argparse.ArgumentParser(description="Print closes as entries of a seed log for `trading init`.")
    parser.add_argument("symbols", nargs="+", metavar="SYMBOL=SERIES", help=f"series: {', '.join(SERIES)}")
    parser.add_argument("--from", dest="first", required=True, metavar="DATE")
    parser.add_argument("--to", dest="last", required=True, metavar="DATE")
    args = parser.parse_args()
    symbols = dict(each.split("=", 1) for each in args.symbols)
    for each in closes(symbols, args.first, args.last):
        print(json.dumps({"op": "close", "at": f"{each['day']}T20:00", "by": "broker", **each}))


if __name__ == "__main__":
    try:
        _main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as head, has enough; Python must not complain about it when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
