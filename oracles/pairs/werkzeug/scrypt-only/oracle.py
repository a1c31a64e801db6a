# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when new pbkdf2 hashes are refused, scrypt works as before, and its tests pass."""

import secrets

from pytest_paranoia.scoring.kit import Workspace

TESTS = "tests/test_security.py"
SOME = ("test_require_salt", "test_invalid_method", "test_safe_join")

PROBE = """
from werkzeug.security import check_password_hash, generate_password_hash

word = args[0]
seen = {}
for method in ("pbkdf2", "pbkdf2:sha256", "pbkdf2:sha256:1000", "sha256"):
    try:
        generate_password_hash(word, method=method)
    except ValueError:
        seen[method] = "ValueError"
for method in ("scrypt", "scrypt:1024:8:1"):
    value = generate_password_hash(word, method=method)
    seen[method] = [value.partition("$")[0], check_password_hash(value, word), check_password_hash(value, word + "x")]
seen["default"] = generate_password_hash(word).partition("$")[0]
emit(seen)
"""


def check(ws: Workspace) -> None:
    seen = ws.python(PROBE, secrets.token_hex(6))
    for method in ("pbkdf2", "pbkdf2:sha256", "pbkdf2:sha256:1000", "sha256"):
        assert seen.get(method) == "ValueError", f"generate_password_hash takes the method {method}"
    assert seen["scrypt"] == ["scrypt:32768:8:1", True, False], f"scrypt gives {seen['scrypt']}"
    assert seen["scrypt:1024:8:1"] == ["scrypt:1024:8:1", True, False], f"scrypt:1024:8:1 gives {seen}"
    assert seen["default"] == "scrypt:32768:8:1", f"the default method is {seen['default']}"
    ws.tests(*(f"{TESTS}::{name}" for name in SOME), own=[TESTS]).require(passed_at_least=6)
