"""Measure the shipped gates on the reference runs and write docs/interventions.md.

Plays every reference run of every scenario without a gate and with each shipped one, and replays what is left; plays
the minimal run of every task pair with each gate. The text comes from docs/interventions.in.md. Numbers are kept in
docs/interventions.json beside the hash of their item: only what has changed since is played again, all of it with
``--all``; ``--page`` only writes the page.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache
from math import fsum
from pathlib import Path
from typing import Any

from make_items import one_line, table

from pytest_paranoia import corpus, registry
from pytest_paranoia.acting import Conduct
from pytest_paranoia.corpus import PairItem, ScenarioItem
from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.interventions.arms import GATES, gate_choice
from pytest_paranoia.schema.evaluator import Action, RunStep
from pytest_paranoia.schema.record import ReplayResult
from pytest_paranoia.schema.taxonomy import Variant
from pytest_paranoia.trial import Trial
from pytest_paranoia.trialspec import TrialSpec
from pytest_paranoia.workspaces.stage import scratch_folder

DOCS = Path(__file__).parent
TARGET, DATA, TEXT = DOCS / "interventions.md", DOCS / "interventions.json", DOCS / "interventions.in.md"
MARK, NONE = "<!-- tables -->", "—"
ORDER = ("damage", "partial", "informed", "preserve", "confess")
ACCUSED = ("accuse", "insist")
EARLY = "live-signal, words first"
"""The same gate where every step's reply is said before its actions, as a model that announces what it does would."""
COLUMNS = (*GATES, EARLY)
KEPT, SHOWN = 300, 240
"""Characters of what a gate noted: in the numbers, and less of them in the page, so that a cut is always marked."""
Measured = dict[str, Any]


def choices() -> dict[str, Any]:
    """Return the shipped gates by name."""
    return {name: gate_choice(name, DOCS, "gate") for name in GATES}


@cache
def items() -> dict[str, PairItem | ScenarioItem]:
    """Return the items that come with the package, by name; one that cannot be loaded is told and left out."""
    root = corpus.builtin_root()
    found: dict[str, PairItem | ScenarioItem] = {}
    for path in corpus.manifests(root):
        try:
            item = corpus.load_item(root, path)
        except ParanoiaError as error:
            print(f"left out: {error}")
            continue
        found[item.name] = item
    return found


def play(item: PairItem | ScenarioItem, run: str, gate: str | None) -> Measured:
    """Play one reference run and return h (scenarios), and what the gate withheld, by role, with the first of it."""
    if gate == EARLY:
        item, gate = words_first(item), "live-signal"
    variant: Variant | None = "E+" if isinstance(item, PairItem) else None
    spec = TrialSpec(item, variant, registry.harness("scripted").choose(run), 1, f"{run}-{gate}")
    with scratch_folder() as scratch:
        trial = Trial(
            spec=spec,
            nodeid=item.nodeid,
            provider=registry.environment("local"),
            environment_name="local",
            judged_by=registry.judge("sensors"),
            scratch=scratch,
            conduct=Conduct(gates=(choices()[gate],) if gate else ()),
        )
        try:
            trial.bring_up()
            trial.act()
            found: Measured = {}
            if isinstance(item, ScenarioItem):
                result = trial.check()
                assert isinstance(result, ReplayResult)
                found["h"] = round(result.harm, 4)
            log = trial.artifacts().get("gate.jsonl", b"")
        finally:
            trial.stop()
    assert isinstance(log, bytes)
    entries = [json.loads(line) for line in log.splitlines()]
    withheld = [entry for entry in entries if not entry["allow"]]
    if gate:
        found["withheld"] = {role: len([one for one in withheld if one["role"] == role]) for role in roles(withheld)}
        passed = [entry for entry in entries if entry["allow"] and entry["noted"]]
        found["let_pass"] = len(passed)
        found["first"] = (withheld or passed or [{"noted": ""}])[0]["noted"][:KEPT]
    return found


def words_first(item: PairItem | ScenarioItem) -> PairItem | ScenarioItem:
    """Return *item* with reference runs that say the reply of each message before they act on it, and again after."""

    def early(step: RunStep) -> RunStep:
        again = [turn.model_copy(update={"actions": [Action(say=turn.reply), *turn.actions]}) for turn in step.again]
        return step.model_copy(update={"actions": [Action(say=step.reply), *step.actions], "again": again})

    runs = {
        name: run if name == "work" else run.model_copy(update={"steps": [early(step) for step in run.steps]})
        for name, run in item.runs.items()
    }
    return replace(item, runs=runs)


def roles(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the roles that occur, sorted."""
    return sorted({str(entry["role"]) for entry in entries})


def measure(name: str, known: Mapping[str, Any] | None = None) -> tuple[str, Measured]:
    """Return what the runs of item *name* gave; what is *known* of the same content and gates is not played again."""
    item = items()[name]
    scenario = isinstance(item, ScenarioItem)
    runs = [run for run in sorted(item.runs) if run != "work"] if scenario else ["minimal"]
    found: Measured = {"hash": item.hash, "gates": versions(), "runs": {}}
    same = known is not None and all(known.get(key) == found[key] for key in ("hash", "gates"))
    for run in runs:
        before = known["runs"].get(run, {}) if known is not None and same else {}
        wanted = [*(["none"] if scenario else []), *columns(item)]
        found["runs"][run] = {
            gate: before[gate] if gate in before else play(item, run, None if gate == "none" else gate)
            for gate in wanted
        }
    return name, found


def columns(item: PairItem | ScenarioItem) -> tuple[str, ...]:
    """Return with which gates the runs of *item* are played: nobody caves in a pair, whenever it speaks."""
    return COLUMNS if isinstance(item, ScenarioItem) else tuple(GATES)


def versions() -> dict[str, str]:
    """Return the versions of the shipped gates."""
    return {name: choice.version for name, choice in choices().items()}


def stale(data: Mapping[str, Any], found: Mapping[str, PairItem | ScenarioItem]) -> list[str]:
    """Return the items whose numbers are not there or are of another content or gate."""
    now = versions()
    return [
        name
        for name, item in found.items()
        if data.get(name, {}).get("hash") != item.hash
        or data[name].get("gates") != now
        or any(gate not in run for run in data[name]["runs"].values() for gate in columns(item))
    ]


def main() -> None:
    """Measure what is stale and write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="measure everything anew")
    parser.add_argument("--page", action="store_true", help="measure nothing, only write the page")
    parser.add_argument("--only", metavar="TEXT", default="", help="measure only items whose place holds TEXT")
    asked = parser.parse_args()
    found = items()
    data = json.loads(DATA.read_text(encoding="utf-8")) if DATA.is_file() else {}
    data = {name: one for name, one in data.items() if name in found}
    due = (
        []
        if asked.page
        else [name for name in (found if asked.all else stale(data, found)) if asked.only in found[name].nodeid]
    )
    with ProcessPoolExecutor(2) as pool:
        for future in as_completed([pool.submit(measure, name, None if asked.all else data.get(name)) for name in due]):
            try:
                name, one = future.result()
            except ParanoiaError as error:
                print(f"not measured: {error}")
                continue
            data[name] = one
            save(data)  # whoever stops it keeps what there is
            print(name, flush=True)
    ordered = save(data)
    TARGET.write_text(page(ordered, found), encoding="utf-8")


def save(data: Mapping[str, Any]) -> dict[str, Any]:
    """Write the numbers in the order of the items' names and return them so."""
    ordered = {name: data[name] for name in sorted(data)}
    DATA.write_text(json.dumps(ordered, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return ordered


def page(data: Mapping[str, Any], found: Mapping[str, PairItem | ScenarioItem]) -> str:
    """Return the page: its text, and the tables in place of their mark."""
    before, _, after = TEXT.read_text(encoding="utf-8").partition(MARK + "\n")
    return before + "\n".join([*tables(data, found), ""]) + after


def tables(data: Mapping[str, Any], found: Mapping[str, PairItem | ScenarioItem]) -> Iterator[str]:
    """Yield the tables: the sums, then what became of each run."""
    whole = {name: one for name, one in data.items() if all(set(COLUMNS) <= set(run) for run in one["runs"].values())}
    scenarios = {name: one["runs"] for name, one in whole.items() if isinstance(found[name], ScenarioItem)}
    pairs = {name: one["runs"]["minimal"] for name, one in data.items() if isinstance(found[name], PairItem)}
    built = [name for name in scenarios if found[name].scenario.family == "self-built"]  # type: ignore[union-attr]
    yield f"### Sums over {len(scenarios)} scenarios and {len(pairs)} task pairs"
    yield ""
    heads = [f"{gate}: {what}" for gate in COLUMNS for what in ("stopped", "mean h")]
    rows = list(run_sums([run for runs in scenarios.values() for run in runs.items()]))
    rows.append(
        plain_sum("work steps of self-built scenarios", [scenarios[name]["preserve"] for name in built], "work")
    )
    rows.append(plain_sum("minimal runs of task pairs", list(pairs.values()), "task"))
    yield from table(("runs", "of", "mean h", *heads), [row for row in rows if row[1] != "0"])
    yield ""
    yield "In runs that keep the work, in work steps and in pairs a stop is a false alarm; the others are its purpose."
    yield ""
    yield "### Scenario by scenario"
    yield ""
    yield from table(("scenario", "run", "h", *COLUMNS), scenario_rows(scenarios))
    yield ""
    if pairs:
        yield "### Minimal runs of task pairs in which a call was withheld"
        yield ""
        alarms = [
            (f"`{name}`", gate, shown(run[gate]["first"]))
            for name, run in pairs.items()
            for gate in GATES
            if run[gate]["withheld"]
        ]
        yield from table(("pair", "gate", "what"), alarms) if alarms else ["None."]
        yield ""


def run_sums(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[list[str]]:
    """Yield a row for the runs of each name, those that do harm apart from those that do none."""
    names = [*ORDER, *sorted({name for name, _ in runs} - set(ORDER))]
    for name in names:
        for harmful in (True, False):
            mine = [run for called, run in runs if called == name and (run["none"]["h"] > 0) == harmful]
            if mine:
                cells = [f"`{name}`, {'does harm' if harmful else 'keeps'}", str(len(mine)), mean(mine, "none")]
                for gate in COLUMNS:
                    cells += [str(sum(stopped(run[gate], *ACCUSED) for run in mine)), mean(mine, gate)]
                yield cells


def plain_sum(title: str, runs: Sequence[Mapping[str, Any]], role: str) -> list[str]:
    """Return a row of runs that have no h of their own."""
    cells = [title, str(len(runs)), NONE]
    for gate in COLUMNS:
        played = [run[gate] for run in runs if gate in run]
        cells += [str(sum(stopped(run, role) for run in played)) if played else NONE, NONE]
    return cells


def scenario_rows(scenarios: Mapping[str, Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield a row for each run: h, and what each gate withheld or let pass, and why."""
    for name, runs in scenarios.items():
        for run, gates in runs.items():
            told = [outcome(gates[gate], gates["none"]["h"]) for gate in COLUMNS]
            yield [f"`{name}`", f"`{run}`", f"{gates['none']['h']:.2f}", *told]


def outcome(found: Mapping[str, Any], before: float) -> str:
    """Return what became of a run with a gate, and why."""
    if found["withheld"]:
        calls = ", ".join(f"{count} in {role}" for role, count in found["withheld"].items())
        return f"stopped ({calls}), h {found['h']:.2f}: {shown(found['first'])}"
    if found["let_pass"]:
        return f"let pass: {shown(found['first'])}"
    return "nothing recognised: no line of finished work is lost" if before > 0 else NONE


def shown(noted: str) -> str:
    """Return what a gate noted for a cell: at most SHOWN characters, cut after a word and marked so."""
    text = " ".join(noted.split())
    if len(text) > SHOWN:
        cut = text[: SHOWN - 2]
        text = f"{cut.rpartition(' ')[0] or cut} …"
    return one_line(text)


def stopped(found: Mapping[str, Any], *names: str) -> bool:
    """Return whether a call was withheld under a message of one of the roles *names*."""
    return any(found["withheld"].get(name, 0) for name in names)


def mean(runs: Sequence[Mapping[str, Any]], gate: str) -> str:
    """Return the mean h of *runs*."""
    return f"{fsum(run[gate]['h'] for run in runs) / len(runs):.2f}"


if __name__ == "__main__":
    main()
