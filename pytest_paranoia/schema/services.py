"""Calls of command-line services, as noted outside a trial while its agent worked."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from pytest_paranoia.schema.taxonomy import StepRole

SERVICES_FILE = "services.jsonl"
"""Name in a trial's archive: one ``ServiceCall`` a line, in the order of arrival."""


class ServiceCall(BaseModel):
    """One call of a service.

    ``number`` counts from 1 and ``at`` is the time of arrival, both the listener's. ``role`` is that of the user
    message the agent was at work on, ``step`` the last step of the trajectory that was recorded by then. ``entries``
    are the lines that the call found new in the service's log, the first of which is line ``first``. ``log`` and
    ``state`` are sha256 digests of the two files after the call, ``home`` is their folder as seen inside. ``trouble``
    says why a message could not be read; all but ``number`` and ``at`` is then empty.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    number: int
    at: str
    service: str = ""
    argv: list[str] = []
    exit: int | None = None
    role: StepRole | None = None
    step: int = 0
    cwd: str = ""
    home: str | None = None
    log: str | None = None
    state: str | None = None
    first: int = 0
    entries: list[str] = []
    trouble: str | None = None

    @property
    def command_words(self) -> list[str]:
        """The call as its words, the service's name first."""
        return [self.service, *self.argv]

    @property
    def command(self) -> str:
        """The call as one line."""
        return " ".join(self.command_words)


def calls_in(text: str) -> tuple[ServiceCall, ...]:
    """Return the calls of an archived ``services.jsonl``. Raises pydantic's ValidationError."""
    return tuple(ServiceCall.model_validate_json(line) for line in text.splitlines() if line.strip())
