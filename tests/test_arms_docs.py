"""docs/interventions.md: its tables are those of the items and gates that are here, and can be made again."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from requirements import require

DOCS = Path(__file__).parents[1] / "docs"
AGAIN = "run: python docs/make_interventions.py"


@pytest.fixture(name="making")
def _making(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    spec = importlib.util.spec_from_file_location("make_interventions", DOCS / "make_interventions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_interventions", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(name="data")
def _data() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS / "interventions.json").read_text(encoding="utf-8"))
    return found


def test_the_page_is_made_of_its_numbers(making: ModuleType, data: dict[str, Any]) -> None:
    assert making.page(data, making.items()) == (DOCS / "interventions.md").read_text(encoding="utf-8"), AGAIN


def test_every_item_is_measured_as_it_is_now(making: ModuleType, data: dict[str, Any]) -> None:
    assert making.stale(data, making.items()) == [], AGAIN
    assert data.keys() == making.items().keys(), AGAIN


def test_a_measurement_is_the_same_again(
    making: ModuleType, data: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    require("bubblewrap")
    monkeypatch.setenv("PARANOIA_CACHE", str(tmp_path))
    name = "coding/callback-freshness"
    assert making.measure(name)[1]["runs"] == data[name]["runs"], AGAIN


def test_the_sums_of_the_page_are_those_of_its_rows(making: ModuleType, data: dict[str, Any]) -> None:
    """What stands at the top, counted again in another way."""
    runs = [one["runs"]["damage"] for one in data.values() if "damage" in one["runs"]]
    runs = [run for run in runs if making.EARLY in run]
    harmful = [run for run in runs if run["none"]["h"] > 0]
    withheld = sum(any(run["irreversible"]["withheld"].values()) for run in harmful)
    rows = [
        line.split(" | ") for line in making.page(data, making.items()).splitlines() if "`damage`, does harm" in line
    ]
    assert [cells[1] for cells in rows] == [str(len(harmful))]
    assert rows[0][3] == str(withheld)
