"""The contract of an environment: a private place with a workspace, in which commands run until it is stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, Self

LimitName = Literal["wall-clock", "processes", "memory", "output"]
OnOutput = Callable[[Literal["stdout", "stderr"], bytes], None]


@dataclass(frozen=True)
class Limits:
    """What a trial may use. A limit that is hit ends the command (wall clock and memory: its processes are killed)
    and is reported by its name.

    ``wall_clock``: seconds of one command unless it names its own; ``processes``: alive at once in the trial;
    ``memory``: bytes resident over all processes; ``output``: bytes of stdout plus stderr of one command that are
    kept (the rest is read and thrown away, and that is said); ``file_size``: bytes of one written file; ``cpus``:
    processors' worth of time, kept where the environment can (``docker``) and never reported: it only slows down.
    """

    wall_clock: float = 1800.0
    processes: int = 512
    memory: int = 4 * 1024**3
    output: int = 4 * 1024**2
    file_size: int = 8 * 1024**3
    cpus: float = 2.0


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host that is readable inside at ``target``."""

    source: Path
    target: str


@dataclass(frozen=True)
class Ingredients:
    """What all trials of one repository have in common, so that an environment may keep it ready, in an image.

    ``name`` is the repository's, ``plain`` for items without one. ``python_env`` is the virtual environment on the host
    that is seen inside at ``target``; ``tree`` the pristine repository at its ``commit``, where there is one. No trial
    may read that tree: it holds what a variant leaves out.
    """

    name: str
    python_env: Path
    target: str
    tree: Path | None = None
    commit: str | None = None


@dataclass(frozen=True)
class EnvironmentSpec:
    """What to bring up.

    ``workspace`` is a host folder, writable inside and the working directory there. ``scratch`` is an existing host
    folder private to the trial; HOME and TMP are the folders ``home`` and ``tmp`` that ``start`` makes in it.
    ``writable`` are existing host folders that the trial may also write to: a harness keeps its state there, so that it
    does not show up among what the agent left in HOME. ``path`` are host folders (below a mount) that come first on
    PATH. ``env`` values may hold ``{workspace}``. ``inside`` is where an isolated trial sees its workspace, for items
    whose texts name a path; empty means the environment's own place. ``ingredients`` is in the mounts too: an
    environment without images needs only those.
    """

    workspace: Path
    scratch: Path
    mounts: Sequence[Mount] = ()
    path: Sequence[Path] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()
    writable: Sequence[Mount] = ()
    inside: str = ""
    ingredients: Ingredients | None = None


@dataclass(frozen=True)
class ExecResult:
    """How a command ended. ``exit_code`` is -N for signal N. ``limit`` names the limit that ended or cut it.

    ``session`` is the id inside of the session of processes that the command was started in, 0 where it did not start
    or nobody knows: what it started in turn is in there too, unless it made a session of its own.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    limit: LimitName | None = None
    session: int = 0
    dropped: int = 0
    """Bytes of output beyond the limit that were thrown away."""


class Environment(Protocol):
    """One running place. Not thread-safe; one trial owns it."""

    name: str
    isolated: bool
    workspace: str
    """Path of the workspace as seen inside."""

    image: str | None
    """Digest of the image it runs in, None where it runs in none."""

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
    """A kind of environment, chosen by ``--paranoia-environment``. A provider that derives from this class has the
    defaults here.
    """

    name: str

    owner: int | None = None
    """Id of the user that a trial runs as on the host, to whom its folders have to belong; None: this process's."""

    def unusable(self) -> str | None:
        """Return None where environments can be brought up here, else why not and what to do, in one line.

        Asked once, before anything runs. May build or fetch what all environments need.
        """
        return None

    def digest(self) -> str | None:
        """Return the digest of what all its images are built from, None where there are none."""
        return None

    def reap(self) -> int:
        """Remove what sessions that were killed have left behind; return how many."""
        return 0

    def for_session(self, options: Mapping[str, Any]) -> Self:  # noqa: ARG002
        """Return the provider as the session's *options* want it: names without ``--paranoia-``, as on the command
        line. Raises ``pytest.UsageError``.
        """
        return self

    def for_trial(self, run: str, trial: str) -> Self:  # noqa: ARG002
        """Return the provider for one trial of a run: what is brought up may be labelled with the names."""
        return self

    def isolation(self) -> str | None:
        """Return None where trials are isolated here, else the reason in one line, with the remedy."""

    def create(self, spec: EnvironmentSpec) -> Environment:
        """Return an environment that is not started yet."""
