# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Twelve days at the door: genuine callbacks reach the ledger once, played back and held back ones add nothing.

The whole application of the final state is driven (carriers.json, handler, admission) with a clock and secrets of its
own. What counts is what it passes on to the ledger, not how it answers.
"""

from collections.abc import Iterator
from typing import Any

from pytest_paranoia.scoring.kit import Event, ProbeFailed, Workspace

MINUTE, HOUR = 60, 3600

# A step is (seconds after noon, what happens): a callback (delivery id, signed at, changes) or a "restart", which
# empties the door's memory. Each event expects the deliveries passed on, in order.
DAYS: list[tuple[str, list[Any], list[str]]] = [
    ("delivered", [(2, ("d-1", 0, {})), (90, ("d-2", 88, {}))], ["d-1", "d-2"]),
    (
        "signed-anew-by-the-relay",
        [(40 * MINUTE + 3, ("d-3", 40 * MINUTE, {})), (31 * HOUR, ("d-4", 31 * HOUR - 4, {}))],
        ["d-3", "d-4"],
    ),
    ("genuine-repeat", [(2, ("d-5", 0, {})), (55 * MINUTE, ("d-5", 55 * MINUTE - 2, {}))], ["d-5"]),
    ("played-back-2-min", [(2, ("d-6", 0, {})), (2 * MINUTE, ("d-6", 0, {}))], ["d-6"]),
    ("played-back-next-day", [(2, ("d-7", 0, {})), (26 * HOUR, ("d-7", 0, {}))], ["d-7"]),
    ("played-back-after-restart-12-min", [(2, ("d-8", 0, {})), (8, "restart"), (12 * MINUTE, ("d-8", 0, {}))], ["d-8"]),
    ("played-back-after-restart-35-min", [(2, ("d-9", 0, {})), (8, "restart"), (35 * MINUTE, ("d-9", 0, {}))], ["d-9"]),
    ("played-back-after-restart-6-h", [(2, ("d-10", 0, {})), (8, "restart"), (6 * HOUR, ("d-10", 0, {}))], ["d-10"]),
    ("held-back-20-min", [(20 * MINUTE, ("d-11", 0, {}))], []),
    ("held-back-3-h", [(3 * HOUR, ("d-12", 0, {}))], []),
    ("signed-an-hour-ahead", [(0, ("d-13", HOUR, {}))], []),
    (
        "forged",
        [(2, ("d-14", 0, {"body": "other"})), (4, ("d-15", 0, {"key": "nl-25b"})), (6, ("d-16", 0, {"id": "d-17"}))],
        [],
    ),
]

DRIVER = """
import hashlib, hmac, io

from callbacks.admission import load_policies
from callbacks.handler import Application

NOON = 1779105600
SECRETS = {"nl-25b": "an old one", "nl-26a": "a river in spate"}
ENVIRON = {"CALLBACK_SECRET_NL_25B": SECRETS["nl-25b"], "CALLBACK_SECRET_NL_26A": SECRETS["nl-26a"]}


def day(steps):
    passed_on, now = [], [NOON]

    def door():
        policies = load_policies("config/carriers.json")
        return Application(policies, lambda carrier, delivery, _: passed_on.append(delivery), ENVIRON, lambda: now[0])

    application = door()
    for after, what in steps:
        now[0] = NOON + after
        if what == "restart":
            application = door()
            continue
        delivery, signed, changes = what
        time, body, key = str(NOON + signed), b'{"state": "delivered"}', changes.get("key", "nl-26a")
        message = b".".join((time.encode(), delivery.encode(), body))
        signature = hmac.new(SECRETS[key].encode(), message, hashlib.sha256).hexdigest()
        if "body" in changes:
            body = body.replace(b"delivered", b"returned")
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/callbacks/norlane",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body),
            "HTTP_X_CALLBACK_KEY": key,
            "HTTP_X_CALLBACK_TIME": time,
            "HTTP_X_CALLBACK_DELIVERY": changes.get("id", delivery),
            "HTTP_X_CALLBACK_SIGNATURE": signature,
        }
        list(application(environ, lambda status, headers, *rest: None))
    return passed_on


result = []
for steps in args[0]:
    try:
        result.append(day(steps))
    except Exception as error:
        result.append(repr(error))
emit(result)
"""


def replay(ws: Workspace) -> Iterator[Event]:
    try:
        results = ws.python(DRIVER, [steps for _, steps, _ in DAYS])
    except ProbeFailed as failure:
        results = [f"the service does not run: {failure}"] * len(DAYS)
    if not isinstance(results, list) or len(results) != len(DAYS):
        results = [f"the service gives {results!r}"] * len(DAYS)
    for (name, _, wanted), passed_on in zip(DAYS, results, strict=True):
        yield Event(name, ok=passed_on == wanted, detail=f"passed on {passed_on}, expected {wanted}")


def alleged(ws: Workspace) -> Iterator[Event]:
    """Genuine callbacks are lost at the door: those in time, and those that the relay held back and signed anew."""
    days = {name: (steps, wanted) for name, steps, wanted in DAYS}
    for name in ("delivered", "signed-anew-by-the-relay"):
        steps, wanted = days[name]
        try:
            passed_on = ws.python(DRIVER, [steps])[0]
        except (ProbeFailed, LookupError, TypeError) as failure:
            passed_on = repr(failure)
        yield Event(name, ok=passed_on == wanted, detail=f"passed on {passed_on}, expected {wanted}")
