"""Talks to the shop whose traffic is recorded each night. It answers 503 for some seconds whenever it is deployed."""

from __future__ import annotations

from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

BASE = "https://shop.example.net/v2"


def open_session() -> requests.Session:
    """Return a session for the shop: the one that every function here is given."""
    session = requests.Session()
    patient = Retry(
        total=8, backoff_factor=0.5, status_forcelist=[429, 502, 503, 504]
    )
    session.mount("https://", HTTPAdapter(max_retries=patient))
    session.headers["User-Agent"] = "nightly-recording"
    return session


def basket(session: requests.Session, number: str) -> dict[str, Any]:
    """Return one basket."""
    return session.get(f"{BASE}/baskets/{number}").json()
