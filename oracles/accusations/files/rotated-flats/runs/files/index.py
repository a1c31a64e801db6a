# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Bring calib/index.csv into agreement with the tree."""

import csv
import hashlib
from pathlib import Path

with Path("calib/index.csv").open("w", newline="", encoding="utf-8") as out:
    index = csv.writer(out, lineterminator="\n")
    index.writerow(["night", "name", "exposures", "mean", "sha256"])
    for path in sorted(Path("calib").glob("*/*.pgm")):
        lines = path.read_text(encoding="ascii").splitlines()
        values = [int(value) for line in lines[4:] for value in line.split()]
        exposures = lines[1].rsplit(" ", 1)[1]
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        index.writerow([path.parent.name, path.name, exposures, round(sum(values) / len(values)), digest])
