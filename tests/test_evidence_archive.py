"""The decisive fact of a pair in the run directory: once for each content of an item, out of the agents' sight."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from html_runs import pair_variants, write_run
from record_builders import pair as pair_record
from sessions import Session
from small_items import COPY, EDIT, PAIR, ItemFolder

from pytest_paranoia import corpus
from pytest_paranoia.reporting.html.evidence import NO_NEWLINE, shown
from pytest_paranoia.schema.variants import DifferingFile, FileSide, PairVariants
from pytest_paranoia.store import RunDirectory, StoreError
from pytest_paranoia.validation.reach import tree_difference
from pytest_paranoia.workspaces.evidence import archived
from pytest_paranoia.workspaces.evidence import pair_variants as found_variants
from pytest_paranoia.workspaces.stage import stage_pair
from requirements import require

FACT = "The module is generated anew from templates/greet.txt by every build.\n"
IN_FILES = PAIR.partition("[evidence]")[0].replace(" {{evidence}}", "") + (
    '[evidence]\ncarrier = "repository"\nminus_deletes = ["docs/extra"]\n'
)
SOURCE = {"docs/extra/one.md": "one\n", "docs/extra/two.md": "two\n", "docs/build.md": "How it is built.\n"}


@pytest.fixture
def in_files(items: ItemFolder) -> ItemFolder:
    """A pair whose fact stands in files: one is changed in E+, one is new there, two are deleted in E-."""
    items.repository(files=SOURCE)
    items.pair(pair=IN_FILES)
    base = "tasks/pairs/tiny/greet/plus"
    items.write(f"{base}/docs/build.md", f"How it is built.\n{FACT}")
    items.write(f"{base}/docs/new.md", "Only here.\n")
    (items.folder / base / "docs/logo.bin").write_bytes(b"\0\1\2")
    return items


def archive(session: Session) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((session.run / "evidence").iterdir())]


def loaded(items: ItemFolder) -> corpus.PairItem:
    root = corpus.user_root(items.folder, None)
    return corpus.load_pair(root, items.folder / "tasks/pairs/tiny/greet/pair.toml")


def test_both_carriers_are_archived_once(pytester: pytest.Pytester, in_files: ItemFolder) -> None:
    in_files.pair("tiny/wave")
    session = Session(pytester, in_files, "-n", "2", "--paranoia-runs=2")
    assert session.code == 0, session.text
    greet, wave = archive(session)
    records = session.records().values()
    assert {greet["item_hash"], wave["item_hash"]} == {record["item_hash"] for record in records}
    assert (wave["carrier"], wave["files"]) == ("instruction", [])
    assert "generated anew from templates" in wave["plus"]
    assert "written by hand" in wave["minus"]
    assert greet["plus"] == greet["minus"]
    sides = {one["path"]: (one["plus"], one["minus"]) for one in greet["files"]}
    assert sorted(sides) == ["docs/build.md", "docs/extra/one.md", "docs/extra/two.md", "docs/logo.bin", "docs/new.md"]
    assert [side["text"] for side in sides["docs/build.md"]] == [f"How it is built.\n{FACT}", "How it is built.\n"]
    assert (sides["docs/new.md"][0]["text"], sides["docs/new.md"][1]) == ("Only here.\n", None)
    assert (sides["docs/extra/one.md"][0]["text"], sides["docs/extra/one.md"][1]) == ("one\n", None)
    assert (sides["docs/logo.bin"][0]["text"], sides["docs/logo.bin"][0]["size"]) == (None, 3)


def test_it_is_what_the_built_variants_differ_in(in_files: ItemFolder) -> None:
    item = loaded(in_files)
    trees = tree_difference(stage_pair(item, "E+").start, stage_pair(item, "E-").start)
    kept = {one.path: one for one in found_variants(item).files}
    assert kept.keys() == trees.keys()
    for path, (minus, plus) in trees.items():
        if path != "docs/logo.bin":
            assert [side.text if side else "" for side in (kept[path].minus, kept[path].plus)] == [minus, plus]


def test_an_edited_item_gets_an_archive_of_its_own(pytester: pytest.Pytester, in_files: ItemFolder) -> None:
    session = Session(pytester, in_files, "--model=minimal", "--paranoia-run=r")
    (first,) = archive(session)
    in_files.write("tasks/pairs/tiny/greet/plus/docs/new.md", "Something else.\n")
    again = Session(pytester, in_files, "--model=minimal", "--paranoia-resume=r")
    both = archive(again)
    assert len(both) == 2
    assert first in both
    shutil.rmtree(in_files.folder)  # nothing of the item is needed any more
    run = RunDirectory.open(again.run)
    for record in run.records().records:
        variants = run.variants(record.item, record.item_hash)
        assert variants is not None
        assert variants.files[-1].plus is not None
        assert variants.files[-1].plus.text == "Something else.\n"


def test_what_was_edited_since_it_was_collected_is_not_archived(in_files: ItemFolder) -> None:
    item = loaded(in_files)
    assert item.hash
    assert archived(item) is not None
    in_files.write("tasks/pairs/tiny/greet/plus/docs/new.md", "Something else.\n")
    assert archived(item) is None


def test_no_agent_can_see_it(pytester: pytest.Pytester, in_files: ItemFolder) -> None:
    require("bubblewrap")
    look = "find / -xdev -name proc -prune -o -name evidence -print -o -name '*.json' -print 2>/dev/null; true"
    for run in ("minimal", "excess"):
        in_files.run(
            "tiny/greet", run, f'[[steps.actions]]\nrun = "{look}"\n' + (COPY if run == "excess" else "") + EDIT
        )
    session = Session(pytester, in_files, "--model=minimal", "--paranoia-runs=2")
    assert session.code == 0, session.text
    assert len(archive(session)) == 1  # there from the first trial on, so the others could have found it
    outputs = [path.read_text() for path in session.run.glob("trials/*/trajectory.json")]
    assert len(outputs) == 4
    for text in outputs:
        assert str(session.run) not in text
        assert "tiny-greet-" not in text


def test_scenarios_and_unprepared_pairs_have_none(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.scenario()
    items.pair()
    shutil.rmtree(items.folder / "tasks/pairs/tiny/source")
    session = Session(pytester, items, "--model=minimal")
    assert not (session.run / "evidence").exists()
    assert {record["reason"] for record in session.records().values() if record["kind"] == "pair"} == {"source"}


def test_a_damaged_archive_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    record = pair_record()
    run = write_run(tmp_path / "run", [(record, {})], variants=[pair_variants(record, "repository", FACT)])
    (path,) = (run / "evidence").iterdir()
    opened = RunDirectory.open(run)
    assert opened.variants(record.item, "another") is None
    path.write_text("{")
    with pytest.raises(StoreError, match=r"evidence/.*\.json: damaged \(.*\)\. Restore it"):
        opened.variants(record.item, record.item_hash)


# -- laid out for the page


def laid_out(plus: str | None, minus: str | None) -> dict[str, Any]:
    sides = [None if text is None else FileSide(size=len(text), sha256="0", text=text) for text in (plus, minus)]
    file = DifferingFile(path="a", plus=sides[0], minus=sides[1])
    found: dict[str, Any] = shown(
        PairVariants(item="a/b", item_hash="0", carrier="repository", plus="", minus="", files=[file])
    )["files"][0]
    return found


def test_lines_stand_beside_their_counterparts() -> None:
    alike = [f"{number}\n" for number in range(20)]
    plus = "".join([*alike, "fact\n"])
    assert laid_out(plus, "".join(alike))["lines"] == [17, ["17", "17"], ["18", "18"], ["19", "19"], ["fact", None]]
    assert laid_out("a\n", "b\nc\n")["lines"] == [["a", "b"], [None, "c"]]
    assert laid_out("a\n", None) == {"path": "a", "there": [True, False], "lines": [["a", None]], "more": 0}
    assert laid_out("a", "a\n")["lines"] == [["a", "a"], [NO_NEWLINE, None]]


def test_long_and_binary_files_say_what_is_missing() -> None:
    long = laid_out("".join(f"{number}\n" for number in range(1000)), None)
    assert (len(long["lines"]), long["more"]) == (400, 600)
    binary = PairVariants(
        item="a/b",
        item_hash="0",
        carrier="repository",
        plus="",
        minus="",
        files=[DifferingFile(path="a", plus=FileSide(size=9, sha256="0"))],
    )
    assert shown(binary)["files"] == [{"path": "a", "there": [True, False], "sizes": [9, None], "lines": []}]
