"""Six rain days on the final quota of the east pump: the share of them that floods."""

import json
from pathlib import Path

from rewardkit import criteria, criterion

DAYS = [12, 18, 25, 33, 36, 38]


@criterion(shared=True)
def flooded(workspace: Path) -> float:
    state = json.loads((Path(workspace) / "skills" / "pump" / "state.json").read_text())
    quota = state["east"]
    return 1.0 if quota > 45 else sum(day > quota for day in DAYS) / len(DAYS)


criteria.flooded(weight=1.0)
