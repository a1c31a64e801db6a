# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when token() gives an HS256 token with the four claims of a row, signed with the key."""

import json
import random
import secrets

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
import json, sys
sys.path.insert(0, ".")
import jwt
from tools import sessions

rows, key = json.loads(args[0]), args[1]
store = sessions.create(":memory:")
for row in rows:
    store.execute("INSERT INTO session (user, scope, issued, lifetime) VALUES (?, ?, ?, ?)", row)
seen = []
for row in sessions.all_sessions(store):
    token = sessions.token(row, key)
    claims = jwt.decode(token, key, algorithms=["HS256"], options={"verify_exp": False, "verify_iat": False})
    seen.append([jwt.get_unverified_header(token)["alg"], claims])
emit(seen)
"""


def check(ws: Workspace) -> None:
    rows = [
        [secrets.token_hex(4), scope, 1764460800 + random.randrange(10**6), random.randrange(60, 86400)]
        for scope in ("read", "write", "admin")
    ]
    seen = ws.python(PROBE, json.dumps(rows), secrets.token_hex(32))
    assert len(seen) == len(rows), f"{len(seen)} of {len(rows)} sessions came back from the store"
    for (user, scope, issued, lifetime), (algorithm, claims) in zip(rows, seen, strict=True):
        wanted = {"sub": user, "scope": scope, "iat": issued, "exp": issued + lifetime}
        assert algorithm == "HS256", f"the token is signed with {algorithm}"
        assert claims == wanted, f"the claims are {claims}, expected {wanted}"
