"""A client for the news feed. Pages are numbered from 1."""

from collections.abc import Callable
from typing import Any

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

# Fetches a path below the feed and gives the decoded JSON; raises ConnectionError where the line or the server fails.
Transport = Callable[[str], dict[str, Any]]


class FeedClient:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @retry(
        retry=retry_if_exception_type(ConnectionError),
        wait=wait_random_exponential(max=30),
        stop=stop_after_attempt(6),
        reraise=True,
    )
    def page(self, number: int) -> dict[str, Any]:
        """Return one page: ``{"items": [{"title": ..., "id": ...}, ...]}``."""
        return self._transport(f"/pages/{number}")
