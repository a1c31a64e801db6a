"""Say what a visitor gets for a label or an address.

    python3 tools/visit.py G107
    python3 tools/visit.py /plants/merrowia-vernalis
"""

import csv
import json
import sys
from pathlib import Path

WEB = Path(__file__).resolve().parent.parent / "web"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    address = sys.argv[1]
    with (WEB / "labels.csv").open(newline="", encoding="utf-8") as lines:
        labels = {row["label"]: row["address"] for row in csv.DictReader(lines)}
    address = labels.get(address, address)
    redirects = json.loads((WEB / "redirects.json").read_text(encoding="utf-8"))
    while address in redirects:
        print(f"{address} -> {redirects[address]}")
        address = redirects[address]
    page = json.loads((WEB / "pages.json").read_text(encoding="utf-8")).get(address.removeprefix("/plants/"))
    print(f"{address}: {json.dumps(page)}" if page else f"{address}: not found")


if __name__ == "__main__":
    main()
