# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Make the flight folder of a week: python3 folder.py 2026-w27 2026-06-29 2026-07-05"""

import csv
import json
import re
import sys
from datetime import datetime
from pathlib import Path

week, monday, sunday = sys.argv[1:]
folder = Path("flights", week)
for name in ("missions", "zones"):
    (folder / name).mkdir(parents=True)


def table(path):
    with Path(path).open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


pylons = table("lines.csv")
for row in table(f"schedule/{week}.csv"):
    names = [
        one["pylon"] for one in pylons if one["line"] == row["line"] and row["first"] <= one["pylon"] <= row["last"]
    ]
    mission = {"flight": row["flight"], "date": row["date"], "line": row["line"], "pylons": names}
    mission["height_m"] = int(row["height_m"])
    (folder / "missions" / f"{row['flight']}.json").write_text(json.dumps(mission) + "\n", encoding="utf-8")

PLACE = re.compile(r"Middle (\d+) east, (\d+) north, radius (\d+) m\. From (\d+ \w+) to (\d+ \w+) 2026")
for page in sorted(Path("notices").glob("NZ-*.md")):
    text = page.read_text(encoding="utf-8")
    east, north, radius, first, last = PLACE.search(text).groups()
    first, last = (datetime.strptime(f"{day} 2026", "%d %B %Y").date().isoformat() for day in (first, last))
    if last < monday or first > sunday or "Lifted" in text:
        continue
    zone = {
        "zone": page.stem,
        "east": int(east),
        "north": int(north),
        "radius_m": int(radius),
        "from": first,
        "until": last,
    }
    (folder / "zones" / f"{page.stem}.json").write_text(json.dumps(zone) + "\n", encoding="utf-8")
