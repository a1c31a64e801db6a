"""Which run ``--paranoia-resume`` means, and whether this session may go on with it."""

from __future__ import annotations

import difflib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_paranoia.reporting.text import one_line
from pytest_paranoia.store import RunDirectory, RunManifest
from pytest_paranoia.store.directory import RUN_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_paranoia.options import Settings
    from pytest_paranoia.store import RunSummary

_LISTED = 8
_ONCE = frozenset({f"--paranoia-{name}" for name in ("run", "resume", "compare", "markdown", "badge", "html")})


def find(name: str, reports: Path, base: Path, option: str = "--paranoia-resume") -> Path:
    """Return the folder of the run *name*: a folder (relative to *base*), or the name of one in *reports*.

    Raises ``pytest.UsageError`` with the runs there are.
    """
    for path in (base / name, reports / name):
        if (path / RUN_FILE).exists():
            return path
    known = sorted((path.parent.name for path in reports.glob(f"*/{RUN_FILE}")), reverse=True)
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    there = ", ".join(known[:_LISTED]) + (" …" if len(known) > _LISTED else "")
    raise pytest.UsageError(
        f"{option}: no run {name!r}: neither that folder nor one of that name in {reports} holds {RUN_FILE}; "
        f"{hint}there: {there or 'no run at all'}"
    )


def again(config: pytest.Config, settings: Settings, summary: RunSummary) -> list[str]:
    """Return in lines how trials without a result get another chance; [] where all of them have one.

    The command has those of this session's options that a run has to be given again. A run that judges another one
    again is made anew: what its judge's cache holds is not asked for twice.
    """
    if not (summary.missing or summary.counts.unscored):
        return []
    words = ["pytest", *_repeated(config)]
    if settings.rejudge is None:
        base, run = config.invocation_params.dir, summary.path
        shown = run.relative_to(base) if run.is_relative_to(base) else run
        named = run.parent == settings.reports and not (base / run.name / RUN_FILE).exists()
        words.append(f"--paranoia-resume={run.name if named else shown}")
    what = "only what is unscored or missing" if settings.rejudge is None else "in a run of its own"
    return ["", f"again, {what}:", f"  {one_line(shlex.join(words), 'utf-8')}"]


def _repeated(config: pytest.Config) -> Iterator[str]:
    """Yield our own options as they were given, but those that name a run to make or a file to write."""
    given = iter(map(str, config.invocation_params.args))
    for word in given:
        name, equals, value = word.partition("=")
        if name != "--model" and not name.startswith("--paranoia"):
            continue
        switch = config.getoption(name.lstrip("-").replace("-", "_"), None) is True
        if not (switch or equals):
            value = next(given, "")
        if name not in _ONCE:
            yield name if switch else f"{name}={value}"


def refuse_mixture(run: RunDirectory, now: RunManifest) -> None:
    """Raise ``pytest.UsageError`` where the trials of *now* would not be comparable with those of *run*.

    Fewer agents or items are a selection; others would make one table of two different things.
    """
    before = run.manifest
    if (source := before.options.get("rejudged")) is not None:
        raise pytest.UsageError(
            f"--paranoia-resume: {run.path.name} holds trials of {source} judged again, and a resumed run would run "
            f"agents: give --paranoia-rejudge={source} (what the judge's cache holds is not asked for twice), or go on "
            f"with {source} itself"
        )
    for what, was, given in (
        ("judge", before.judge, now.judge),
        ("environment", before.environment, now.environment),
    ):
        if was != given:
            raise _refusal(run, f"{what} {_brief(was)}, this session has {_brief(given)}", "give the same")
    for key in ("instructions", "gate"):
        then, given_now = before.options.get(key), now.options.get(key)
        if then != given_now:
            what = f"{key} {then or 'none'}, this session has {given_now or 'none'}"
            raise _refusal(run, what, f"give the same --paranoia-{key}")
    refuse_other_arms(f"--paranoia-resume: {run.path.name}", before.options.get("arms"), now.options.get("arms"))
    agents = {agent.name: agent for agent in before.agents}
    for agent in now.agents:
        known = agents.get(agent.name)
        if known is None:
            names = ", ".join(agents)
            raise _refusal(run, f"the agents {names}, not {agent.name}", f"give --model {','.join(agents)}")
        if known != agent:
            raise _refusal(run, f"{_brief(known)}, this session has {_brief(agent)}", "give the same")
        then, given_now = (manifest.agent_settings(agent.name) for manifest in (before, now))
        if then is not None and then != given_now:
            what = f"{agent.name} {_listed(then)}, this session has {_listed(given_now)}"
            raise _refusal(run, what, "give the same --paranoia-max-turns, --paranoia-models and --model")
    if now.items and before.items and not now.items.keys() & before.items.keys():
        folders = before.options.get("items")
        given_then = [f"--paranoia-items {name}" for name in folders] if isinstance(folders, list) else ["the same"]
        raise _refusal(run, "other items than this session has", f"give {' '.join(given_then)}")


def other_versions(manifest: RunManifest) -> list[str]:
    """Say in one line where the sessions of a run had different versions of this package; [] where they had one.

    No reason to refuse: what decides a number (items, judge, agents) is compared on its own.
    """
    versions = dict.fromkeys([manifest.package, *(session.package for session in manifest.resumed)])
    if len(versions) < 2:
        return []
    return [f"the run's sessions had pytest-paranoia {', '.join(versions)}; run.json tells which had which"]


def refuse_other_arms(shown: str, before: Any, now: Any) -> None:
    """Raise ``pytest.UsageError`` where two sessions' arms, as their manifests write them, are not the same."""
    if (before or None) == (now or None):
        return
    then, given = (_arms(arms) for arms in (before, now))
    what = f"the arms {then}, this session has {given}" if then != given else f"the arms {then} of other content"
    raise pytest.UsageError(
        f"{shown} was made with {what}; a run mixes no two: give the same --paranoia-arm with the same files and "
        "gates, or start a new run"
    )


def _arms(arms: Any) -> str:
    if not isinstance(arms, dict) or not arms:
        return "none"
    return ", ".join(f"{name}={'+'.join(arm.get('parts') or ['none'])}" for name, arm in arms.items())


def _refusal(run: RunDirectory, what: str, remedy: str) -> pytest.UsageError:
    return pytest.UsageError(
        f"--paranoia-resume: {run.path.name} was made with {what}; a run mixes no two: {remedy}, or start a new run"
    )


def _listed(settings: dict[str, Any] | None) -> str:
    return " ".join(f"{name}={value}" for name, value in (settings or {}).items()) or "without limits of its own"


def _brief(thing: Any) -> str:
    if thing is None:
        return "none"
    return " ".join(f"{name}={value}" for name, value in thing.model_dump(exclude_none=True).items())
