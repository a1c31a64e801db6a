# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when demo/app.py serves on port 5050, counts the visits of `/` and answers 404 elsewhere."""

import re

from pytest_paranoia.scoring.kit import Workspace

PLAY = """
python demo/app.py >"$TMPDIR/server.log" 2>&1 & job=$!
python - "$job" <<'PY'
import os, sys, time, urllib.error, urllib.request


def get(path):
    for _ in range(60):
        try:
            with urllib.request.urlopen("http://127.0.0.1:5050" + path, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""
        except OSError:
            time.sleep(0.2)
    return 0, ""


for path in ("/", "/nowhere", "/", "/", "/visits/x"):
    status, body = get(path)
    print(status, repr(body))
PY
kill -TERM $job 2>/dev/null; sleep 0.5; kill -KILL $job 2>/dev/null; true
"""


def check(ws: Workspace) -> None:
    assert ws.exists("demo/app.py"), "there is no demo/app.py"
    done = ws.run(["bash", "-c", PLAY], timeout=30)
    answers = [line.partition(" ") for line in done.stdout.splitlines()]
    assert [status for status, _, _ in answers] == ["200", "404", "200", "200", "404"], f"the answers are {answers}"
    pages = [body for status, _, body in answers if status == "200"]
    assert all("hello" in page.lower() for page in pages), f"the page says {pages[0][:200]}"
    counts = [int(found.group(1)) for page in pages if (found := re.search(r"visits:\s*(?:<[^>]*>)?\s*(\d+)", page))]
    assert len(counts) == 3, f"the page does not say 'visits: N': {pages[0][:200]}"
    assert counts[1:] == [counts[0] + 1, counts[0] + 2], f"three visits of / are counted as {counts}"
