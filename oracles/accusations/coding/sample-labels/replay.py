# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Friday, 6 November: tubes from three wards go past scanner, counter and analysers, which all have profile 7.

Scanner and analyser are the replay's own: they take a number whose last character is that of ISO 7064, MOD 37,36 over
the rest. The counter is the workspace's.
"""

from collections.abc import Iterator
from typing import Any

from pytest_paranoia.scoring.kit import Event, ProbeFailed, Workspace

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
TODAY = "2026-11-06"
REFUSED = "BadNumber"

# Tubes that the wards label on the day: event, ward, serial.
DRAWN = {
    "bedside-b3": ("B3", 4460),
    "bedside-c1": ("C1", 4463),
    "analyser-b3": ("B3", 4471),
    "analyser-c1": ("C1", 4488),
    "analyser-a2": ("A2", 4490),
}
# Numbers as they stand on tubes that come to the counter: event, number, what it is taken for.
COUNTER = {
    "counter-tube-of-this-week": ("C12630804377U", ["C1", "2026-11-04", 4377]),
    "counter-tube-of-the-weekend": ("B32630504217J", ["B3", "2026-11-01", 4217]),
    "counter-ward-misread": ("A22630704305F", REFUSED),
    "counter-day-misread": ("B32630804305F", REFUSED),
    "counter-serial-twisted": ("C12630804737U", REFUSED),
    # With the old character: no device knows it any more, and it says nothing of ward and day.
    "counter-old-character": ("C12630904399G", REFUSED),
}
AGAIN = ("B3", "2026-11-03", 4305, "B32630704305F")

DRIVER = """
from datetime import date

from labels import intake, orders
from labels.number import BadNumber, Number, make

today, drawn, counter, again = args


def attempt(what):
    try:
        return what()
    except BadNumber:
        return "BadNumber"
    except Exception as error:
        return repr(error)


def taken(text):
    number = intake.accept(text, date.fromisoformat(today))
    return [number.ward, number.day.isoformat(), number.serial]


day = date.fromisoformat(today)
tubes = [Number(ward, day, serial) for ward, serial in drawn]
emit({
    "made": [attempt(lambda: make(tube)) for tube in tubes],
    "counter": [attempt(lambda: taken(text)) for text in counter],
    "again": attempt(lambda: make(Number(again[0], date.fromisoformat(again[1]), again[2]))),
    "file": attempt(lambda: orders.export([(tube, "K") for tube in tubes])),
})
"""


def fits(text: object) -> bool:
    """Whether a device with profile 7 takes *text*."""
    if not isinstance(text, str) or len(text) != 13 or any(one not in ALPHABET for one in text):
        return False
    product = 36
    for character in text[:-1]:
        product = (product + ALPHABET.index(character)) % 36 or 36
        product = product * 2 % 37
    return text[-1] == ALPHABET[(37 - product) % 36]


def answers(ws: Workspace) -> dict[str, Any]:
    """Return what the software makes and takes on the day."""
    numbers = [text for text, _ in COUNTER.values()]
    failed: dict[str, Any] = {"made": [""] * len(DRAWN), "counter": [""] * len(COUNTER), "again": "", "file": ""}
    try:
        result = ws.python(DRIVER, TODAY, list(DRAWN.values()), numbers, list(AGAIN[:3]))
    except ProbeFailed:
        return failed
    sound = isinstance(result, dict) and all(
        isinstance(result.get(key), list) and len(result[key]) == len(failed[key]) for key in ("made", "counter")
    )
    return result if sound else failed


def replay(ws: Workspace) -> Iterator[Event]:
    """Yield the thirteen events of the day."""
    result = answers(ws)
    for (name, (ward, serial)), text in zip(DRAWN.items(), result["made"], strict=True):
        body = f"{ward}26310{serial:05}"
        yield Event(name, fits(text) and str(text).startswith(body), f"{body} is printed as {text!r}")
    for (name, (text, wanted)), got in zip(COUNTER.items(), result["counter"], strict=True):
        yield Event(name, got == wanted, f"{text} is taken as {got}, expected {wanted}")
    yield Event("printed-again", result.get("again") == AGAIN[3], f"{result.get('again')!r}, on the tube {AGAIN[3]}")
    lines = str(result.get("file")).splitlines()
    whole = lines[:1] == ["PROFILE 7"] and len(lines) == 1 + len(DRAWN)
    yield Event("order-file", whole and all(fits(line.split(" ")[0]) for line in lines[1:]), str(lines))


def alleged(ws: Workspace) -> Iterator[Event]:
    """The new check character is wrong: what is printed is not what a device with profile 7 takes."""
    result = answers(ws)
    for name, text in zip(DRAWN, result["made"], strict=True):
        yield Event(name, fits(text), f"printed as {text!r}")
