"""The closed vocabularies of both papers: treatments, situations, forms, factors and decision paths.

Sources: ParanoiaEval (arXiv 2610.08662) Tables 6-9 and Appendix F.2; CAVE-Bench (arXiv 2609.32616)
sections 3.2 and 4. Names are the papers' own, so that tables can be laid side by side.
"""

from __future__ import annotations

import re
from typing import Final, Literal

Treatment = Literal["avoidance", "transfer", "mitigation", "acceptance"]
Variant = Literal["E+", "E-"]
Form = Literal[
    "guard",
    "backup",
    "verify-loop",
    "new-infra",
    "scope-expansion",
    "fallback/shim",
    "ask-confirmation",
    "hedging",
    "other",
]
Kind = Literal["evidence", "generic", "none"]
Degree = Literal["minor", "clear", "none"]
Domain = Literal["coding", "web", "social", "files", "devops", "transactions"]
Family = Literal["inherited-resume", "self-built"]
StepRole = Literal["task", "work", "accuse", "insist"]
Path = Literal["GR", "PP", "VC", "EO", "CD", "SD"]

TREATMENTS: Final[tuple[Treatment, ...]] = ("avoidance", "transfer", "mitigation", "acceptance")
VARIANTS: Final[tuple[Variant, ...]] = ("E+", "E-")
DOMAINS: Final[tuple[Domain, ...]] = ("coding", "web", "social", "files", "devops", "transactions")
PATHS: Final[tuple[Path, ...]] = ("GR", "PP", "VC", "EO", "CD", "SD")

SITUATIONS: Final[dict[Treatment, tuple[str, ...]]] = {
    "avoidance": (
        "Reconstructible artifacts",
        "Producer-controlled formats",
        "Serialized access",
        "Internal-only inputs",
        "One-off or short-lived work",
        "Local moves and renames",
        "Fixed execution environment",
        "Static or schema guarantees",
    ),
    "transfer": (
        "Existing supervisor or health monitor",
        "Continuous integration",
        "Validation manifest",
        "Prior validation record",
        "Upstream or receiver validation",
        "Version-control recovery",
        "Human review",
        "Library-level handling",
    ),
    "mitigation": (
        "Stated frequency or interval",
        "Stated count, concurrency, or batch size",
        "Named files, modules, or functions",
        "Requested length or form",
        "Requested verification tier",
        "Stated time or lifetime",
        "Progress query",
        "Component-state query",
        "Small localized change",
        "Sufficient evidence already obtained",
        "Uniform batch operation",
    ),
    "acceptance": (
        "Final identity or status",
        "Chosen disposition",
        "Selected solution or parameter",
        "Declared scope or prohibition",
        "User-owned next step",
        "Revised instruction",
        "Direct authorization",
        "Official result or data",
        "Replacement",
        "Deletion",
        "Established production use",
        "Accepted compatibility break",
        "Disposable script",
        "Tests already completed",
        "Accepted known failure",
        "User-owned release action",
        "Inspection-only request",
    ),
}

VECTORS: Final[dict[str, str]] = {
    "G1": "direct assertion",
    "G2": "injected artifact",
    "G3": "poisoned project context",
    "G4": "misleading environment",
    "G5": "self-fabricated history",
}
HARMS: Final[dict[str, str]] = {
    "D1": "rollback or reversal",
    "D2": "deletion or overwrite",
    "D3": "security weakening",
    "D4": "redirection or rerouting",
    "D5": "artifact tampering",
    "D6": "cascading remediation",
}
CONFRONTATIONS: Final[dict[str, str]] = {
    "Q0": "self-generated doubt",
    "Q1": "mild challenge",
    "Q2": "direct blame",
    "Q3": "renewed pressure",
}
PRESSURES: Final[dict[str, str]] = {
    "P0": "neutral",
    "P1": "authority",
    "P2": "urgency or emotion",
    "P3": "purported evidence",
    "P4": "negative self-model",
}
SURFACES: Final[dict[str, str]] = {
    "S1": "plan or TODO formation",
    "S2": "subagent delegation",
    "S3": "goal loop",
    "S4": "persistent project memory",
    "S5": "long-horizon continuation",
}

_NOT_SLUG = re.compile(r"[^a-z0-9]+")


def slug(text: str) -> str:
    """Return *text* as one lower-case word joined by hyphens, fit for ids and ``-k`` expressions."""
    return _NOT_SLUG.sub("-", text.lower()).strip("-")


def treatment_of(situation: str) -> Treatment | None:
    """Return the one treatment *situation* belongs to, or None where the paper has no such situation."""
    for treatment, names in SITUATIONS.items():
        if situation in names:
            return treatment
    return None
