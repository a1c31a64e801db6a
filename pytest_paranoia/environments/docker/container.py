"""One trial's container: created and started, and from then on reached over a socket that the daemon has no part in.

The server of ``init.py`` is the container's first process, so it is its ``init`` as well: it collects orphans, signals
from inside do not reach it, and all others end with it. It connects to a socket in a folder that is mounted for that;
this side takes one connection and then removes the socket, so nobody else can come. A trial thus needs two calls of the
daemon for its start and none for its commands nor for its end: killed from here, the container removes itself, as it
does when this process is killed and the socket closes.
"""

from __future__ import annotations

import marshal
import os
import secrets
import socket
import struct
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest_paranoia
from pytest_paranoia.environments import bubblewrap, channel
from pytest_paranoia.environments.base import EnvironmentSpec, ExecResult, Mount
from pytest_paranoia.environments.channel import Channel, ended, send_kill, server_code
from pytest_paranoia.environments.docker import images, interpreters, layer, slots
from pytest_paranoia.environments.docker.bases import Base
from pytest_paranoia.environments.docker.daemon import DAEMON, said
from pytest_paranoia.environments.docker.images import Image
from pytest_paranoia.environments.docker.reaper import current, remove
from pytest_paranoia.environments.docker.settings import LABEL, OWNER_LABEL, PREFIX, Settings, user
from pytest_paranoia.environments.served import ServedEnvironment
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.workspaces.laying import own

TASKS_PER_PROCESS = 4
"""Processes and threads that the kernel allows for each process that the limit does. The server shares its processor
time with them: among more it would come too rarely to keep the limit itself.
"""
LEAST_TASKS = 512
"""So many in any case: only what the server gets to see it can call by the limit's name."""

MEMORY_RESERVE = 256 * 1024**2
"""Bytes above a trial's own limit at which the kernel steps in: the server comes first and can say what happened."""

LOOK_SECONDS = 2.0

# As Docker does by itself, and what it leaves open: anybody may write below /proc/pressure.
_READ_ONLY = [f"/proc/{name}" for name in ("bus", "fs", "irq", "sys", "sysrq-trigger", "mtrr")]
_MASKED = [
    *(f"/proc/{name}" for name in ("acpi", "asound", "interrupts", "kcore", "keys", "latency_stats", "pressure")),
    *(f"/proc/{name}" for name in ("sched_debug", "scsi", "timer_list", "timer_stats")),
    *("/sys/devices/virtual/powercap", "/sys/firmware"),
]
_SOCKET = "s"
_BOOTSTRAP = f"""\
import _socket, marshal, sys
control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
control.connect("{layer.CONTROL}/{_SOCKET}")
def read(size):
    data = b""
    while len(data) < size:
        data += control.recv(size - len(data)) or sys.exit(1)
    return data
modules, arguments = marshal.loads(read(int.from_bytes(read(4), "little")))
for name, code in modules:
    module = sys.modules[name] = type(sys)(name)
    exec(code, module.__dict__)
module.serve(control.detach(), *arguments)
"""


class ContainerChannel(Channel):
    """The channel to the server in a started container."""

    def __init__(self, name: str, connection: socket.socket, spec: EnvironmentSpec) -> None:
        super().__init__(connection)
        self._name = name
        try:
            # The server's process as seen from here; 0 where it cannot be seen (another machine's kernel).
            pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            code = marshal.dumps((server_code(), (True, channel.sizes(spec.limits), True)))
            connection.settimeout(channel.START_SECONDS)
            connection.sendall(len(code).to_bytes(4, "little") + code)
            self._greet()
            if pid > 0:
                self._hold(pid)
        except OSError as error:
            self.close()
            raise InfrastructureError("environment-start", f"the container cannot be reached: {error}") from error
        except BaseException:
            self.close()
            raise

    def _complaint(self) -> str:
        return state_of(self._name)

    def _end(self, pidfd: int | None) -> None:
        # The closed socket ends the server too, but only once it looks.
        with suppress(PermissionError):
            if pidfd is not None:
                send_kill(pidfd)
                if ended(pidfd, channel.STOP_SECONDS):
                    return
        remove(self._name)


def state_of(name: str) -> str:
    """Return what the daemon knows of how a container ended, in words."""
    from docker.errors import APIError

    try:
        state = DAEMON.call("look at a container", lambda client: client.inspect_container(name))["State"]
    except (APIError, InfrastructureError) as error:
        gone = getattr(error, "status_code", None) == 404
        return f"container {name} {'has ended and is removed' if gone else 'cannot be looked at: ' + said(error)}"
    words = [f"container {name} is {state.get('Status')}", f"exit status {state.get('ExitCode')}"]
    words += [str(state["Error"])] if state.get("Error") else []
    words += ["killed for want of memory"] if state.get("OOMKilled") else []
    return ", ".join(words)


def _new_name() -> str:
    return f"{PREFIX}-{secrets.token_hex(8)}"


class DockerEnvironment(ServedEnvironment):
    """One trial's container; see the module's text and ``base.Environment``."""

    name = "docker"

    def __init__(
        self, spec: EnvironmentSpec, base: Callable[[], Base], settings: Settings, labels: Mapping[str, str]
    ) -> None:
        super().__init__(spec, isolated=True)
        self._base = base
        self._settings = settings
        self._labels = labels
        self._container = ""

    def _connect(self) -> Channel:
        spec = self._spec
        base = self._base()
        self._own(spec.workspace, spec.scratch / "home", spec.scratch / "tmp", *self._writable())
        # Built before a turn is waited for, in which it may take as long as all others together may wait.
        images.ensure(base, spec.ingredients)
        control = self._folder("control")
        # The longest name of a socket is short; through the open folder it is shorter.
        folder = os.open(control, os.O_PATH | os.O_DIRECTORY)
        try:
            address = f"/proc/self/fd/{folder}/{_SOCKET}"
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, slots.starting(self._settings.starts):
                listener.bind(address)
                os.chmod(address, 0o777)  # noqa: PTH101 -- the folder around it is closed
                listener.listen(1)
                self._container = self._start(base)
                try:
                    connection = self._accept(listener)
                except BaseException:
                    with suppress(InfrastructureError):
                        remove(self._container)
                    raise
                finally:
                    os.unlink(address)  # noqa: PTH108
        finally:
            os.close(folder)
        return ContainerChannel(self._container, connection, spec)

    def _start(self, base: Base) -> str:
        """Create and start the container and return its name. Raises InfrastructureError."""
        from docker.errors import APIError, ImageNotFound

        name = _new_name()
        for last in (False, True):
            image = images.ensure(base, self._spec.ingredients)
            self.image = image.id
            try:
                self._create(name, image)
                return self._run(name, image)
            except ImageNotFound as error:
                images.forget(image)
                if last:
                    raise InfrastructureError("environment-image", f"{image.tag} has vanished again") from error
            except APIError as error:
                self._abandon(name)
                raise InfrastructureError(
                    "environment-start", f"a container cannot be started: {said(error)}"
                ) from error
            except BaseException:
                self._abandon(name)
                raise
        raise AssertionError("unreachable")

    @staticmethod
    def _abandon(name: str) -> None:
        """Remove what may have been created; what the daemon does not remove now, the next session does."""
        with suppress(InfrastructureError):
            remove(name)

    def _create(self, name: str, image: Image) -> None:
        from docker.errors import APIError

        try:
            DAEMON.call(
                "create a container",
                lambda client: client.create_container(**self._configuration(client, name, image)),
                reason="environment-start",
            )
        except APIError as error:
            # An earlier attempt, to whose answer nobody listened any more, may have made it.
            if not (error.status_code == 409 and "in use" in said(error)):
                raise

    def _run(self, name: str, image: Image) -> str:
        """Start the container; return its name, which is another one where that took a second container."""
        from docker.errors import APIError, ImageNotFound

        names = [name]

        def start(client: Any) -> None:
            try:
                client.start(names[-1])
            except ImageNotFound:
                raise
            except APIError as error:
                # A container that fails to start removes itself: to try again, as after what the daemon could not do
                # for once, takes a new one. Its answer then tells of the failure and not of what is missing since.
                if error.status_code not in (404, 409):
                    raise
                names.append(_new_name())
                client.create_container(**self._configuration(client, names[-1], image))
                client.start(names[-1])

        try:
            DAEMON.call("start a container", start, reason="environment-start")
        except BaseException:
            for one in names[1:]:
                self._abandon(one)
            raise
        return names[-1]

    def _configuration(self, client: Any, name: str, image: Image) -> dict[str, Any]:
        from docker.types import LogConfig
        from docker.types import Mount as Bind

        limits = self._spec.limits
        binds = [
            Bind(mount.target, str(mount.source), type="bind", read_only=closed)
            for closed, mounts in ((False, self._places_to_write()), (True, self._places_to_read()))
            for mount in mounts
        ]
        memory = limits.memory + MEMORY_RESERVE
        number, group = user()
        return {
            "image": image.id,
            "name": name,
            "command": [self._base().facts.python, "-I", "-S", "-c", _BOOTSTRAP],
            "user": f"{number}:{group}",
            "hostname": bubblewrap.HOST_NAME,
            "working_dir": "/",
            "healthcheck": {"test": ["NONE"]},
            "labels": {
                OWNER_LABEL: current().as_label(),
                **{f"{LABEL}.{key}": value for key, value in self._labels.items()},
            },
            "network_disabled": True,
            "host_config": {
                **client.create_host_config(
                    mounts=binds,
                    network_mode="none",
                    ipc_mode="private",
                    # The server is the first process itself; a daemon may be set to put another init before it.
                    init=False,
                    auto_remove=True,
                    read_only=True,
                    cap_drop=["ALL"],
                    security_opt=["no-new-privileges:true"],
                    pids_limit=max(TASKS_PER_PROCESS * limits.processes, LEAST_TASKS),
                    mem_limit=memory,
                    memswap_limit=memory,
                    nano_cpus=int(min(limits.cpus, os.cpu_count() or 1) * 1e9),
                    shm_size=max(limits.memory // 2, 1),
                    log_config=LogConfig(type=LogConfig.types.NONE),
                ),
                "MaskedPaths": _MASKED,
                "ReadonlyPaths": _READ_ONLY,
            },
        }

    def _places_to_write(self) -> list[Mount]:
        spec = self._spec
        tmp = spec.scratch / "tmp"
        return [
            Mount(spec.workspace, self.workspace),
            Mount(spec.scratch / "home", self._home),
            Mount(tmp, self._tmp),
            Mount(tmp, "/var/tmp"),
            *spec.writable,
        ]

    def _places_to_read(self) -> list[Mount]:
        """Return what is mounted read-only: not what the image holds, and nothing of this package."""
        spec = self._spec
        held = spec.ingredients
        # Without a network the daemon leaves the file of names empty, and nothing can listen on "localhost".
        found = [
            Mount(spec.scratch / "control", layer.CONTROL),
            Mount(self._text("hosts", bubblewrap.HOSTS), "/etc/hosts"),
        ]
        for mount in spec.mounts:
            if held is not None and (mount.source, mount.target) == (held.python_env.absolute(), held.target):
                continue
            source, package = mount.source.resolve(), Path(pytest_paranoia.__file__).resolve().parent.parent
            if package == source:
                found.append(replace(mount, source=self._folder("empty")))
                continue
            found.append(mount)
            folder = spec.scratch / "interpreters" / str(len(found))
            found += interpreters.replaced(mount, self._base().facts.python, folder)
            if package.is_relative_to(source):
                found.append(Mount(self._folder("empty"), str(Path(mount.target, package.relative_to(source)))))
        return found

    def _folder(self, name: str) -> Path:
        """Return an empty folder that the agent's user may enter, whatever this process' umask is."""
        folder = self._spec.scratch / name
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        return folder

    def _text(self, name: str, text: str) -> Path:
        """Return a file with this text that the agent's user may read."""
        path = self._spec.scratch / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
        return path

    def _accept(self, listener: socket.socket) -> socket.socket:
        """Wait for the server; a container that has ended is noticed before the time is up."""
        latest = time.monotonic() + channel.START_SECONDS
        listener.settimeout(LOOK_SECONDS)
        while True:
            try:
                connection, _ = listener.accept()
                return connection
            except TimeoutError:
                state = state_of(self._container)
                late = time.monotonic() > latest
                if "running" not in state or late:
                    silence = f"no answer in {channel.START_SECONDS:g} s, is this machine overloaded? " if late else ""
                    what = f"{silence}({state})" if silence else state
                    raise InfrastructureError("environment-start", f"the container did not come up: {what}") from None

    # -- whose files they are --------------------------------------------------------------------------------------

    def _writable(self) -> list[Path]:
        return [mount.source for mount in self._spec.writable]

    def _own(self, *folders: Path) -> None:
        """Give folders to the agent's user, where that is not this process's."""
        if os.geteuid() == 0:
            for folder in folders:
                own(folder, *user())

    def exec(self, *arguments: Any, **options: Any) -> ExecResult:
        """Run one command to its end; see ``base.Environment.exec``."""
        self._own(*self._writable())  # a harness writes files between its commands
        result = super().exec(*arguments, **options)
        if result.exit_code == -9 and result.limit is None and "want of memory" in state_of(self._container):
            return replace(result, limit="memory")
        return result
