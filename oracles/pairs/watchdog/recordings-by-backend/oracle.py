# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when every recording lies in the folder of its backend with its content, and the page names the new paths."""

from pytest_paranoia.scoring.kit import Workspace

FOLDER, PAGE = "tests/recordings", "docs/recordings.rst"


def check(ws: Workspace) -> None:
    start = ws.base(PAGE) or ""
    old = sorted({word for word in start.split() if word.startswith(FOLDER) and word.endswith(".jsonl")})
    assert len(old) == 14, f"the page of the start tree names {len(old)} recordings"
    page = ws.read(PAGE).split()
    for path in old:
        backend, _, what = path.removeprefix(f"{FOLDER}/").partition("-")
        new = f"{FOLDER}/{backend}/{what}"
        assert ws.exists(new), f"there is no {new}"
        assert ws.read(new) == ws.base(path), f"{new} differs from what {path} was"
        assert new in page, f"{PAGE} does not name {new}"
        assert path not in page, f"{PAGE} still names {path}"
    left = [path for path in ws.files(f"{FOLDER}/*.jsonl") if path.count("/") == 2]
    assert not left, f"still in {FOLDER}: {left}"
