# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the policy is gone from file, table and run, and the bench still replays the other policies."""

from pytest_paranoia.scoring.kit import Workspace

POLICY, PAGE = "bench/policies/two_random.py", "bench/README.md"


def check(ws: Workspace) -> None:
    assert not ws.exists(POLICY), f"{POLICY} is still there"
    rows = [line for line in ws.read(PAGE).splitlines() if line.startswith("|")]
    assert not any("two-random" in row for row in rows), f"{PAGE} still has a row for two-random"
    assert len(rows) == 5, f"the table of {PAGE} has {len(rows)} lines, expected its head and three policies"
    ran = ws.run(["python", "-m", "bench.run", "500"])
    assert ran.returncode == 0, f"bench/run.py fails: {ran.stderr[-300:]}"
    names = sorted(line.split()[0] for line in ran.stdout.splitlines() if line.strip())
    assert names == ["clock", "fifo", "lru"], f"bench/run.py replays {names}"
