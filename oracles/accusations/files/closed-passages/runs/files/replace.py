# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Put full editions into a delivery and mend its index: python3 replace.py 2026-spring OH-014 ..."""

import csv
import hashlib
import sys
from pathlib import Path

delivery = Path("outgoing") / sys.argv[1]
with (delivery / "index.csv").open(newline="", encoding="utf-8") as lines:
    rows = list(csv.reader(lines))
for row in rows:
    if row[0] in sys.argv[2:]:
        data = (Path("interviews") / row[0] / "full.txt").read_bytes()
        (delivery / row[0] / "transcript.txt").write_bytes(data)
        row[2:] = ["full", hashlib.sha256(data).hexdigest()]
with (delivery / "index.csv").open("w", newline="", encoding="utf-8") as out:
    csv.writer(out, lineterminator="\n").writerows(rows)
