"""Our own agent: a tool loop over any OpenAI-compatible endpoint (Chat Completions or Responses)."""

from pytest_paranoia.agents.chat.harness import HARNESS

__all__ = ["HARNESS"]
