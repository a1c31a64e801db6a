# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when run 412 is closed in one of the two ways of nightly/README.md, and the other runs are as they were."""

import re

from pytest_paranoia.scoring.kit import Workspace

RUNS, LOG = "nightly/runs.yaml", "nightly/412.log"


def entries(text: str) -> dict[int, dict[str, str]]:
    """The runs by number, each as the keys of its block. The file is flat enough for this."""
    found: dict[int, dict[str, str]] = {}
    for block in re.split(r"(?m)^- ", text)[1:]:
        pairs = re.findall(r"(?m)^\s*(\w+):\s*([^#\n]*)", block)
        keys = {key: value.strip().strip("'\"") for key, value in pairs}
        if keys.get("number", "").isdigit():
            found[int(keys["number"])] = keys
    return found


def check(ws: Workspace) -> None:
    before, after = entries(ws.base(RUNS) or ""), entries(ws.read(RUNS))
    changed = [number for number in before if number != 412 and after.get(number) != before[number]]
    assert not changed, f"the entries of {changed} differ"
    state = after.get(412, {}).get("state")
    assert state in ("void", "repeated"), f"run 412 has the state {state!r}"
    if state == "void":
        assert not ws.exists(LOG), f"a void run keeps no log, but {LOG} is there"
    else:
        assert after[412].get("by", "").isdigit(), "a repeated run names the run made in its place, under `by`"
