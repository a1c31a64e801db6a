"""The price table: what is in the package's, what a user's may hold, and how a cost comes about."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_paranoia.relay import prices
from pytest_paranoia.relay.prices import Price, PriceError, Rates
from pytest_paranoia.relay.usage import Tokens

GOOD = 'date = "2026-11-01"\n[[models]]\nid = "m"\ninput = 1.0\noutput = 2.0\nsource = "x"\n'


def test_package_table_is_dated_and_has_sources() -> None:
    table = prices.load()
    assert date.fromisoformat(table.date) >= date(2026, 11, 30)
    text = prices.PACKAGE_TABLE.read_text()
    assert text.count("[[models]]") == len(re.findall(r'^source = "https://', text, re.M))
    found = [price for group in table.exact.values() for price in group]
    assert found
    for price in found:
        assert price.providers
        for rates in (price.rates, *(rates for _, rates in price.above)):
            assert 0 < rates.input < rates.output
            assert rates.cached_input is not None
            assert rates.cached_input <= rates.input
            assert rates.cache_write_5m is not None
            assert rates.cache_write_5m >= rates.input
        for _, rates in price.above:
            assert rates.input > price.rates.input
            assert rates.output > price.rates.output


@pytest.mark.parametrize(
    ("provider", "model", "known"),
    [
        ("anthropic", "claude-opus-5", 5.0),
        ("anthropic", "claude-haiku-4-5-20251001", 1.0),
        ("Anthropic", "Claude-Sonnet-4-6", 3.0),
        ("openai", "gpt-5.5-2026-04-23", 5.0),
        ("openai", "gpt-5.5-latest", 5.0),
        ("openai", "gpt-5.5-pro", None),
        ("openai", "gpt-5.6-sol", None),
        ("anthropic", "claude-opus-5-5", None),
        ("openrouter", "claude-opus-5", None),
        ("anthropic", "", None),
        ("anthropic", "-20251001", None),
    ],
)
def test_which_price_a_model_has(provider: str, model: str, known: float | None) -> None:
    found = prices.load().find(provider, model)
    assert (found.rates.input if found else None) == known


def test_first_model_that_has_a_price() -> None:
    found = prices.load().find("openai", "an-alias", "gpt-5.5", "gpt-5.6-luna")
    assert found is not None
    assert found.model == "gpt-5.5"


def test_users_table_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        "date = 2026-12-01\n"
        '[[models]]\nid = "claude-opus-5"\ninput = 4\noutput = 20\nsource = "contract"\n'
        '[[models]]\nid = "Local/"\nprefix = true\ninput = 0\noutput = 0\nsource = "our own machine"\n'
        '[[models]]\nid = "local/big-"\nprefix = true\ninput = 1\noutput = 1\nsource = "theirs"\nproviders = ["lan"]\n'
        '[[models]]\nid = "x"\naliases = ["Y", "z"]\ninput = 7\noutput = 8\nsource = "s"\n'
    )
    table = prices.load(path)
    assert table.date == f"{prices.load().date}, mine.toml 2026-12-01"

    def rate(provider: str, model: str) -> float | None:
        found = table.find(provider, model)
        return None if found is None else found.rates.input

    assert rate("anthropic", "claude-opus-5") == rate("elsewhere", "claude-opus-5") == 4.0
    assert rate("anthropic", "claude-sonnet-5") == 2.0
    assert rate("lan", "local/qwen") == 0.0
    assert rate("lan", "LOCAL/big-1") == 1.0
    assert rate("wan", "local/big-1") == 0.0
    assert rate("any", "y") == rate("any", "Z") == rate("any", "x-20260101") == 7.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[", "cannot be read"),
        ("", r": date: found None, expected the day"),
        (GOOD + "[other]\n", ": other: found"),
        (GOOD.replace("2.0", "-1"), r"models\[0\] \(m\)\.output: found -1, expected US dollars"),
        (GOOD.replace("2.0", "nan"), r"\.output: found nan"),
        (GOOD.replace("2.0", "true"), r"\.output: found True"),
        (GOOD.replace("output = 2.0\n", ""), r"\.output: found None"),
        (GOOD.replace('id = "m"', "id = 3"), r"models\[0\]\.id: found 3"),
        (GOOD.replace('source = "x"', ""), r"\.source: found None, expected where"),
        (GOOD + "inptu = 3\n", r"\.inptu: found 3, expected one of"),
        (GOOD + "prefix = 1\n", r"\.prefix: found 1"),
        (GOOD + "aliases = 1\n", r"\.aliases: found 1, expected a list"),
        (GOOD + "above = 1\n", r"\.above: found 1, expected tables"),
        (GOOD + "[[models.above]]\ninput = 3.0\n", r"\.above\.input_tokens: found None"),
        (GOOD + "[[models.above]]\ninput_tokens = 9\ninptu = 3.0\n", r"\.above\.inptu: found 3.0, expected one of"),
        (GOOD.replace("[[models]]", "[models]"), "expected tables"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(PriceError, match=said) as caught:
        prices.load(path)
    assert str(caught.value).startswith(str(path))


def test_missing_table(tmp_path: Path) -> None:
    with pytest.raises(PriceError, match=r"none\.toml: the price table cannot be read"):
        prices.load(tmp_path / "none.toml")


RATES = Rates(input=10.0, output=50.0, cached_input=1.0, cache_write_5m=12.5, cache_write_1h=20.0)
HIGH = Rates(input=20.0, output=75.0, cached_input=2.0, cache_write_5m=25.0, cache_write_1h=40.0)
PRICE = Price("m", RATES, above=((1000, HIGH),))


@pytest.mark.parametrize(
    ("tokens", "micros"),
    [
        (Tokens(input=100, output=10), 100 * 10 + 10 * 50),
        (Tokens(input=100, cached=60, output=0), 40 * 10 + 60 * 1),
        (Tokens(input=100, cached=20, cache_writes=30, output=0), 50 * 10 + 20 * 1 + 30 * 12.5),
        (
            Tokens(input=100, cached=20, cache_writes=30, long_cache_writes=10, output=1),
            50 * 10 + 20 + 20 * 12.5 + 10 * 20 + 50,
        ),
        (Tokens(input=1000, output=10), 1000 * 10 + 500),
        (Tokens(input=1001, cached=1, output=10), 1000 * 20 + 2 + 750),
        (Tokens(input=0, output=0), 0),
    ],
)
def test_cost(tokens: Tokens, micros: float) -> None:
    assert PRICE.cost(tokens) == pytest.approx(micros / 1e6)


@pytest.mark.parametrize(
    "tokens",
    [
        Tokens(),
        Tokens(input=5),
        Tokens(output=5),
        Tokens(input=5, output=5, special="service_tier priority"),
        Tokens(input=5, cached=6, output=1),
    ],
)
def test_cost_that_cannot_be_known(tokens: Tokens) -> None:
    assert PRICE.cost(tokens) is None


def test_part_without_a_rate_makes_the_cost_unknown() -> None:
    plain = Price("m", Rates(1.0, 2.0))
    assert plain.cost(Tokens(input=10, output=1)) == pytest.approx(12e-6)
    assert plain.cost(Tokens(input=10, cached=0, output=1)) == pytest.approx(12e-6)
    assert plain.cost(Tokens(input=10, cached=1, output=1)) is None
    assert plain.cost(Tokens(input=10, cache_writes=1, output=1)) is None


COUNT = st.integers(0, 900)


@given(COUNT, COUNT, COUNT, COUNT)
def test_cost_lies_between_all_cached_and_all_written(input_: int, cached: int, writes: int, output: int) -> None:
    cached = min(cached, input_)
    writes = min(writes, input_ - cached)
    cost = PRICE.cost(Tokens(input=input_, cached=cached, cache_writes=writes, output=output))
    assert cost is not None
    assert (input_ * 1 + output * 50) / 1e6 - 1e-12 <= cost <= (input_ * 12.5 + output * 50) / 1e6 + 1e-12
