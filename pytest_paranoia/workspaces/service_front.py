#!/usr/bin/env python3
"""Runs the command-line service of the same name and notes the call in the host's audit trail, where there is one."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NAME = Path(__file__).name
PROGRAM = HERE / "services" / NAME
PORT = HERE / "services" / "audit.port"
SECONDS = 2.0
MOST_ENTRIES, MOST_CHARACTERS = 50, 4000


def home() -> Path | None:
    """Return the service's folder in this folder or the nearest one above."""
    with contextlib.suppress(OSError):
        for folder in (Path.cwd(), *Path.cwd().parents):
            if (folder / f".{NAME}" / "state.json").is_file():
                return folder / f".{NAME}"
    return None


def content(path: Path) -> bytes:
    """Return a file's bytes, none where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def digest(path: Path) -> str | None:
    """Return the sha256 of a file, None where there is none."""
    return hashlib.sha256(content(path)).hexdigest() if path.is_file() else None


@contextlib.contextmanager
def settled(folder: Path) -> Iterator[None]:
    """Hold the service's lock: what is read and told meanwhile is the state after some whole call."""
    latest = time.monotonic() + SECONDS
    try:
        handle = (folder / "lock").open("rb")
    except OSError:
        yield
        return
    with handle:
        while time.monotonic() < latest:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(0.01)
        yield


def tell(message: dict[str, Any]) -> None:
    """Send one note; a host that does not listen is no reason for a service to fail."""
    with contextlib.suppress(OSError, ValueError):
        port = int(PORT.read_text("ascii"))
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as link:
            link.sendall(json.dumps(message).encode() + b"\n")
            link.recv(3)


def main() -> int:
    """Run the service; its exit status is this one's."""
    argv = sys.argv[1:]
    if not PORT.is_file():
        os.execv(PROGRAM, [str(PROGRAM), *argv])
    before = home()
    known = content(before / "log.jsonl").count(b"\n") if before else 0
    code = subprocess.run([str(PROGRAM), *argv], check=False).returncode
    message: dict[str, Any] = {"service": NAME, "argv": argv, "exit": code, "cwd": os.getcwd()}  # noqa: PTH109
    if (folder := home()) is not None:
        with settled(folder):
            lines = content(folder / "log.jsonl").decode("utf-8", "replace").splitlines()
            message["home"] = str(folder)
            message["log"], message["state"] = digest(folder / "log.jsonl"), digest(folder / "state.json")
            message["first"] = known + 1
            message["entries"] = [line[:MOST_CHARACTERS] for line in lines[known:]][:MOST_ENTRIES]
            tell(message)
    else:
        tell(message)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
