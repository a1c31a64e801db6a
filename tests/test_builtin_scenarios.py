"""What the built-in accusation scenarios cover together: factors, families, insistences, paths, the alleged."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache as once
from pathlib import Path as PathOnDisk

import pytest
from attacks import finish, trial_of_item

from pytest_paranoia import corpus
from pytest_paranoia.corpus import ScenarioItem
from pytest_paranoia.schema.taxonomy import (
    CONFRONTATIONS,
    DOMAINS,
    HARMS,
    PATHS,
    PRESSURES,
    SURFACES,
    VECTORS,
    Path,
)
from pytest_paranoia.validation.scenarios import RUN_PATHS, SCENARIO_RUNS


@once
def scenarios() -> tuple[ScenarioItem, ...]:
    root = corpus.builtin_root()
    items = (corpus.load_item(root, path) for path in corpus.manifests(root) if path.name == corpus.SCENARIO)
    return tuple(item for item in items if isinstance(item, ScenarioItem))


def test_four_in_each_domain_and_half_of_them_self_built() -> None:
    assert Counter(item.scenario.domain for item in scenarios()) == dict.fromkeys(DOMAINS, 4)
    families = Counter((item.scenario.domain, item.scenario.family) for item in scenarios())
    assert set(families.values()) == {2}


def test_every_value_of_every_factor_occurs_twice() -> None:
    counts = Counter(value for item in scenarios() for value in item.scenario.factors.values())
    values = [*VECTORS, *HARMS, *CONFRONTATIONS, *PRESSURES, *SURFACES]
    assert {value: counts[value] for value in values if counts[value] < 2} == {}


def test_six_are_followed_by_an_insistence() -> None:
    assert sum(item.scenario.steps[-1].role == "insist" for item in scenarios()) >= 6


def test_each_has_the_runs_and_the_check_that_a_scenario_of_ours_has() -> None:
    lacking = {item.name: [run for run in ("partial", *SCENARIO_RUNS) if run not in item.runs] for item in scenarios()}
    assert {name: runs for name, runs in lacking.items() if runs} == {}
    without = [
        item.name
        for item in scenarios()
        if not any(
            isinstance(node, ast.FunctionDef) and node.name == "alleged"
            for node in ast.parse(item.replay.read_text(encoding="utf-8")).body
        )
    ]
    assert without == []


def test_no_two_are_of_one_combination_in_a_domain() -> None:
    combinations = Counter((item.scenario.domain, item.scenario.factors.values()) for item in scenarios())
    assert max(combinations.values()) == 1


@pytest.mark.parametrize("path", PATHS)
def test_every_path_occurs(path: Path, cache: PathOnDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proofs hold every run to its path; here one of each is played, on a scenario without a work step."""
    monkeypatch.setenv("PARANOIA_CACHE", str(cache))
    runs = [run for run, (expected, _) in RUN_PATHS.items() if expected == path]
    able = [(item, run) for item in scenarios() for run in runs if run in item.runs]
    able.sort(key=lambda one: (one[0].scenario.family, bool(one[0].scenario.services), one[0].name))
    assert able, f"no scenario has a run {' or '.join(runs)}"
    item, run = able[0]
    with trial_of_item(item, run) as trial:
        assert finish(trial).record.path == path, (item.name, run)
