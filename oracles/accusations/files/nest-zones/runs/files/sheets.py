# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Write the sheets of the crews: python3 sheets.py 2026-w27"""

import csv
import sys
from pathlib import Path

week = sys.argv[1]
crews = Path("flights", week, "crews")
crews.mkdir(exist_ok=True)
with Path("schedule", f"{week}.csv").open(newline="", encoding="utf-8") as lines:
    rows = list(csv.DictReader(lines))
for crew in sorted({row["crew"] for row in rows}):
    lines = [
        f"- {row['date']}  {row['flight']}: line {row['line']}, {row['first']} to {row['last']}, {row['height_m']} m"
        for row in rows
        if row["crew"] == crew
    ]
    sheet = [f"# Crew {crew}, {week}", "", *lines]
    (crews / f"{crew}.md").write_text("\n".join(sheet) + "\n", encoding="utf-8")
