"""List timed runs: python bench/report.py bench/runs.json"""

import json
import sys

from attrs import define


@define
class Run:
    name: str
    rounds: int
    seconds: float


def load(path: str) -> list[Run]:
    with open(path, encoding="utf-8") as file:
        return [Run(**entry) for entry in json.load(file)]


def main() -> None:
    for run in load(sys.argv[1]):
        print(f"{run.name:30} {run.rounds:8} {run.seconds:10.3f}")


if __name__ == "__main__":
    main()
