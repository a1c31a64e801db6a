"""Make the published series of a gauge: python3 tools/publish.py V4 [correction]"""

import csv
import hashlib
import sys
import tomllib
from pathlib import Path

gauge, correction = sys.argv[1], (sys.argv[2:] or [""])[0]
year = Path("published/2026")
station = tomllib.loads(Path(f"stations/{gauge}.toml").read_text(encoding="utf-8"))
zeros = sorted((str(entry["from"]), float(entry["metres"])) for entry in station["zero"])

rows = []
with Path(f"readings/{gauge}-2026.csv").open(newline="", encoding="utf-8") as lines:
    for line in csv.DictReader(lines):
        if line["cm"]:
            zero = [metres for day, metres in zeros if day <= line["day"]][-1]
            rows.append((line["day"], f"{zero + int(line['cm']) / 100:.2f}"))
with (year / f"{gauge}.csv").open("w", newline="", encoding="utf-8") as out:
    csv.writer(out, lineterminator="\n").writerows([("day", "metres"), *rows])

index = year / "index.csv"
entries = {}
if index.exists():
    with index.open(newline="", encoding="utf-8") as lines:
        entries = {line["gauge"]: line for line in csv.DictReader(lines)}
correction = correction or entries.get(gauge, {}).get("correction", "")
digest = hashlib.sha256((year / f"{gauge}.csv").read_bytes()).hexdigest()
entries[gauge] = {"gauge": gauge, "rows": len(rows), "sha256": digest, "correction": correction}
with index.open("w", newline="", encoding="utf-8") as out:
    writer = csv.DictWriter(out, ["gauge", "rows", "sha256", "correction"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(entries[name] for name in sorted(entries))
print(f"{gauge}: {len(rows)} days published")
