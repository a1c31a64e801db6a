"""Plays a Monday morning against a MemoryJobStore: python tools/monday.py state.json

Every second a batch of jobs comes in and another is done. The file always holds the second and the backlog, the number of
jobs that wait.
"""

import json
import os
import sys
import time
from types import SimpleNamespace

from apscheduler.jobstores.memory import MemoryJobStore

ARRIVED = [0, 14, 17, 9, 12, 11, 16, 48, 7, 3, 0]
DONE = [0, 2, 4, 6, 9, 9, 7, 8, 45, 26, 21]


def save(path: str, second: int, backlog: int) -> None:
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(json.dumps({"second": second, "backlog": backlog}) + "\n")
    os.replace(path + ".part", path)


def main(path: str) -> None:
    store, last = MemoryJobStore(), 0
    start = time.monotonic()
    for second, (arrived, done) in enumerate(zip(ARRIVED, DONE)):
        time.sleep(max(0.0, start + second - time.monotonic()))
        for _ in range(arrived):
            last += 1
            store.add_job(SimpleNamespace(id=f"{last:04}", next_run_time=None))
        for job in store.get_all_jobs()[:done]:
            store.remove_job(job.id)
        save(path, second, len(store.get_all_jobs()))


if __name__ == "__main__":
    main(sys.argv[1])
