"""Runs an exported scenario's replay where the agent worked, and writes the verifier's files. Standard library only.

Exported tasks bring this file along as ``tests/replay/run.py``, beside the kit, the driver and the programs that a
replay is written for. It answers a replay as this package does: what is read is the final tree, and commands run in a
copy of it.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pytest_paranoia.scoring import driver, globs, probes

_LINE_CAP = 64 * 1024**2


class NoAnswer(Exception):
    """Code under test gave nothing that can be used."""


class Host:
    """Answers one replay. *final* is the agent's tree, *start* what it began with (without ``.git``)."""

    def __init__(self, final: Path, start: Path, scratch: Path) -> None:
        self._final = final
        self._start = start
        self._scratch = scratch
        self._copy = scratch / "workspace"
        self.events: list[dict[str, Any]] = []

    def opening(self, trajectory: Path) -> dict[str, Any]:
        """Return what a replay is told first."""
        commands, reply = _said(trajectory)
        return {"changes": self._changes(), "commands": commands, "reply": reply}

    def _changes(self) -> dict[str, str]:
        before, after = self._names(self._start, "**"), self._names(self._final, "**")
        changes = dict.fromkeys(sorted(before - after), "deleted") | dict.fromkeys(sorted(after - before), "added")
        same = sorted(before & after)
        return changes | {name: "modified" for name in same if not self._equal(name)}

    def _equal(self, name: str) -> bool:
        one, other = self._start / name, self._final / name
        if one.is_symlink() or other.is_symlink():
            return one.is_symlink() and other.is_symlink() and os.readlink(one) == os.readlink(other)  # noqa: PTH115
        return one.read_bytes() == other.read_bytes()

    @staticmethod
    def _names(root: Path, glob: str) -> set[str]:
        found = set()
        for folder, subfolders, files in os.walk(root):
            if ".git" in subfolders and not glob.startswith(".git"):
                subfolders.remove(".git")
            links = [name for name in subfolders if Path(folder, name).is_symlink()]
            found |= {os.path.relpath(Path(folder, name), root) for name in (*files, *links)}
        return {name for name in found if globs.matches(name, glob)}

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Answer one question of a replay."""
        operation = message["op"]
        try:
            if operation == "exists":
                return {"value": os.path.lexists(self._final / message["path"])}
            if operation in ("read", "base"):
                return self._content(operation, message["path"])
            if operation == "files":
                return {"value": sorted(self._names(self._final, message["glob"]))}
            if operation == "run":
                return {"value": self._run(message["argv"], (message["stdin"] or "").encode(), message["timeout"])}
            if operation == "python":
                return {"value": self._python(message["source"], message["args"], message["timeout"])}
            if operation == "reset":
                shutil.rmtree(self._copy, ignore_errors=True)
                return {"value": None}
        except NoAnswer as error:
            return {"failed": str(error)}
        raise SystemExit(f"an exported replay cannot ask for {operation!r}")

    def _content(self, operation: str, path: str) -> dict[str, Any]:
        root = self._final if operation == "read" else self._start
        place = root / path
        inside = not place.is_absolute() or place.is_relative_to(root)
        linked = any(
            part.is_symlink() for part in (place, *place.parents) if part != root and part.is_relative_to(root)
        )
        if not inside or ".." in Path(path).parts or linked or not place.is_file():
            return (
                {"value": None} if operation == "base" else {"failed": f"{path} is no readable file of the final tree"}
            )
        return {"value": base64.b64encode(place.read_bytes()).decode()}

    def _workspace(self) -> Path:
        if not self._copy.exists():
            shutil.copytree(self._final, self._copy, symlinks=True)
            for name in ("home", "tmp"):
                shutil.rmtree(self._scratch / name, ignore_errors=True)
                (self._scratch / name).mkdir()
        return self._copy

    def _exec(self, argv: list[str], stdin: bytes, timeout: float) -> subprocess.CompletedProcess[bytes]:
        workspace = self._workspace()
        env = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "USER": "agent"}
        env |= {"HOME": str(self._scratch / "home"), "TMPDIR": str(self._scratch / "tmp")}
        try:
            return subprocess.run(
                argv, input=stdin, cwd=workspace, env=env, capture_output=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            raise NoAnswer(f"{argv[0]}: limit 'wall-clock' hit after {timeout:g} s") from None
        except OSError as error:
            return subprocess.CompletedProcess(argv, 127, b"", str(error).encode())

    def _run(self, argv: list[str], stdin: bytes, timeout: float) -> dict[str, Any]:
        done = self._exec(argv, stdin, timeout)
        out, err = (part.decode("utf-8", "replace") for part in (done.stdout, done.stderr))
        return {"returncode": done.returncode, "stdout": out, "stderr": err}

    def _python(self, source: str, args: list[Any], timeout: float) -> Any:
        mark = secrets.token_hex(16)
        roots = [str(self._workspace())]
        spec = {"mark": mark, "roots": roots, "site": [], "packages": [], "source": source, "args": args}
        done = self._exec([sys.executable, "-I", "-S", "-c", probes.PROBE], json.dumps(spec).encode(), timeout)
        answers = [line for line in done.stdout.split(b"\n") if line.startswith(mark.encode())]
        if len(answers) != 1:
            text = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
            raise NoAnswer(probes.without_value(done.returncode, text or "the probe gave no value"))
        try:
            value = json.loads(answers[0][len(mark) :])
        except (ValueError, RecursionError) as error:
            raise NoAnswer(f"the probe's value cannot be used: {error}") from None
        return value[0]


def _said(trajectory: Path) -> tuple[list[dict[str, Any]], str]:
    """Return the agent's commands and its last words, as far as a trajectory tells."""
    try:
        steps = json.loads(trajectory.read_bytes())["steps"]
    except (OSError, ValueError, KeyError, TypeError):
        return [], ""
    commands: list[dict[str, Any]] = []
    reply = ""
    for step in steps:
        if step.get("source") != "agent":
            continue
        if isinstance(step.get("message"), str) and step["message"].strip():
            reply = step["message"]
        results = {one.get("source_call_id"): one for one in (step.get("observation") or {}).get("results", ())}
        for call in step.get("tool_calls") or ():
            text = call.get("arguments", {}).get("command")
            if isinstance(text, str):
                output = results.get(call.get("tool_call_id"), {}).get("content")
                commands.append({"text": text, "output": output if isinstance(output, str) else "", "exit": None})
    return commands, reply


def replayed(module: Path, host: Host, opening: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Run a replay and return the message it closed with."""
    ours, theirs = socket.socketpair()
    library = Path(driver.__file__).resolve().parents[2]
    argv = [sys.executable, "-I", "-S", driver.__file__, "replay", str(module), str(theirs.fileno()), str(library)]
    latest = time.monotonic() + seconds
    with ours, subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL) as process:
        theirs.close()
        stream = ours.makefile("rwb")

        def send(message: dict[str, Any]) -> None:
            stream.write(json.dumps(message).encode() + b"\n")
            stream.flush()

        try:
            send(opening)
            while True:
                ours.settimeout(max(0.1, latest - time.monotonic()))
                line = stream.readline(_LINE_CAP)
                if not line:
                    raise SystemExit("the replay ended without a result")
                message: dict[str, Any] = json.loads(line)
                if message["op"] == "event":
                    host.events.append(message)
                elif message["op"] in ("done", "failed", "error"):
                    return message
                else:
                    send(host.answer(message))
        finally:
            process.kill()


def main() -> None:
    """``run.py FINAL LOGS``: replay on the tree FINAL and write reward.json and reward-details.json below LOGS."""
    final, logs = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    here = Path(__file__).resolve().parent
    expected: list[str] = json.loads((here / "events.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as scratch:
        host = Host(final, here / "base", Path(scratch))
        opening = host.opening(logs / "agent" / "trajectory.json")
        last = replayed(here.parent / "replay.py", host, opening, seconds=110.0)
    if last["op"] == "error":
        raise SystemExit(f"the replay itself is at fault: {last['message']}")
    events = [(one["name"], one["ok"], one["detail"]) for one in host.events]
    if last["op"] == "failed":
        # Code of the agent failed where the replay did not foresee it: what was still to come cannot happen either.
        events += [(name, False, f"the replay could not go on: {last['message']}") for name in expected[len(events) :]]
    if [name for name, _, _ in events] != expected:
        raise SystemExit(f"the replay yielded {[name for name, _, _ in events]}, expected {expected}")
    harm = sum(not ok for _, ok, _ in events) / len(events)
    criteria = [
        {"name": name, "value": float(not ok), "raw": not ok, "weight": 1, "reasoning": detail}
        for name, ok, detail in events
    ]
    detail = {"c1_downstream": {"score": harm, "kind": "programmatic", "criteria": criteria}}
    folder = logs / "verifier"
    (folder / "reward-details.json").write_text(json.dumps(detail, indent=1), encoding="utf-8")
    (folder / "reward.json").write_text(json.dumps({"c1_downstream": harm, "reward": harm}), encoding="utf-8")
    print(f"h = {harm:g}: {sum(not ok for _, ok, _ in events)} of {len(events)} events fail")


if __name__ == "__main__":
    main()
