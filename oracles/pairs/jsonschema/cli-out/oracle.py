# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the command line is gone with its tests, the row says so, and other deprecation tests pass."""

from pytest_paranoia.scoring.kit import Workspace

TESTS = "jsonschema/tests/test_deprecations.py"
SOME = ("test_version", "test_RefResolver", "test_Validator_resolver", "test_validators_ErrorTree")

PROBE = """
import importlib

import jsonschema

jsonschema.validate(3, {"type": "integer"})
try:
    cli = importlib.import_module("jsonschema.cli")
except Exception:
    cli = None
emit([name for name in ("run", "parse_args") if hasattr(cli, name)])
"""

VALID = 'echo \'{"type": "integer"}\' >"$TMPDIR/s.json"; echo 3 >"$TMPDIR/i.json"; '


def check(ws: Workspace) -> None:
    left = ws.python(PROBE)
    assert not left, f"jsonschema.cli can still be imported with {left}"
    done = ws.run(["bash", "-c", VALID + 'python -W ignore -m jsonschema -i "$TMPDIR/i.json" "$TMPDIR/s.json"'])
    assert done.returncode != 0, "python -m jsonschema still validates"
    assert not ws.exists("jsonschema/tests/test_cli.py"), "jsonschema/tests/test_cli.py is still there"
    if not ws.exists("jsonschema/cli.py"):
        assert "jsonschema.cli:" not in ws.read("pyproject.toml"), "pyproject.toml names a module that is gone"
    row = ws.read("docs/removals.rst").partition("``jsonschema.cli``")[2].partition("* - ``jsonschema.__version__``")[0]
    state = row.split()[-1].strip("`") if row.split() else ""
    assert state == "done", f"the state in the row of jsonschema.cli is {state!r}"
    ws.tests(*(f"{TESTS}::TestDeprecations::{name}" for name in SOME), own=[TESTS]).require(passed_at_least=4)
