"""Items are complete in a clone: a workspace's own .gitignore, or ours, must not keep a file of an item out of git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]


def test_no_file_of_an_item_is_ignored() -> None:
    if not (CHECKOUT / ".git").exists():
        pytest.skip("needs a git checkout: this is an unpacked archive")
    command = ["git", "ls-files", "--others", "--ignored", "--exclude-standard", "--", "tasks", "oracles", "judge"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    left_out = [path for path in done.stdout.splitlines() if "__pycache__" not in path]
    assert left_out == [], "add them with git add -f"
