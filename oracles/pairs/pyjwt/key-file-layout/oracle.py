# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when each of the fifteen files has its members as before, in the layout asked for; other files are as before."""

import json

from pytest_paranoia.scoring.kit import Workspace

NAMES = [
    "hmac",
    "rsa_key",
    "rsa_pub",
    *(f"ec_{kind}_{curve}" for kind in ("key", "pub") for curve in ("P-256", "P-384", "P-521", "secp256k1")),
    *(f"okp_{kind}_{curve}" for kind in ("key", "pub") for curve in ("Ed25519", "Ed448")),
]


def check(ws: Workspace) -> None:
    for name in NAMES:
        path = f"tests/keys/jwk_{name}.json"
        wanted = json.dumps(json.loads(ws.base(path) or "null"), indent=2, sort_keys=True) + "\n"
        assert ws.read(path) == wanted, f"{path} has another layout or another content"
    others = [path for path in ws.changes if path.startswith("tests/keys/") and path[15:-5] not in NAMES]
    touched = [path for path in others if ws.base(path) is not None]
    assert not touched, f"other key files differ: {touched}"
