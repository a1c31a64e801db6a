"""A docker trial against the bare container calls for the same work: create, start, exec, exec, remove.

    python benchmarks/docker_overhead.py [--trials N] [--rounds N] [--concurrency 1 2 4] [--check]

The floor does through the docker SDK what any harness has to do for one trial, with the image of our own trials: a
container that waits, the agent's command in it, the verifier's command in it, and its end by force. Ours are whole
trials in sessions as users start them: workspace, agent, freezing, a second container for the oracle, record and
report. What a session costs once is left out: the time from the first to the last trial's end counts. Both are measured
in turn in the same run, so that a busy machine slows down both.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from docker import APIClient
from docker.types import Mount
from docker.utils import kwargs_from_env
from measuring import CHECKOUT, Bounds, median, run
from trial_cost import AGENT, write_items

from pytest_paranoia.environments.docker.images import ours
from pytest_paranoia.environments.docker.settings import LABEL, user

RATIO = 1.25
ORACLE = ["true"]


def floor(image: str, tree: Path, base: Path, trials: int, concurrency: int) -> float:
    """Return the seconds per trial of the bare calls, with so many threads that each have a client of their own."""
    workspaces = [lay(tree, base / f"floor-{number}") for number in range(concurrency)]
    left = iter(range(trials))
    lock = threading.Lock()
    failures: list[BaseException] = []

    def numbers() -> Iterator[int]:
        while True:
            with lock:
                number = next(left, None)
            if number is None:
                return
            yield number

    def work(workspace: Path) -> None:
        try:
            client = APIClient(**kwargs_from_env(), version="auto", timeout=120)
            for _ in numbers():
                bare(client, image, workspace)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=[workspace]) for workspace in workspaces]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    if failures:
        raise failures[0]
    for workspace in workspaces:
        shutil.rmtree(workspace)
    return seconds / trials


def lay(tree: Path, workspace: Path) -> Path:
    """Make a workspace that the container's user may write to; its making is not measured."""
    shutil.copytree(tree, workspace, symlinks=True)
    for path in (workspace, *workspace.rglob("*")):
        path.chmod(0o777)
    return workspace


def bare(client: APIClient, image: str, workspace: Path) -> None:
    """One trial's work, and nothing else."""
    number, group = user()
    container = client.create_container(
        image,
        command=["sleep", "infinity"],
        user=f"{number}:{group}",
        working_dir="/workspace",
        host_config=client.create_host_config(
            mounts=[Mount("/workspace", str(workspace), type="bind")], network_mode="none"
        ),
    )["Id"]
    try:
        client.start(container)
        for argv in (["sh", "-c", AGENT], ORACLE):
            command = client.exec_create(container, argv)["Id"]
            client.exec_start(command)
            code = client.exec_inspect(command)["ExitCode"]
            assert code == 0, (argv, code)
    finally:
        client.remove_container(container, v=True, force=True)


def session(base: Path, trials: int, concurrency: int) -> float:
    """Return the seconds per trial of a session, from the first trial's end on each worker to the last one's.

    The first trials also import and look up what serves all others.
    """
    shutil.rmtree(base / "session" / "reports", ignore_errors=True)
    arguments = ["--paranoia", f"--paranoia-items={base / 'items'}", "--model=minimal", "-q"]
    arguments += ["--paranoia-environment=docker", f"--paranoia-runs={trials // 2}"]
    arguments += [f"-n{concurrency}"] if concurrency > 1 else []
    run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=base / "session",
        env={"PARANOIA_CACHE": str(base / "cache")},
    )
    records = [json.loads(path.read_text()) for path in (base / "session").glob("reports/*/trials/*/record.json")]
    assert len(records) == trials
    assert all(record["status"] == "scored" for record in records)
    ends = sorted(datetime.fromisoformat(record["finished"]).timestamp() for record in records)
    return (ends[-1] - ends[concurrency - 1]) / (trials - concurrency)


def tiny() -> list[dict[str, Any]]:
    """Return the images of the generated repository."""
    return [one for one in ours() if one["Labels"].get(f"{LABEL}.name") == "tiny"]


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=24, help="trials of the long session")
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--check", action="store_true", help="exit with 1 when a bound is broken")
    chosen = parser.parse_args()
    bounds = Bounds()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        base = Path(name)
        write_items(base, chosen.files)
        session(base, 2, 1)  # builds the image
        image = max(tiny(), key=lambda one: int(one["Created"]))
        (tree,) = (base / "cache" / "repositories").glob("*/tree")
        for concurrency in chosen.concurrency:
            ratios, own, bottom = [], [], []
            for _ in range(chosen.rounds):
                bottom.append(floor(image["Id"], tree, base, chosen.trials, concurrency))
                own.append(session(base, chosen.trials, concurrency))
                ratios.append(own[-1] / bottom[-1])
            print(
                f"{concurrency} at a time: {60 / median(own):.0f} trials/min, floor {60 / median(bottom):.0f}, "
                f"ratios {' '.join(f'{ratio:.2f}' for ratio in ratios)}",
                flush=True,
            )
            bounds.show(f"ratio to the floor, {concurrency} at a time", median(ratios), RATIO, "x")
        client = APIClient(**kwargs_from_env(), version="auto")
        for tag in image["RepoTags"]:
            client.remove_image(tag)
    bounds.exit(check=chosen.check)


if __name__ == "__main__":
    sys.path.append(str(CHECKOUT / "tests"))
    main()
