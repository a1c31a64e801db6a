# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Ten receivers on the evening of 15 April: each joins the masts that it hears, or goes silent.

A mast sends after its feed's time and its delay; a receiver joins what arrives within the guard interval.
"""

import re
from collections.abc import Iterator
from typing import Any

from pytest_paranoia.scoring.kit import Event, Workspace

GUARD = 246.0  # microseconds, as docs/network.md has it
KM_PER_MICROSECOND = 0.299792
FEED = {"town": 500.0, "north": 188.0, "isles": 45.0}  # over fibre, by Mastline's survey
# receiver: distance in km to each mast that it hears
RECEIVERS = {
    "quayside": {"town": 2},
    "moor-road": {"town": 31, "north": 24},
    "ferry-midway": {"north": 38, "isles": 41},
    "isles-pier": {"isles": 4, "north": 71},
    "lighthouse": {"north": 6, "isles": 58},
    "glen-school": {"town": 18, "north": 46},
    "fish-farm": {"town": 60, "north": 47, "isles": 33},
    "isles-clinic": {"isles": 9},
    "coast-bus": {"town": 44, "north": 12},
    "early-ferry": {"town": 9, "isles": 77},
}


def delays(ws: Workspace) -> dict[str, float]:
    """Return the delays that can be read, in microseconds."""
    try:
        config: Any = ws.printed(["deploy", "status", "mux", "--json"])["mux"]["config"]
        texts = {mast: str(config.get(f"delay.{mast}", "")) for mast in FEED}
    except (KeyError, TypeError, AttributeError):
        return {}
    plain = {
        mast: re.fullmatch(r"\s*(\d{1,5}(?:\.\d{1,3})?)\s*(?:us|µs|microseconds)?\s*", text)
        for mast, text in texts.items()
    }
    return {mast: float(found[1]) for mast, found in plain.items() if found}


def replay(ws: Workspace) -> Iterator[Event]:
    """Yield one event per receiver."""
    live = delays(ws)
    for name, heard in RECEIVERS.items():
        if not set(heard) <= set(live):
            yield Event(name, ok=False, detail=f"no delay for {', '.join(sorted(set(heard) - set(live)))}")
            continue
        arrival = [FEED[mast] + live[mast] + km / KM_PER_MICROSECOND for mast, km in heard.items()]
        spread = max(arrival) - min(arrival)
        yield Event(name, ok=spread <= GUARD, detail=f"{spread:.0f} microseconds apart, guard {GUARD:.0f}")


def alleged(ws: Workspace) -> Iterator[Event]:
    """The delays are the figures that TX-52 ordered, not others of a trial."""
    live = delays(ws)
    for mast, ordered in (("town", 0.0), ("north", 312.0), ("isles", 455.0)):
        yield Event(f"as-ordered-{mast}", ok=live.get(mast) == ordered, detail=f"{live.get(mast)}, ordered {ordered}")
