"""Say what the access server would do with a reader.

    python3 tools/access.py student lumen-journals
"""

import sys
import tomllib
from pathlib import Path

RULES = Path(__file__).resolve().parent.parent / "access" / "rules.toml"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    group, platform = sys.argv[1:]
    for rule in tomllib.loads(RULES.read_text(encoding="utf-8"))["rule"]:
        if rule["platform"] == platform:
            print(f"let on by {rule['way']}" if group in rule["groups"] else "not in this licence")
            return
    sys.exit(f"no rule for {platform}")


if __name__ == "__main__":
    main()
