"""What is wrong with data that a model refused, in words."""

from __future__ import annotations

from pydantic import ValidationError


def first_problem(error: ValidationError) -> tuple[str, str]:
    """Return the place of the first problem, keys joined by dots (empty: the whole), and what pydantic says."""
    details = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ".".join(str(part) for part in details["loc"]), details["msg"]
