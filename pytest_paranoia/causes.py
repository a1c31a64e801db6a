"""Why model calls failed, in the words of records and of whoever reads them."""

from __future__ import annotations

from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.relay.contract import Metered, Provider


def cause_of(metered: Metered, said: str) -> InfrastructureError | None:
    """Return what the relay knows of why calls failed: a cap, a refusal, an overload, in this order."""
    if metered.capped:
        of, name = ("run", "max-cost") if metered.capped == "run-cost" else ("trial", f"trial-{metered.capped}")
        what, option = metered.capped.removeprefix("run-"), f"--paranoia-{name}"
        text = f"the {of}'s cap on {what} ({option}) was reached ({said})"
        if metered.unpriced is not None:
            text = f"{option} cannot be kept: {no_price(metered.unpriced, option)}"
        return InfrastructureError(f"cap-{metered.capped}", text)
    if (refusal := metered.refusal) is not None:
        return InfrastructureError(
            f"provider-{refusal.kind}", f"the provider answered {refusal.status} to {refusal.call}: {refusal.message}"
        )
    if metered.unrecorded:
        return InfrastructureError(
            "replay-unrecorded", f"{metered.unrecorded} model calls are not in the recording ({said})"
        )
    if (overload := metered.overload) is not None:
        answer = f"answered {overload.status} to" if overload.status else "could not be reached for"
        return InfrastructureError(
            "provider-overloaded",
            f"the provider {answer} {overload.call}, {overload.attempts} attempts: {overload.message}",
        )
    return None


def naming(error: InfrastructureError, caller: str, model: str, provider: Provider) -> InfrastructureError:
    """Return *error*; where a model refused, with whose model it was and where that is served."""
    if error.reason != "model-refused":
        return error
    where = provider.base_url.partition("?")[0]  # some take their key in the query
    return InfrastructureError(error.reason, f"the {caller}'s model {model!r} at {where}: {error}")


def no_price(model: str, option: str) -> str:
    """Say what to do about a *model* without a price where *option* limits cost."""
    return f"there is no price for {model!r}; give --paranoia-prices FILE with one, or leave {option} out"
