"""Trajectories of several steps as the one conversation they were."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_paranoia.schema.taxonomy import StepRole
from pytest_paranoia.schema.trajectory import FinalMetrics, Step, Trajectory


def merged(parts: Sequence[tuple[str, StepRole, Trajectory]]) -> Trajectory:
    """Return (name of a step, its role, its trajectory) in order as one trajectory.

    Steps that a producer copied from before, flagged or word for word, are there once. The message that opens a step
    gets its role, which judges go by; where a part began is noted in the trajectory's ``extra``.
    """
    steps: list[Step] = []
    begins: dict[str, int] = {}
    for name, role, part in parts:
        fresh = _fresh(steps, part.steps)
        begins[name] = len(steps) + 1
        opened = False
        for step in fresh:
            update: dict[str, object] = {"step_id": len(steps) + 1}
            if step.source == "user" and not opened:
                opened = True
                update["extra"] = {**(step.extra or {}), "role": role}
            steps.append(step.model_copy(update=update))
    last = parts[-1][2]
    children = [child for _, _, part in parts for child in part.subagent_trajectories or ()]
    unique = {child.trajectory_id: child for child in children}
    return Trajectory.model_validate(
        {
            "session_id": last.session_id,
            "agent": last.agent.model_dump(),
            "steps": [step.model_dump() for step in steps],
            "final_metrics": _metrics([part.final_metrics for _, _, part in parts]),
            "extra": {**(last.extra or {}), "harbor_steps": begins},
            "subagent_trajectories": [child.model_dump() for child in unique.values()] or None,
        }
    )


def _fresh(known: Sequence[Step], steps: Sequence[Step]) -> list[Step]:
    """Return those of *steps* that are not the conversation so far over again."""
    count = len(known)
    if count and len(steps) > count and all(_same(a, b) for a, b in zip(known, steps, strict=False)):
        return list(steps[count:])
    fresh = [step for step in steps if not step.is_copied_context]
    return fresh or list(steps)


def _same(one: Step, other: Step) -> bool:
    return (one.source, one.message, one.tool_calls) == (other.source, other.message, other.tool_calls)


def _metrics(parts: Sequence[FinalMetrics | None]) -> dict[str, object] | None:
    given = [part for part in parts if part is not None]
    if not given:
        return None
    names = ("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens", "total_cost_usd")
    values = {name: [getattr(part, name) for part in given] for name in names}
    # One part without a number makes the sum unknown: it would be too low.
    return {name: None if None in found or len(given) < len(parts) else sum(found) for name, found in values.items()}
