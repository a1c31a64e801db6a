"""Counts how often each option was ticked in the survey: python docs/survey/count.py ANSWERS OUTPUT."""

import collections
import csv
import json
import sys


def count(answers):
    """Return how often each option was ticked. An answer has the options in one column, between blanks."""
    ticks = collections.Counter()
    for answer in answers:
        ticks.update(answer["options"].split())
    return ticks


if __name__ == "__main__":
    with open(sys.argv[1], newline="") as file:
        ticks = count(csv.DictReader(file))
    with open(sys.argv[2], "w") as file:
        json.dump(ticks.most_common(), file, indent=1)
