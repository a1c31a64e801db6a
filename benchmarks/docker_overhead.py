"""A docker trial against the bare container calls for the same work: create, start, exec, exec, remove.

    python benchmarks/docker_overhead.py [--trials N] [--rounds N] [--concurrency 1 2 4] [--check]
    python benchmarks/docker_overhead.py --harbor PYTHON [--harbor-trials N]     Harbor beside ours

The floor does through the docker SDK what any harness has to do for one trial, with the image of our own trials: a
container that waits, the agent's command in it, the verifier's command in it, and its end by force. Ours are whole
trials in sessions as users start them: workspace, agent, freezing, a second container for the oracle, record and
report. What a session costs once is left out: the time from the first to the last trial's end counts. The floor is
measured anew before each of them, so that a busy machine slows down both. ``--harbor`` names a Python that has Harbor:
its trials of the same work are measured in the same way (``harbor_trials.py``).
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import harbor_trials
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


def session(base: Path, trials: int, concurrency: int) -> list[dict[str, Any]]:
    """Play a session and return its records."""
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
    return records


def seconds_per_trial(records: list[dict[str, Any]], concurrency: int) -> float:
    """Return the seconds per trial of a session, from the first trial's end on each worker to the last one's.

    The first trials also import and look up what serves all others.
    """
    ends = sorted(datetime.fromisoformat(record["finished"]).timestamp() for record in records)
    return (ends[-1] - ends[concurrency - 1]) / (len(records) - concurrency)


def end(number: int, _: object) -> None:
    """Tidy up on SIGTERM, once: ``timeout`` sends it to the process and to its group."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=24, help="trials of the long session")
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--harbor", type=Path, metavar="PYTHON", help="a Python (3.12 or newer) that has Harbor")
    parser.add_argument("--harbor-trials", type=int, default=12, metavar="N", help="trials of each of Harbor's jobs")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a bound is broken")
    chosen = parser.parse_args()
    for option, number in {"--trials": chosen.trials, "--harbor-trials": chosen.harbor_trials}.items():
        if number <= max(chosen.concurrency):
            parser.error(f"{option} {number}: has to be more than run at a time, {max(chosen.concurrency)}")
    if chosen.harbor:
        try:
            version = harbor_trials.version(chosen.harbor)
        except harbor_trials.Missing as missing:
            parser.error(f"--harbor: {missing}")
    signal.signal(signal.SIGTERM, end)
    bounds = Bounds()
    with tempfile.TemporaryDirectory(prefix="bench-") as name, ExitStack() as stack:
        base = Path(name)
        write_items(base, chosen.files)
        image = session(base, 2, 1)[0]["environment"]["image"]  # builds it
        client = APIClient(**kwargs_from_env(), version="auto")
        (known,) = (one for one in ours() if one["Id"] == image)
        for tag in known["RepoTags"]:
            stack.callback(client.remove_image, tag)
        # Images in use stay, whoever tidies up meanwhile.
        stack.callback(client.remove_container, client.create_container(image, ["true"])["Id"])
        (tree,) = (base / "cache" / "repositories").glob("*/tree")

        def own(concurrency: int) -> float:
            return seconds_per_trial(session(base, chosen.trials, concurrency), concurrency)

        measured: dict[str, Callable[[int], float]] = {"ours": own}
        if chosen.harbor:
            without = known["Labels"][f"{LABEL}.base"]
            harbor = harbor_trials.Harbor(chosen.harbor, base / "harbor")
            stack.enter_context(closing(harbor))
            harbor.lay(without, tree, AGENT)
            measured |= {
                f"Harbor {version} {way}": partial(harbor.trials, way, chosen.harbor_trials)
                for way in harbor_trials.WAYS
            }
        for concurrency in chosen.concurrency:
            ratios: dict[str, list[float]] = {what: [] for what in measured}
            for _ in range(chosen.rounds):
                for what, measure in measured.items():
                    bottom = floor(image, tree, base, chosen.trials, concurrency)
                    seconds = measure(concurrency)
                    ratios[what].append(seconds / bottom)
                    print(
                        f"{concurrency} at a time, {what}: {60 / seconds:.1f} trials/min, floor {60 / bottom:.1f}, "
                        f"ratio {seconds / bottom:.2f}",
                        flush=True,
                    )
            for what, found in ratios.items():
                if what != "ours":
                    print(f"ratio to the floor, {concurrency} at a time, {what}: {median(found):.3g} x")
            bounds.show(f"ratio to the floor, {concurrency} at a time", median(ratios["ours"]), RATIO, "x")
    bounds.exit(check=chosen.check)


if __name__ == "__main__":
    sys.path.append(str(CHECKOUT / "tests"))
    main()
