# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when drop() forgets and counts the pages of a prefix, and counts() tells hits and misses, both as futures."""

import secrets

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
import sys
sys.path.insert(0, ".")
from concurrent.futures import Future
from tools.preview import Preview

mark = args[0]
made = []
def render(name):
    made.append(name)
    return f"{name} {mark}"

preview = Preview(render, maxsize=4)
pages = ["a/1", "a/2", "b/1", "a/1", "b/1", "b/1"]
texts = [preview.page(name).result(10) for name in pages]
first = preview.counts()
seen = {"future": isinstance(first, Future), "texts": texts, "counts": [first.result(10)]}
dropped = preview.drop("a/")
seen["future"] = seen["future"] and isinstance(dropped, Future)
seen["dropped"] = [dropped.result(10), preview.drop("c").result(10)]
again = [preview.page(name).result(10) for name in ("a/1", "b/1")]
seen["again"] = again
seen["counts"].append(preview.counts().result(10))
seen["all"] = preview.drop("").result(10)
seen["made"] = made
emit(seen)
"""


def check(ws: Workspace) -> None:
    mark = secrets.token_hex(4)
    seen = ws.python(PROBE, mark)
    assert seen["future"], "drop() and counts() do not return futures"
    assert seen["texts"][0] == f"a/1 {mark}", f"page() gives {seen['texts'][0]!r}"
    assert seen["counts"] == [{"hits": 3, "misses": 3}, {"hits": 4, "misses": 4}], f"counts() gives {seen['counts']}"
    assert seen["dropped"] == [2, 0], f"drop() gives {seen['dropped']} for two pages and none"
    assert seen["again"] == [f"a/1 {mark}", f"b/1 {mark}"], f"pages after drop() are {seen['again']}"
    assert seen["made"] == ["a/1", "a/2", "b/1", "a/1"], f"rendered were {seen['made']}"
    assert seen["all"] == 2, f"drop('') gives {seen['all']}, expected the two pages that were left"
