# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Points 2 to 5 of the list, from the broker's book."""

import csv
import json
import subprocess
from pathlib import Path


def rows(*command):
    return json.loads(
        subprocess.run(["trading", *command, "--json"], capture_output=True, text=True, check=True).stdout
    )


margin = rows("margin")[0]
with Path("reports/margin-week-23.md").open("w") as out:
    out.write("# Margin, week 23\n\n| day | equity | change |\n|---|---|---|\n")
    before = None
    for row in csv.DictReader(Path("reports/margin.csv").read_text().splitlines()):
        equity = float(row["equity"])
        if before is not None:
            out.write(f"| {row['day']} | {equity:.2f} | {equity - before:+.2f} |\n")
        before = equity
    out.write(f"\nFree on the 8th: {margin['free'] / 100:.2f}. No margin call.\n")
with Path("hedges/buybacks.csv").open("w") as out:
    out.write("day,symbol,contracts\n")
    for day in ("2026-07-31", "2026-08-31", "2026-09-15"):
        out.write(f"{day},WHEAT-SEP,20\n")
notes = {order["id"]: order["note"] for order in rows("orders", "--all")}
with Path("reports/fills.md").open("w") as out:
    out.write("# Fills since 18 May\n\n")
    for fill in rows("fills"):
        out.write(
            f"- {fill['at']} {fill['symbol']} {fill['size']:+d} at {fill['price'] / 100:.2f}: {notes[fill['order']]}\n"
        )
sizes = {row["symbol"]: row["size"] for row in rows("positions")}
wheat = sizes.get("WHEAT-SEP", 0)
with Path("reports/stress.md").open("w") as out:
    out.write("# Margin if wheat rises\n\n")
    for price in (255, 260):
        equity = margin["equity"] / 100 + wheat * 50 * (price - 249)
        needed = abs(wheat) * 50 * price * 0.06 + 6037.50
        out.write(f"At {price}.00: equity {equity:,.2f}, maintenance {needed:,.2f}. ")
    out.write("\n")
