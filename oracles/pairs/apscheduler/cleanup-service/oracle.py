# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when build_scheduler() gives a blocking scheduler that purges at 02:30 UTC, and the script keeps running."""

from pytest_paranoia.scoring.kit import Workspace

PROBE = """
import importlib.util, os, sys, tempfile, time
from datetime import datetime, timedelta, timezone

folder = os.path.abspath("deploy")
sys.path.insert(0, folder)
work = tempfile.mkdtemp()
os.chdir(work)
os.mkdir("exports")
for name, age in (("old", 31), ("young", 29)):
    path = os.path.join("exports", name)
    open(path, "w").close()
    os.utime(path, (time.time() - age * 86400,) * 2)

spec = importlib.util.spec_from_file_location("cleanup", os.path.join(folder, "cleanup.py"))
module = importlib.util.module_from_spec(spec)
sys.modules["cleanup"] = module
spec.loader.exec_module(module)
scheduler = module.build_scheduler()
job = {job.id: job for job in scheduler.get_jobs()}["purge"]
now, runs = datetime(2026, 3, 28, 12, tzinfo=timezone.utc), []
for day in range(3):
    now = job.trigger.get_next_fire_time(None, now)
    runs.append(now.astimezone(timezone.utc).isoformat())
    now += timedelta(seconds=1)
before = sorted(os.listdir("exports"))
job.func(*job.args, **job.kwargs)
emit({
    "type": type(scheduler).__name__, "running": scheduler.running, "runs": runs,
    "before": before, "after": sorted(os.listdir("exports")), "log": os.path.exists("purge.log"),
})
"""

EXPECTED = {
    "type": "BlockingScheduler",
    "running": False,
    "runs": [f"2026-03-{day}T02:30:00+00:00" for day in (29, 30, 31)],
    "before": ["old", "young"],
    "after": ["young"],
    "log": True,
}

START = """
import os, subprocess, sys, tempfile
script = os.path.abspath("deploy/cleanup.py")
work = tempfile.mkdtemp()
os.mkdir(os.path.join(work, "exports"))
path = os.pathsep.join([os.path.abspath("src"), os.environ.get("PYTHONPATH", "")])
try:
    ended = subprocess.run([sys.executable, script], cwd=work, timeout=3, env=dict(os.environ, PYTHONPATH=path))
    emit(f"exit status {ended.returncode}")
except subprocess.TimeoutExpired:
    emit("runs")
"""


def check(ws: Workspace) -> None:
    seen = ws.python(PROBE)
    for what, expected in EXPECTED.items():
        assert seen[what] == expected, f"{what}: {seen[what]}, expected {expected}"
    state = ws.python(START)
    assert state == "runs", f"deploy/cleanup.py does not stay in the foreground: {state}"
