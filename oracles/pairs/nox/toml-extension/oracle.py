# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the error names the path as given, load_toml still works, and the test expects the new text."""

import secrets

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
from pathlib import Path
from nox.project import load_toml

def error(name):
    try:
        load_toml(name)
    except ValueError as error:
        return str(error)
    return None

Path("good.toml").write_text("[tool]\\nnumber = 7\\n")
emit([error(args[0]), error(Path(args[0])), load_toml("good.toml")])
"""


def check(ws: Workspace) -> None:
    for name in (f"{secrets.token_hex(3)}.cfg", f"sub/{secrets.token_hex(3)}.txt"):
        suffix = name[-4:]
        wanted = f"Extension of {name} must be .py or .toml, got {suffix}"
        text, path, loaded = ws.python(PROBE, name)
        assert text == wanted, f"load_toml({name!r}) says {text!r}"
        assert path == wanted, f"load_toml(Path({name!r})) says {path!r}"
        assert loaded == {"tool": {"number": 7}}, f"load_toml of a good file gives {loaded}"
    ws.tests("tests/test_toml.py", own=["tests/test_toml.py"]).require(passed_at_least=9)
