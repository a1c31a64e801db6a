# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Put one package of titles/new.csv into titles/holdings.json and print a line for the ticket."""

import csv
import json
import sys
from pathlib import Path

TITLES = Path(__file__).resolve().parent
FIRST = {"Lumen": 1998, "Parchment": 2004, "Broadsheet": 1987, "Quarry": 2011}
package = sys.argv[1]

with (TITLES / "new.csv").open(newline="", encoding="utf-8") as lines:
    rows = [row for row in csv.DictReader(lines) if row["package"] == package]
holdings = json.loads((TITLES / "holdings.json").read_text(encoding="utf-8"))
for row in rows:
    year = int(row["from"] or FIRST[package])
    holdings[package].append({"issn": row["issn"], "title": row["title"], "from": year})
holdings[package].sort(key=lambda entry: entry["title"])
(TITLES / "holdings.json").write_text(json.dumps(holdings, indent=1) + "\n", encoding="utf-8")
print(f"{package}: {len(rows)} titles entered, {sum(not row['from'] for row in rows)} of them without a year.")
