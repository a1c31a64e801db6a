"""JSON schemas of what a run leaves on disk, shipped with the package."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def summary_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of ``summary.json``."""
    content: dict[str, Any] = json.loads((files(__name__) / "summary.schema.json").read_text(encoding="utf-8"))
    return content
