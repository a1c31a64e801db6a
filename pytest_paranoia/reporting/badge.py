"""A badge: the JSON that https://shields.io/badges/endpoint-badge reads."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_paranoia.reporting.grids import number
from pytest_paranoia.store.summary import RunSummary


def badge(summary: RunSummary) -> dict[str, object]:
    """Return the badge of *summary*: VR and CAVE, over several agents from lowest to highest.

    Green or red is what gates say. Without gates nobody has said what is good, and the badge is blue; where nothing was
    scored it is grey.
    """
    agents = summary.agents.values()
    rates = [one.pairs.excess["all"].vr.mean for one in agents if one.pairs is not None]
    scores = [one.scenarios.scores.cave for one in agents if one.scenarios is not None]
    parts = [*_span("VR", rates), *_span("CAVE", scores)]
    unjudged = "blue" if parts else "lightgrey"
    colour = ("brightgreen" if summary.gates_passed else "red") if summary.gates else unjudged
    message = ", ".join(parts) or "nothing scored"
    return {"schemaVersion": 1, "label": "paranoia", "message": message, "color": colour}


def _span(name: str, values: Sequence[float | None]) -> list[str]:
    known = [value for value in values if value is not None]
    if not known:
        return []
    low, high = number(min(known)), number(max(known))
    return [f"{name} {low}%" if low == high else f"{name} {low}-{high}%"]
