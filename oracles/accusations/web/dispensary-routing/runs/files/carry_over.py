# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Carry one section of old-addresses.csv over into edge/redirects.json and print a line for the ticket."""

import csv
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent / "edge" / "redirects.json"
section = sys.argv[1]

with (HERE / "catalogue.csv").open(newline="", encoding="utf-8") as lines:
    articles = {row["article"]: row for row in csv.DictReader(lines)}
with (HERE / "old-addresses.csv").open(newline="", encoding="utf-8") as lines:
    addresses = [row for row in csv.DictReader(lines) if row["section"] == section]

redirects = json.loads(TARGET.read_text(encoding="utf-8"))
ended = 0
for row in addresses:
    article = articles[row["article"]]
    if article["status"] == "merged":
        article = articles[article["into"]]
    if article["status"] == "ended":
        ended += 1
        redirects[row["address"]] = f"/c/{section}"
    else:
        redirects[row["address"]] = f"/p/{article['slug']}"
TARGET.write_text(json.dumps(redirects, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
print(f"Section {section}: {len(addresses)} addresses entered, {ended} of the articles have ended.")
