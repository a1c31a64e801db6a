"""The live line: in a terminal of its own, and nowhere else."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from sessions import Session
from small_items import ItemFolder
from terminals import Screen, watch

from pytest_paranoia.reporting.live import Progress

LINE = re.compile(r"paranoia: (\d+)/(\d+) done, (\d+) running, (\d+) violations?[^\x1b\r\n]*")


def run(
    items: ItemFolder, folder: Path, *arguments: str, columns: int = 80, **variables: str
) -> tuple[str, Screen, int]:
    names = ("CI", "BUILD_NUMBER", "COLUMNS", "NO_COLOR", "PY_COLORS")
    env = {name: value for name, value in os.environ.items() if name not in names and not name.startswith("PYTEST")}
    plain = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--paranoia"]
    command = [*plain, f"--paranoia-items={items.folder}", "--model=paranoid", *arguments]
    return watch(command, folder, env | {"TERM": "xterm"} | variables, columns)


@pytest.fixture
def three(items: ItemFolder) -> ItemFolder:
    items.pair()
    items.scenario()
    return items


@pytest.mark.parametrize("arguments", [[], ["-v"], ["-n", "2"]], ids=["alone", "verbose", "xdist"])
def test_it_counts_and_leaves_nothing_behind(three: ItemFolder, tmp_path: Path, arguments: list[str]) -> None:
    text, screen, code = run(three, tmp_path, *arguments)
    assert code == 1, text
    seen = [tuple(map(int, found)) for found in LINE.findall(text)]
    assert {total for _, total, _, _ in seen} == {3}
    assert seen[0][0] == 0
    assert max(done for done, *_ in seen) == 3
    assert [done for done, *_ in seen] == sorted(done for done, *_ in seen)
    assert max(violations for *_, violations in seen) == 1
    assert ", 1 damaged" in text
    assert " left" in text
    # What stays on the screen is what the session prints without the line.
    quiet, bare, _ = run(three, tmp_path, *arguments, "-p", "no:paranoia-live")
    assert not LINE.search(quiet)
    assert [normal(line) for line in screen.lines] == [normal(line) for line in bare.lines]


def normal(line: str) -> str:
    line = re.sub(r"\d{8}T\d{6}Z-[0-9a-f]{6}", "RUN", re.sub(r"\d+\.\d\ds( \(.*\))?", "TIME", line)).strip("= ")
    # Workers finish in any order.
    return "".join(sorted(line)) if re.fullmatch(r"[VeD.F]+ +\[100%\]", line) else re.sub(r"\[gw\d\]", "[gw]", line)


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        (["-q"], {}),
        ([], {"CI": "true"}),
        ([], {"BUILD_NUMBER": "7"}),
        ([], {"TERM": "dumb"}),
        (["-s"], {}),
        (["--collect-only"], {}),
    ],
    ids=["quiet", "ci", "jenkins", "dumb", "uncaptured", "collect"],
)
def test_it_is_quiet_where_nobody_watches(
    three: ItemFolder, tmp_path: Path, arguments: list[str], variables: dict[str, str]
) -> None:
    text, _, _ = run(three, tmp_path, *arguments, **variables)
    assert not LINE.search(text)


def test_a_log_has_none(pytester: pytest.Pytester, three: ItemFolder) -> None:
    session = Session(pytester, three, "--model=minimal")
    assert not LINE.search(session.text)
    assert "\x1b" not in session.text


def test_a_narrow_terminal_gets_a_shorter_line_and_narrow_tables(three: ItemFolder, tmp_path: Path) -> None:
    text, screen, _ = run(three, tmp_path, columns=80)
    assert max(len(line) for line in screen.lines) <= 80
    summary = screen.lines[next(at for at, line in enumerate(screen.lines) if " paranoia " in line) :]
    assert any(line.split() == ["agent", "n", "All", "Avo", "Tra", "Mit", "Acc"] for line in summary)
    wide, _, _ = run(three, tmp_path, columns=160)
    assert "TSR         |              VR               |              ER" in wide
    assert "TSR         |              VR               |" not in text


# -- what it says


def test_time_left_and_cost() -> None:
    now = [0.0]
    progress = Progress(lambda: now[0])
    progress.planned.update("abcd")
    progress.start("a")
    progress.start("b")
    assert progress.text() == "paranoia: 0/4 done, 2 running, 0 violations"
    now[0] = 60.0
    progress.found({"verdict": "VIOLATION", "cost": "0.25"})
    progress.end("a")
    assert progress.text() == "paranoia: 1/4 done, 1 running, 1 violation, $0.25, about 3 min left"
    progress.found({"verdict": "CD", "path": "CD", "cost": "1.5"})
    progress.end("b")
    assert progress.text() == "paranoia: 2/4 done, 0 running, 1 violation, 1 damaged, $1.75, about 60 s left"
    for key in "cd":
        progress.end(key)
    assert progress.text() == "paranoia: 4/4 done, 0 running, 1 violation, 1 damaged, $1.75"
