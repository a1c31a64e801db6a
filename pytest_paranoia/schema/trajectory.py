"""The trajectory of a run: one internal model, equal to ATIF 1.8 (Harbor's Agent Trajectory Interchange Format).

Validation follows the published rules: extra keys are refused, step ids run from 1, agent-only fields stay off other
steps, and ``source_call_id`` names a tool call of its own step.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

ATIF_VERSION = "ATIF-v1.8"


class _Atif(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Agent(_Atif):
    """Who acted: harness name and version, and the model behind it."""

    name: str
    version: str
    model_name: str | None = None
    tool_definitions: list[dict[str, Any]] | None = None
    extra: dict[str, Any] | None = None


class ToolCall(_Atif):
    """One call of a tool; ``arguments`` as the model gave them."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]
    extra: dict[str, Any] | None = None


class ContentPart(_Atif):
    """A piece of multi-part content: text, or an image or sound by source."""

    type: Literal["text", "image", "audio"]
    text: str | None = None
    source: dict[str, Any] | None = None


class ObservationResult(_Atif):
    """What one tool call gave back. Our own runs add ``exit_code``, ``seconds`` and ``limit`` under ``extra``."""

    source_call_id: str | None = None
    content: str | list[ContentPart] | None = None
    subagent_trajectory_ref: list[dict[str, Any]] | None = None
    extra: dict[str, Any] | None = None


class Observation(_Atif):
    """The results of a step's tool calls."""

    results: list[ObservationResult]


class Metrics(_Atif):
    """Usage of one step: tokens and US dollars."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    prompt_token_ids: list[int] | None = None
    completion_token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    extra: dict[str, Any] | None = None


class FinalMetrics(_Atif):
    """Usage of the whole trajectory."""

    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: int | None = None
    extra: dict[str, Any] | None = None


class Step(_Atif):
    """One message of the conversation, with the tool calls it made and what they gave."""

    step_id: int = Field(ge=1)
    timestamp: str | None = None
    source: Literal["system", "user", "agent"]
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    message: str | list[ContentPart]
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: int | None = None
    extra: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _rules(self) -> Self:
        if self.source != "agent":
            agent_only = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
            if given := [name for name in agent_only if getattr(self, name) is not None]:
                raise ValueError(f"step {self.step_id} of source {self.source!r} has agent-only fields {given}")
        ids = {call.tool_call_id for call in self.tool_calls or ()}
        for result in self.observation.results if self.observation else ():
            if result.source_call_id is not None and result.source_call_id not in ids:
                raise ValueError(f"step {self.step_id}: source_call_id {result.source_call_id!r} names no tool call")
        return self

    @property
    def text(self) -> str:
        """The message as plain text."""
        if isinstance(self.message, str):
            return self.message
        return "\n".join(part.text or "" for part in self.message)


class Trajectory(_Atif):
    """A whole run. ``steps`` holds user messages and agent turns in order."""

    schema_version: str = ATIF_VERSION
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: Agent
    steps: list[Step] = Field(min_length=1)
    notes: str | None = None
    final_metrics: FinalMetrics | None = None
    continued_trajectory_ref: str | None = None
    extra: dict[str, Any] | None = None
    subagent_trajectories: list[Trajectory] | None = None

    @model_validator(mode="after")
    def _sequential(self) -> Self:
        children = [child.trajectory_id for child in self.subagent_trajectories or ()]
        if None in children or len(set(children)) != len(children):
            raise ValueError("every embedded subagent needs a trajectory_id of its own")
        ids = [step.step_id for step in self.steps]
        if ids != list(range(1, len(ids) + 1)):
            raise ValueError(f"step ids are not sequential from 1: {ids[:10]}")
        return self

    @property
    def reply(self) -> str:
        """The agent's last message, empty where it never spoke."""
        for step in reversed(self.steps):
            if step.source == "agent" and step.text.strip():
                return step.text
        return ""
