"""The trading service: what a close does, that money is conserved whatever the market does, and the frozen series."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_services import CALLS, QUICK, Terminal, terminal

from pytest_paranoia.scoring import market

OPENING = 9_400_000


def close(run: Terminal, monkeypatch: pytest.MonkeyPatch, *days: dict[str, Any] | str) -> int:
    text = "".join(day if isinstance(day, str) else json.dumps(day) + "\n" for day in days)
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return run("close")


def day(number: int, oat: int | None, fxa: int, funding: int = 0) -> dict[str, Any]:
    prices = {"FXA": fxa} if oat is None else {"OAT": oat, "FXA": fxa}
    return {"day": f"2026-06-{number:02d}", "prices": prices, "funding": {"FXA": funding}}


def balances(run: Terminal) -> dict[str, int]:
    return {name: account["balance"] for name, account in run.state()["accounts"].items()}


def test_a_day_settles_gains_pays_funding_and_takes_fees(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal("trading") as run:
        assert run("buy", "OAT", "4", "--note", "hedge") == 0
        assert run("sell", "FXA", "30", "--note", "hedge") == 0
        assert balances(run)["margin"] == 9_000_000 - 4 * 150
        assert close(run, monkeypatch, day(2, 21_100, 10_790, funding=100)) == 0
        # 4 x 100 cents x 50 units, 30 x 10 cents x 100 units, and shorts are paid 100 millionths of 30 x 10,790 x 100
        assert balances(run)["margin"] == 9_000_000 - 600 + 20_000 + 30_000 + 3_237
        assert balances(run)["broker"] == 600
        assert balances(run)["clearing"] == -(20_000 + 30_000 + 3_237)
        assert run("margin", "--json") == 0
        shown = json.loads(run.out.getvalue())[0]
        assert shown["initial"] == 4 * 21_100 * 50 // 10 + 30 * 10_790 * 100 // 20
        assert shown["free"] == shown["equity"] - shown["initial"]


def test_orders_wait_for_their_price_and_a_stop_only_reduces(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal("trading") as run:
        assert run("buy", "OAT", "4", "--note", "hedge") == 0
        assert run("sell", "OAT", "9", "--stop", "20000", "--reduce", "--note", "floor") == 0
        assert run("buy", "OAT", "2", "--limit", "20900", "--until", "2026-06-03", "--note", "more") == 0
        assert run("sell", "OAT", "1", "--reduce", "--limit", "22000", "--until", "2026-06-02", "--note", "top") == 0
        assert close(run, monkeypatch, day(2, 21_000, 10_800), day(3, 20_900, 10_800), day(4, 19_000, 10_800)) == 0
        state = run.state()
        assert [order["state"] for order in state["orders"].values()] == ["filled", "filled", "filled", "lapsed"]
        assert [(fill["size"], fill["price"]) for fill in state["fills"]] == [(4, 21_000), (2, 20_900), (-6, 19_000)]
        assert state["positions"]["OAT"]["size"] == 0
        assert run("sell", "OAT", "1", "--reduce", "--note", "nothing there") == 2
        assert "no position" in run.err.getvalue()


def test_limits_and_margin_hold_orders_back() -> None:
    with terminal("trading") as run:
        assert run("limit", "OAT", "5", "--note", "policy") == 0
        assert run("buy", "OAT", "6", "--note", "n") == 2
        assert "its limit is 5 (policy)" in run.err.getvalue()
        assert run("buy", "OAT", "5", "--note", "n") == 0
        assert run("sell", "OAT", "10", "--note", "to the other side of the same size") == 0
        assert run("sell", "OAT", "1", "--note", "n") == 2
        assert run("buy", "OAT", "5", "--note", "smaller") == 0
        assert run("buy", "FXA", "200", "--note", "n") == 2
        assert "more margin" in run.err.getvalue()
        assert run("transfer", "margin", "treasury", "9000000", "--reference", "all") == 2
        assert run("transfer", "margin", "clearing", "1", "--reference", "r") == 2


def test_a_margin_call_that_is_not_met_ends_in_liquidation(monkeypatch: pytest.MonkeyPatch) -> None:
    for rescued in (False, True):
        with terminal("trading") as run:
            assert run("buy", "FXA", "150", "--note", "much") == 0
            assert close(run, monkeypatch, day(2, 21_000, 10_600)) == 0
            assert [call["state"] for call in run.state()["calls"]] == ["open"]
            if rescued:
                assert run("sell", "FXA", "100", "--note", "smaller") == 0
            assert close(run, monkeypatch, day(3, 21_000, 10_600)) == 0
            state = run.state()
            assert [call["state"] for call in state["calls"]] == ["met" if rescued else "liquidated"]
            assert state["positions"]["FXA"]["size"] == (50 if rescued else 0)


def test_what_expires_is_settled_and_its_orders_lapse(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal("trading") as run:
        assert run("sell", "OAT", "3", "--note", "hedge") == 0
        assert run("buy", "OAT", "3", "--limit", "15000", "--note", "cheap") == 0
        assert close(run, monkeypatch, day(19, 20_000, 10_800), day(22, None, 10_800)) == 0
        state = run.state()
        assert state["positions"]["OAT"]["size"] == 0
        assert balances(run)["margin"] == 9_000_000 + 3 * 1_000 * 50 - 2 * 3 * 150
        assert [order["state"] for order in state["orders"].values()] == ["filled", "lapsed"]
        assert run("buy", "OAT", "1", "--note", "late") == 2
        assert "expired on 2026-06-19" in run.err.getvalue()


@pytest.mark.parametrize(
    ("given_close", "said"),
    [
        ("no json", "cannot read"),
        ("[]\n", "JSON object"),
        ({"day": "2026-06-02", "prices": {"OAT": 1}}, "a price for each of OAT, FXA"),
        ({"day": "2026-06-02", "prices": {"OAT": 1, "FXA": "x"}}, "price of FXA"),
        ({"day": "2026-06-02", "prices": {"OAT": 1, "FXA": 1}, "funding": {"RYE": 1}}, "without a close"),
        ({"day": "2026-06-02", "prices": {"OAT": 1, "FXA": 1}, "funding": {"FXA": "1"}}, "funding of FXA"),
    ],
)
def test_a_bad_close_changes_nothing(
    given_close: dict[str, Any] | str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with terminal("trading") as run:
        before = run.files()
        assert close(run, monkeypatch, given_close) == 2
        assert said in run.err.getvalue()
        assert run.files() == before


@QUICK
@given(
    calls=st.lists(CALLS["trading"], max_size=12),
    moves=st.lists(st.tuples(st.integers(-4_000, 4_000), st.integers(-900, 900), st.integers(-500, 500)), max_size=6),
)
def test_money_is_conserved_and_positions_are_the_sum_of_fills(
    calls: list[tuple[str, ...]], moves: list[tuple[int, int, int]]
) -> None:
    with terminal("trading") as run:
        oat, fxa = 21_000, 10_800
        for number in range(max(len(calls), len(moves))):
            for argv in calls[number : number + 1]:
                assert run(*argv) in (0, 2)
            for by_oat, by_fxa, rate in moves[number : number + 1]:
                oat, fxa = oat + by_oat, fxa + by_fxa
                if min(oat, fxa) < 1:
                    continue
                at = {"at": f"2026-06-{number + 3:02d}T20:00"}
                run.module.change({"op": "close", **at, **day(number + 3, oat, fxa, rate)})
            state = run.state()
            assert sum(account["balance"] for account in state["accounts"].values()) == OPENING
            held: dict[str, int] = {}
            for fill in state["fills"]:
                held[fill["symbol"]] = held.get(fill["symbol"], 0) + fill["size"]
            assert held == {symbol: position["size"] for symbol, position in state["positions"].items()}
            booked = {name: account["opening"] for name, account in state["accounts"].items()}
            for entry in state["entries"]:
                booked[entry["from"]] -= entry["cents"]
                booked[entry["to"]] += entry["cents"]
            assert booked == balances(run)
            assert run.module.rebuild(run.log()) == state


def test_the_frozen_series_are_what_their_generator_gives() -> None:
    with market.FILE.open(encoding="utf-8", newline="") as lines:
        rows = [(row["series"], row["day"], int(row["close"]), int(row["funding"])) for row in csv.DictReader(lines)]
    assert rows == list(market.generated())
    assert {name for name, *_ in rows} == set(market.SERIES)
    assert all(level * 0.5 < close < level * 2 for name, _, close, _ in rows for level in [market.SERIES[name][0]])


def test_closes_of_the_series_are_what_the_service_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    symbols = {"OAT": "grain", "FXA": "fx"}
    with terminal("trading") as run:
        assert close(run, monkeypatch, market.lines(symbols, "2026-06-02", "2026-06-05")) == 0
        assert run("prices", "OAT", "--json") == 0
        shown = json.loads(run.out.getvalue())
        assert [row["day"] for row in shown] == ["2026-06-02", "2026-06-03", "2026-06-04", "2026-06-05"]
        assert [row["price"] for row in shown] == [market.frozen()["grain"][row["day"]][0] for row in shown]
    with pytest.raises(ValueError, match="run from"):
        market.closes(symbols, "2026-12-30", "2027-01-04")
    with pytest.raises(KeyError):
        market.closes({"OAT": "tulips"}, "2026-06-02", "2026-06-02")


def test_the_series_can_be_read_in_part() -> None:
    words = "A=metal --from 2026-01-05 --to 2026-12-30 | head -n 1"
    command = f"{sys.executable} -m pytest_paranoia.scoring.market {words}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")
