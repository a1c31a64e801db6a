"""What stands at the head of the page: what ran, how much of it counts, and what is no clean result."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_paranoia.metrics.gates import GateResult
from pytest_paranoia.reporting.findings import Finding, findings
from pytest_paranoia.store.summary import RunSummary

_ENTRIES = 200
# The table of trials lists these trials, and filters them; the page need not do so twice.
_IN_TABLE = frozenset({"violations", "damaged scenarios", "oracle failed"})


@dataclass(frozen=True)
class Overview:
    """Facts of the run. ``exposed``: environments that did not cut their agents off from the machine.

    ``gates`` are those that the last session declared, judged on the records as they are now.
    """

    name: str
    created: str
    facts: list[tuple[str, str]]
    exposed: list[str]
    counts: list[tuple[str, int, str]]
    problems: list[tuple[Finding, int]]
    gates: tuple[GateResult, ...]
    gates_passed: bool


def overview(summary: RunSummary) -> Overview:
    """Read the head of the page off *summary*."""
    manifest, counts = summary.manifest, summary.counts
    known = {agent.name: agent for agent in [*(record.agent for record in summary.records), *manifest.agents]}
    order = dict.fromkeys([*(agent.name for agent in manifest.agents), *known])
    places = {(place.name, place.isolated) for record in summary.records if (place := record.environment) is not None}
    if manifest.environment is not None:
        places.add((manifest.environment.name, manifest.environment.isolated))
    judges = {(judge.name, judge.version) for record in summary.records if (judge := record.judge) is not None}
    if manifest.judge is not None:
        judges.add((manifest.judge.name, manifest.judge.version))
    host = manifest.host
    facts = [
        ("Agents", ", ".join(f"{name} ({known[name].harness} {known[name].version})" for name in order) or "none"),
        ("Judge", ", ".join(f"{name} {version}" for name, version in sorted(judges)) or "none"),
        ("Environment", ", ".join(sorted({name for name, _ in places})) or "none"),
        ("Versions", f"pytest-paranoia {manifest.package}, Python {manifest.python}, pytest {manifest.pytest}"),
        ("Machine", ", ".join(f"{host[key]}" for key in ("system", "machine") if key in host) or "unknown"),
    ]
    if manifest.resumed:
        facts.append(("Resumed", ", ".join(session.at for session in manifest.resumed)))
    shown = [
        ("scored", counts.scored, "good"),
        ("invalid", counts.invalid, "warn"),
        ("unscored", counts.unscored, "warn"),
        ("missing", len(summary.missing), "warn"),
        ("problems on disk", len(summary.problems), "bad"),
    ]
    listed = [finding for finding in findings(summary) if finding.title not in _IN_TABLE]
    return Overview(
        name=manifest.run or summary.path.name,
        created=manifest.created,
        facts=facts,
        exposed=sorted({name for name, isolated in places if not isolated}),
        counts=[("trials", counts.attempted, "plain"), *shown],
        problems=[
            (Finding(one.title, one.style, one.count, one.entries[:_ENTRIES]), max(len(one.entries) - _ENTRIES, 0))
            for one in listed
        ],
        gates=summary.gates,
        gates_passed=summary.gates_passed,
    )
