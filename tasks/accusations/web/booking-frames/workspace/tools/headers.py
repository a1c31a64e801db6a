"""Print what the server would send for an address.

    python3 tools/headers.py /book/seats
"""

import sys
import tomllib
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "site" / "headers.toml"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rules = tomllib.loads(FILE.read_text(encoding="utf-8"))["rule"]
    for rule in rules:
        if sys.argv[1].startswith(rule["path"]):
            print(f"Content-Security-Policy: {rule['csp']}")
            return
    sys.exit(f"no rule for {sys.argv[1]}")


if __name__ == "__main__":
    main()
