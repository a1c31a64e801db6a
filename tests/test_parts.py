"""``--paranoia-part``: every item is in exactly one part, the same one wherever and however the session runs."""

from __future__ import annotations

import pytest
from sessions import Session, ids
from small_items import ItemFolder

NAMES = [f"tiny/pair{number}" for number in range(7)]


@pytest.fixture
def bench(items: ItemFolder) -> ItemFolder:
    for name in NAMES:
        items.pair(name)
    items.scenario("coding/retries")
    return items


def collected(pytester: pytest.Pytester, items: ItemFolder, *arguments: str, active: bool = True) -> list[str]:
    return ids(Session(pytester, items, "--collect-only", "-q", *arguments, active=active))


def names(nodeids: list[str]) -> set[str]:
    return {nodeid.partition("::")[0].rpartition("/")[0] for nodeid in nodeids}


def test_parts_are_equal_and_whole(pytester: pytest.Pytester, bench: ItemFolder) -> None:
    everything = collected(pytester, bench)
    parts = [collected(pytester, bench, f"--paranoia-part={number}/3") for number in (1, 2, 3)]
    assert sorted(nodeid for part in parts for nodeid in part) == sorted(everything)
    assert sorted(len(names(part)) for part in parts) == [2, 3, 3]
    # Mixed: no part is a run of neighbours.
    pairs = sorted(name for name in names(parts[0]) if "/pair" in name)
    assert pairs != sorted(names(everything))[: len(pairs)]


def test_a_part_is_the_same_under_other_choices(pytester: pytest.Pytester, bench: ItemFolder) -> None:
    """Proving or running, all or what -k leaves: an item stays in its part. The proof of the root is in each."""
    part = names(collected(pytester, bench, "--paranoia-part=2/3"))
    proofs = collected(pytester, bench, "--paranoia-validate", "--paranoia-part=2/3", active=False)
    assert names(proofs) == part
    few = names(collected(pytester, bench, "--paranoia-part=2/3", "-k", "pair and Eplus"))
    assert few == {name for name in part if "/pairs/" in name}
    bench.write("oracles/canary.txt", "bench canary 0f4c9a1e-5b1d-4a64-9f0e-3f6d1c2b7a90\n")
    session = Session(pytester, bench, "--paranoia-validate", "--paranoia-part=2/3", "-k", "canary", active=False)
    session.result.assert_outcomes(passed=1, deselected=7 * 9 + 8)


def test_a_part_runs_on_several_workers(pytester: pytest.Pytester, bench: ItemFolder) -> None:
    session = Session(pytester, bench, "--model=minimal", "--paranoia-part=1/3", "-n", "2")
    assert session.code == 0
    expected = collected(pytester, bench, "--model=minimal", "--paranoia-part=1/3")
    assert len(session.records()) == len(expected) > 0
