"""Exceptions that drive the flow: what went wrong decides who is told and whether a trial is scored."""

from __future__ import annotations

import errno


class ParanoiaError(Exception):
    """Base of every error this package raises on purpose."""


class ManifestError(ParanoiaError):
    """A manifest, card or reference run that cannot be used.

    The message names file, key, what was found, what was expected and the next step.
    """


class SourceError(ParanoiaError):
    """A repository that cannot be fetched, imported or given its test environment."""


class TrialFailed(ParanoiaError, AssertionError):
    """The trial is scored and its item fails: the oracle failed, work was damaged, or (strict) evidence was ignored."""


class InfrastructureError(ParanoiaError):
    """Something of ours or of the machine failed: the trial is unscored, never wrong.

    ``reason`` is a short stable word for tables (for example ``oracle-timeout``).
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def disk_full(error: BaseException) -> bool:
    """Return whether *error*, or what it was raised from, is that a disk or a user's share of it is full."""
    met: list[BaseException] = []
    seen: BaseException | None = error
    while seen is not None and seen not in met:  # an error may be its own cause
        if isinstance(seen, OSError) and seen.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        met.append(seen)
        seen = seen.__cause__
    return False
