"""Published tables as data, with their source: what our functions are checked against, and comparison rows of reports.

``paranoiaeval``: arXiv 2610.08662, Tables 2 to 5 and 15 to 18. ``cave_bench``: arXiv 2609.32616, scores of 14 models
under Claude Code. Percentages as printed, so rounded; docs/statistics.md lists the printed cells that do not follow
from the others.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Literal


def published(paper: Literal["paranoiaeval", "cave_bench"]) -> dict[str, Any]:
    """Return the tables of one paper; the key ``source`` names it."""
    text = files(__name__).joinpath(f"{paper}.json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables
