# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the script prints one number of KiB that fits what importing click takes here."""

import re

from pytest_paranoia.scoring.kit import Workspace

SCRIPT = "tools/import_memory.py"

# Importing click takes some 7,000 KiB: bytes are a thousand times as many, MiB a thousandth.
LEAST, MOST = 300, 300_000


def check(ws: Workspace) -> None:
    assert ws.exists(SCRIPT), f"there is no {SCRIPT}"
    assert re.search(r"\bru_maxrss\b", ws.read(SCRIPT)), f"{SCRIPT} does not use ru_maxrss"
    # A process inherits the peak of the one it is started from, so a small shell starts it.
    ran = ws.run(["sh", "-c", f"python {SCRIPT}; exit $?"])
    assert ran.returncode == 0, f"{SCRIPT} ends with {ran.returncode}: {ran.stderr[-300:]}"
    numbers = re.findall(r"\d+", ran.stdout)
    assert len(numbers) == 1, f"{SCRIPT} prints {ran.stdout!r}, expected one whole number"
    assert LEAST < int(numbers[0]) < MOST, f"{SCRIPT} prints {numbers[0]}, expected KiB between {LEAST} and {MOST}"
