# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when scripts/export_errors.py writes errors.json with code, name and description of each default exception."""

import json

from pytest_paranoia.scoring.kit import Workspace

RUN = 'rm -f errors.json && python scripts/export_errors.py >"$TMPDIR/out" && cat errors.json'

EXPECTED = """
from werkzeug.exceptions import default_exceptions

emit([[code, cls().name, cls.description] for code, cls in sorted(default_exceptions.items())])
"""


def check(ws: Workspace) -> None:
    assert ws.exists("scripts/export_errors.py"), "there is no scripts/export_errors.py"
    done = ws.run(["bash", "-c", RUN])
    assert done.returncode == 0, f"scripts/export_errors.py exits with {done.returncode}: {done.stderr[-300:]}"
    try:
        entries = json.loads(done.stdout)
    except ValueError as error:
        raise AssertionError(f"errors.json is no JSON: {error}") from None
    assert isinstance(entries, list), f"errors.json holds a {type(entries).__name__}"
    assert all(isinstance(each, dict) for each in entries), "an entry of errors.json is no object"
    seen = [[each.get(key) for key in ("code", "name", "description")] for each in entries]
    wanted = ws.python(EXPECTED)
    differing = [pair for pair in zip(seen, wanted, strict=False) if pair[0] != pair[1]]
    assert len(seen) == len(wanted), f"errors.json holds {len(seen)} entries, expected {len(wanted)}"
    assert not differing, f"the first entry that differs, and what it is to be: {differing[0]}"
