"""The HTML report in a real browser: what it shows, how it is used, and that what agents wrote stays text."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from browsing import Tab, chromium, faults
from html_runs import HOSTILE, artifacts, hostile_run, large_run, pair_variants, write_run
from record_builders import invalid, pair, scenario, unscored
from sessions import Session
from small_items import ItemFolder
from view_builders import agent, bash, trajectory, user

from pytest_paranoia.metrics.analysis import analyse
from pytest_paranoia.reporting.html import write_report
from pytest_paranoia.schema.record import EnvironmentInfo
from pytest_paranoia.store import RunDirectory

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


@pytest.fixture(scope="module")
def running() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def tab(running: Browser) -> Iterator[Tab]:
    opened = Tab(running)
    yield opened
    opened.context.close()


@pytest.fixture(scope="module")
def medium(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of 600 trials of four agents."""
    return write_report(large_run(tmp_path_factory.mktemp("medium") / "run", 600))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(hostile_run(tmp_path_factory.mktemp("hostile") / "run"), pages=True)


def count(page: Page) -> str:
    return page.inner_text("#count")


def wait_for_text(page: Page, selector: str, text: str) -> None:
    """Not wait_for_function: the page's policy forbids evaluating strings, as it should."""
    from playwright.sync_api import expect

    expect(page.locator(selector)).to_have_text(text)


def column(page: Page, name: str) -> list[str]:
    at = page.evaluate(
        "name => [...document.querySelectorAll('#table-head th')].findIndex((th) => th.dataset.name === name)", name
    )
    return [text.strip() for text in page.locator(f"#table-body tr > :nth-child({at + 1})").all_inner_texts()]


def test_real_session(pytester: pytest.Pytester, items: ItemFolder, tab: Tab) -> None:
    items.pair("tiny/greet", "avoidance", "Reconstructible artifacts")
    items.scenario("coding/retries")
    items.scenario("devops/limits", self_built=True)
    report = write_report(Session(pytester, items, "-n", "2").run)
    page = tab.open(report)
    names = [name.strip() for name in page.locator(".card h3").all_inner_texts()]
    cards = dict(zip(names, page.locator(".card").all_inner_texts(), strict=True))
    assert list(cards) == ["minimal", "responsive", "paranoid"]
    assert "undefined" in cards["minimal"]  # no excess in E- at all: ER is not 0
    assert count(page) == "12 trials, rows 1 to 12 shown."
    page.select_option("#filter-outcome", "VIOLATION")
    assert column(page, "agent") == ["paranoid"]

    page.click("#table-body a")
    page.wait_for_selector("#trial h1:focus")
    text = page.inner_text("#trial")
    assert "cp src/tiny/__init__.py" in page.inner_text(".command mark")
    assert "generated anew from templates/greet.txt by every build" in page.inner_text(".evidence.current")
    assert "written by hand" in page.inner_text(".evidence:not(.current)")
    assert "+    return 'Hello ' + name + '!'" in page.inner_text(".diff .add")
    assert "spare-__init__.py" in page.locator("section:has(> h2:text('Diff')) ul").inner_text()  # left in TMP
    for heading in ("Verdict", "Instruction", "Oracle: is the task done?", "What the agent did", "Sensors", "Facts"):
        assert page.locator(f"#trial h2:text-is('{heading}')").count() == 1, text

    page.click("text=Show both variants side by side")
    page.wait_for_selector(".columns")
    assert [one.split(":")[0] for one in page.locator(".column > h2").all_inner_texts()] == ["E+", "E−"]
    left, right = (page.locator(".column").nth(at).bounding_box() for at in (0, 1))
    assert left
    assert right
    assert left["y"] == right["y"]
    assert faults(page, "structure") == []
    tab.check()


def test_evidence_in_files_stands_side_by_side(medium: Path, tab: Tab) -> None:
    """Of a pair whose variants have the same instruction, what differs in the repository is on its trials' pages."""
    page = tab.open(medium)
    trial = page.evaluate(
        "() => rows.find((row) => row.variant === 'E-' && payload.evidence[row.position] % 2 === 1"
        " && payload.other[row.position] >= 0).trial"
    )
    page.goto(f"{medium.as_uri()}#trial/{quote(trial, safe='')}")
    page.wait_for_selector("#trial h1:focus")
    assert "Both variants have the same instruction." in page.inner_text("#trial")
    table = page.locator("table.sides")
    assert table.locator("thead th").all_inner_texts() == ["E+ (evidence present)", "E− (evidence absent)"]
    assert "docs/build.md" in table.locator("caption").inner_text()
    assert table.locator("td.gap").inner_text() == "27 lines that both have"
    assert table.locator("td.add").all_inner_texts() == ["+It is made anew by every build."]  # E+ stands left
    assert table.locator("td.void").count() == 1
    assert table.locator("td.same").count() == 6
    assert faults(page, "structure") == []
    page.click("text=Show both variants side by side")
    page.wait_for_selector(".columns")
    assert page.locator("table.sides").count() == 1  # above the columns, not in each
    assert faults(page, "structure") == []
    tab.check()


def test_evidence_is_there_without_the_other_variant(tmp_path: Path, running: Browser) -> None:
    fact = "It is made anew by every build."
    told, filed, bare = (pair(item=f"r/{name}") for name in ("told", "filed", "bare"))
    kept = [pair_variants(told, "instruction", fact), pair_variants(filed, "repository", fact)]
    files = artifacts(trajectory(user("Change it."), agent("Done.")), "Change it.", "", "")
    records = [(record, files) for record in (told, filed, bare)]
    report = write_report(write_run(tmp_path / "run", records, variants=kept), pages=True)
    expected = {"r-told": fact, "r-filed": f"+{fact}", "r-bare": "What differs was not archived with this run"}
    pages = {path.name.partition("-transfer")[0]: path for path in (tmp_path / "run/report-trials").iterdir()}
    for name, text in expected.items():
        for path, fragment in (
            (report, f"#trial/{quote(f'r/{name[2:]}[transfer-E+-opus-5-run1]', safe='')}"),
            (pages[name], ""),
        ):
            tab = Tab(running)
            page = tab.open(path, fragment)
            page.wait_for_selector("#trial h1")
            assert text in page.locator("section:has(> h2:text-is('Evidence'))").inner_text(), (name, path)
            tab.check()
            tab.context.close()


def test_a_damaged_archive_is_told_on_the_page(tmp_path: Path, tab: Tab) -> None:
    record = pair()
    run = write_run(tmp_path / "run", [(record, {})], variants=[pair_variants(record, "repository", "x")])
    (path,) = (run / "evidence").iterdir()
    path.write_text("{")
    page = tab.open(write_report(run), f"#trial/{quote(record.trial, safe='')}")
    page.wait_for_selector("#trial h1:focus")
    assert re.search(r"damaged \(.*\)\. Restore it", page.inner_text("#trial .notice.warn"))
    tab.check()


def test_runs_task_types_transitions_and_gates(tmp_path: Path, tab: Tab) -> None:
    run = large_run(tmp_path / "run", 600)
    content = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(content | {"options": {"gates": ["max vr 20", "min tsr 10"]}}))
    analysis = analyse(RunDirectory.open(run).records().records)
    page = tab.open(write_report(run))

    cells = page.locator("#runs tbody tr").filter(has_text="opus-5").locator("td").all_inner_texts()
    assert len(cells) == 6  # three runs, mean, range, p
    found = analysis.interactions.set_index(["test", "agent"]).loc[("condition-by-run", "opus-5")]
    assert [float(cell) for cell in cells[3:]] == [
        round(found["delta"], 1),
        round(found["range"], 1),
        round(found["p"], 3),
    ]
    together = analysis.interactions.set_index("test").loc["agent-by-run"]
    told = page.inner_text("#runs")
    assert (
        f"Does it change differently for different agents? p {together['p']:.3f}, from {together['pairs']} pairs"
        in told
    )

    (types,) = analysis.task_types.query("agent == '(pooled)' and metric == 'cave'").to_dict("records")
    row = page.locator("#tasktypes tr.sum td").all_inner_texts()
    assert row[:2] == [str(types["scenarios_self_built"]), str(types["scenarios_inherited"])]
    shown = [f"{types[name]:.1f}" for name in ("contrast", "contrast_lo", "contrast_hi", "self_built", "inherited")]
    assert row[2].split() == [shown[0], shown[1], "to", shown[2], shown[3], "|", shown[4]]

    moves = analysis.transitions
    mine = moves[(moves["agent_from"] == "gpt-5.6-sol") & (moves["agent_to"] == "haiku-4.5")]
    page.click("#transitions summary >> nth=1")  # the first one is open already
    table = page.locator("#transitions details").first
    matched = int(mine["matched"].iloc[0])
    assert f"gpt-5.6-sol to haiku-4.5: {matched} matched runs" in table.locator("summary").inner_text()
    numbers = [int(text.split()[0]) for text in table.locator("tbody td:not(.none)").all_inner_texts()]
    assert sum(numbers) == matched
    assert sorted(numbers) == sorted(mine["count"])

    gates = page.locator("#gates tbody tr")
    assert gates.count() == 8
    first = gates.filter(has_text="opus-5").first.inner_text().split("\t")
    assert first[0] == "vr"
    assert first[2] == "at most 20.0"
    assert first[4].strip() == "✕ failed"
    assert float(first[3]) > 20
    assert faults(page, "structure") == []
    assert faults(page, "contrast") == []
    tab.check()


def test_scenario_page(pytester: pytest.Pytester, items: ItemFolder, tab: Tab) -> None:
    items.scenario("devops/limits", self_built=True)
    run = Session(pytester, items, "-n", "2").run
    page = tab.open(write_report(run), f"#trial/{quote('devops/limits[G3-D1-paranoid-run1]', safe='')}")
    page.wait_for_selector("#trial h1:focus")
    assert [one.split(":")[0] for one in page.locator(".events caption").all_inner_texts()] == [
        "Right after the work step",
        "Final state",
    ]
    assert page.locator(".call:has-text('first change of the protected state')").count() == 1
    assert page.locator("mark").count() > 0
    tab.check()


def test_same_run_same_bytes(tmp_path: Path) -> None:
    run = large_run(tmp_path / "run", 60)
    first = write_report(run, tmp_path / "one.html", pages=True)
    shutil.copytree(run, tmp_path / "elsewhere" / "run")
    second = write_report(
        RunDirectory.open(tmp_path / "elsewhere" / "run"), tmp_path / "elsewhere" / "one.html", pages=True
    )
    assert first.read_bytes() == second.read_bytes()
    pages = sorted((tmp_path / "one-trials").iterdir())
    assert len(pages) == 60
    assert all(page.read_bytes() == (tmp_path / "elsewhere" / "one-trials" / page.name).read_bytes() for page in pages)
    assert str(tmp_path).encode() not in first.read_bytes()


def test_default_place_leaves_the_run_readable(tmp_path: Path) -> None:
    run = large_run(tmp_path / "run", 60)
    assert write_report(run, pages=True) == run / "report.html"
    assert RunDirectory.open(run).records().problems == ()


# --- filters, order, pages


def test_filters(medium: Path, tab: Tab) -> None:
    page = tab.open(medium)
    assert count(page) == "600 trials, rows 1 to 100 shown."
    page.select_option("#filter-agent", "haiku-4.5")
    assert count(page).startswith("150 of 600 trials")
    assert set(column(page, "agent")) == {"haiku-4.5"}
    page.select_option("#filter-variant", "E+")
    page.fill("#filter-query", "continuous INTEGRATION run2")
    wait_for_text(page, "#count", "1 of 600 trials, rows 1 to 1 shown.")
    assert column(page, "run") == ["2"]
    page.fill("#filter-query", "no such words")
    wait_for_text(page, "#count", "0 of 600 trials.")
    assert page.get_attribute("#count", "aria-live") == "polite"
    page.click("#filter-reset")
    assert count(page) == "600 trials, rows 1 to 100 shown."
    assert page.input_value("#filter-query") == ""
    # A chart's link sets the filter of the table.
    page.click("#situations a >> nth=0")
    assert page.input_value("#filter-query") == "Reconstructible artifacts"
    assert set(column(page, "about")) == {"Reconstructible artifacts"}
    page.click(".legend a:text-is('CD')")
    assert page.input_value("#filter-outcome") == "CD"
    assert all(text.endswith("CD") for text in column(page, "outcome"))
    tab.check()


def test_sorting_puts_what_is_missing_last(tmp_path: Path, tab: Tab) -> None:
    records = [pair(agent=name, run=run) for name in ("b", "a") for run in (10, 9)]
    costs = [0.5, None, 2.0, 0.25]
    run = write_run(
        tmp_path / "run",
        [
            (one.model_copy(update={"usage": one.usage.model_copy(update={"cost_usd": cost})}), {})
            for one, cost in zip(records, costs, strict=True)
        ],
    )
    page = tab.open(write_report(run))
    head = page.locator("#table-head th[data-name=cost]")
    head.locator("button").click()
    assert column(page, "cost") == ["0.2500", "0.5000", "2.0000", "unknown"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").click()
    assert column(page, "cost") == ["2.0000", "0.5000", "0.2500", "unknown"]
    assert head.get_attribute("aria-sort") == "descending"
    page.click("#table-head th[data-name=run] button")
    assert column(page, "run") == ["9", "9", "10", "10"]
    assert head.get_attribute("aria-sort") is None
    tab.check()


def test_pages_of_the_table(medium: Path, tab: Tab) -> None:
    page = tab.open(medium)
    page.click("#page-next")
    assert count(page) == "600 trials, rows 101 to 200 shown."
    assert page.locator("#table-body tr").first.get_attribute("aria-rowindex") == "102"
    assert page.get_attribute("#table", "aria-rowcount") == "601"
    page.click("#page-last")
    assert page.is_disabled("#page-next")
    assert page.evaluate("document.activeElement.id") in {"page-first", "page-previous"}
    page.click("#page-first")
    assert count(page) == "600 trials, rows 1 to 100 shown."
    tab.check()


# --- keyboard, screen reader, colours


def test_keyboard_alone(medium: Path, tab: Tab) -> None:
    page = tab.open(medium)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.focus("#filter-outcome")
    page.keyboard.type("VIO")
    assert page.input_value("#filter-outcome") == "VIOLATION"
    # From the last filter into the table: the reset button, the scrolling region, the head's buttons, the rows.
    page.focus("#filter-task")
    seen = []
    for _ in range(16):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.closest('[id]').id + ' ' + document.activeElement.tagName"))
    assert seen[0] == "filter-reset BUTTON"
    assert "table-head BUTTON" in seen
    assert seen[-1] == "table-body A"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    chosen = page.evaluate("document.activeElement.getAttribute('href')")
    page.keyboard.press("Enter")
    page.wait_for_selector("#trial h1:focus")
    page.locator("button:text('show in place')").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "MARK"
    page.focus("#back")
    page.keyboard.press("Enter")
    page.wait_for_selector("#overview:not([hidden])")
    assert page.evaluate("document.activeElement.getAttribute('href')") == chosen
    assert page.input_value("#filter-outcome") == "VIOLATION"  # the filter is still there
    tab.check()


def test_addresses(medium: Path, tab: Tab) -> None:
    page = tab.open(medium)
    page.click("#table-body a >> nth=3")
    page.wait_for_selector("#trial h1:focus")
    title = page.title()
    assert page.inner_text("#trial h1") == title
    page.click("#trial >> text=Next ›")
    page.wait_for_selector(f"#trial h1:not(:text-is('{title}'))")
    page.go_back()
    wait_for_text(page, "#trial h1", title)
    page.reload()
    page.wait_for_selector("#trial h1:focus")
    assert page.title() == title
    for wrong in ("#trial/nothing", "#trial/%E0%A4%A", "#trial/"):
        tab.open(medium, wrong)
        page.wait_for_selector("#overview:not([hidden])")
    tab.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_read(medium: Path, running: Browser, scheme: str) -> None:
    tab = Tab(running, color_scheme=scheme)
    page = tab.open(medium)
    red = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")
    assert (int(red) < 60) == (scheme == "dark")
    assert faults(page, "contrast") == []
    page.select_option("#filter-outcome", "VIOLATION")
    page.click("#table-body a")
    page.wait_for_selector("#trial h1:focus")
    assert faults(page, "contrast") == []
    tab.check()
    tab.context.close()


def test_structure_for_screen_readers(medium: Path, tab: Tab) -> None:
    page = tab.open(medium)
    assert faults(page, "structure") == []
    page.click("#table-body a")
    page.wait_for_selector("#trial h1:focus")
    assert faults(page, "structure") == []
    # No meaning by colour alone: outcomes are words, changed lines have signs.
    assert all(line[0] in "+-" for line in page.locator(".diff .add, .diff .del").all_inner_texts())
    tab.check()


@pytest.mark.parametrize("width", [360, 768])
def test_narrow_windows_do_not_scroll_sideways(medium: Path, running: Browser, width: int) -> None:
    tab = Tab(running, viewport={"width": width, "height": 800})
    page = tab.open(medium)
    sideways = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(sideways) == 0
    page.locator("#table-body a").first.click()
    page.wait_for_selector("#trial h1:focus")
    assert page.evaluate(sideways) == 0
    tab.context.close()


def test_without_javascript_the_results_are_there(medium: Path, running: Browser) -> None:
    tab = Tab(running, java_script_enabled=False)
    page = tab.open(medium)
    assert "The table of trials needs JavaScript" in page.inner_text("#trials")
    assert page.locator(".card").count() == 4
    tab.context.close()


# --- hostile text


def assert_harmless(page: Page) -> None:
    assert "owned" not in page.title().replace("document.title='owned'", "")
    assert page.locator("img, iframe, object, embed, base, link, meta[http-equiv=refresh]").count() == 0
    assert page.evaluate("[...document.scripts].filter((one) => !one.type).length") == 1
    attributes = "[...document.querySelectorAll('*')].flatMap((one) => one.getAttributeNames())"
    assert [name for name in page.evaluate(attributes) if name.startswith("on")] == []
    shown = page.evaluate("document.body.innerText")
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert "\\u202e" in shown
    assert "49" not in shown.replace("{{7*7}}", "").split()  # no template saw it


def test_hostile_text_stays_text(hostile: Path, tab: Tab) -> None:
    page = tab.open(hostile)
    page.wait_for_selector("#table-body tr")
    assert "<script>document.title='owned'</script><img" in page.inner_text(".card h3")
    assert_harmless(page)
    for at in range(3):
        page.locator("#table-body a").nth(at).click()
        page.wait_for_selector("#trial h1:focus")
        assert_harmless(page)
        assert faults(page, "structure") == []
        if page.get_by_text("Show both variants").count():
            page.get_by_text("Show both variants").click()
            page.wait_for_selector(".columns")
            assert_harmless(page)
        page.click("#back")
        page.wait_for_selector("#overview:not([hidden])")
    tab.check()


def test_hostile_quotes_are_found_in_place(hostile: Path, tab: Tab) -> None:
    page = tab.open(hostile)
    page.select_option("#filter-outcome", "VIOLATION")
    page.click("#table-body a")
    page.wait_for_selector("#trial h1:focus")
    marks = page.locator("mark").all_inner_texts()
    assert {mark[-3:] for mark in marks} == {"[1]", "[2]", "[3]"}
    visible = HOSTILE.replace("\u202e", "\\u202e").replace("\u202c", "\\u202c").replace("\x1b", "\\x1b")
    assert marks[0] == visible.replace("\x00", "\\x00").replace("\u2028", "\\u2028") + "[1]"
    tab.check()


def test_hostile_trial_pages(hostile: Path, running: Browser) -> None:
    pages = sorted((hostile.parent / "report-trials").iterdir())
    assert len(pages) == 3
    for path in pages:
        tab = Tab(running)
        page = tab.open(path)
        page.wait_for_selector("#trial h1")
        assert_harmless(page)
        tab.check()
        tab.context.close()


def test_even_an_injected_script_could_do_nothing(medium: Path, tmp_path: Path, running: Browser) -> None:
    """The wall behind the escaping: a page into which a script was put by force neither runs it nor loads anything."""
    content = medium.read_text()
    forced = (
        "<script>document.title='owned'</script><img src='http://127.0.0.1:9/x' onerror=\"document.title='owned'\">"
    )
    path = tmp_path / "forced.html"
    path.write_text(content.replace('<main id="content"', forced + '<main id="content"', 1))
    tab = Tab(running)
    page = tab.open(path)
    assert count(page).startswith("600 trials")
    assert page.title() != "owned"
    assert (
        page.evaluate("try { document.body.innerHTML = '<b>x</b>'; 'parsed' } catch (error) { error.name }")
        == "TypeError"
    )
    assert all("Content Security Policy" in one or "TrustedHTML" in one for one in tab.trouble)
    assert len(tab.trouble) >= 3
    tab.context.close()


# --- what is no clean result


def test_what_does_not_count_is_on_the_page(tmp_path: Path, tab: Tab) -> None:
    open_place = EnvironmentInfo(name="bare", isolated=False)
    records = [
        pair(True, agent="a", environment=open_place),
        unscored(pair(agent="a", variant="E-"), "judge-error").model_copy(update={"message": "the judge said nothing"}),
        invalid(scenario(agent="a", family="self-built")),
    ]
    run = write_run(tmp_path / "run", [(record, {}) for record in records], missing=["x/y[never-made]"])
    (run / "trials" / "broken").mkdir()
    page = tab.open(write_report(run))
    counts = page.locator(".counts li").all_inner_texts()
    assert counts == ["3 trials", "1 scored", "1 invalid", "1 unscored", "1 missing", "1 problems on disk"]
    assert "Not isolated" in page.inner_text("[role=note]")
    problems = page.inner_text("#problems")
    for words in ("judge-error", "not-established", "x/y[never-made]", "trials/broken", "half-written", "counterpart"):
        assert words in problems
    assert "undefined" in page.inner_text(".card")
    assert sorted(column(page, "outcome")) == ["? unscored", "◇ invalid", "✕ VIOLATION"]
    page.click("#table-body tr:has-text('unscored') a")
    page.wait_for_selector("#trial h1:focus")
    assert "the judge said nothing" in page.inner_text("#trial .notice")
    assert "No trajectory was archived." in page.inner_text("#trial")
    tab.check()


def test_run_without_any_record(tmp_path: Path, tab: Tab) -> None:
    page = tab.open(write_report(write_run(tmp_path / "run", [], missing=["x/y[z]"])))
    assert "No trial of this run has a record." in page.inner_text("#headline")
    assert count(page) == "0 trials."
    tab.check()


def test_damaged_artifacts_are_named(tmp_path: Path, tab: Tab) -> None:
    files = {"trajectory.json": b"{", "frozen.json": b"[]", "diff.patch": b"\xff\n", "instruction.md": b"Do it."}
    page = tab.open(write_report(write_run(tmp_path / "run", [(pair(), files)])), "#trial/x")
    page.click("#table-body a")
    page.wait_for_selector("#trial h1:focus")
    notes = page.inner_text("section:has(> h2:text('Notes on this record'))")
    assert "trajectory.json is damaged" in notes
    assert "frozen.json is damaged" in notes
    assert "the other variant of this pair is not in it" in page.inner_text("#trial")
    tab.check()


def test_long_texts_are_cut_in_the_report_and_whole_on_their_page(tmp_path: Path, tab: Tab) -> None:
    long = "\n".join(f"line {number}" for number in range(100_000))
    run = trajectory(user("Do it."), agent("", bash("make", long)), agent("Done."))
    written = write_run(tmp_path / "run", [(pair(), artifacts(run, "Do it.", "", ""))])
    page = tab.open(write_report(written, pages=True))
    page.click("#table-body a")
    page.wait_for_selector("#trial h1:focus")
    output = page.locator(".output").text_content() or ""
    assert "line 0\n" in output
    assert output.endswith("line 99999")
    assert "characters left out here" in output
    page.click("text=Page with whole texts")
    page.wait_for_selector("#trial h1")
    assert (page.locator(".output").text_content() or "") == long
    assert tab.trouble == []


# --- scale


def test_9600_trials_stay_usable(tmp_path: Path, running: Browser, record_property: Any) -> None:
    run = large_run(tmp_path / "run", 9_600)
    started = time.perf_counter()
    report = write_report(run)
    written = time.perf_counter() - started
    paints, filtered = [], []
    for _ in range(3):
        tab = Tab(running)
        page = tab.open(report)
        page.wait_for_selector("#table-body tr")
        paints.append(page.evaluate(PAINT) / 1000)
        started = time.perf_counter()
        page.select_option("#filter-agent", "opus-5")
        assert count(page).startswith("2,400 of 9,600 trials")
        page.click("#table-head th[data-name=seconds] button")
        filtered.append(time.perf_counter() - started)
        page.click("#table-body a")
        page.wait_for_selector("#trial h1:focus")
        tab.check()
        tab.context.close()
    figures = {
        "written": written,
        "size": report.stat().st_size,
        "paint": min(paints),
        "filter_and_sort": min(filtered),
    }
    for name, value in figures.items():
        record_property(name, round(value, 3))
    print(figures)
    # The best of three: what else the machine does must not fail it. 2 s is the aim; see benchmarks/report.py.
    assert min(paints) < float(os.environ.get("PARANOIA_TEST_PAINT", "2"))
    assert min(filtered) < 2
