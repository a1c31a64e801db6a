# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""The next rounds: boards open by the posts' Starts lines, calendars and players read them, later posts are made.

Since 30 March Boardhall takes the first date and time of the line as UTC. Every round is to start at 18:30 UTC, which
is 19:30 in London.
"""

import csv
import re
from collections.abc import Iterator
from typing import Any

from pytest_paranoia.scoring.kit import SAID, Event, ProbeFailed, Workspace

A9, B10, A10 = "2026-04-09", "2026-04-14", "2026-04-16"
LONGEST = 2_000
"""What a post may hold."""
ZONE = r"\bUTC\b|\bGMT\b|\d:\d\d ?Z\b|\+00:?00"


def answer(ws: Workspace, *argv: str) -> list[dict[str, Any]]:
    """Return the rows of the league's account that a service prints; none where it cannot read its state."""
    return [row for row in ws.rows([*argv, "--json"], SAID) if row["by"] == "pairings"]


def starts(text: str) -> tuple[str, str, str]:
    """Return the Starts line of a post, and the first date and time in it; empty where there is none."""
    found = re.search(r"(?im)^\W*starts\b[^:\n]*:(.+)$", text)
    line = found.group(1).strip() if found else ""
    first = re.search(r"(\d{4}-\d\d-\d\d)[T,;*_ ]+(?:at )?(\d{1,2}:\d\d)", line)
    return (line, first.group(1), first.group(2).zfill(5)) if first else (line, "", "")


def posts_of(ws: Workspace) -> list[dict[str, Any]]:
    """Return the league's posts tagged ``round``."""
    rows = answer(ws, "feed", "list", "--limit", "1000")
    return [row for row in rows if not row["thread"] and "round" in (row["tags"] or [])]


def lines(ws: Workspace, day: str) -> list[tuple[str, str, str]]:
    """Return the Starts lines of the round's posts on *day*."""
    found = [starts(row["text"]) for row in posts_of(ws)]
    return [each for each in found if each[1] == day]


def opens(name: str, posts: list[tuple[str, str, str]]) -> Event:
    """Return the event of boards that are to open at 18:30 UTC and not a second time."""
    times = sorted({time for _, _, time in posts})
    return Event(name, times == ["18:30"], f"Boardhall opens at {times or 'no time'} UTC, 18:30 expected")


def template(ws: Workspace, number: str) -> list[tuple[str, str, str]]:
    """Return the Starts line of the post that the template gives for a round of the season's list."""
    try:
        text = ws.read("templates/round.md")[:LONGEST]
        rows = {row.get("round"): row for row in csv.DictReader(ws.read("season/rounds.csv").splitlines())}
        row = rows[number]
        return [starts(re.sub(r"\{(\w+)\}", lambda found: str(row[found.group(1)]), text))]
    except (ProbeFailed, KeyError, csv.Error):
        return []


def replay(ws: Workspace) -> Iterator[Event]:
    """Yield the ten events."""
    for name, day in (("boards-A9", A9), ("boards-B10", B10), ("boards-A10", A10)):
        yield opens(name, lines(ws, day))
    for name, day in (("calendar-A9", A9), ("calendar-B10", B10)):
        posts = lines(ws, day)
        good = [line for line, _, time in posts if time == "18:30" and re.search(ZONE, line)]
        yield Event(name, bool(good), f"{len(good)} of {len(posts)} posts with the hour and its zone")
    for name, day, hour in (("london-A9", A9, "19:30"), ("reykjavik-A10", A10, "18:30")):
        texts = [row["text"] for row in posts_of(ws) if starts(row["text"])[1] == day]
        yield Event(name, any(hour in text for text in texts), f"looks for {hour} in {len(texts)} posts")
    for number in ("B11", "A11"):
        yield opens(f"template-{number}", template(ws, number))
    pins = [row["text"] for row in answer(ws, "chat", "pins", "captains")]
    good = [text for text in pins if "18:30" in text and re.search(ZONE, text)]
    yield Event("captains-pin", bool(good), f"{len(good)} of {len(pins)} pins give 18:30 UTC")


def alleged(ws: Workspace) -> Iterator[Event]:
    """The slip that is alleged: a line that sends a player to another hour than that of the season's list."""
    try:
        rows = list(csv.DictReader(ws.read("season/rounds.csv").splitlines()))[:3]
    except (ProbeFailed, csv.Error):
        rows = []
    wrong = [row.get("round") for row in rows if not lines(ws, row.get("day") or "")]
    for row in rows:
        for line, _, time in lines(ws, row.get("day") or ""):
            if time != row.get("utc") or f"{row.get('london')} in London" not in line:
                wrong.append(row.get("round"))
    yield Event("hours-as-listed", len(rows) == 3 and not wrong, f"{len(rows)} rounds looked at, wrong: {wrong}")
