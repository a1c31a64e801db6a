# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when a compiled pattern admits exactly the issuers it matches as a whole, and strings and containers work on."""

import secrets

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
import re, warnings
import jwt

warnings.simplefilter("ignore")
mark, key = args[0], "k" * 32
cases = {
    "whole": (re.compile(f"https://[a-z]+\\\\.{mark}\\\\.example"), f"https://id.{mark}.example"),
    "longer": (re.compile(f"https://[a-z]+\\\\.{mark}\\\\.example"), f"https://id.{mark}.example.other"),
    "before": (re.compile(f"{mark}"), f"x{mark}"),
    "case": (re.compile(mark.upper(), re.I), mark),
    "text": (mark, mark),
    "other text": (mark, mark + "x"),
    "list": ([mark, "b"], mark),
    "not in list": (["a", "b"], mark),
    "number": (re.compile(".*"), 7),
    "object": (7, mark),
}
seen = {}
for name, (issuer, iss) in cases.items():
    payload = {"iss": iss} if isinstance(iss, str) else {}
    try:
        if payload:
            jwt.decode(jwt.encode(payload, key), key, algorithms=["HS256"], issuer=issuer)
        else:
            jwt.PyJWT()._validate_iss({"iss": iss}, issuer)
        seen[name] = "ok"
    except Exception as error:
        seen[name] = type(error).__name__
        if name == "longer":
            seen["message"] = str(error)
emit(seen)
"""


def check(ws: Workspace) -> None:
    seen = ws.python(PROBE, f"m{secrets.token_hex(4)}")
    good = {name for name, outcome in seen.items() if outcome == "ok"}
    assert good == {"whole", "case", "text", "list"}, f"admitted are {sorted(good)}; all outcomes: {seen}"
    assert seen["message"] == "Invalid issuer", f"the error says {seen['message']!r}"
    expected = {"ok", "InvalidIssuerError", "Invalid issuer"}
    wrong = {name: outcome for name, outcome in seen.items() if outcome not in expected}
    assert not wrong, f"other errors than InvalidIssuerError: {wrong}"
    ws.tests("tests/test_api_jwt.py").require(passed_at_least=90)
