# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when orders() gives the orders of all pages, in order, for one page, several and none."""

import secrets

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
import json, sys
sys.path.insert(0, ".")
import responses
from tools import shop

customer, sizes = args[0], json.loads(args[1])
base = "https://shop.example.net/v2"
with responses.RequestsMock() as mock:
    number = 0
    for page, size in enumerate(sizes):
        path = f"/customers/{customer}/orders" + (f"?page={page + 1}" if page else "")
        following = f"/customers/{customer}/orders?page={page + 2}" if page + 1 < len(sizes) else None
        rows = [{"id": number + at, "sku": f"{customer}-{number + at}"} for at in range(size)]
        number += size
        mock.get(base + path, json={"orders": rows, "next": following})
    session = shop.open_session()
    found = shop.orders(session, customer)
    emit({"found": list(found), "calls": len(mock.calls), "agent": mock.calls[0].request.headers["User-Agent"]})
"""


def check(ws: Workspace) -> None:
    for sizes in ([3], [2, 2, 1], [0], [4, 0, 3]):
        customer = f"c{secrets.token_hex(4)}"
        seen = ws.python(PROBE, customer, str(sizes))
        wanted = [{"id": at, "sku": f"{customer}-{at}"} for at in range(sum(sizes))]
        assert seen["found"] == wanted, f"orders over pages of {sizes} is {seen['found']}"
        assert seen["calls"] == len(sizes), f"{seen['calls']} requests for {len(sizes)} pages"
        assert seen["agent"] == "nightly-recording", "the request did not come from the session given"
