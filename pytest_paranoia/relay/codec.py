"""The contract's plain data as JSON and back, for the relay's admin socket and its wire logs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from pytest_paranoia.relay.contract import Call, Caps, Metered, Overload, Provider, Refusal, Route
from pytest_paranoia.relay.settings import RunTotals, Settings


def plain(value: Route | Metered | Settings | RunTotals | Call | Refusal) -> dict[str, Any]:
    """Return *value* as what JSON can hold."""
    return dataclasses.asdict(value)


def settings(data: Mapping[str, Any]) -> Settings:
    """Return settings from their JSON."""
    return Settings(**data)


def route(data: Mapping[str, Any]) -> Route:
    """Return a route from its JSON."""
    provider = data["provider"]
    return Route(
        **{
            **data,
            "provider": Provider(**{**provider, "protocols": tuple(provider["protocols"])}),
            "caps": Caps(**data["caps"]),
        }
    )


def metered(data: Mapping[str, Any]) -> Metered:
    """Return a trial's account from its JSON."""
    return Metered(
        **{
            **data,
            "calls": tuple(Call(**call) for call in data["calls"]),
            "refusal": _refusal(data["refusal"]),
            "overload": _overload(data["overload"]),
        }
    )


def totals(data: Mapping[str, Any]) -> RunTotals:
    """Return a run's totals from their JSON."""
    return RunTotals(**{**data, "refusal": _refusal(data["refusal"]), "overload": _overload(data["overload"])})


def _refusal(data: object) -> Refusal | None:
    return None if data is None else Refusal(**cast("dict[str, Any]", data))


def _overload(data: object) -> Overload | None:
    return None if data is None else Overload(**cast("dict[str, Any]", data))
