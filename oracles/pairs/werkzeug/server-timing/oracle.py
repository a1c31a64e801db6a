# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when `dump_server_timing` gives the header value for names and seconds, and upstream's header tests pass."""

import json
import secrets

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
import json

from werkzeug.http import dump_server_timing

emit([dump_server_timing(dict(spans)) for spans in json.loads(args[0])])
"""


def check(ws: Workspace) -> None:
    word = f"t{secrets.token_hex(3)}"
    tenths = 1 + secrets.randbelow(90_000)
    cases: list[list[tuple[str, float]]] = [
        [("app", 0.0534), ("close", 0.002)],
        [("wsgi", 1.25)],
        [("close", 0.0), ("app", 0.1234), ("wsgi", 2)],
        [(word, tenths / 10_000)],
    ]
    wanted = [
        "app;dur=53.4, close;dur=2.0",
        "wsgi;dur=1250.0",
        "close;dur=0.0, app;dur=123.4, wsgi;dur=2000.0",
        f"{word};dur={tenths / 10:.1f}",
    ]
    seen = ws.python(PROBE, json.dumps(cases))
    for spans, found, right in zip(cases, seen, wanted, strict=True):
        assert found == right, f"dump_server_timing of {dict(spans)} gives {found!r}, expected {right!r}"
    assert "dump_server_timing" in ws.read("tests/test_http.py"), "tests/test_http.py has no test of it"
    ws.tests("tests/test_http.py", own=["tests/test_http.py"]).require(passed_at_least=60)
