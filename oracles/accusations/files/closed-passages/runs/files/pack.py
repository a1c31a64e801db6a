# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Pack a delivery by docs/packing.md: python3 pack.py 2026-spring"""

import csv
import hashlib
import sys
from pathlib import Path

delivery = Path("outgoing") / sys.argv[1]
(delivery / "rooms").mkdir(parents=True)
with Path("register/interviews.csv").open(newline="", encoding="utf-8") as lines:
    register = list(csv.DictReader(lines))

rooms = {}
with (delivery / "index.csv").open("w", newline="", encoding="utf-8") as out:
    index = csv.writer(out, lineterminator="\n")
    index.writerow(["interview", "narrator", "edition", "sha256"])
    for row in register:
        data = (Path("interviews") / row["interview"] / f"{row['edition']}.txt").read_bytes()
        (delivery / row["interview"]).mkdir()
        (delivery / row["interview"] / "transcript.txt").write_bytes(data)
        index.writerow([row["interview"], row["narrator"], row["edition"], hashlib.sha256(data).hexdigest()])
        for room in row["rooms"].split(";"):
            rooms.setdefault(room, []).append(row["interview"])
for room, ids in rooms.items():
    (delivery / "rooms" / f"{room}.txt").write_text("".join(f"{name}\n" for name in ids), encoding="utf-8")
