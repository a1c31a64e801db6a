"""``paranoia label`` in a real browser: by keys alone, nothing lost on reload, crash or outage, blind to others."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import HTTPError

import pytest
from browsing import Tab, chromium, faults
from small_items import ItemFolder

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAIRS = 6  # one pair, three scripted agents, two variants


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


class Bench(NamedTuple):
    items: ItemFolder
    run: Path


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Bench:
    """Items, and a run of the three scripted agents over them."""
    folder = tmp_path_factory.mktemp("bench")
    items = ItemFolder(folder / "bench")
    items.pair()
    items.scenario("coding/retries")
    command = [sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "--paranoia", "--paranoia-run=made"]
    environment = {**os.environ, "PARANOIA_CACHE": str(cache)}
    options = {"cwd": folder, "env": environment, "capture_output": True, "timeout": 300}
    subprocess.run([*command, f"--paranoia-items={items.folder}"], check=False, **options)  # type: ignore[call-overload]
    return Bench(items, folder / "reports" / "made")


@pytest.fixture
def items(bench: Bench, cache: Path, monkeypatch: pytest.MonkeyPatch) -> ItemFolder:
    monkeypatch.setenv("PARANOIA_CACHE", str(cache))
    return bench.items


@pytest.fixture
def run(bench: Bench, tmp_path: Path) -> Path:
    """A copy of that run of one's own."""
    return Path(shutil.copytree(bench.run, tmp_path / "made"))


class Sitting:
    """A running ``paranoia label``."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


@contextmanager
def sitting(run: Path, items: ItemFolder | None, *arguments: str) -> Iterator[Sitting]:
    command = [
        sys.executable,
        "-m",
        "pytest_paranoia.cli",
        "label",
        str(run),
        *([f"--items={items.folder}"] if items is not None else []),
        "--no-browser",
    ]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found, said = None, ""
        while found is None and (line := process.stdout.readline()):
            said += line
            found = re.search(r"http://\S+", line)
        assert found, said + (process.stderr.read() if process.stderr else "")
        yield Sitting(process, found.group())
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


def opened(browser: Browser, address: str) -> Tab:
    tab = Tab(browser)
    tab.page.goto(address)
    tab.page.wait_for_selector("#record section")
    return tab


def until(page: Page, expression: str) -> None:
    """Wait until *expression* is true. (The page's policy forbids what ``wait_for_function`` does.)"""
    deadline = time.monotonic() + 30
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, f"{expression}; the page says: {page.inner_text('#saved')}"
        page.wait_for_timeout(30)


def show(page: Page, kind: str) -> None:
    """Open the first trial of *kind*."""
    wanted = page.evaluate(f"state.list.trials.find((one) => one.kind === '{kind}').number")
    page.evaluate(f"show({wanted})")
    until(page, f"state.trial && state.trial.number === {wanted}")


def saved(page: Page) -> None:
    until(page, "document.getElementById('saved').textContent === 'saved'")


def labels(run: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((run / "labels" / name).glob("[!.]*.json"))]


def say_none(page: Page) -> None:
    """Label the pair run that is open: none, task done, fact seen."""
    for key in ("3", "t", "f", "w"):
        page.keyboard.press(key)
    page.keyboard.type("nothing beyond the minimum")
    page.keyboard.press("Escape")


def test_a_trial_is_labelled_by_keys_alone(browser: Browser, run: Path, items: ItemFolder) -> None:
    with sitting(run, items, "--as", "ada") as server:
        tab = opened(browser, server.address)
        page = tab.page
        show(page, "pair")
        assert page.inner_text("#progress") == f"0 of {PAIRS + 3} finished"
        page.keyboard.press("Control+Enter")
        until(page, "document.getElementById('saved').textContent.startsWith('not finished: ')")

        # A line of what the agent did becomes the place of an action, and the action is described.
        page.keyboard.press("1")
        for _ in range(40):
            page.keyboard.press("]")
            if page.evaluate("state.trial.sections[Number(state.here.parentNode.dataset.section)].source !== null"):
                break
        page.keyboard.press("a")
        page.keyboard.type("runs more than it has to")
        page.keyboard.press("Tab")
        page.keyboard.type("verify")
        page.keyboard.press("Escape")
        for key in ("m", "t", "f", "w"):
            page.keyboard.press(key)
        page.keyboard.type("it checks what the fact settles")
        number = page.evaluate("state.trial.number")
        page.keyboard.press("Control+Enter")
        until(page, f"state.trial.number !== {number}")
        assert page.inner_text("#progress") == f"1 of {PAIRS + 3} finished"
        tab.trouble = [one for one in tab.trouble if "422" not in one]
        assert tab.trouble == []
        assert server.end() == 0

    (label,) = labels(run, "ada")
    assert (label["label"], label["degree"], label["complete"]) == ("evidence", "minor", True)
    assert (label["task_done"], label["fact_seen"]) == ("yes", "yes")
    assert label["rationale"] == "it checks what the fact settles"
    (mark,) = label["marks"]
    assert (mark["action"], mark["form"], mark["linked"]) == ("runs more than it has to", "verify-loop", True)
    assert mark["source"].startswith("step ")
    assert mark["quote"]


def test_what_was_said_of_one_trial_is_not_said_of_the_next(browser: Browser, run: Path, items: ItemFolder) -> None:
    with sitting(run, items, "--as", "ada") as server:
        page = opened(browser, server.address).page
        show(page, "pair")
        assert "generic: verification, hedging or confirmation" in page.inner_text("#field-label")
        page.keyboard.press("Control+Enter")
        until(page, "document.getElementById('saved').textContent.startsWith('not finished: ')")
        show(page, "scenario")
        assert page.inner_text("#saved") == ""
        assert "0.5: apologised" in page.inner_text("#field-false_confession")


def answers(server: Sitting) -> list[str]:
    """What the page is told of its list and of every trial."""
    found = []
    for path in ["api/list", *(f"api/trial/{number}" for number in range(PAIRS + 3))]:
        try:
            with urllib.request.urlopen(server.address + path, timeout=60) as answer:
                found.append(answer.read().decode())
        except HTTPError as error:
            found.append(error.read().decode())
    return found


def test_no_error_tells_the_agent(run: Path, items: ItemFolder) -> None:
    for path in run.glob("trials/*/trajectory.json"):
        path.unlink()
    broken = run / "labels" / "ada" / f"{next(run.glob('trials/*-paranoid-*')).name}.json"
    with sitting(run, items, "--as", "ada") as server:
        said = answers(server)
        broken.parent.mkdir(parents=True, exist_ok=True)
        broken.write_text("{")
        said += answers(server)
    errors = [json.loads(text)["error"] for text in said if "error" in json.loads(text)]
    assert len(errors) == 2 * (PAIRS + 3) + 1
    assert any("trajectory.json: No such file" in error for error in errors)
    for error in errors:
        assert not re.search("minimal|responsive|paranoid", error), error


def test_the_items_are_found_or_asked_for_before_the_page(bench: Bench, run: Path, items: ItemFolder) -> None:
    with sitting(bench.run, None, "--as", "ada") as server:
        assert not [text for text in answers(server) if "error" in json.loads(text)]
    shutil.rmtree(bench.run / "labels", ignore_errors=True)
    command = [sys.executable, "-m", "pytest_paranoia.cli", "label", str(run), "--as", "ada", "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "paranoia: made is of items that are not in builtin: coding/retries, tiny/greet; name their folder with "
        "--items DIR\n"
    )
    changed = items.folder.parent / "changed"
    shutil.copytree(items.folder, changed, dirs_exist_ok=True)
    (next(changed.glob("tasks/accusations/coding/retries")) / "more.txt").write_text("more")
    with sitting(run, ItemFolder(changed), "--as", "ada") as server:
        assert json.loads(answers(server)[0])["trials"][0]["kind"] == "pair"
        assert len(json.loads(answers(server)[0])["trials"]) == PAIRS


def test_text_selected_with_the_mouse_is_quoted(browser: Browser, run: Path, items: ItemFolder) -> None:
    with sitting(run, items, "--as", "ada") as server:
        tab = opened(browser, server.address)
        page = tab.page
        show(page, "pair")
        page.evaluate(
            """() => {
                const index = state.trial.sections.findIndex((one) => one.source !== null);
                const line = document.querySelector(`.lines[data-section="${index}"] > div`).firstChild;
                const range = document.createRange();
                range.setStart(line, 0);
                range.setEnd(line, 4);
                window.getSelection().removeAllRanges();
                window.getSelection().addRange(range);
            }"""
        )
        page.click("#add-mark")
        saved(page)
        (label,) = labels(run, "ada")
        (mark,) = label["marks"]
        text = page.evaluate(f"state.trial.sections.find((one) => one.source === {json.dumps(mark['source'])}).text")
        assert mark["quote"] == text[:4].strip()
        # What the user said is no place of an agent's action.
        page.evaluate(
            "place(document.querySelector('#record .lines > div'), false); window.getSelection().removeAllRanges()"
        )
        page.keyboard.press("Escape")
        page.keyboard.press("a")
        assert page.inner_text("#saved") == "only what the agent said and did can be quoted"


def test_scenarios_are_labelled_with_f_and_e(browser: Browser, run: Path, items: ItemFolder) -> None:
    with sitting(run, items, "--as", "ada") as server:
        page = opened(browser, server.address).page
        show(page, "scenario")
        for key in ("1", "4", "w"):
            page.keyboard.press(key)
        page.keyboard.type("kept it")
        page.keyboard.press("Control+Enter")
        until(page, "document.getElementById('progress').textContent.startsWith('1 of')")
    (label,) = labels(run, "ada")
    assert (label["kind"], label["false_confession"], label["recognition_failure"]) == ("scenario", 0.0, 0.0)
    assert label["complete"]


def test_nothing_is_lost_on_reload_outage_and_crash(browser: Browser, run: Path, items: ItemFolder) -> None:
    with sitting(run, items, "--as", "ada") as server:
        tab = opened(browser, server.address)
        page = tab.page
        show(page, "pair")
        page.keyboard.press("w")
        page.keyboard.type("first")
        saved(page)
        number = page.evaluate("state.trial.number")
        page.reload()
        page.wait_for_selector("#record section")
        assert page.evaluate("state.trial.number") == number
        assert page.input_value("#rationale") == "first"
        # kill -9 while a word is being written: the page keeps it, also over its own end.
        server.process.kill()
        server.process.wait(30)
        page.keyboard.press("w")
        page.keyboard.type(" second")
        until(page, "document.getElementById('saved').textContent.startsWith('the server does not answer')")
    assert labels(run, "ada")[0]["rationale"] == "first"
    with sitting(run, items, "--as", "ada") as again:
        assert again.address == server.address
        saved(page)
        assert labels(run, "ada")[0]["rationale"] == "first second"
        again.process.kill()
        again.process.wait(30)
        page.keyboard.type(" third")
        until(page, "document.getElementById('saved').textContent.startsWith('the server does not answer')")
    with sitting(run, items, "--as", "ada") as third:
        page.close(run_before_unload=False)
        fresh = tab.context.new_page()
        fresh.goto(f"{third.address}#{number + 1}")
        fresh.wait_for_selector("#record section")
        assert fresh.input_value("#rationale") == "first second third"
        until(fresh, "!state.dirty")
    assert labels(run, "ada")[0]["rationale"] == "first second third"


def test_two_windows_do_not_overwrite_one_another(browser: Browser, run: Path, items: ItemFolder) -> None:
    with sitting(run, items, "--as", "ada") as server:
        first, second = opened(browser, server.address).page, opened(browser, server.address).page
        show(first, "pair")
        show(second, "pair")
        first.keyboard.press("3")
        saved(first)
        second.keyboard.press("2")
        until(second, "document.getElementById('saved').textContent.startsWith('changed elsewhere')")
        assert second.is_checked("input[name=label][value=none]")
    assert labels(run, "ada")[0]["label"] == "none"


def test_an_annotator_is_blind_and_two_are_adjudicated(browser: Browser, run: Path, items: ItemFolder) -> None:
    with sitting(run, items, "--as", "ada") as server:
        page = opened(browser, server.address).page
        show(page, "pair")
        say_none(page)
        page.keyboard.press("Control+Enter")
        until(page, "document.getElementById('progress').textContent.startsWith('1 of')")
    (ada,) = labels(run, "ada")
    with sitting(run, items, "--as", "bob") as server:
        tab = opened(browser, server.address)
        page = tab.page
        seen = [page.evaluate(f"fetch('api/trial/{number}').then((answer) => answer.text())") for number in range(9)]
        everything = "\n".join([*seen, page.evaluate("fetch('api/list').then((answer) => answer.text())")])
        # Neither the other annotator, nor the judge, nor who ran, nor what oracle and replay said.
        for word in (
            "nothing beyond the minimum",
            "ada",
            "sensors",
            "scripted",
            "minimal-run1",
            "paranoid",
            "over_defence",
            "harm",
        ):
            assert word not in everything, word
        wanted = next(number for number in range(9) if page.evaluate(f"state.list.trials[{number}].kind") == "pair")
        # The same trial: orders differ, so it is found by its content.
        for number in range(9):
            page.evaluate(f"show({number})")
            until(page, f"state.trial.number === {number}")
            if page.evaluate("state.trial.kind") == "pair":
                say_none(page)
                page.keyboard.press("2") if number == wanted else None
                saved(page)
                if number != wanted:
                    page.keyboard.press("Control+Enter")
                    page.wait_for_timeout(200)
    trial = ada["trial"]
    bob = {label["trial"]: label for label in labels(run, "bob")}
    path = next((run / "labels" / "bob").glob("[!.]*.json")).with_name(
        next(
            path.name
            for path in (run / "labels" / "bob").glob("[!.]*.json")
            if json.loads(path.read_text())["trial"] == trial
        )
    )
    changed = bob[trial] | {
        "fact_seen": "unclear",
        "label": "none",
        "degree": "none",
        "complete": True,
        "rationale": "fine",
    }
    path.write_text(json.dumps(changed))

    with sitting(run, items, "--adjudicate", "ada", "bob") as server:
        page = opened(browser, server.address).page
        entries = page.evaluate("state.list.trials")
        ready = [one for one in entries if one["ready"]]
        assert [one["differ"] for one in ready] == [["fact_seen"]]
        number = ready[0]["number"]
        page.evaluate(f"show({number})")
        until(page, f"state.trial && state.trial.number === {number}")
        assert page.locator(".side").count() == 2
        assert page.locator(".side .differs").all_inner_texts() == [
            "Decisive fact seen: yes",
            "Decisive fact seen: unclear",
        ]
        # What both say is there already; what they differ in is open.
        assert page.is_checked("input[name=label][value=none]")
        assert page.locator("input[name=fact_seen]:checked").count() == 0
        page.keyboard.press("f")
        page.keyboard.press("w")
        page.keyboard.type("agreed after looking again")
        page.keyboard.press("Control+Enter")
        until(page, "document.getElementById('progress').textContent.startsWith('1 of')")
        other = next(one["number"] for one in entries if not one["ready"])
        page.evaluate(f"show({other})")
        until(page, "document.getElementById('saved').textContent.includes('has not finished this trial')")
    (agreed,) = labels(run, "adjudicated")
    assert (agreed["agreed_by"], agreed["fact_seen"], agreed["label"]) == (["ada", "bob"], "yes", "none")

    target = run / "out" / "labels.json"
    command = [sys.executable, "-m", "pytest_paranoia.cli", "label", str(run), "--export", str(target)]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    data = json.loads(target.read_text())
    assert data["annotators"] == ["ada", "bob"]
    assert [label["trial"] for label in data["adjudicated"]] == [trial]
    (both,) = data["agreement"]
    assert both["between"] == ["ada", "bob"]
    assert both["fields"]["label"]["accuracy"]["value"] == 1
    assert both["fields"]["fact_seen"]["accuracy"]["value"] == 0
    assert "ada and bob:" in printed


def test_the_page_is_accessible(browser: Browser, run: Path, items: ItemFolder) -> None:
    with sitting(run, items, "--as", "ada") as server:
        tab = opened(browser, server.address)
        show(tab.page, "pair")
        assert faults(tab.page, "contrast") == []
        assert faults(tab.page, "structure") == []
        tab.page.keyboard.press("?")
        assert tab.page.is_visible("#help")
        assert tab.trouble == []


def test_only_the_page_itself_may_ask(run: Path, items: ItemFolder) -> None:
    with sitting(run, items, "--as", "ada") as server:

        def status(address: str, **options: Any) -> int:
            try:
                with urllib.request.urlopen(urllib.request.Request(address, **options), timeout=20) as answer:
                    return int(answer.status)
            except HTTPError as error:
                return error.code

        base = server.address.rstrip("/").rpartition("/")[0]
        assert status(server.address) == 200
        assert status(f"{base}/") == 404
        assert status(f"{base}/guess/api/list") == 404
        assert status(server.address, headers={"Host": "example.org"}) == 403
        plain = {"method": "PUT", "data": b"{}", "headers": {"Content-Type": "text/plain"}}
        assert status(f"{server.address}api/trial/0", **plain) == 415
        for body, code in ((b"[]", 422), (b"{", 422), (b'{"annotator": "bob"}', 422), (b'{"label": "maybe"}', 422)):
            sent = {"method": "PUT", "data": body, "headers": {"Content-Type": "application/json"}}
            assert status(f"{server.address}api/trial/0", **sent) == code, body
        assert status(f"{server.address}api/trial/99") == 404
    assert labels(run, "ada") == []
