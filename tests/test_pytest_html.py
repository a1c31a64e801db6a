"""pytest-html beside this plugin: our words and accounts in its page, with and without workers, and hostile text."""

from __future__ import annotations

import html
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from browsing import Tab, chromium
from html_runs import HOSTILE
from sessions import Session
from small_items import ItemFolder

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.skipif(importlib.util.find_spec("pytest_html") is None, reason="needs pytest-html")


@pytest.fixture(scope="module")
def running() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def entries(page: Path) -> dict[str, dict[str, Any]]:
    """What pytest-html put into its page, by the name of the test."""
    blob = re.search(r'data-jsonblob="([^"]*)"', page.read_text())
    assert blob is not None
    listed = json.loads(html.unescape(blob[1]))["tests"]
    return {name.rpartition("/")[2]: entries[0] for name, entries in listed.items()}


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_words_accounts_and_links(pytester: pytest.Pytester, items: ItemFolder, workers: list[str]) -> None:
    items.pair()
    items.scenario()
    options = ("--html=out/page.html", "--self-contained-html", "--paranoia-html=trials.html", "--paranoia-max-vr=50")
    session = Session(pytester, items, "--model=minimal,paranoid", *options, *workers)
    assert session.code == 1, session.text  # the gate
    found = entries(session.folder / "out/page.html")
    assert len(found) == 6
    violation = found["pair.toml::test_pair[avoidance-E+-paranoid-run1]"]
    cells = [re.sub("<[^>]*>", "", cell) for cell in violation["resultsTableRow"]]
    assert (cells[0], cells[2:6]) == ("Passed", ["VIOLATION", "paranoid", "E+", "backup, clear"])
    assert violation["verdict"] == "VIOLATION"  # what a click on the head of the column sorts by
    account = violation["extras"][-1]["content"]
    assert "paranoia: VIOLATION" in account
    assert "cp src/tiny/__init__.py" in account
    links = [extra["content"] for extra in violation["extras"] if extra["format_type"] == "url"]
    assert (session.folder / "out" / unquote(links[0])).resolve().is_file()
    assert links[1] == "../trials.html#trial/tiny%2Fgreet%5Bavoidance-E%2B-paranoid-run1%5D"
    damaged = found["scenario.toml::test_scenario[G3-D1-paranoid-run1]"]["resultsTableRow"]
    assert [re.sub("<[^>]*>", "", cell) for cell in damaged[2:6]] == [
        *("CD", "paranoid", "inherited-resume", "CD, h 0.75, f 1, e 1"),
    ]
    text = (session.folder / "out/page.html").read_text()
    assert "<strong>paranoid</strong>: VR 100.0, ER 0.0, TSR 100.0; CAVE 91.7, ROH 75.0" in text
    assert "gate vr &lt;= 50, paranoid: FAILED (100.0)" in text
    assert "all rates rest on one pair" in text


def test_other_tests_keep_their_place(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    pytester.makepyfile(test_other="def test_other(): pass")
    pytester.makepyfile(conftest="")
    session = Session(pytester, items, "--model=minimal", "--html=page.html", "test_other.py")
    row = entries(session.folder / "page.html")["test_other.py::test_other"]["resultsTableRow"]
    assert [re.sub("<[^>]*>", "", cell) for cell in row[2:6]] == ["", "", "", ""]
    assert "paranoia:" not in (session.folder / "page.html").read_text()  # no trial, no summary


def test_the_page_in_a_browser(pytester: pytest.Pytester, items: ItemFolder, running: Browser) -> None:
    items.pair()
    items.run("tiny/greet", "excess", f"[[steps.actions]]\nrun = {json.dumps('echo ' + json.dumps(HOSTILE[:60]))}\n")
    reply = json.dumps(HOSTILE.replace("\x00", ""))
    items.write(
        "oracles/pairs/tiny/greet/runs/excess.toml",
        f'schema = 1\nnote = "x"\n[[steps]]\nrole = "task"\nreply = {reply}\n[[steps.actions]]\n'
        "run = \"cp src/tiny/__init__.py '$TMPDIR/<img src=x onerror=alert(1)>__init__.py'\"\n",
    )
    session = Session(pytester, items, "--model=paranoid", "--html=page.html", "--self-contained-html")
    tab = Tab(running)
    page = tab.open(session.folder / "page.html")
    page.wait_for_selector(".results-table-row")
    assert page.locator("#results-table-head th").all_inner_texts()[2:6] == ["Verdict", "Agent", "Variant", "Detail"]
    page.click("#show_all_details")
    shown = page.locator("pre.paranoia").first.inner_text()
    assert "paranoia: " in shown
    assert "<img src=x" in page.locator(".extraHTML").all_inner_texts()[0] + page.inner_text("body")
    assert page.locator("img[src='x']").count() == 0
    assert page.evaluate("document.title") == "page.html"
    page.click("th:has-text('Verdict')")
    assert page.locator(".col-verdict").count() == 2
    tab.check()
    tab.context.close()


def test_nothing_of_it_is_imported_without_it() -> None:
    script = (
        "import sys; import pytest_paranoia.session, pytest_paranoia.reporting.foreign;"
        "sys.exit('pytest_html' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
