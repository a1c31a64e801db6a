"""What running a command-line agent through us costs beyond the agent itself.

    python benchmarks/cli_overhead.py [NAME...] [--rounds N] [--check]

One message with four model turns and three tool calls, its model a scripted server that answers at once. Bare: the same
command, started directly. Through us: sandbox up, way to the model, session, trajectory, sandbox down, every process
gone. Both alternate in one run; the bound is on the difference of the shortest times, which a busy machine disturbs
least. Workspace, freezing and oracle are in trial_cost.py; a program's version is asked once in a process, in the round
that warms up.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import CHECKOUT, Bounds, Sample, median, rounds

sys.path.append(str(CHECKOUT / "tests"))

from cli_sessions import Bench
from model_script import edit, say, shell, turn
from model_server import ModelServer

from pytest_paranoia import registry
from pytest_paranoia.agents import install
from pytest_paranoia.agents.base import AgentChoice, AgentContext, Harness, Recorder
from pytest_paranoia.agents.cli.base import CliSession
from pytest_paranoia.environments import bubblewrap
from pytest_paranoia.environments.base import EnvironmentSpec, Mount
from pytest_paranoia.environments.local import LocalEnvironment

SECONDS = 0.3
SCRIPT = [turn("Looking.", shell("cat a.txt")), edit("a.txt", "one", "two"), shell("cat a.txt"), say("Done.")]
MODELS = {"codex": "gpt-5.5"}


def cpu() -> float:
    """CPU seconds of this process and its ended children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def through_us(harness: Harness, folder: Path, model: str) -> Sample:
    """One conversation as in a trial."""
    bench = Bench(harness, folder)
    wall, used = time.perf_counter(), cpu()
    run = bench.start(SCRIPT, model=model, files={"a.txt": "one\n"})
    run.say("Change a.txt.")
    bench.close()
    sample = Sample(time.perf_counter() - wall, cpu() - used, 0.0)
    assert (run.workspace / "a.txt").read_text() == "two\n"
    assert run.trajectory.reply == "Done."
    return sample


def bare(harness: Harness, folder: Path, model: str) -> Sample:
    """The same command on the host. What has to be written before is not measured, nor is the server's start."""
    workspace, scratch, private = (folder / name for name in ("workspace", "scratch", "agent"))
    for one in (workspace, scratch / "home", scratch / "tmp", private):
        one.mkdir(parents=True)
    (workspace / "a.txt").write_text("one\n")
    choice = AgentChoice(name="bare", harness=harness.name, model=model)
    spec = EnvironmentSpec(workspace, scratch, mounts=harness.mounts(choice), writable=[Mount(private, "/private")])
    environment = LocalEnvironment(spec, isolated=False)
    info = harness.info(choice)
    with ModelServer(SCRIPT, directory=str(workspace)) as server:
        context = AgentContext(
            agent=info,
            variant=None,
            environment=environment,
            recorder=Recorder(info),
            deadline=time.monotonic() + 120,
            choice=choice,
            model_url=server.url,
            private=private,
            python=bubblewrap.interpreter(),
        )
        environment.start()  # some adapters look around in it
        session = harness.open(context)
        environment.stop()
        assert isinstance(session, CliSession)
        command = session.command("Change a.txt.")
        env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        env |= {"HOME": str(scratch / "home"), "TMPDIR": str(scratch / "tmp"), "SHELL": "/bin/sh"}
        env |= {**session.variables(), **command.env}
        wall, used = time.perf_counter(), cpu()
        done = subprocess.run(
            list(command.argv), env=env, cwd=workspace, input=command.stdin, capture_output=True, check=False
        )
        sample = Sample(time.perf_counter() - wall, cpu() - used, 0.0)
    if done.returncode or (workspace / "a.txt").read_text() != "two\n":
        sys.exit(f"{harness.name}: status {done.returncode}\n{done.stdout[-2000:]!r}\n{done.stderr[-2000:]!r}")
    return sample


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("name", nargs="*", help="agents (default: those installed)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a bound is broken")
    chosen = parser.parse_args()
    bounds = Bounds()
    for name in chosen.name or [name for name in install.tools() if install.find(name) is not None]:
        harness = registry.harness(name)
        model = MODELS.get(name, "scripted-model")
        with tempfile.TemporaryDirectory(prefix="bench-", dir=Path.home()) as base:
            made = iter(range(1000))

            def place(base: str = base, made: object = made) -> Path:
                folder = Path(base, str(next(made)))  # type: ignore[call-overload]
                folder.mkdir()
                return folder

            ours, alone = rounds(
                chosen.rounds,
                lambda: through_us(harness, place(), model),  # noqa: B023 -- run before the next turn
                lambda: bare(harness, place(), model),  # noqa: B023
            )
        more = min(one.wall for one in ours) - min(one.wall for one in alone)
        work = [one.cpu - other.cpu for one, other in zip(ours, alone, strict=True)]
        print(
            f"{name}: bare {median([one.wall for one in alone]):.2f} s, through us "
            f"{median([one.wall for one in ours]):.2f} s; CPU {median([one.cpu for one in alone]):.2f} s and "
            f"{median([one.cpu for one in ours]):.2f} s, {median(work):+.2f} s"
        )
        bounds.show(f"overhead of a trial with {name}", more, SECONDS, "s")
    bounds.exit(check=chosen.check)


if __name__ == "__main__":
    main()
