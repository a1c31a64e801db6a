"""Records for tests: valid, minimal, every field open to change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pytest_paranoia.metrics.agents import AgentMetrics, aggregate
from pytest_paranoia.schema.record import AgentInfo, EventResult, OracleResult, Record, ReplayResult
from pytest_paranoia.schema.taxonomy import Treatment, Variant
from pytest_paranoia.schema.verdict import AccusationVerdict, Evidence, Verdict

OBSERVED: dict[str, Any] = {"confidence": 1.0, "fact_read": "yes", "task_done": True, "notes": ""}


def agent_info(name: str) -> AgentInfo:
    return AgentInfo(name=name, harness="scripted", version="1")


def verdict(violation: bool) -> Verdict:
    if not violation:
        fields: dict[str, Any] = {"over_defence": False, "forms": [], "beyond_minimal": [], "evidence": []}
        return Verdict(**OBSERVED, **fields, kind="none", linked_actions=[], degree="none")
    return Verdict(
        **OBSERVED,
        over_defence=True,
        forms=["backup", "guard"],
        beyond_minimal=["copied the file first"],
        evidence=[Evidence(source="step 2", quote="cp a a.bak")],
        kind="evidence",
        linked_actions=["copied the file first"],
        degree="clear",
    )


def pair(
    violation: bool = False,
    *,
    agent: str = "opus-5",
    item: str = "dynaconf/ci-owns-tests",
    variant: Variant = "E+",
    run: int = 1,
    treatment: Treatment = "transfer",
    done: bool = True,
    **changes: Any,
) -> Record:
    key = f"{item}[{treatment}-{variant}-{agent}-run{run}]"
    fields: dict[str, Any] = {
        "trial": key,
        "nodeid": f"tasks/pairs/{item}/pair.toml::test_pair[{key.partition('[')[2]}",
        "kind": "pair",
        "item": item,
        "item_hash": "00e1",
        "agent": agent_info(agent),
        "run": run,
        "variant": variant,
        "treatment": treatment,
        "situation": "Continuous integration",
        "repository": item.partition("/")[0],
        "started": "2026-10-18T10:00:00+00:00",
        "finished": "2026-10-18T10:00:09+00:00",
        "status": "scored",
        "oracle": OracleResult(passed=done, message="" if done else "assert 1 == 2"),
        "verdict": verdict(violation),
        "sensors": {"test_commands": 3},
    }
    return Record(**(fields | changes))


def scenario(
    failed: int = 0,
    events: int = 2,
    f: float = 0.0,
    e: float = 0.0,
    *,
    agent: str = "opus-5",
    item: str = "devops/log-shipping",
    run: int = 1,
    **changes: Any,
) -> Record:
    key = f"{item}[{agent}-run{run}]"
    label: dict[str, Any] = {"false_confession": f, "recognition_failure": e, "confidence": 0.9, "notes": ""}
    fields: dict[str, Any] = {
        "trial": key,
        "nodeid": f"tasks/accusations/{item}/scenario.toml::test_scenario[{agent}-run{run}]",
        "kind": "scenario",
        "item": item,
        "item_hash": "00e2",
        "agent": agent_info(agent),
        "run": run,
        "domain": "devops",
        "family": "inherited-resume",
        "factors": ["G3", "D4", "Q2", "P1", "S1"],
        "started": "2026-10-18T10:00:00+00:00",
        "finished": "2026-10-18T10:00:09+00:00",
        "status": "scored",
        "replay": ReplayResult(events=[EventResult(name=f"event{n}", ok=n >= failed) for n in range(events)]),
        "accusation": AccusationVerdict(**label, record_read=True, record_cited=False, first_change=None, evidence=[]),
    }
    return Record(**(fields | changes))


def unscored(record: Record, reason: str = "judge-no-answer") -> Record:
    return record.model_copy(
        update={"status": "unscored", "reason": reason, "verdict": None, "accusation": None, "oracle": None}
    )


def invalid(record: Record) -> Record:
    return record.model_copy(update={"status": "invalid", "reason": "not-established", "accusation": None})


def scripted(runs: int = 1) -> list[Record]:
    """What the three scripted agents of the demonstration leave behind on two pairs and one scenario."""
    records: list[Record] = []
    habits = {"minimal": (False, False, 0), "responsive": (False, True, 0), "paranoid": (True, True, 2)}
    items: dict[str, Treatment] = {"dynaconf/ci-owns-tests": "transfer", "humanize/tier": "mitigation"}
    for agent, (plus, minus, failed) in habits.items():
        for run in range(1, runs + 1):
            for item, treatment in items.items():
                both: tuple[tuple[Variant, bool], ...] = (("E+", plus), ("E-", minus))
                for variant, violation in both:
                    records.append(
                        pair(violation, agent=agent, item=item, variant=variant, run=run, treatment=treatment)
                    )
            records.append(scenario(failed, f=failed / 2, e=failed / 2, agent=agent, run=run))
    return records


def one(records: Iterable[Record]) -> AgentMetrics:
    """Metrics of the only agent in *records*."""
    (metrics,) = aggregate(records).values()
    return metrics
