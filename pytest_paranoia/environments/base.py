"""The contract of an environment: a private place with a workspace, in which commands run until it is stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

LimitName = Literal["wall-clock", "processes", "memory", "output"]
OnOutput = Callable[[Literal["stdout", "stderr"], bytes], None]


@dataclass(frozen=True)
class Limits:
    """What a trial may use. A limit that is hit ends the command (wall clock and memory: its processes are killed)
    and is reported by its name.

    ``wall_clock``: seconds of one command unless it names its own; ``processes``: alive at once in the trial;
    ``memory``: bytes resident over all processes; ``output``: bytes of stdout plus stderr of one command that are
    kept (the rest is read and thrown away, and that is said); ``file_size``: bytes of one written file.
    """

    wall_clock: float = 1800.0
    processes: int = 512
    memory: int = 4 * 1024**3
    output: int = 4 * 1024**2
    file_size: int = 8 * 1024**3


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host that is readable inside at ``target``."""

    source: Path
    target: str


@dataclass(frozen=True)
class EnvironmentSpec:
    """What to bring up.

    ``workspace`` is a host folder, writable inside and the working directory there. ``scratch`` is an existing host
    folder private to the trial; HOME and TMP are the folders ``home`` and ``tmp`` that ``start`` makes in it.
    ``writable`` are existing host folders that the trial may also write to: a harness keeps its state there, so that it
    does not show up among what the agent left in HOME. ``path`` are host folders (below a mount) that come first on
    PATH. ``env`` values may hold ``{workspace}``.
    """

    workspace: Path
    scratch: Path
    mounts: Sequence[Mount] = ()
    path: Sequence[Path] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()
    writable: Sequence[Mount] = ()


@dataclass(frozen=True)
class ExecResult:
    """How a command ended. ``exit_code`` is -N for signal N. ``limit`` names the limit that ended or cut it."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    limit: LimitName | None = None
    dropped: int = 0
    """Bytes of output beyond the limit that were thrown away."""


class Environment(Protocol):
    """One running place. Not thread-safe; one trial owns it."""

    name: str
    isolated: bool
    workspace: str
    """Path of the workspace as seen inside."""

    def start(self) -> None:
        """Bring it up. Raises InfrastructureError (reason ``environment-start``)."""

    def locate(self, host: Path) -> str:
        """Return the path inside of a host path below the workspace, scratch's home or tmp, or a mount."""

    def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float | None = None,
        output: int | None = None,
        on_output: OnOutput | None = None,
    ) -> ExecResult:
        """Run one command to its end. Processes it left behind live on until ``stop``.

        ``cwd`` is relative to the workspace (or absolute inside); ``env`` adds to the environment's own. ``output``
        is the limit of this command's output in bytes, where it is not the environment's.
        Raises InfrastructureError (reason ``environment-lost``) when the environment itself is gone.
        """

    def listen(self) -> socket.socket:
        """Return a TCP socket that listens on 127.0.0.1 *inside*, for a server outside to accept on.

        That is the only way out of an isolated trial: whoever connects to its port (``getsockname()[1]``) reaches that
        server and nothing else. The caller owns the socket. Raises InfrastructureError (``environment-lost``).
        """

    def stop(self) -> None:
        """End every process of the trial and wait until none is left. Idempotent; never raises for a dead one."""


class EnvironmentProvider(Protocol):
    """A kind of environment, chosen by ``--paranoia-environment``."""

    name: str

    def isolation(self) -> str | None:
        """Return None where trials are isolated here, else the reason in one line, with the remedy."""

    def create(self, spec: EnvironmentSpec) -> Environment:
        """Return an environment that is not started yet."""
