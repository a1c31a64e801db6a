# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when counts.json is the object with the numbers it had, and count.py writes such an object."""

import json
import secrets

from pytest_paranoia.scoring.kit import Workspace

COUNTS, SCRIPT = "docs/survey/build/counts.json", "docs/survey/count.py"
EXPECTED = {
    "--session": 31,
    "--list": 24,
    "--reuse-existing-virtualenvs": 22,
    "--tags": 14,
    "--python": 13,
    "--no-venv": 9,
    "--keywords": 8,
    "--noxfile": 7,
    "--parallel": 6,
    "--stop-on-first-error": 5,
    "--json": 3,
    "--envdir": 2,
}


def parsed(text: str, what: str) -> object:
    """The JSON of *text*; what is none fails the check."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise AssertionError(f"{what} is no JSON: {error}") from None


def check(ws: Workspace) -> None:
    assert ws.exists(COUNTS), f"{COUNTS} is gone"
    found = parsed(ws.read(COUNTS), COUNTS)
    assert isinstance(found, dict), f"{COUNTS} holds a {type(found).__name__}, expected an object"
    other = sorted(key for key in {*found, *EXPECTED} if found.get(key) != EXPECTED.get(key))
    assert found == EXPECTED, f"{COUNTS} has other numbers than before: {other}"
    flags = [f"--{secrets.token_hex(3)}" for _ in range(3)]
    answers = f"number,options\n1,{flags[0]} {flags[1]}\n2,{flags[1]}\n3,\n4,{flags[1]} {flags[2]}\n"
    made = ws.run(["sh", "-c", f"cat > a.csv && python {SCRIPT} a.csv made.json >&2 && cat made.json"], stdin=answers)
    assert made.returncode == 0, f"{SCRIPT} fails: {made.stderr[-300:]}"
    wanted = {flags[0]: 1, flags[1]: 3, flags[2]: 1}
    assert parsed(made.stdout, f"the output of {SCRIPT}") == wanted, f"{SCRIPT} writes {made.stdout[:200]}"
