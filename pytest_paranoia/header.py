"""What a session says before its first trial: what runs where on which items, in lines of pytest's header."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pytest_paranoia import canaries
from pytest_paranoia.collection import TrialItem
from pytest_paranoia.corpus import ItemRoot, PairItem, load
from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.judging import chosen
from pytest_paranoia.schema.manifest import Repository

if TYPE_CHECKING:
    import pytest

    from pytest_paranoia.options import Settings

_PAIR: Final = re.compile(r"(?:^|/)pairs/(?P<repository>[^/]+)/[^/]+/pair\.toml::")


def only_looks(config: pytest.Config) -> bool:
    """Say whether a session only shows what there is."""
    looks = ("collectonly", "setupplan", "showfixtures", "show_fixtures_per_test")
    return any(getattr(config.option, name, False) for name in looks)


def what_runs(settings: Settings, bare: str | None) -> list[str]:
    """Return what the session runs and judges. *bare* is why trials are not isolated, None where they are."""
    lines = _validated(settings) if settings.validate else _played(settings, bare)
    if bare is not None:
        lines.append(f"NOT ISOLATED: scripted commands run directly on this machine ({bare})")
    return lines


def _validated(settings: Settings) -> list[str]:
    lines = [f"proving the items of {', '.join(root.label for root in settings.roots)}"]
    bare = [root.nodeid(path) for root in settings.roots if not (path := canaries.place(root)).is_file()]
    return lines + [f"no canary is declared in {name} (see `paranoia docs writing-pairs`)" for name in bare]


def _played(settings: Settings, bare: str | None) -> list[str]:
    agents = ", ".join(agent.name for agent in settings.agents)
    if settings.rejudge is not None:
        agents = f"of {settings.rejudge.name} (judged again)"
    place = " (isolated)" if bare is None else ""
    lines = [f"agents {agents}; judge {settings.judge.name}; environment {settings.environment}{place}"]
    lines += chosen.clashes(settings.judge, settings.agents)
    if settings.arms:
        shown = (f"{arm.name}={'+'.join(arm.parts) or 'none'}" for arm in settings.arms)
        lines.append(f"arms {', '.join(shown)}")
    return lines


def how_many(items: Iterable[pytest.Item], runs: int) -> list[str]:
    """Return how many trials *items* make, nothing where none; *runs* is how often each agent does each item."""
    trials = [item for item in items if isinstance(item, TrialItem)]
    if not trials:
        return []
    agents = {item.spec.agent.name for item in trials}
    pairs = {item.spec.item.name for item in trials if isinstance(item.spec.item, PairItem)}
    scenarios = {item.spec.item.name for item in trials if not isinstance(item.spec.item, PairItem)}
    kinds = Counter("pair" if isinstance(item.spec.item, PairItem) else "scenario" for item in trials)
    parts = [f"{kinds['pair']} of {_counted(len(pairs), 'task pair')}"] if pairs else []
    parts += [f"{kinds['scenario']} of {_counted(len(scenarios), 'scenario')}"] if scenarios else []
    who = f"{_counted(len(agents), 'agent')}, {_counted(runs, 'run')} each"
    return [f"{_counted(len(trials), 'trial')}: {', '.join(parts)}; {who}"]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def to_prepare(nodeids: Iterable[str], roots: Iterable[ItemRoot]) -> list[str]:
    """Return a line that says which upstream projects of the items *nodeids* this machine has not prepared yet."""
    wanted = {match["repository"] for nodeid in nodeids if (match := _PAIR.search(nodeid))}
    if not wanted:
        return []
    from pytest_paranoia.workspaces.prepare import is_imported  # where no pairs run it would be for nothing

    missing = set()
    for root in roots:
        for name in wanted:
            manifest = root.tasks / "pairs" / name / "repository.toml"
            # What is wrong with a manifest or a source is said where the trial wants it.
            with suppress(ParanoiaError, OSError):
                if manifest.is_file() and not is_imported(manifest.parent, load(manifest, Repository, str(manifest))):
                    missing.add(name)
    if not missing:
        return []
    one = len(missing) == 1
    return [
        f"{_counted(len(missing), 'upstream project')} {'is' if one else 'are'} not prepared on this machine yet: "
        f"{', '.join(sorted(missing))}; {'it is' if one else 'each is'} fetched and built before its first trial, "
        "once, which can take minutes (ahead of time: `paranoia prepare`)"
    ]
