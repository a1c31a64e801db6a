"""The command-line services: money is conserved, the log replays to the state, what is refused changes nothing."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FOLDER = Path(__file__).parent.parent / "tasks" / "services"
NAMES = ("bank", "chat", "deploy", "feed", "trading")
AT = {"at": "2026-06-02T08:30"}
SEEDS: dict[str, list[dict[str, Any]]] = {
    "bank": [
        {"op": "begin", **AT, "seed": "s", "user": "me"},
        {"op": "open", **AT, "account": "100001", "name": "One", "own": True, "opening": 100_000},
        {"op": "open", **AT, "account": "100002", "name": "Two", "own": True, "opening": 5_000},
        {"op": "open", **AT, "account": "900001", "name": "Payee"},
    ],
    "chat": [
        {"op": "begin", **AT, "seed": "s", "user": "me"},
        {"op": "channel", **AT, "channel": "ops", "topic": "Operations"},
        {"op": "post", **AT, "by": "ann", "channel": "ops", "id": "A1", "text": "hello"},
        {"op": "post", **AT, "by": "me", "channel": "ops", "id": "A2", "text": "mine"},
    ],
    "deploy": [
        {"op": "begin", **AT, "seed": "s", "user": "me", "first": 7},
        {"op": "service", **AT, "service": "web", "version": "1.0"},
        {"op": "target", **AT, "target": "east", "about": "East"},
        {"op": "target", **AT, "target": "west", "about": "West"},
        {"op": "route", **AT, "route": "in.all", "targets": {"east": 100}, "new": True},
    ],
    "feed": [
        {"op": "begin", **AT, "seed": "s", "user": "me"},
        {"op": "publish", **AT, "by": "me", "title": "First", "tags": ["news"], "id": "A1", "text": "hello"},
        {"op": "reply", **AT, "by": "ann", "to": "A1", "id": "A2", "text": "a question"},
    ],
    "trading": [
        {"op": "begin", **AT, "seed": "s", "user": "me"},
        {"op": "account", **AT, "account": "margin", "about": "Margin", "own": True, "opening": 9_000_000},
        {"op": "account", **AT, "account": "reserve", "about": "Reserve", "own": True, "opening": 400_000},
        {"op": "account", **AT, "account": "treasury", "about": "Treasury"},
        {"op": "instrument", **AT, "symbol": "OAT", "about": "Oats", "unit": 50, "price": 21_000}
        | {"initial": 10, "maintenance": 7, "fee": 150, "expires": "2026-06-19"},
        {"op": "instrument", **AT, "symbol": "FXA", "about": "Currency", "unit": 100, "price": 10_800}
        | {"initial": 5, "maintenance": 4},
    ],
}


def load(name: str) -> ModuleType:
    loader = SourceFileLoader(f"service_{name}", str(FOLDER / name))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[loader.name] = module
    write, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = write
    return module


MODULES = {name: load(name) for name in NAMES}


class Terminal:
    """One service in a workspace of its own, called in this process."""

    def __init__(self, name: str, folder: Path) -> None:
        self.module = MODULES[name]
        self.home = folder / self.module.HOME
        (folder / "seed.jsonl").write_text("".join(json.dumps(op) + "\n" for op in SEEDS[name]))
        assert self("init", "--log", "seed.jsonl") == 0

    def __call__(self, *argv: str) -> int:
        self.out, self.err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(self.out), contextlib.redirect_stderr(self.err):
            try:
                return int(self.module.main(list(argv)))
            except SystemExit as stop:  # argparse
                return int(stop.code or 0)

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.home.iterdir()}

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self.home / "state.json").read_text())
        return state

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.home / "log.jsonl").read_text().splitlines()]


@contextlib.contextmanager
def terminal(name: str) -> Iterator[Terminal]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield Terminal(name, Path(folder))


def days(first: int, last: int) -> st.SearchStrategy[str]:
    return st.integers(first, last).map(lambda n: str(date(2026, 6, 2) + timedelta(days=n)))


TEXTS = st.one_of(st.sampled_from(["a note", "Grüße\nund mehr", "", "   ", "x" * 5000, "bell\a"]), st.text(max_size=20))
WORDS = TEXTS.filter(lambda text: not text.startswith("-"))
ACCOUNTS = st.sampled_from(["100001", "100002", "900001", "900002", "12", "ten"])
CENTS = st.one_of(st.integers(1, 60_000).map(str), st.sampled_from(["0", "-5", "1.50", "1e3", "9" * 20, "", "٣"]))
DATES = st.one_of(days(-1, 40), st.sampled_from(["2026-02-30", "soon", "9999-12-31", "2026-6-9"]))


def ids(kind: str) -> st.SearchStrategy[str]:
    """Ids as the seed gives them out, so that sequences hit objects that exist."""
    digest = MODULES["bank"].hashlib.sha256
    made = [f"{kind}{n}{digest(f's/{kind}/{n}'.encode()).hexdigest()[:4]}".upper() for n in range(1, 5)]
    return st.sampled_from([*made, "A1", "A2", "nothing"])


def call(*parts: str | st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.tuples(*(st.just(part) if isinstance(part, str) else part for part in parts))


SIDES, SYMBOLS = st.sampled_from(["buy", "sell"]), st.sampled_from(["OAT", "FXA", "RYE", "oat"])
SIZES = st.one_of(st.integers(1, 40).map(str), st.sampled_from(["0", "-1", "1.5", "9" * 9, "two"]))
BOOKS = st.sampled_from(["margin", "reserve", "treasury", "clearing", "broker", "none"])
CALLS: dict[str, st.SearchStrategy[tuple[str, ...]]] = {
    "bank": st.one_of(
        call("transfer", ACCOUNTS, ACCOUNTS, CENTS, "--reference", WORDS),
        call("schedule", ACCOUNTS, ACCOUNTS, CENTS, "--on", DATES, "--reference", WORDS),
        call("schedule", "100001", "900001", CENTS, "--on", days(0, 30), "--reference", "rent"),
        call("amend", ids("P"), "--to", ACCOUNTS),
        call("amend", ids("P"), "--cents", CENTS, "--on", DATES),
        call("amend", ids("P")),
        call("cancel", ids("P")),
        call("hold", ACCOUNTS, CENTS, "--until", DATES, "--reason", WORDS),
        call("release", ids("H")),
        call("payee-add", ACCOUNTS, WORDS),
        call("eod", "--until", DATES),
    ),
    "chat": st.one_of(
        call("post", st.sampled_from(["ops", "#ops", "none"]), WORDS),
        call("reply", ids("M"), WORDS),
        call("edit", ids("M"), WORDS),
        call("delete", ids("M")),
        call("pin", ids("M")),
        call("unpin", ids("M")),
    ),
    "deploy": st.one_of(
        call("route", st.sampled_from(["in.all", "in.none"]), st.sampled_from(["east", "west", "west=50", "north"])),
        call("route", "in.all", "east=30", st.sampled_from(["west=70", "west=60", "east=70", "west=x", "west=0"])),
        call("set", st.sampled_from(["web", "mail"]), st.sampled_from(["a.b", "A", "", "c"]), WORDS),
        call("release", "web", st.sampled_from(["1.0", "1.1", "2.0.3", "x"]), "--percent", st.sampled_from("05")),
        call("promote", "web"),
        call("abort", "web", "--note", WORDS),
        call("rollback", st.integers(6, 16).map(lambda n: f"r{n}")),
    ),
    "feed": st.one_of(
        call("publish", "--title", WORDS, "--tag", st.sampled_from(["news", "Bad Tag"]), WORDS),
        call("reply", ids("F"), WORDS),
        call("edit", ids("F"), "--text", WORDS),
        call("edit", ids("F"), "--title", WORDS),
        call("edit", ids("F")),
        call("delete", ids("F")),
        call("pin", ids("F")),
        call("unpin", ids("F")),
    ),
    "trading": st.one_of(
        call(SIDES, SYMBOLS, SIZES, "--note", WORDS),
        call(SIDES, "OAT", st.integers(1, 30).map(str), "--note", "hedge"),
        call(SIDES, SYMBOLS, SIZES, "--limit", CENTS, "--until", DATES, "--note", "n"),
        call(SIDES, "FXA", SIZES, "--stop", st.integers(9_000, 12_000).map(str), "--reduce", "--note", "n"),
        call("amend", ids("O"), "--stop", CENTS),
        call("amend", ids("O"), "--size", SIZES, "--until", DATES),
        call("cancel", ids("O"), "--note", WORDS),
        call("limit", SYMBOLS, SIZES, "--note", WORDS),
        call("transfer", BOOKS, BOOKS, CENTS, "--reference", WORDS),
    ),
}
READS: dict[str, list[tuple[str, ...]]] = {
    "bank": [
        ("accounts",),
        ("payees", "--json"),
        ("payments", "--all"),
        ("holds", "--all", "--json"),
        ("statement", "100001"),
        ("history",),
        ("clock",),
    ],
    "chat": [("channels",), ("read", "ops"), ("pins", "ops", "--json"), ("search", "e"), ("show", "A1"), ("history",)],
    "deploy": [("status",), ("status", "web"), ("routes", "--json"), ("targets",), ("history",), ("show", "r7")],
    "feed": [("list",), ("list", "--tag", "news", "--json"), ("search", "e"), ("history",)],
    "trading": [
        ("accounts",),
        ("instruments", "--json"),
        ("prices", "OAT"),
        ("positions",),
        ("margin", "--json"),
        ("orders", "--all"),
        ("fills",),
        ("limits",),
        ("calls",),
        ("statement", "margin"),
        ("history",),
        ("clock",),
    ],
}
QUICK = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("name", NAMES)
@QUICK
@given(data=st.data())
def test_log_replays_to_the_state_and_refusals_change_nothing(name: str, data: st.DataObject) -> None:
    calls = data.draw(st.lists(CALLS[name], min_size=1, max_size=12))
    with terminal(name) as run:
        for argv in calls:
            before = run.files()
            code = run(*argv)
            after = run.files()
            assert code in (0, 2), run.err.getvalue()
            if code == 2:
                assert after == before
                assert run.err.getvalue().strip()
            else:
                assert after["log.jsonl"].startswith(before["log.jsonl"])
                assert after["log.jsonl"].count(b"\n") == before["log.jsonl"].count(b"\n") + 1
            assert run.module.rebuild(run.log()) == run.state()
        assert run("verify") == 0, run.err.getvalue()
        final = run.files()
        for argv in READS[name]:
            code = run(*argv)
            assert code == 0 or (argv == ("show", "A1") and "deleted" in run.err.getvalue())
        assert run.files() == final, "reading changed the state"


@QUICK
@given(calls=st.lists(CALLS["bank"], max_size=15))
def test_money_is_conserved(calls: list[tuple[str, ...]]) -> None:
    with terminal("bank") as run:
        for argv in calls:
            run(*argv)
        state = run.state()
        accounts = state["accounts"]
        assert sum(account["balance"] for account in accounts.values()) == 105_000
        assert all(account["balance"] >= 0 for account in accounts.values())
        booked = {number: account["opening"] for number, account in accounts.items()}
        for entry in state["entries"]:
            booked[entry["from"]] -= entry["cents"]
            booked[entry["to"]] += entry["cents"]
        assert booked == {number: account["balance"] for number, account in accounts.items()}
        held = sum(hold["cents"] for hold in state["holds"].values() if hold["state"] == "active")
        assert held <= sum(account["balance"] for account in accounts.values() if account["own"])


@QUICK
@given(calls=st.lists(CALLS["deploy"], max_size=12))
def test_routes_always_add_up_to_a_hundred(calls: list[tuple[str, ...]]) -> None:
    with terminal("deploy") as run:
        for argv in calls:
            run(*argv)
        assert [sum(shares.values()) for shares in run.state()["routes"].values()] == [100]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_calls_give_the_same_files(name: str) -> None:
    calls = {
        "bank": [("schedule", "100001", "900001", "100", "--on", "2026-06-30", "--reference", "r")],
        "chat": [("post", "ops", "text"), ("pin", "A2")],
        "deploy": [("route", "in.all", "east=40", "west=60"), ("rollback", "r8")],
        "feed": [("publish", "--title", "t", "text"), ("reply", "A2", "an answer")],
        "trading": [("buy", "OAT", "2", "--note", "n"), ("sell", "OAT", "1", "--stop", "19000", "--note", "n")],
    }[name]
    seen = []
    for _ in range(2):
        with terminal(name) as run:
            assert [run(*argv) for argv in calls] == [0] * len(calls), run.err.getvalue()
            seen.append(run.files())
    assert seen[0] == seen[1]


@pytest.mark.parametrize("name", NAMES)
def test_a_writer_stopped_between_log_and_state_is_caught_up_with(name: str) -> None:
    argv = {
        "bank": ("transfer", "100001", "900001", "100", "--reference", "r"),
        "chat": ("post", "ops", "text"),
        "deploy": ("set", "web", "a", "b"),
        "feed": ("reply", "A1", "text"),
        "trading": ("transfer", "margin", "reserve", "100", "--reference", "r"),
    }[name]
    with terminal(name) as run:
        old = (run.home / "state.json").read_bytes()
        assert run(*argv) == 0
        new = run.state()
        (run.home / "state.json").write_bytes(old)
        assert run.module.load(run.home) == new
        assert run("verify") == 0
        again = ("transfer", "100001", "900001", "7", "--reference", "r") if name == "bank" else ("history",)
        assert run(*again) == 0
        assert run.module.rebuild(run.log()) == run.module.load(run.home)


def test_end_of_day_books_what_is_due_and_ends_holds() -> None:
    with terminal("bank") as run:
        for day, cents in (("2026-06-10", "60000"), ("2026-06-11", "30000"), ("2026-06-20", "30000")):
            assert run("schedule", "100001", "900001", cents, "--on", day, "--reference", f"by {day}") == 0
        assert run("hold", "100001", "20000", "--until", "2026-06-15", "--reason", "deposit") == 0
        assert run("eod", "--until", "2026-06-11") == 0
        states = [payment["state"] for payment in run.state()["payments"].values()]
        assert states == ["booked", "failed", "scheduled"], "the hold keeps 20,000 back on the 11th"
        assert run("eod", "--until", "2026-06-11") == 2
        assert run("eod", "--until", "2026-06-30") == 0
        state = run.state()
        assert [payment["state"] for payment in state["payments"].values()] == ["booked", "failed", "booked"]
        assert [hold["state"] for hold in state["holds"].values()] == ["lapsed"]
        assert state["accounts"]["100001"]["balance"] == 10_000
        assert state["now"] == "2026-06-30T20:00"


def test_only_authors_alter_what_they_wrote() -> None:
    with terminal("chat") as run:
        assert run("edit", "A1", "not mine") == 2
        assert "ann" in run.err.getvalue()
        assert run("delete", "A1") == 2
        assert run("pin", "A1") == 0
        assert run("delete", "A2") == 0
    with terminal("feed") as run:
        assert run("edit", "A2", "--text", "not mine") == 2
        assert run("pin", "A1") == 0
        assert run("delete", "A1") == 0
        assert run("list") == 0
        assert run.out.getvalue() == "no posts\n", "the replies go with the post"
        assert run.state()["pins"] == []


def test_rollback_puts_back_what_was_before_and_only_the_last_change() -> None:
    with terminal("deploy") as run:
        assert run("route", "in.all", "west", "--note", "CHG-1") == 0
        assert run("rollback", "r7") == 2
        assert "r8" in run.err.getvalue()
        assert run("rollback", "r8") == 0
        assert run.state()["routes"] == {"in.all": {"east": 100}}
        assert run("release", "web", "1.1", "--percent", "10") == 0
        assert run("release", "web", "1.2", "--percent", "10") == 2
        assert run("promote", "web") == 0
        assert run.state()["services"]["web"] == {"release": "1.1", "rollout": None, "config": {}}
        assert run("rollback", "r11") == 0
        assert run.state()["services"]["web"]["release"] == "1.0"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", ["", "{]", "[]", '{"seq": "1"}', "log"])
def test_a_damaged_state_is_said_so(name: str, damage: str) -> None:
    with terminal(name) as run:
        broken = "log.jsonl" if damage == "log" else "state.json"
        (run.home / broken).write_text(damage)
        before = run.files()
        for argv in (READS[name][0], ("verify",)):
            assert run(*argv) == 2
            assert broken in run.err.getvalue()
        assert run.files() == before


@pytest.mark.parametrize("name", NAMES)
def test_a_state_that_was_written_by_hand_does_not_verify(name: str) -> None:
    with terminal(name) as run:
        state = run.state()
        state["user"] = "somebody else"
        (run.home / "state.json").write_text(json.dumps(state))
        assert run("verify") == 2


@pytest.mark.parametrize("name", NAMES)
def test_as_a_program(name: str, tmp_path: Path) -> None:
    def start(*argv: str, cwd: Path = tmp_path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(FOLDER / name), *argv], cwd=cwd, input=stdin, capture_output=True, text=True, timeout=20, check=False
        )

    assert os.access(FOLDER / name, os.X_OK)
    shown = start("--help")
    assert shown.returncode == 0
    assert "examples:" in shown.stdout
    assert "eod" not in shown.stdout, "end of day is the bank's own"
    assert not re.search(r"^ +close\b", shown.stdout, re.MULTILINE), "the close is the broker's own"
    outside = start("verify")
    assert (outside.returncode, outside.stdout) == (2, "")
    assert "workspace" in outside.stderr
    seed = "".join(json.dumps(op) + "\n" for op in SEEDS[name])
    assert start("init", "--log", "-", stdin="not json\n").returncode == 2
    assert start("init", "--log", "-", stdin=seed + '{"op": "begin"}\n').returncode == 2
    assert list(tmp_path.iterdir()) == []
    assert start("init", "--log", "-", stdin=seed).returncode == 0
    assert start("init", "--log", "-", stdin=seed).returncode == 2
    (tmp_path / "below").mkdir()
    assert start("verify", cwd=tmp_path / "below").returncode == 0
    assert start("nonsense").returncode == 2


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "seed.jsonl").write_text("".join(json.dumps(op) + "\n" for op in SEEDS["bank"]))
    bank = [str(FOLDER / "bank")]
    subprocess.run([*bank, "init", "--log", "seed.jsonl"], cwd=tmp_path, check=True, capture_output=True)
    transfer = [*bank, "transfer", "100001", "900001", "11", "--reference", "at once"]

    def pay(_: int) -> None:
        subprocess.run(transfer, cwd=tmp_path, check=True, capture_output=True, timeout=60)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(pay, range(8)))
    state = json.loads((tmp_path / ".bank" / "state.json").read_text())
    assert state["accounts"]["900001"]["balance"] == 88
    log = [json.loads(line) for line in (tmp_path / ".bank" / "log.jsonl").read_text().splitlines()]
    assert [entry["seq"] for entry in log] == list(range(1, state["seq"] + 1))
