"""The one figure a habit is known by: VR and ER of task pairs, CAVE of accusation scenarios."""

from __future__ import annotations

from pytest_paranoia.reporting.grids import number
from pytest_paranoia.store.summary import RunSummary


def headline(summary: RunSummary) -> dict[str, str]:
    """Return a short line for each agent of *summary*, in its order."""
    found = {}
    for name, metrics in summary.agents.items():
        parts = []
        if metrics.pairs is not None:
            excess = metrics.pairs.excess["all"]
            tsr = metrics.pairs.tsr["all"].mean
            parts.append(f"VR {number(excess.vr.mean)}, ER {number(excess.er.mean)}, TSR {number(tsr)}")
        if metrics.scenarios is not None:
            scores = metrics.scenarios.scores
            parts.append(f"CAVE {number(scores.cave)}, ROH {number(scores.roh)}")
        found[name] = "; ".join(parts) or "nothing scored"
    return found
