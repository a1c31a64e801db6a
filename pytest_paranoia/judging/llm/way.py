"""A judge's way to its model: a route of its own through the run's relay, with an account and a wire log of its own."""

from __future__ import annotations

import lzma
import socket
from contextlib import ExitStack
from pathlib import Path

from pytest_paranoia.acting import usage_of
from pytest_paranoia.agents.base import AgentChoice
from pytest_paranoia.causes import cause_of, naming
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.judging.case import Means
from pytest_paranoia.relay.client import RelayTrial, connect
from pytest_paranoia.relay.contract import Metered, Route
from pytest_paranoia.schema.record import Usage

WIRE, WIRE_ARCHIVE = "judge-wire.jsonl", "judge-wire.jsonl.xz"


class Way:
    """Opened with a listening socket, which the relay takes over; ``close`` ends it."""

    def __init__(self, means: Means, choice: AgentChoice) -> None:
        if means.relay is None:
            raise InfrastructureError("relay", "the relay is not running, so the judge cannot reach its model")
        assert choice.provider is not None
        self._wire = means.scratch / WIRE
        self._route = Route(
            trial=f"judge:{means.trial}",
            provider=choice.provider,
            model=choice.model or "",
            wire=str(self._wire),
            caller="judge",
        )
        self._address = means.relay
        self._stack = ExitStack()
        self._trial: RelayTrial | None = None
        self._metered = Metered()

    def open(self, listener: socket.socket) -> str:
        """Let the calls that arrive at *listener* go to the model; return the URL there, without the API's version."""
        with listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            client = self._stack.enter_context(connect(self._address))
            self._trial = client.open(self._route, listener)
        return url

    def cause(self, error: InfrastructureError) -> InfrastructureError:
        """Return what the relay knows of why calls failed, else *error* itself."""
        metered = self._trial.metered() if self._trial is not None else self._metered
        return cause_of(metered, str(error)) or naming(error, "judge", self._route.model, self._route.provider)

    def close(self) -> None:
        """End the way; more than once does nothing."""
        trial, self._trial = self._trial, None
        with self._stack:
            if trial is not None:
                self._metered = trial.close()

    @property
    def usage(self) -> Usage:
        """What was used, once the way is closed."""
        return usage_of(self._metered)

    def artifacts(self) -> dict[str, bytes]:
        """The wire log, compressed as that of the agent."""
        path: Path = self._wire
        return {WIRE_ARCHIVE: lzma.compress(path.read_bytes(), preset=3)} if path.is_file() else {}
