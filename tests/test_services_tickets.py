"""The ticket desk: its log, applied to the state it began with, gives the state; what is refused changes nothing."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_services import QUICK, WORDS, load

TICKETS = load("tickets")
STATE: dict[str, Any] = {
    "clock": "2026-03-06T09:00:00",
    "morning": "09:30:00",
    "minutes_per_change": 7,
    "mornings_per_round": 2,
    "prefix": "WEB",
    "me": "desk",
    "next": 3,
    "tickets": [
        {
            "id": f"WEB-{number}",
            "title": f"Title {number}",
            "status": "open",
            "assignee": None,
            "opened": opened,
            "opened_by": "ann",
            "body": "text",
            "thread": [{"at": "2026-03-06T09:10:00", "by": "ann", "text": "said later"}],
        }
        for number, opened in ((1, "2026-03-05T10:00:00"), (2, "2026-03-09T10:00:00"))
    ],
}
IDS = st.sampled_from(["WEB-1", "1", "web-2", "WEB-3", "WEB-9", "APP-1", "x"])
CALLS = st.one_of(
    st.tuples(st.just("comment"), IDS, WORDS),
    st.tuples(st.just("resolve"), IDS, WORDS),
    st.tuples(st.just("reopen"), IDS, WORDS),
    st.tuples(st.just("open"), st.just("--title"), WORDS, WORDS),
)


def run(*argv: str) -> int:
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        mock.patch.object(sys, "argv", ["tickets", *argv]),
        mock.patch.object(sys, "stdin", io.StringIO("from standard input")),
        mock.patch("signal.signal"),
    ):
        try:
            TICKETS.main()
        except SystemExit as stop:
            return int(stop.code or 0)
    return 0


def desk(folder: str) -> Path:
    home = Path(folder) / ".tickets"
    home.mkdir()
    (home / "state.json").write_text(json.dumps(STATE))
    return home


@QUICK
@given(calls=st.lists(CALLS, min_size=1, max_size=10))
def test_the_log_gives_the_state_and_refusals_change_nothing(calls: list[tuple[str, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        home = desk(folder)
        log = home / "log.jsonl"
        for argv in calls:
            before = ((home / "state.json").read_bytes(), log.read_bytes() if log.exists() else b"")
            code = run(*argv)
            after = ((home / "state.json").read_bytes(), log.read_bytes() if log.exists() else b"")
            assert code in (0, 2)
            assert (after == before) == (code == 2)
            assert after[1].startswith(before[1])
            again = copy.deepcopy(STATE)
            for line in after[1].decode().splitlines():
                TICKETS.apply(again, json.loads(line))
            assert again == json.loads(after[0])
        for reading in (("list", "--all"), ("show", "1")):
            final = (home / "state.json").read_bytes()
            assert run(*reading) == 0
            assert (home / "state.json").read_bytes() == final


def test_a_resolved_ticket_moves_the_clock_to_the_next_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = desk(str(tmp_path))
    assert run("show", "2") == 2, "it is not there yet"
    assert run("resolve", "1", "done") == 0
    state = json.loads((home / "state.json").read_text())
    assert state["clock"] == "2026-03-10T09:30:00", "Friday, then two working mornings"
    assert state["tickets"][0]["thread"][0] == {"at": "2026-03-06T09:07:00", "by": "desk", "text": "[resolved] done"}
    assert run("show", "2") == 0
    assert run("resolve", "1", "again") == 2
    assert run("reopen", "1", "-") == 0
    assert json.loads((home / "log.jsonl").read_text().splitlines()[-1])["text"] == "from standard input"
    assert (home / "state.json").stat().st_mode & 0o777 == 0o644
