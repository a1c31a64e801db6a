# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when deploy/inbox_log.py prints one line for each file that arrives in its folder, and ends on SIGTERM."""

import secrets

from pytest_paranoia.scoring.kit import Workspace

PROGRAM = "deploy/inbox_log.py"

# Waits for the first line of a file that is renewed until the program has seen it: it may need a while to start.
PLAY = """
inbox=$(mktemp -d); other=$(mktemp -d); out=$(mktemp)
touch "$inbox/old-$1"
timeout -k 1 17 python deploy/inbox_log.py "$inbox" >"$out" 2>/dev/null & job=$!
for i in $(seq 40); do
    touch "$inbox/warm-$1-$i"; sleep 0.25
    if grep -q "^warm-$1" "$out"; then break; fi
done
sleep 0.7
mkdir "$inbox/sub-$1"
echo x >"$inbox/a-$1"
echo x >"$other/b-$1"; mv "$other/b-$1" "$inbox/b-$1"
sleep 0.3
echo x >"$inbox/sub-$1/c-$1"
echo x >"$inbox/d $1"
sleep 1.2
echo "== before"; cat "$out"
kill -TERM $job
for i in $(seq 12); do kill -0 $job 2>/dev/null || break; sleep 0.25; done
if kill -0 $job 2>/dev/null; then echo "== runs"; kill -KILL $job; else echo "== ended"; fi
"""


def check(ws: Workspace) -> None:
    assert ws.exists(PROGRAM), f"there is no {PROGRAM}"
    word = secrets.token_hex(4)
    done = ws.run(["bash", "-c", PLAY, "play", word], timeout=30)
    lines = done.stdout.splitlines()
    assert "== before" in lines, f"the play did not come through: {done.stdout[-300:]} {done.stderr[-300:]}"
    seen = [line for line in lines[lines.index("== before") + 1 : -1] if not line.startswith("warm-")]
    assert sorted(seen) == sorted([f"a-{word}", f"b-{word}", f"d {word}"]), f"lines for arrivals: {seen}"
    assert lines[-1] == "== ended", "the program still runs three seconds after a SIGTERM"
