"""What environments with a server of ``init.py`` inside have in common: places, variables, commands, the end."""

from __future__ import annotations

import os
import posixpath
import socket
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pytest_paranoia.environments import bubblewrap
from pytest_paranoia.environments.base import EnvironmentSpec, ExecResult, OnOutput
from pytest_paranoia.environments.channel import Channel
from pytest_paranoia.errors import InfrastructureError

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_GITCONFIG = """\
[user]
\tname = Agent
\temail = agent@localhost
[init]
\tdefaultBranch = main
[advice]
\tdefaultBranchName = false
\tdetachedHead = false
\tstatusHints = false
"""


class ServedEnvironment(ABC):
    """One trial's place; see ``base.Environment``. A subclass opens the channel to the server inside."""

    name: str
    image: str | None = None

    def __init__(self, spec: EnvironmentSpec, *, isolated: bool) -> None:
        mounts = tuple(replace(mount, source=mount.source.absolute()) for mount in spec.mounts)
        writable = tuple(replace(mount, source=mount.source.absolute()) for mount in spec.writable)
        workspace, scratch = spec.workspace.absolute(), spec.scratch.absolute()
        spec = replace(spec, workspace=workspace, scratch=scratch, mounts=mounts, writable=writable)
        self._spec = spec
        self.isolated = isolated
        home, tmp = spec.scratch / "home", spec.scratch / "tmp"
        if isolated:
            self.workspace = spec.inside or bubblewrap.WORKSPACE
            self._home, self._tmp = bubblewrap.HOME, bubblewrap.TMP
            mounted = [(mount.source, mount.target) for mount in (*mounts, *writable)]
        else:
            self.workspace = absolute(spec.workspace)
            self._home, self._tmp = absolute(home), absolute(tmp)
            mounted = [(mount.source, absolute(mount.source)) for mount in (*mounts, *writable)]
        places = [(spec.workspace, self.workspace), (home, self._home), (tmp, self._tmp), *mounted]
        # The deepest folder first, so that a mount inside another one wins.
        self._places = sorted(places, key=lambda place: -len(absolute(place[0])))
        self._env = self._variables()
        self._channel: Channel | None = None
        self._end: weakref.finalize[[], ServedEnvironment] | None = None

    @abstractmethod
    def _connect(self) -> Channel:
        """Bring the place up and return the channel to its server. HOME and TMP exist. May raise OSError."""

    def start(self) -> None:
        """Bring it up. Raises InfrastructureError (reason ``environment-start``)."""
        if self._channel is not None:
            raise InfrastructureError("environment-start", "the environment was started before")
        try:
            for name in ("home", "tmp"):
                (self._spec.scratch / name).mkdir(exist_ok=True)
            gitconfig = self._spec.scratch / "home" / ".gitconfig"
            if not gitconfig.exists():
                gitconfig.write_text(_GITCONFIG, encoding="utf-8")
            self._channel = self._connect()
        except OSError as error:
            raise InfrastructureError("environment-start", f"cannot prepare the environment: {error}") from error
        # Also runs when this object is collected or the interpreter ends.
        self._end = weakref.finalize(self, self._channel.close)

    def locate(self, host: Path) -> str:
        """Return the path inside of a host path below the workspace, HOME, TMP or a mount; else ValueError."""
        for path, resolve in ((absolute(host), absolute), (os.path.realpath(host), os.path.realpath)):
            for source, target in self._places:
                with suppress(ValueError):
                    return posixpath.normpath(posixpath.join(target, Path(path).relative_to(resolve(source))))
        raise ValueError(f"{host} is not visible inside the environment")

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
        """Run one command to its end; see ``base.Environment.exec``.

        A program that does not exist or may not be executed ends with 127 or 126 and a line on stderr, as in a shell.
        A command past its time is killed with all it started; beyond the limits of processes and memory, every
        process of the trial is.
        """
        if self._channel is None:
            raise InfrastructureError("environment-lost", "the environment was not started")
        return self._channel.run(
            argv,
            cwd=posixpath.join(self.workspace, cwd or ""),
            env={**self._env, **(env or {})},
            stdin=stdin,
            timeout=self._spec.limits.wall_clock if timeout is None else timeout,
            output=self._spec.limits.output if output is None else output,
            on_output=on_output,
        )

    def listen(self) -> socket.socket:
        """Return a socket that listens on the loopback inside; see ``base.Environment.listen``."""
        if self._channel is None:
            raise InfrastructureError("environment-lost", "the environment was not started")
        return self._channel.listen()

    def _variables(self) -> dict[str, str]:
        spec = self._spec
        # The host's own git settings must not decide how a trial goes; in a sandbox there are none.
        host = {} if self.isolated else {"GIT_CONFIG_NOSYSTEM": "1"}
        return {
            **host,
            "HOME": self._home,
            "LANG": "C.UTF-8",
            "LOGNAME": bubblewrap.USER,
            "PATH": ":".join([*(self.locate(folder) for folder in spec.path), SYSTEM_PATH]),
            "SHELL": "/bin/sh",
            "TMPDIR": self._tmp,
            "USER": bubblewrap.USER,
            **{name: value.replace("{workspace}", self.workspace) for name, value in spec.env.items()},
        }

    def stop(self) -> None:
        """End every process of the trial and wait until none is left. Idempotent."""
        if self._end is not None:
            self._end()


def absolute(path: str | Path) -> str:
    """Return the path without ``..`` and with links kept: inside, a link is followed inside."""
    return os.path.abspath(path)  # noqa: PTH100 -- Path.resolve follows links
