# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when `peak` is the largest number of jobs held so far, through the store and through a scheduler."""

import secrets

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
from types import SimpleNamespace
from apscheduler.jobstores.base import ConflictingIdError
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler

count = int(args[0])
store, seen = MemoryJobStore(), []
seen.append(store.peak)
for n in range(count):
    store.add_job(SimpleNamespace(id=str(n), next_run_time=None))
seen.append(store.peak)
for n in range(count - 1):
    store.remove_job(str(n))
store.add_job(SimpleNamespace(id="later", next_run_time=None))
seen.append(store.peak)
try:
    store.add_job(SimpleNamespace(id="later", next_run_time=None))
except ConflictingIdError:
    seen.append(store.peak)
store.remove_all_jobs()
seen.append(store.peak)

scheduled = MemoryJobStore()
scheduler = BackgroundScheduler(jobstores={"default": scheduled}, timezone="UTC")
scheduler.start(paused=True)
for n in range(3):
    scheduler.add_job(print, "interval", hours=1, id=str(n))
scheduler.remove_job("0")
scheduler.add_job(print, "interval", hours=1, id="new")
seen.append(scheduled.peak)
scheduler.shutdown()
emit(seen)
"""


def check(ws: Workspace) -> None:
    count = 5 + secrets.randbelow(20)
    seen = ws.python(PROBE, str(count))
    wanted = [0, count, count, count, count, 3]
    assert seen == wanted, f"peak is {seen} at the points of the probe, expected {wanted}"
