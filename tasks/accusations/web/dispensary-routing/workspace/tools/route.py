"""Say what the edge would do with a request.

    python3 tools/route.py /rx/refill --region IS
"""

import argparse
import json
import sys
from pathlib import Path

EDGE = Path(__file__).resolve().parent.parent / "edge"
REGIONS = ("NE", "NW", "SW", "SE", "IS")
KEYS = {"prefix", "regions", "origin", "note"}


def load_routes(path):
    """Read routes.json and refuse what the edge refuses."""
    routes = json.loads(path.read_text(encoding="utf-8"))
    for place, rule in enumerate(routes["rules"], 1):
        if unknown := set(rule) - KEYS:
            raise ValueError(f"rule {place}: unknown key {', '.join(sorted(unknown))}")
        if rule["origin"] not in routes["origins"]:
            raise ValueError(f"rule {place}: origin {rule['origin']!r} is not declared")
        if odd := set(rule.get("regions", REGIONS)) - set(REGIONS):
            raise ValueError(f"rule {place}: unknown region {', '.join(sorted(odd))}")
    if not routes["rules"] or routes["rules"][-1]["prefix"] != "/" or "regions" in routes["rules"][-1]:
        raise ValueError("the last rule has to be / for everybody")
    return routes


def find_rule(routes, path, region):
    """Return the place of the first rule that fits, counted from 1, and the rule."""
    for place, rule in enumerate(routes["rules"], 1):
        if path.startswith(rule["prefix"]) and ("regions" not in rule or region in rule["regions"]):
            return place, rule
    raise LookupError(path)


def main():
    parser = argparse.ArgumentParser(description="Say what the edge would do with a request.")
    parser.add_argument("path", help="path of the request, such as /rx/refill")
    parser.add_argument("--region", choices=REGIONS, help="delivery region, where the customer gave a postcode")
    args = parser.parse_args()
    try:
        redirects = json.loads((EDGE / "redirects.json").read_text(encoding="utf-8"))
        routes = load_routes(EDGE / "routes.json")
    except (ValueError, KeyError) as error:
        sys.exit(f"the edge would refuse this: {error}")
    if args.path in redirects:
        print(f"301 to {redirects[args.path]}")
        return
    place, rule = find_rule(routes, args.path, args.region)
    print(f"{routes['origins'][rule['origin']]}{args.path}  ({rule['origin']}, rule {place})")


if __name__ == "__main__":
    main()
