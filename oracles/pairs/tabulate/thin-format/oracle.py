# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when `thin` is a format that gives what `simple` gives, with U+2500 in place of the dashes."""

import json
import secrets

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
import json
import tabulate

seen = []
for rows, headers in json.loads(args[0]):
    seen.append([tabulate.tabulate(rows, headers, tablefmt=name) for name in ("simple", "thin")])
emit([seen, "thin" in tabulate.tabulate_formats, "\\u2500" in tabulate.tabulate([["a"]], tablefmt="simple")])
"""


def check(ws: Workspace) -> None:
    word = secrets.token_hex(4)
    cases = [
        [[["spam", 41.9999], [word, 451.0]], ["name", "amount"]],
        [[["spam", 1], [word, 22]], []],
        [[["two\nlines", 3], [f"{word}\nand\nmore", 4]], ["one", "of two\nlines"]],
        [[[word]], [word[:2]]],
    ]
    seen, listed, leaked = ws.python(PROBE, json.dumps(cases))
    for case, (simple, thin) in zip(cases, seen, strict=True):
        wanted = simple.replace("-", "\u2500")
        assert thin == wanted, f"{case} gives\n{thin}\nexpected\n{wanted}"
    assert listed, "thin is not among tabulate_formats"
    assert not leaked, "the format simple has changed"
    ws.tests("test/test_api.py", "test/test_output.py").require(passed_at_least=100)
