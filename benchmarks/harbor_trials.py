"""Harbor's own trials of the work that ``docker_overhead.py`` measures, through Harbor's own docker environment.

One task, its oracle agent, so many attempts: the agent's command in ``solve.sh``, one command and the reward in
``test.sh``, on the base image of our trials with the same tree in ``/workspace``. In two ways: as shipped, which is a
``Dockerfile`` and nothing else; and tuned, which is all that a task's author can do: the image is built before, the
container has an ``init``, no time to end in and, as the floor, no network.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from docker import APIClient
from docker.errors import ImageNotFound
from docker.utils import kwargs_from_env
from measuring import environment

OLDEST = (3, 12)
SECONDS = 3600.0
"""After which a job that hangs is given up."""
PROBE = """
import json, sys
from importlib import metadata
try:
    found = metadata.version("harbor")
except metadata.PackageNotFoundError:
    found = None
print(json.dumps([list(sys.version_info[:2]), found]))
"""
COMMAND = "import sys; from harbor.cli.main import app; sys.argv[0] = 'harbor'; sys.exit(app())"
# Neither reports to Harbor's makers nor fetches a table of prices: both would wait for a network.
VARIABLES = {"HARBOR_TELEMETRY": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

MANIFEST = """
version = "1.0"
[agent]
timeout_sec = 120.0
[verifier]
timeout_sec = 120.0
[environment]
build_timeout_sec = 600.0
"""
# Harbor runs some of its commands as ``root``, by name: an image may have no list of users.
BASE = "FROM {base}\nUSER 0\nRUN grep -qs ^root: /etc/passwd || echo root:x:0:0:root:/root:/bin/sh >> /etc/passwd\n"
RECIPE = "FROM {base}\nWORKDIR /workspace\nCOPY tree /workspace\n"
COMPOSE = "services:\n  main:\n    init: true\n    stop_grace_period: 0s\n    network_mode: none\n"
SOLVE = "#!/bin/sh\n{agent}\n"
TEST = "#!/bin/sh\ngrep -q touched src/tiny/__init__.py && echo 1 > /logs/verifier/reward.txt\n"

SHIPPED, TUNED = "as shipped", "tuned"
WAYS = (SHIPPED, TUNED)
PROJECT = "com.docker.compose.project"


class Missing(Exception):
    """Something that Harbor needs is not here; the text says what, and what to do."""


def version(python: Path) -> str:
    """Return the version of Harbor that a Python has. Raises Missing if it cannot run Harbor's docker environment."""
    try:
        asked = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, timeout=60, check=False)
        (major, minor), found = json.loads(asked.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{python} cannot be run: {error}") from error
    except (TypeError, ValueError) as error:
        said = (asked.stderr or asked.stdout or "nothing").strip().splitlines()[-1]
        raise Missing(f"{python} is no Python that can be asked for Harbor; it said: {said}") from error
    if (major, minor) < OLDEST:
        raise Missing(f"{python} is Python {major}.{minor}; Harbor needs {OLDEST[0]}.{OLDEST[1]} or newer")
    if found is None:
        raise Missing(f"{python} has no Harbor; install it there: {python} -m pip install harbor==0.26.0")
    if shutil.which("docker") is None:
        raise Missing("no docker on PATH; Harbor runs the command-line client")
    compose = subprocess.run(["docker", "compose", "version"], capture_output=True, text=True, timeout=60, check=False)
    if compose.returncode:
        raise Missing(
            "docker has no compose plugin (version 2), which Harbor runs; install docker-compose-plugin, or put the "
            "plugin into the folder cli-plugins of a directory that DOCKER_CONFIG names"
        )
    return str(found)


@dataclass(frozen=True)
class Harbor:
    """A Harbor, a folder for its two tasks, and the name that these and their images begin with."""

    python: Path
    folder: Path
    name: str = field(default_factory=lambda: f"bench-{uuid.uuid4().hex[:8]}")

    def _task(self, way: str) -> Path:
        # Harbor makes the names of its containers and networks of this one.
        return self.folder / f"{self.name}-{way.replace(' ', '-')}"

    def lay(self, base: str, tree: Path, agent: str) -> None:
        """Make both tasks and their images. *base* is the image that has neither the tree nor our own layer."""
        shipped, tuned = self._task(SHIPPED), self._task(TUNED)
        for name, text in {
            "task.toml": MANIFEST,
            "instruction.md": "Touch the package.\n",
            "environment/Dockerfile": RECIPE.format(base=f"{self.name}-base"),
            "solution/solve.sh": SOLVE.format(agent=agent),
            "tests/test.sh": TEST,
            "base/Dockerfile": BASE.format(base=base),
        }.items():
            (shipped / name).parent.mkdir(parents=True, exist_ok=True)
            (shipped / name).write_text(text)
        shutil.copytree(tree, shipped / "environment" / "tree", symlinks=True)
        build(shipped / "base", f"{self.name}-base")
        build(shipped / "environment", self.name)
        shutil.copytree(shipped, tuned, symlinks=True)
        (tuned / "task.toml").write_text(f'{MANIFEST}docker_image = "{self.name}"\n')
        (tuned / "environment" / "docker-compose.yaml").write_text(COMPOSE)

    def trials(self, way: str, number: int, concurrency: int) -> float:
        """Return the seconds per trial of a job, from the first trial's end on each worker to the last one's.

        Ends the benchmark when a trial has no reward.
        """
        jobs = self.folder / "jobs"
        shutil.rmtree(jobs, ignore_errors=True)
        argv = [str(self.python), "-c", COMMAND, "run", "-p", str(self._task(way)), "-a", "oracle", "-q", "-y"]
        argv += ["-k", str(number), "-n", str(concurrency), "-o", str(jobs), "--job-name", "job"]
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env={**environment(), **VARIABLES},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{done.stdout[-4000:]}{done.stderr[-4000:]}\nHarbor {way}: exit status {done.returncode}")
        return seconds_per_trial(jobs / "job", number, concurrency)

    def close(self) -> None:
        """Remove both images, and what an interrupted job has left with the daemon."""
        client = APIClient(**kwargs_from_env(), version="auto", timeout=120)
        composed = {"label": [PROJECT]}
        for one in client.containers(all=True, filters=composed):
            if one["Labels"][PROJECT].startswith(self.name):
                client.remove_container(one["Id"], v=True, force=True)
        for network in client.networks(filters=composed):
            if network["Labels"][PROJECT].startswith(self.name):
                client.remove_network(network["Id"])
        for one in client.images(filters=composed):
            if one["Labels"][PROJECT].startswith(self.name):
                client.remove_image(one["Id"], force=True)
        for tag in (self.name, f"{self.name}-base"):
            with suppress(ImageNotFound):
                client.remove_image(tag, force=True)


def build(context: Path, tag: str) -> None:
    """Build an image, with no network. Ends the benchmark when that fails."""
    client = APIClient(**kwargs_from_env(), version="auto", timeout=600)
    for said in client.build(path=str(context), tag=tag, network_mode="none", rm=True, decode=True):
        if "error" in said:
            sys.exit(f"the image {tag} cannot be built: {said['error']}")


def seconds_per_trial(job: Path, number: int, concurrency: int) -> float:
    """Return what a trial of a finished job took, measured as a session of ours. Ends the benchmark unless all scored.

    Harbor ends with 0 when trials failed, and a failed trial is a fast one.
    """
    results: dict[str, dict[str, Any]] = {
        path.parent.name: json.loads(path.read_text()) for path in job.glob("*/result.json")
    }
    if len(results) != number:
        sys.exit(f"{job}: {len(results)} trials have a result, expected {number}")
    for name, result in results.items():
        reward = job / name / "verifier" / "reward.txt"
        said = (result.get("exception_info") or {}).get("exception_message", "no exception")
        if not reward.is_file() or float(reward.read_text()) != 1 or result.get("exception_info"):
            sys.exit(f"{job}: the trial {name} did not succeed, so that its time means nothing: {said[-2000:]}")
    ends = sorted(datetime.fromisoformat(result["finished_at"]).timestamp() for result in results.values())
    return (ends[-1] - ends[concurrency - 1]) / (number - concurrency)
