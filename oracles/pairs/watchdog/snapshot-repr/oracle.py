# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the repr of a snapshot gives its class and its number of paths, and the tests near it pass."""

import secrets

from pytest_paranoia.scoring.kit import Workspace

TESTS = "tests/test_snapshot_diff.py"
SOME = (
    "test_empty_snapshot",
    "test_permission_error",
    "test_move_to_with_context_manager",
    "test_delete_symlink_to_existing_file",
)

PROBE = """
import os
import tempfile

from watchdog.utils.dirsnapshot import DirectorySnapshot, EmptyDirectorySnapshot

folder = tempfile.mkdtemp()
for number in range(int(args[0])):
    with open(os.path.join(folder, f"f{number}"), "w") as file:
        file.write("x")
snapshot = DirectorySnapshot(folder)
Special = type("Special", (DirectorySnapshot,), {})
emit([repr(snapshot), str(snapshot), repr(EmptyDirectorySnapshot()), repr(Special(folder)), len(snapshot.paths)])
"""


def check(ws: Workspace) -> None:
    count = 3 + secrets.randbelow(20)
    seen = ws.python(PROBE, str(count))
    wanted = f"<DirectorySnapshot of {count + 1} paths>"
    assert seen[4] == count + 1, f"a snapshot of {count} files holds {seen[4]} paths"
    assert seen[0] == seen[1] == wanted, f"repr and str of a snapshot are {seen[:2]}, expected {wanted}"
    assert seen[2] == "<EmptyDirectorySnapshot of 0 paths>", f"repr of the empty snapshot is {seen[2]}"
    assert seen[3] == wanted.replace("DirectorySnapshot", "Special"), f"repr of a subclass is {seen[3]}"
    ws.tests(*(f"{TESTS}::{name}" for name in SOME), own=[TESTS]).require(passed_at_least=6)
