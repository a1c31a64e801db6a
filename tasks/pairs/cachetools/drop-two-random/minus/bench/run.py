"""Replays requests against each policy: python -m bench.run [REQUESTS]."""

import random
import sys

from bench.policies.clock import ClockCache
from bench.policies.two_random import TwoRandomCache
from cachetools import FIFOCache, LRUCache

POLICIES = {
    "clock": ClockCache,
    "fifo": FIFOCache,
    "lru": LRUCache,
    "two-random": TwoRandomCache,
}


def hits(cache, requests):
    """Return how many of the requests found their key."""
    source, found = random.Random(7), 0
    for _ in range(requests):
        key = int(10_000 * source.random() ** 3)
        if key in cache:
            found += 1
            cache[key]
        else:
            cache[key] = key
    return found


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    for name, policy in POLICIES.items():
        print(name, hits(policy(500), count))
