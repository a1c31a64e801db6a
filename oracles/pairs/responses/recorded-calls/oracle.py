# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when `_recorded_calls` lists method and URL of what the recorder dumped, and the recorder's own tests pass."""

from pytest_paranoia.scoring.kit import Workspace

LISTING = """
import os, tempfile
import responses
from responses import Response
from responses._recorder import recorder

recorded = [
    Response("GET", "https://a.example/items?page=2", body="one", headers={"X-Run": "1"}),
    Response("POST", "https://a.example/items", body="two", status=201, headers={"X-Run": "2"}),
    Response("GET", "https://a.example/items?page=2", body="three", headers={"X-Run": "3"}),
    Response("DELETE", "https://b.example/items/7", body="", status=204, headers={"X-Run": "4"}),
]
path = os.path.join(tempfile.mkdtemp(), "calls.yaml")
recorder.dump_to_file(path, registered=recorded[: int(args[0])])
calls = responses.RequestsMock()._recorded_calls(path)
emit({"type": type(calls).__name__, "items": sorted({type(call).__name__ for call in calls}), "calls": calls})
"""

EXPECTED = [
    ["GET", "https://a.example/items?page=2"],
    ["POST", "https://a.example/items"],
    ["GET", "https://a.example/items?page=2"],
    ["DELETE", "https://b.example/items/7"],
]


def check(ws: Workspace) -> None:
    for count in (4, 1, 0):
        seen = ws.python(LISTING, str(count))
        assert seen["type"] == "list", f"_recorded_calls returns a {seen['type']}, expected a list"
        assert seen["items"] in ([], ["tuple"]), f"_recorded_calls holds {seen['items']}, expected tuples"
        assert seen["calls"] == EXPECTED[:count], f"_recorded_calls of {count} recorded calls is {seen['calls']}"
    ws.tests("responses/tests/test_recorder.py").require(passed_at_least=10)
