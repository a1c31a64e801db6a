"""The Docker daemon as this process talks to it: every call has a time limit and a bounded number of attempts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_paranoia.environments.docker import address
from pytest_paranoia.environments.docker.settings import GONE, call_seconds
from pytest_paranoia.errors import InfrastructureError

if TYPE_CHECKING:
    from docker import APIClient

T = TypeVar("T")

PING_SECONDS = 5.0
PAUSES = (0.5, 2.0)
"""Seconds before the second and the third attempt: as long as a daemon takes that is being restarted."""


class Daemon:
    """Calls the daemon that ``docker`` itself would call (see ``address``), by default the one of this machine."""

    def __init__(self) -> None:
        self._client: APIClient | None = None
        self.address = ""

    def client(self) -> APIClient:
        """Return the client, made on first use. Raises what docker and requests raise, and InfrastructureError where
        no daemon can be meant.
        """
        if self._client is None:
            from docker import APIClient  # takes a fifth of a second, and few sessions need it

            chosen = address.chosen()
            self.address = address.shown(chosen["base_url"])
            # Nothing but the question for its version is asked with this limit: in whole seconds, and not 0.
            seconds = max(1, int(call_seconds()))
            try:
                self._client = APIClient(**chosen, version="auto", timeout=seconds)
            except (AttributeError, KeyError, TypeError) as error:  # it believes whatever Docker's settings hold
                where = address.settings_folder() / "config.json"
                raise InfrastructureError(
                    GONE,
                    f"{where} holds no settings of Docker ({error}): mend it, or name another folder in DOCKER_CONFIG",
                ) from error
        return self._client

    def call(
        self,
        what: str,
        action: Callable[[APIClient], T],
        *,
        seconds: float | None = None,
        total: float | None = None,
        reason: str = "environment",
    ) -> T:
        """Return what *action* gives, *what* being its name in errors.

        *seconds* is how long the daemon may be silent, *total* how long the action may take (by default twice that).
        Raises InfrastructureError: ``docker-daemon`` where the daemon is silent or away, else *reason*. What the daemon
        refuses (``docker.errors.APIError`` with a status below 500) is raised as it came, for the caller to understand.
        """
        from docker.errors import APIError, DockerException
        from requests.exceptions import RequestException, Timeout

        problem: Exception | None = None
        answer: Exception | None = None
        limit = seconds or call_seconds()
        for pause in (*PAUSES, None):
            try:
                return bounded(partial(self._limited, action, limit), total or 2 * limit)
            except APIError as error:
                if error.status_code is not None and error.status_code < 500:
                    raise
                # The first answer says what went wrong; later ones may only speak of what it left.
                problem = answer = answer or error
            except (DockerException, RequestException, OSError) as error:
                problem = error
                # A daemon that hangs would keep every attempt waiting; one that is busy answers a ping.
                if (isinstance(error, Timeout) or "timed out" in str(error).lower()) and self.silence() is not None:
                    break
            if pause is not None:
                time.sleep(pause)
        if (silence := self.silence()) is not None:
            raise InfrastructureError(GONE, f"{what}: {silence}") from problem
        raise InfrastructureError(reason, f"{what}: {said(answer or problem)}") from problem

    def silence(self) -> str | None:
        """Return None where the daemon answers, else what happened, with the remedy."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        try:
            # The first question is that for its version, which has the limit of all others.
            limit = PING_SECONDS + (0.0 if self._client is not None else call_seconds())
            bounded(partial(self._limited, lambda client: client.ping(), PING_SECONDS), limit)
        except (DockerException, RequestException, OSError) as error:
            return f"no Docker daemon answers at {self.address} ({said(error)}): {_remedy(error)}"
        except InfrastructureError as error:
            return str(error)
        return None

    def _limited(self, action: Callable[[APIClient], T], seconds: float) -> T:
        client = self.client()
        # Requests takes fractions; the type, which says otherwise, is that of the constructor's argument.
        client.timeout = seconds  # type: ignore[assignment]
        return action(client)

    def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _remedy(error: Exception) -> str:
    if "permission denied" in str(error).lower():
        return "this user may not use it; add the user to the group docker and log in again"
    return "start it (`systemctl start docker`), or name another one with DOCKER_HOST"


def said(error: Exception | None) -> str:
    """Return what the daemon said, or what happened on the way to it, in one line."""
    text = getattr(error, "explanation", None) or str(error) or repr(error)
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return " ".join(str(text).split())[:500]


def bounded(action: Callable[[], T], seconds: float) -> T:
    """Return what *action* gives. Raises TimeoutError after *seconds*.

    The limit that requests knows is for each piece of an answer, and a stream has many.
    """
    box: list[Any] = []

    def run() -> None:
        try:
            box.extend((action(), None))
        except BaseException as error:
            box.extend((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if len(box) != 2:
        raise TimeoutError(f"it timed out after {seconds:.0f} s")
    if box[1] is not None:
        raise box[1]
    result: T = box[0]
    return result


DAEMON = Daemon()
