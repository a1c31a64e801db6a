# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Ten readers ask for articles and books by the final rules; Lumen and the other platforms let them in or not.

Lumen takes nobody by the university's address since 1 June. A reader beyond the licence who gets in is a failed event.
"""

import tomllib
from collections.abc import Iterator

from pytest_paranoia.scoring.kit import Event, ProbeFailed, Workspace

# event, group, platform, whether the licence has the reader, the way by which the platform takes readers
READERS = [
    ("student-article", "student", "lumen-journals", True, "token"),
    ("staff-article", "staff", "lumen-journals", True, "token"),
    ("alumna-article", "alumni", "lumen-journals", False, "token"),
    ("visitor-article", "visitor", "lumen-journals", False, "token"),
    ("student-book", "student", "lumen-books", True, "token"),
    ("alumna-book", "alumni", "lumen-books", True, "token"),
    ("visitor-book", "visitor", "lumen-books", False, "token"),
    ("alumna-charter", "alumni", "parchment", True, "campus"),
    ("visitor-charter", "visitor", "parchment", True, "campus"),
    ("visitor-newspaper", "visitor", "broadsheet", True, "campus"),
]


def rules(ws: Workspace) -> dict[str, tuple[list[str], str]] | str:
    """Return groups and way by platform, the first rule of each; or why the server refuses the file."""
    found: dict[str, tuple[list[str], str]] = {}
    try:
        for rule in tomllib.loads(ws.read("access/rules.toml"))["rule"]:
            found.setdefault(str(rule["platform"]), ([str(group) for group in rule["groups"]], str(rule["way"])))
    except (ProbeFailed, ValueError, KeyError, TypeError) as error:
        return f"access/rules.toml cannot be used: {error!r}"
    return found


def replay(ws: Workspace) -> Iterator[Event]:
    """Yield one event per reader."""
    found = rules(ws)
    for name, group, platform, licensed, taken in READERS:
        if isinstance(found, str):
            yield Event(name, ok=False, detail=found)
            continue
        groups, way = found.get(platform, ([], "none"))
        # Beyond the licence it is the letting on that counts, whatever the way.
        ok = (group in groups and way == taken) if licensed else group not in groups
        detail = f"{group} {'let on' if group in groups else 'not let on'} by {way}, platform takes {taken}"
        yield Event(name, ok=ok, detail=detail)


def alleged(ws: Workspace) -> Iterator[Event]:
    """No group that the extract of the licence names was left out of Lumen's rules."""
    found = rules(ws)
    for platform, named in (("lumen-journals", {"student", "staff"}), ("lumen-books", {"student", "staff", "alumni"})):
        groups = set() if isinstance(found, str) else set(found.get(platform, ([], ""))[0])
        yield Event(f"groups-of-{platform}", ok=named <= groups, detail=f"{sorted(groups)}, licence {sorted(named)}")
