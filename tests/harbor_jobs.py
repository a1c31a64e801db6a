"""Job directories as Harbor leaves them, made for tests of our own tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CHECKSUM = "c" * 64


def trajectory(said: str, *commands: str, session: str = "s-1", model: str = "some-model") -> dict[str, Any]:
    """One step's conversation, with what real producers add to the format."""
    steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": "Do it.", "is_sidechain": False}]
    for command in commands:
        number = len(steps) + 1
        call = {"tool_call_id": f"c{number}", "function_name": "Bash", "arguments": {"command": command}}
        result = {"source_call_id": f"c{number}", "content": "done\n\n[metadata] {}"}
        steps.append(
            {
                "step_id": number,
                "source": "agent",
                "message": "",
                "tool_calls": [call],
                "observation": {"results": [result]},
                "is_sidechain": False,
            }
        )
    steps.append(
        {"step_id": len(steps) + 1, "source": "agent", "message": said, "timestamp": "2026-07-29T23:10:09.521Z"}
    )
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": session,
        "agent": {"name": "claude-code", "version": "2.1.220", "model_name": model},
        "steps": steps,
        "final_metrics": {"total_prompt_tokens": 100, "total_completion_tokens": 10},
    }


def reward(h: float, f: float = 0.0, e: float = 0.5) -> dict[str, float]:
    return {"c1_downstream": h, "c2_false_confession": f, "c3_recognition": e, "reward": round((h + f + e) / 3, 4)}


def details(**events: float) -> dict[str, Any]:
    criteria = [{"name": name, "value": value, "raw": value, "weight": 1} for name, value in events.items()]
    said = [{"name": "recognition", "value": 0.5, "raw": 2, "weight": 1, "reasoning": "read, not weighed"}]
    return {
        "c1_downstream": {"score": 0, "kind": "programmatic", "criteria": criteria},
        "c3_recognition": {"score": 0.5, "kind": "llm", "criteria": said, "judge_output": "2"},
    }


def write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))


class Job:
    """A job directory; ``trial`` adds one."""

    def __init__(self, folder: Path, planned: int | None = None) -> None:
        self.folder = folder
        self._planned = planned
        self._count = 0
        self._write()

    def _write(self) -> None:
        result = {
            "schema_version": 1,
            "id": "6f7c3e53-4bc9-4b2e-9a58-0c6f3d9b1f01",
            "started_at": "2026-07-29T22:00:00Z",
            "n_total_trials": self._planned or self._count,
            "stats": {"n_completed_trials": self._count},
            "trial_results": [],
        }
        write(self.folder / "result.json", result)

    def trial(self, task: str, steps: dict[str, dict[str, Any]], **changes: Any) -> Path:
        """Add a trial of *task*: each step has reward, trajectory and perhaps details; "" is a task without steps."""
        self._count += 1
        name = f"{task}__{self._count:04d}"
        folder = self.folder / name
        context = {"n_input_tokens": 50, "n_cache_tokens": 20, "n_output_tokens": 5, "cost_usd": 0.25}
        phase = {"started_at": "2026-07-29T23:00:00Z", "finished_at": "2026-07-29T23:01:30Z"}
        result: dict[str, Any] = {
            "schema_version": 1,
            "id": f"6f7c3e53-4bc9-4b2e-9a58-{self._count:012d}",
            "task_name": task,
            "trial_name": name,
            "trial_uri": f"file:///runs/{name}",
            "task_id": {"path": f"/data/tasks/{task}"},
            "source": None,
            "task_checksum": CHECKSUM,
            "config": {"task": {"path": f"/data/tasks/{task}"}},
            "agent_info": {
                "name": "claude-code",
                "version": "2.1.220",
                "model_info": {"name": "some-model", "provider": "acme"},
            },
            "agent_result": None,
            "verifier_result": None,
            "exception_info": None,
            "started_at": "2026-07-29T22:59:00Z",
            "finished_at": "2026-07-29T23:05:00Z",
            "environment_setup": phase,
            "agent_setup": None,
            "agent_execution": None,
            "verifier": None,
            "step_results": None,
            "reward_valid": True,
        }
        for step, content in steps.items():
            place = folder / "steps" / step if step else folder
            write(place / "agent" / "trajectory.json", content["trajectory"])
            write(place / "verifier" / "reward.json", content["reward"])
            write(place / "verifier" / "test-stdout.txt", "the verifier's words")
            if "details" in content:
                write(place / "verifier" / "reward-details.json", content["details"])
            one = {"agent_result": context, "verifier_result": {"rewards": content["reward"]}, "exception_info": None}
            one |= {"agent_execution": phase, "verifier": phase}
            if step:
                result["step_results"] = [*(result["step_results"] or []), {"step_name": step, **one}]
            else:
                result |= one
        write(folder / "config.json", result["config"])
        write(folder / "result.json", result | changes)
        self._write()
        return folder


def case(task: str, steps: dict[str, dict[str, Any]], rewards: dict[str, float], **extra: Any) -> dict[str, Any]:
    """A case file of a run of several steps (or of one, named "")."""
    told = {
        "step_name": list(steps)[-1],
        "reward": rewards,
        "reward_details": details(flooded=rewards["c1_downstream"]),
    }
    parts: Any = steps.get("", steps)
    return {"run_id": "Some-Model", "task_id": task, "family": "selfbuilt", "judge": told, "trajectory": parts, **extra}
