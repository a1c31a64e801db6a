"""Runs as their archive holds them: what a judge sees of them later is what it saw right after the trial."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sessions import Session
from small_items import ItemFolder

from pytest_paranoia import corpus
from pytest_paranoia.environments.local import PROVIDER
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.judging import archive
from pytest_paranoia.judging.base import judge_case
from pytest_paranoia.judging.sensors import JUDGE
from pytest_paranoia.schema.record import Record
from pytest_paranoia.store import RunDirectory

LATE_FIX = "cat NOTES.md; sed -i s/3/1/ config.txt"


@pytest.fixture
def run(pytester: pytest.Pytester, items: ItemFolder) -> RunDirectory:
    """A run of the three reference agents over every kind of item there is."""
    items.pair()
    items.scenario("coding/retries")
    items.scenario("devops/limits", self_built=True)
    session = Session(pytester, items)
    return RunDirectory.open(session.run)


@pytest.fixture
def shelf(items: ItemFolder, run: RunDirectory) -> archive.Shelf:
    del run  # the items must be there before they are read
    return archive.Shelf([corpus.user_root(items.folder, None)], PROVIDER)


def test_judged_from_the_archive_is_judged_the_same(run: RunDirectory, shelf: archive.Shelf, tmp_path: Path) -> None:
    records = run.records().records
    assert len(records) == 12
    assert list(archive.judgeable(records)) == list(records)
    for record in records:
        case = shelf.case(run.path, record, tmp_path)
        assert judge_case(JUDGE, case).verdict == (record.verdict or record.accusation), record.trial
        assert dict(case.sensors) == record.sensors, record.trial
        assert case.view.workspace == record.workspace != ""
    kinds = {record.verdict.kind for record in records if record.verdict}
    assert kinds == {"evidence", "none"}


def test_the_tree_before_the_accusation_is_archived(run: RunDirectory, shelf: archive.Shelf, tmp_path: Path) -> None:
    """The work step is no change of what was accused: without that tree every self-built run would look like damage."""
    built = [record for record in run.records().records if record.family == "self-built"]
    for record in built:
        view = shelf.case(run.path, record, tmp_path).view
        assert view.start("config.txt") == b"retries = 0\n"
        assert view.before is not None
        assert view.before("config.txt") == b"retries = 3\n"
    changed = {record.agent.name: record.accusation.first_change for record in built if record.accusation}
    assert changed["minimal"] is None
    assert changed["paranoid"] is not None


def first(run: RunDirectory, kind: str) -> Record:
    return next(record for record in run.records().records if record.kind == kind)


def refusal(shelf: archive.Shelf, run: RunDirectory, record: Record, scratch: Path) -> str:
    with pytest.raises(InfrastructureError) as caught:
        shelf.case(run.path, record, scratch)
    assert caught.value.reason == "archive"
    return str(caught.value)


def test_what_cannot_be_judged_is_named(
    run: RunDirectory, shelf: archive.Shelf, items: ItemFolder, tmp_path: Path
) -> None:
    pair, scenario = first(run, "pair"), first(run, "scenario")
    folder = run.trial_folder(pair.trial)
    frozen = json.loads((folder / "frozen.json").read_text())
    changed = folder / "files" / frozen["changes"][0]["after"]["sha256"]
    content = changed.read_bytes()
    changed.unlink()
    assert f"files/{changed.name}: No such file" in refusal(shelf, run, pair, tmp_path)
    changed.write_bytes(content)
    trajectory = json.loads((folder / "trajectory.json").read_text())
    (folder / "trajectory.json").write_text(json.dumps({**trajectory, "steps": []}))
    assert "trajectory.json: damaged (key 'steps': " in refusal(shelf, run, pair, tmp_path)
    unchecked = pair.model_copy(update={"oracle": None, "status": "unscored", "reason": "oracle-timeout"})
    assert "unscored (oracle-timeout), it never got as far" in refusal(shelf, run, unchecked, tmp_path)
    assert list(archive.judgeable([unchecked])) == []
    stranger = pair.model_copy(update={"item": "tiny/other"})
    assert "no item 'tiny/other' here; name its folder" in refusal(shelf, run, stranger, tmp_path)
    items.write(f"oracles/accusations/{scenario.item}/replay.py", "broken")
    fresh = archive.Shelf(shelf.roots, PROVIDER)
    assert "has changed since it was run" in refusal(fresh, run, scenario, tmp_path)
    items.write(f"oracles/accusations/{scenario.item}/truth.toml", "schema = 7")
    fresh = archive.Shelf(shelf.roots, PROVIDER)
    assert "its item cannot be loaded: " in refusal(fresh, run, scenario, tmp_path)
