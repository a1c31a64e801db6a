"""Running a Harbor task's hidden tests: on the frozen result, in an environment that no process of the agent saw."""

from __future__ import annotations

import os
import shutil
import stat
import time
from dataclasses import replace
from pathlib import Path

from pytest_paranoia.environments.base import EnvironmentProvider, ExecResult, Limits, Mount
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.harbor import rewardkit, rewards
from pytest_paranoia.harbor.items import HarborItem
from pytest_paranoia.harbor.judges import CONFESSION, RECOGNITION
from pytest_paranoia.harbor.rewards import HARM, REWARD, Rewards
from pytest_paranoia.scoring.oracle import Subject
from pytest_paranoia.workspaces import laying
from pytest_paranoia.workspaces.prepare import copy_tree
from pytest_paranoia.workspaces.stage import scratch_folder

_REWARD_CAP = 1024**2
_LOGS = ("agent", "verifier", "artifacts")


def verify(
    item: HarborItem, step: str | None, subject: Subject, provider: EnvironmentProvider, trajectory: str | None
) -> Rewards:
    """Run the tests of *step* and return what they wrote.

    Raises InfrastructureError (``verifier-timeout``, ``verifier-no-reward``, ``verifier-bad-reward``): a verifier that
    measures nothing leaves the run unscored, whatever the agent did.
    """
    shown = f"{item.name}{f', step {step}' if step else ''}"
    seconds = item.verifier_seconds(step)
    folders = item.tests(step)
    with scratch_folder() as scratch:
        workspace = scratch / "workspace"
        copy_tree(subject.stage.start, workspace)
        missing = laying.apply(subject.frozen.frozen.changes, subject.frozen.contents, workspace)
        subject.log.extend(f"not laid: {line}" for line in missing)
        tests, logs = scratch / "tests", scratch / "logs"
        for folder in folders:
            shutil.copytree(folder, tests, symlinks=True, dirs_exist_ok=True)
        for name in _LOGS:
            (logs / name).mkdir(parents=True)
        if trajectory is not None:
            (logs / "agent" / "trajectory.json").write_text(trajectory, encoding="utf-8")
        spec = subject.stage.spec(workspace, scratch, Limits(wall_clock=seconds))
        spec = replace(spec, writable=(Mount(tests, "/tests"), Mount(logs, "/logs")), env={**spec.env})
        if rewardkit.wanted(folders):
            kit = rewardkit.installed()
            spec = replace(
                spec,
                mounts=(*spec.mounts, *kit.mounts),
                path=(*kit.path, *spec.path),
                env={**spec.env, **rewardkit.ENV},
            )
        environment = provider.create(spec)
        started = time.monotonic()
        environment.start()
        try:
            result = environment.exec(_command(tests, subject), env=item.verifier_env(step), timeout=seconds)
        finally:
            environment.stop()
        said = (result.stdout + result.stderr).decode("utf-8", "replace")
        subject.log.append(
            f"verifier: exit status {result.exit_code} after {time.monotonic() - started:.1f} s\n{said[-8000:]}"
        )
        found = _read(logs / "verifier", result, said, shown, seconds)
        return _harm_alone(found) if judges_apart(tests) else found


def judges_apart(tests: Path) -> bool:
    """Whether *tests* hold judge files, which need a model, beside checks of harm, which need none."""
    asks = [
        path for name in (CONFESSION, RECOGNITION) for path in (tests / f"{name}.toml", *(tests / name).glob("*.toml"))
    ]
    return any(path.is_file() for path in asks) and any((tests / HARM).glob("*.py"))


def _command(tests: Path, subject: Subject) -> list[str]:
    if judges_apart(tests):
        subject.log.append(f"verifier: {HARM} alone; f and e are for this package's judge, no model is reachable here")
        output = ["--output", "/logs/verifier/reward.json"]
        return ["rewardkit", f"/tests/{HARM}", "--workspace", subject.stage.inside, *output]
    script = tests / "test.sh"
    script.chmod(script.stat().st_mode | 0o111)
    # By a shell, as Harbor does: a script without its first line is one for the shell.
    return ["sh", "-c", "/tests/test.sh"]


def _harm_alone(found: Rewards) -> Rewards:
    """Return what rewardkit says of one folder of checks under the name that the whole verification gives it."""
    if HARM in found.values or REWARD not in found.values:
        return found
    return Rewards({HARM: found.values[REWARD]}, {HARM: found.details.get(REWARD)})


def _read(folder: Path, result: ExecResult, said: str, shown: str, seconds: float) -> Rewards:
    if result.limit == "wall-clock":
        raise InfrastructureError("verifier-timeout", f"{shown}: the verifier did not end within {seconds:g} s")
    if result.limit is not None and result.limit != "output":
        raise InfrastructureError("verifier-limit", f"{shown}: the verifier hit the limit of {result.limit}")
    content = _plain(folder / "reward.json", shown)
    if content is not None:
        return rewards.parse_json(content, _plain(folder / "reward-details.json", shown), f"{shown}: reward.json")
    content = _plain(folder / "reward.txt", shown)
    if content is not None:
        return rewards.parse_text(content, f"{shown}: reward.txt")
    tail = " ".join(said.split())[-600:]
    raise InfrastructureError(
        "verifier-no-reward",
        f"{shown}: the verifier wrote neither reward.json nor reward.txt (exit status {result.exit_code}): {tail}",
    )


def _plain(path: Path, shown: str) -> bytes | None:
    """Return the content of a regular file that code of the agent may have made, None where there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InfrastructureError("verifier-bad-reward", f"{shown}: {path.name}: {error.strerror}") from None
    with os.fdopen(handle, "rb") as stream:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode) or info.st_size > _REWARD_CAP:
            raise InfrastructureError(
                "verifier-bad-reward", f"{shown}: {path.name}: no regular file of at most {_REWARD_CAP} bytes"
            )
        return stream.read()
