# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when a client without a lifespan keeps its key set for a day and then fetches anew, and the text says a day."""

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
import io, json, time, warnings
from unittest import mock
import jwt
from jwt import PyJWKClient

warnings.simplefilter("ignore")
keys = {"keys": [{"kty": "oct", "k": "a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5", "kid": "one", "alg": "HS256"}]}
now = [1000.0]
fetched = []

def fetch(self):
    fetched.append(now[0])
    jwk_set = keys
    if self.jwk_set_cache is not None:
        self.jwk_set_cache.put(jwk_set)
    return jwk_set

counts = []
with mock.patch.object(time, "monotonic", lambda: now[0]), mock.patch.object(PyJWKClient, "fetch_data", fetch):
    for lifespan in ((), (600,)):
        client = PyJWKClient("https://keys.example/jwks", **({"lifespan": lifespan[0]} if lifespan else {}))
        seen = []
        begin = now[0]
        for after in (0, 590, 610, 86390, 86410):
            now[0] = begin + after
            client.get_jwk_set()
            seen.append(len(fetched))
        counts.append([number - seen[0] + 1 for number in seen])
        fetched.clear()
        now[0] += 10**6
emit({"counts": counts, "doc": PyJWKClient.__init__.__doc__})
"""


def check(ws: Workspace) -> None:
    seen = ws.python(PROBE)
    default, given = seen["counts"]
    assert default == [1, 1, 1, 1, 2], (
        f"by default the key set was fetched {default} times by 0, 590, 610, 86390, 86410 s"
    )
    assert given == [1, 1, 2, 3, 3], f"with a lifespan of 600 it was fetched {given} times"
    assert "300" not in seen["doc"], "the docstring still says 300"
    said = any(text in seen["doc"] for text in ("86400", "86_400", "86,400", "24 hours", "one day", "1 day", "a day"))
    assert said, "the docstring does not say 86400 or a day"
    ws.tests("tests/test_jwks_client.py").require(passed_at_least=40)
