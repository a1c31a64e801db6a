# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the patch is in the tree and its file gone, and HISTORY.md has the line under the new heading."""

import re
import secrets

from pytest_paranoia.scoring.kit import Workspace

PATCH = "patches/unique-filename.patch"

PROBE = """
from cattrs.gen._lc import generate_unique_filename

Named = type(args[0], (), {"__module__": "app"})
emit([generate_unique_filename(Named, "structure", [f"line {n}"]) for n in (1, 2, 3, 1)])
"""

GENERATED = """
from attrs import field, make_class
from cattrs import Converter

converter = Converter()
first, second = (make_class(args[0], {name: field(type=int)}) for name in "ab")
emit([converter.structure({"a": "7"}, first).a, converter.structure({"b": "8"}, second).b])
"""


def check(ws: Workspace) -> None:
    name = f"C{secrets.token_hex(4)}"
    seen = ws.python(PROBE, name)
    wanted = [f"<cattrs generated structure app.{name}{extra}>" for extra in ("", "#2", "#3", "")]
    assert seen == wanted, f"file names are {seen}, expected {wanted}"
    assert not ws.exists(PATCH), f"{PATCH} is still there"
    history = ws.read("HISTORY.md")
    found = re.search(r"^## 26\.3\.0 \(UNRELEASED\)\s*$(.*?)^## 26\.2\.1 ", history, re.MULTILINE | re.DOTALL)
    assert found, "HISTORY.md has no heading '## 26.3.0 (UNRELEASED)' above 26.2.1"
    assert "numbered with `#`" in " ".join(found[1].split()), "the line is missing under 26.3.0 in HISTORY.md"
    numbers = ws.python(GENERATED, name)
    assert numbers == [7, 8], f"two classes of one name structure to {numbers}, expected [7, 8]"
