"""Talks to the shop whose traffic is recorded each night. It answers 503 for some seconds whenever it is deployed."""

from __future__ import annotations

from typing import Any

import requests

BASE = "https://shop.example.net/v2"


def open_session() -> requests.Session:
    """Return a session for the shop: the one that every function here is given."""
    session = requests.Session()
    session.headers["User-Agent"] = "nightly-recording"
    return session


def basket(session: requests.Session, number: str) -> dict[str, Any]:
    """Return one basket."""
    return session.get(f"{BASE}/baskets/{number}").json()
