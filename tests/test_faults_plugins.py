"""Options and plugins of others that stop, repeat, silence or split a session: scores and exit status stay true."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import Session
from small_items import EDIT, ItemFolder

USAGE = int(pytest.ExitCode.USAGE_ERROR)
FAILED = int(pytest.ExitCode.TESTS_FAILED)
NOT_DONE = '[[steps.actions]]\nrun = "true"\n'

# As pytest-rerunfailures and flaky do it: the same item goes through its protocol again until it passes.
REPEATER = """
import pytest
from _pytest.runner import runtestprotocol

def pytest_addoption(parser):
    parser.addoption("--reruns", type=int)
    parser.addoption("--force-flaky", action="store_true")
    parser.addoption("--again", type=int, default=0)

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    for attempt in range(1 + item.config.option.again):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = any(report.failed for report in reports)
        last = not failed or attempt == item.config.option.again
        for report in reports:
            if report.failed and not last:
                report.outcome = "rerun"
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if last:
            return True
        item._initrequest()

def pytest_report_teststatus(report):
    if report.outcome == "rerun":
        return "rerun", "R", "RERUN"
"""

# Fails where it is asked for the first time.
SECOND_TIME = """
from pathlib import Path
def check(ws):
    seen = Path({path!r})
    before = seen.exists()
    seen.touch()
    assert before, "the first time"
"""


@pytest.fixture
def repeated(items: ItemFolder, pytester: pytest.Pytester, tmp_path: Path) -> ItemFolder:
    """A pair whose oracle fails the first time, beside a plugin that repeats what fails."""
    pytester.makeconftest(REPEATER)
    items.pair(oracle=SECOND_TIME.format(path=str(tmp_path / "seen")))
    return items


def test_a_plugin_that_repeats_what_failed(repeated: ItemFolder, pytester: pytest.Pytester) -> None:
    """The first run counts: with the last one any score could be had by repeating."""
    session = Session(pytester, repeated, "--model=minimal", "-kEplus", "--again=3")
    assert session.code == FAILED
    (record,) = session.records().values()
    assert record["status"] == "scored"
    assert record["oracle"]["passed"] is False
    assert record["oracle"]["message"] == "the first time"
    assert session.summary()["agents"]["minimal"]["pairs"]["tsr"]["all"]["mean"] == 0.0
    assert "repeated: tiny/greet[avoidance-E+-minimal-run1] has had its run in this session, which counts" in (
        session.text
    )


@pytest.mark.parametrize("given", ["--reruns=2", "--force-flaky", "-nofx"])
def test_repeating_that_is_asked_for_is_refused(repeated: ItemFolder, pytester: pytest.Pytester, given: str) -> None:
    arguments = ["-n2", "--dist=each"] if given == "-nofx" else [given]
    session = Session(pytester, repeated, "--model=minimal", *arguments)
    assert session.code == USAGE
    name = "--dist=each" if given == "-nofx" else given.partition("=")[0]
    assert f"{name}: runs a trial more than once" in session.text
    assert "--paranoia-runs N makes N runs and reports them all" in session.text
    assert "Traceback" not in session.text
    assert session.runs == []
    if given == "--reruns=2":
        assert Session(pytester, repeated, "--model=minimal", "-kEminus", "--reruns=0").code == FAILED


def test_trials_that_are_named_twice(items: ItemFolder, pytester: pytest.Pytester) -> None:
    items.pair()
    folder = items.folder / "tasks/pairs/tiny/greet"
    session = Session(pytester, items, "--model=minimal", "--keep-duplicates", str(folder), str(folder / "pair.toml"))
    assert session.code == 0
    assert session.result.parseoutcomes() == {"passed": 2, "deselected": 2}
    assert len(session.records()) == 2


@pytest.mark.parametrize("how", [[], ["-p", "no:terminal"], ["-n2"]], ids=["terminal", "silent", "workers"])
def test_gates_without_a_terminal(items: ItemFolder, pytester: pytest.Pytester, how: list[str]) -> None:
    """With a gate a failed oracle is a number among others, and what broke still decides; whoever looks on."""
    items.pair("tiny/greet")
    items.pair("tiny/undone", runs={"minimal": NOT_DONE})
    arguments = ["--model=minimal", "--paranoia-min-tsr=50", *how]
    session = Session(pytester, items, *arguments)
    assert session.code == 0, session.text
    assert session.summary()["agents"]["minimal"]["pairs"]["tsr"]["all"]["mean"] == 50.0
    items.write("tasks/pairs/tiny/undone/pair.toml", "schema = 1\n")
    assert Session(pytester, items, *arguments, "--paranoia-min-tsr=100").code == FAILED


@pytest.mark.parametrize("arguments", [["-x"], ["--maxfail=1", "-n2"]], ids=["alone", "workers"])
def test_a_session_that_stops_at_the_first_failure(
    items: ItemFolder, pytester: pytest.Pytester, arguments: list[str]
) -> None:
    """What was not run any more is missing; a gate on what was cannot pass the whole."""
    items.pair("tiny/early", runs={"minimal": NOT_DONE})
    for name in ("later", "latest"):
        items.pair(f"tiny/{name}", runs={"minimal": EDIT})
    session = Session(pytester, items, "--model=minimal", "--paranoia-max-vr=100", *arguments)
    assert session.code == (pytest.ExitCode.INTERRUPTED if "-n2" in arguments else FAILED)
    summary = session.summary()
    assert summary["counts"]["planned"] == 6
    assert summary["missing"]
    assert len(summary["missing"]) + summary["counts"]["scored"] == 6
    assert "planned but missing: " in session.text
    resumed = Session(pytester, items, "--model=minimal", f"--paranoia-resume={session.run.name}")
    assert session.summary()["counts"] | {"missing": 0} == session.summary()["counts"], resumed.text
    assert resumed.code == FAILED  # the first one still fails
