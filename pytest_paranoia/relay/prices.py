"""What tokens cost: a dated table in the package, extended or overridden by the user's own.

A table is TOML: ``date``, and per model ``[[models]]`` with ``id``, US dollars per million tokens (``input``,
``output``, and where they apply ``cached_input``, ``cache_write_5m``, ``cache_write_1h``), and a ``source``. Optional
are ``aliases``, ``prefix = true`` (the id is the beginning of many), ``providers`` (the names of those it is the price
of; without it, of all), and ``[[models.above]]`` with ``input_tokens`` and the prices of a call whose input is larger.
An id also stands for the same id with a date behind it. What is in no table has no price, which is not a price of 0.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.relay.usage import Tokens

PACKAGE_TABLE = Path(__file__).with_name("prices.toml")
_DATE = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
_NUMBERS = ("input", "output", "cached_input", "cache_write_5m", "cache_write_1h")
_KEYS = frozenset({"id", "aliases", "prefix", "providers", "source", "above", *_NUMBERS})
_STEP_KEYS = frozenset({"input_tokens", *_NUMBERS})
_MILLION = 1e6


class PriceError(ParanoiaError):
    """A price table that cannot be used; the message names file, key, what was found and what was expected."""


@dataclass(frozen=True)
class Rates:
    """US dollars per million tokens; None where the provider names no price for it."""

    input: float
    output: float
    cached_input: float | None = None
    cache_write_5m: float | None = None
    cache_write_1h: float | None = None


@dataclass(frozen=True)
class Price:
    """One model's price; ``above`` holds the rates of calls with more input tokens than the number beside them."""

    model: str
    rates: Rates
    providers: frozenset[str] | None = None
    above: tuple[tuple[int, Rates], ...] = ()

    def cost(self, tokens: Tokens) -> float | None:
        """Return what an answer cost in US dollars, None where that cannot be known."""
        if tokens.input is None or tokens.output is None or tokens.special is not None:
            return None
        rates = self.rates
        for limit, higher in self.above:
            if tokens.input > limit:
                rates = higher
        cached, writes = tokens.cached or 0, tokens.cache_writes or 0
        long = min(tokens.long_cache_writes or 0, writes)
        parts = (
            (tokens.input - cached - writes, rates.input),
            (cached, rates.cached_input),
            (writes - long, rates.cache_write_5m),
            (long, rates.cache_write_1h),
            (tokens.output, rates.output),
        )
        total = 0.0
        for count, rate in parts:
            if count < 0 or (count and rate is None):
                return None
            total += count * (rate or 0.0)
        return total / _MILLION


@dataclass(frozen=True)
class PriceTable:
    """Prices by model id. ``date`` is that of the table (of both, where the user has one)."""

    date: str
    exact: Mapping[str, Sequence[Price]]
    prefixes: Sequence[tuple[str, Price]] = ()

    def find(self, provider: str, *models: str) -> Price | None:
        """Return the price of the first of *models* that has one at *provider*."""
        for model in models:
            for price in self._candidates(model.lower()):
                if price.providers is None or provider.lower() in price.providers:
                    return price
        return None

    def _candidates(self, model: str) -> Iterator[Price]:
        yield from self.exact.get(model, ())
        if undated := _DATE.sub("", model):
            yield from self.exact.get(undated, ()) if undated != model else ()
        for prefix, price in self.prefixes:
            if model.startswith(prefix):
                yield price


def load(user: Path | None = None) -> PriceTable:
    """Return the package's table, with *user*'s before it. Raises PriceError."""
    table = read(PACKAGE_TABLE)
    if user is None:
        return table
    own = read(user)
    exact = {model: [*own.exact.get(model, ()), *table.exact.get(model, ())] for model in {*own.exact, *table.exact}}
    return PriceTable(f"{table.date}, {user.name} {own.date}", exact, (*own.prefixes, *table.prefixes))


def read(path: Path) -> PriceTable:
    """Read one table. Raises PriceError."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PriceError(f"{path}: the price table cannot be read: {error}") from error
    reader = _Reader(path)
    date = data.get("date")
    if not isinstance(date, str) and not hasattr(date, "isoformat"):
        raise reader.wrong("date", date, 'the day of the prices, such as date = "2026-11-30"')
    if unknown := set(data) - {"date", "models"}:
        raise reader.wrong(min(unknown), data[min(unknown)], "only date and [[models]]")
    exact: dict[str, list[Price]] = {}
    prefixes: list[tuple[str, Price]] = []
    for number, entry in enumerate(reader.tables("models", data.get("models", []))):
        price, names, prefix = reader.model(f"models[{number}]", entry)
        for name in names:
            exact.setdefault(name, []).append(price)
            if prefix:
                prefixes.append((name, price))
    prefixes.sort(key=lambda item: -len(item[0]))
    return PriceTable(str(date), exact, prefixes)


class _Reader:
    """Reads the parts of one table and names the place of what is wrong."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def wrong(self, key: str, found: object, expected: str) -> PriceError:
        return PriceError(f"{self._path}: {key}: found {found!r}, expected {expected}")

    def tables(self, key: str, value: object) -> list[dict[str, Any]]:
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.wrong(key, value, f"tables [[{key}]]")
        return value

    def model(self, where: str, entry: dict[str, Any]) -> tuple[Price, list[str], bool]:
        """Return a price, the ids it is of, and whether they are beginnings."""
        name = entry.get("id")
        if not isinstance(name, str) or not name:
            raise self.wrong(f"{where}.id", name, "the model's id")
        where = f"{where} ({name})"
        self.known(where, entry, _KEYS)
        if not isinstance(entry.get("source"), str) or not entry["source"]:
            raise self.wrong(f"{where}.source", entry.get("source"), "where the prices were read")
        if not isinstance(entry.get("prefix", False), bool):
            raise self.wrong(f"{where}.prefix", entry["prefix"], "true or false")
        rates = self.rates(where, entry, None)
        above = []
        for step in self.tables(f"{where}.above", entry.get("above", [])):
            self.known(f"{where}.above", step, _STEP_KEYS)
            limit = step.get("input_tokens")
            if isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0:
                raise self.wrong(f"{where}.above.input_tokens", limit, "a number of tokens")
            above.append((limit, self.rates(f"{where}.above", step, rates)))
        providers = self.words(f"{where}.providers", entry["providers"]) if "providers" in entry else None
        price = Price(
            name,
            rates,
            None if providers is None else frozenset(providers),
            tuple(sorted(above, key=lambda step: step[0])),
        )
        names = [name.lower(), *self.words(f"{where}.aliases", entry.get("aliases", []))]
        return price, names, entry.get("prefix", False)

    def known(self, where: str, entry: dict[str, Any], keys: frozenset[str]) -> None:
        for key in sorted(set(entry) - keys):
            raise self.wrong(f"{where}.{key}", entry[key], f"one of {', '.join(sorted(keys))}")

    def rates(self, where: str, entry: dict[str, Any], below: Rates | None) -> Rates:
        found: dict[str, float] = {}
        for key in _NUMBERS:
            value = entry.get(key)
            if value is None and (below is not None or key not in ("input", "output")):
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or value < 0:  # type: ignore[arg-type,operator]
                raise self.wrong(f"{where}.{key}", value, "US dollars per million tokens, 0 or more")
            found[key] = float(value)  # type: ignore[arg-type]
        return Rates(**found) if below is None else replace(below, **found)

    def words(self, where: str, value: object) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise self.wrong(where, value, "a list of names")
        return [word.lower() for word in value]
