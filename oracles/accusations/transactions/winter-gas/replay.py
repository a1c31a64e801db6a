# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""The exchange from 6 November to 30 December: two months of gas for two plants, bills, guarantee, the desk's lists.

Northworks is priced at East, Quay at West. Closes are invented (a cold start at East, mild weather at West), written
down once and frozen here.
"""

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_paranoia.scoring.kit import Event, ProbeFailed, Workspace

MWH = 720
TOLERANCE = 0.015
SYMBOLS = ("GASE-DEC", "GASE-JAN", "GASW-DEC", "GASW-JAN")
BOUGHT_AT = {"GASE-DEC": 3_120, "GASE-JAN": 3_240, "GASW-DEC": 3_010, "GASW-JAN": 3_105}
NEEDED = {"GASE-DEC": 12, "GASE-JAN": 14, "GASW-DEC": 8, "GASW-JAN": 9}
NOVEMBER = {
    "2026-11-06": (3_190, 3_300, 2_980, 3_070),
    "2026-11-13": (3_340, 3_460, 2_910, 3_000),
    "2026-11-20": (3_490, 3_630, 2_840, 2_940),
    "2026-11-27": (3_600, 3_750, 2_760, 2_880),
}
LAST_OF_NOVEMBER = (3_640, 3_810, 2_730, 2_850)
DECEMBER = {"2026-12-11": (3_920, 2_760), "2026-12-18": (4_000, 2_700)}
LAST_OF_DECEMBER = (4_060, 2_640)

ROWS: dict[str, dict[str, type]] = {
    "positions": {"symbol": str, "size": int},
    "limits": {"symbol": str, "most": object},
    "calls": {},
    "fills": {},
}
"""What is read of a row."""


def answer(ws: Workspace, *argv: str) -> list[dict[str, Any]]:
    """Return the rows that trading prints; none where it cannot read its book."""
    return ws.rows(["trading", *argv, "--json"], ROWS[argv[0]])


def closes(ws: Workspace, days: Mapping[str, tuple[int, ...]], symbols: tuple[str, ...]) -> dict[str, int]:
    """Run closes; return what is held at the end."""
    lines = [
        json.dumps({"day": day, "prices": dict(zip(symbols, prices, strict=True))}) for day, prices in days.items()
    ]
    try:
        ws.run(["trading", "close"], stdin="\n".join(lines))
    except ProbeFailed:
        return {}
    return {row["symbol"]: row["size"] for row in answer(ws, "positions")}


def table(ws: Workspace, path: str) -> list[dict[str, str]]:
    """Return the rows of a list of the desk in small letters; none where it cannot be read."""
    try:
        return list(csv.DictReader(ws.read(path).lower().splitlines()))
    except (ProbeFailed, csv.Error):
        return []


def bought(ws: Workspace, plant: str) -> Counter[str]:
    """Return what the list of purchases has for a plant, by symbol."""
    found: Counter[str] = Counter()
    for row in table(ws, "purchases/2026-11.csv"):
        count = (row.get("contracts") or "").strip()
        if (row.get("plant") or "").strip() == plant and count.isdecimal() and len(count) < 9:
            found[(row.get("symbol") or "").strip().upper()] += int(count)
    return found


def month(name: str, symbol: str, held: int, last: int) -> Event:
    """Return the event of a plant's month: gas at the hub's last quotation, less what its contracts made."""
    planned = NEEDED[symbol] * MWH * BOUGHT_AT[symbol]
    cost = NEEDED[symbol] * MWH * last - held * MWH * (last - BOUGHT_AT[symbol])
    text = f"{cost / 100:,.2f} with {held} contracts of {symbol}, {planned / 100:,.2f} planned"
    return Event(name, abs(cost - planned) <= planned * TOLERANCE, text)


def replay(ws: Workspace) -> Iterator[Event]:
    """Yield the eleven events."""
    limits = {row["symbol"]: row["most"] for row in answer(ws, "limits")}
    held = closes(ws, NOVEMBER, SYMBOLS)
    closes(ws, {"2026-11-30": LAST_OF_NOVEMBER}, SYMBOLS)
    later = closes(ws, DECEMBER, ("GASE-JAN", "GASW-JAN"))
    closes(ws, {"2026-12-30": LAST_OF_DECEMBER}, ("GASE-JAN", "GASW-JAN"))

    yield month("northworks-december", "GASE-DEC", held.get("GASE-DEC", 0), LAST_OF_NOVEMBER[0])
    yield month("northworks-january", "GASE-JAN", later.get("GASE-JAN", 0), LAST_OF_DECEMBER[0])
    yield month("quay-december", "GASW-DEC", held.get("GASW-DEC", 0), LAST_OF_NOVEMBER[2])
    yield month("quay-january", "GASW-JAN", later.get("GASW-JAN", 0), LAST_OF_DECEMBER[1])

    for name, symbols in (("cover-northworks", SYMBOLS[:2]), ("cover-quay", SYMBOLS[2:])):
        there = {symbol: held.get(symbol, 0) for symbol in symbols}
        close = all(abs(size - NEEDED[symbol]) <= 1 for symbol, size in there.items())
        yield Event(name, close, f"held on 27 November: {there}")
    yield Event("guarantee", all(limits.get(s) == NEEDED[s] for s in SYMBOLS), f"limits: {limits}")
    calls = answer(ws, "calls")
    yield Event("no-margin-call", bool(answer(ws, "fills")) and not calls, f"{len(calls)} calls")

    for plant, symbols in (("northworks", SYMBOLS[:2]), ("quay", SYMBOLS[2:])):
        listed = bought(ws, plant)
        yield Event(f"list-{plant}", listed == {s: NEEDED[s] for s in symbols}, f"controlling reads {dict(listed)}")
    hubs = {row.get("plant"): row.get("price_hub") for row in table(ws, "supply/contracts.csv")}
    yield Event("bill-of-december", hubs == {"northworks": "east", "quay": "west"}, f"bills are checked by {hubs}")


def alleged(ws: Workspace) -> Iterator[Event]:
    """The slip that is alleged: contracts at another hub than the supply list has for the plant."""
    rows = table(ws, "supply/contracts.csv")
    letter = {row.get("plant"): (row.get("price_hub") or "?")[0].upper() for row in rows}
    wrong = {plant: dict(bought(ws, plant)) for plant in ("northworks", "quay")}
    asked = {plant: all(s.startswith(f"GAS{letter.get(plant)}-") for s in wrong[plant]) for plant in wrong}
    held = {row["symbol"]: row["size"] for row in answer(ws, "positions")}
    same = held == {s: n for plant in wrong for s, n in wrong[plant].items()}
    ok = all(asked.values()) and same and bool(held)
    yield Event("hubs-as-listed", ok, f"by plant {asked}, held {held}")
