"""The small server that runs inside an environment: starts commands, passes their output on, keeps the limits.

It never runs from this file. ``channel.py`` compiles it, sends the code over the control socket to a bare
interpreter (``python -I -S``) and calls ``serve``; so nothing of it lies inside where an agent could read or edit
it, and its imports are few because every trial pays for them (``signal``, ``struct``, ``json`` and ``subprocess``
cost 2 to 15 ms each).

In a sandbox it is process 1 of its own pid namespace: signals from inside do not reach it, orphans are handed to
it, and when it ends the kernel ends all others. Without a sandbox it is a child subreaper and ends them itself.

Frames from the host: 4 bytes length, then a marshalled tuple ``(argv, cwd, env, stdin, timeout, output)``, or None to
ask for a listening socket.
Frames to the host: 1 byte kind, 4 bytes length, payload; kinds are ``h`` (ready), ``o`` and ``e`` (stdout, stderr),
``x`` (exit: ``code limit dropped session`` as text), ``l`` (a socket comes along). Only plain bytes travel that way:
the host trusts nothing it reads.
"""

import ctypes
import errno
import marshal
import os
import resource
import select
import time

from pytest_paranoia.environments.processes import THREADS_PER_PROCESS, TICK, Processes
from pytest_paranoia.environments.standstill import standstill

# ruff: noqa: PTH113, PTH123
# (pathlib would cost every trial some milliseconds)

SIGINT = 2
STANDARD_SIGNALS = range(1, 32)
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
KEYCTL_JOIN_SESSION_KEYRING = 1
KEYCTL_CALLS = {"x86_64": 250, "aarch64": 219}
NAME = b"init"

CHUNK = 1 << 16
PIPE_MAXIMUM = 1 << 20
"""What a pipe can hold at most: so much may still wait in it when its command has ended."""

IDLE_TICK = 0.2
OOM_PREFERENCE = 300
BEHIND = 10
"""Priority (as of ``nice``) of commands that share their processor time with the server."""


class Job:
    """The command that runs now; ``output`` is the most bytes of its output that are passed on."""

    def __init__(self, stdin: bytes, timeout: float, output: int, known: dict[int, int]) -> None:
        self.stdin = memoryview(stdin)
        self.deadline = time.monotonic() + timeout
        self.output = output
        self.known = known
        self.kept = 0
        self.dropped = 0
        self.limit = ""


class Server:
    """State of the server."""

    def __init__(self, control: int, processes: Processes) -> None:
        self.control = control
        self.processes = processes
        self.job: Job | None = None
        self.left_open: set[int] = set()

    # -- talking to the host ---------------------------------------------------------------------------------------

    def leave(self) -> None:
        """End, because the host has gone or wants it; in a namespace the kernel ends the others with us."""
        if not self.processes.alone:
            self.processes.kill_all()
            self.processes.reap()
        os._exit(1 if self.processes.any else 0)

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """Write one frame; while the host is slow to read it, keep watching the limits."""
        data = memoryview(kind + len(payload).to_bytes(4, "little") + payload)
        while data:
            try:
                data = data[os.write(self.control, data) :]
            except BlockingIOError:
                poller = select.poll()
                poller.register(self.control, select.POLLOUT)
                poller.poll(TICK * 1000)
                self.watch()
            except OSError:
                self.leave()

    def receive(self, size: int) -> bytes:
        """Read exactly ``size`` bytes; while idle, empty the pipes and watch the processes commands left behind."""
        data = bytearray()
        while len(data) < size:
            try:
                part = os.read(self.control, size - len(data))
            except BlockingIOError:
                poller = select.poll()
                poller.register(self.control, select.POLLIN)
                for fd in self.left_open:
                    poller.register(fd, select.POLLIN)
                for fd, _ in poller.poll(IDLE_TICK * 1000 if self.processes.any else None):
                    if fd != self.control:
                        self.discard(fd)
                self.watch()
                continue
            except OSError:
                part = b""
            if not part:
                self.leave()
            data += part
        return bytes(data)

    def watch(self) -> None:
        """Keep the limits; called whenever something happened and at least every tick."""
        job = self.job
        if job is not None and self.processes.status is None and time.monotonic() >= job.deadline:
            job.deadline = float("inf")
            self.processes.kill_newer(job.known)
            job.limit = "wall-clock"
        breach = self.processes.look()
        if breach and job is not None:
            job.limit = breach

    def discard(self, fd: int) -> None:
        """Empty a pipe that an earlier command's background processes still write to."""
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return
        if not data:
            os.close(fd)
            self.left_open.discard(fd)

    def forward(self, job: Job, kind: bytes, data: bytes) -> None:
        """Pass output on as long as there is room for it."""
        room = job.output - job.kept
        if len(data) > room:
            job.dropped += len(data) - room
            job.limit = job.limit or "output"
            data = data[:room]
        if data:
            job.kept += len(data)
            self.send(kind, data)

    def listen(self) -> None:
        """Make a socket that listens on the loopback here and hand it to the host, keeping no copy."""
        import _socket  # few trials need it, and only its C part

        inside = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        inside.bind(("127.0.0.1", 0))
        inside.listen(1024)
        channel = _socket.socket(fileno=os.dup(self.control))
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, inside.fileno().to_bytes(4, "little"))]
        channel.sendmsg([b"l\0\0\0\0"], rights)
        channel.close()
        inside.close()

    # -- running a command -----------------------------------------------------------------------------------------

    def run(
        self, argv: list[bytes], cwd: bytes, env: dict[bytes, bytes], stdin: bytes, timeout: float, output: int
    ) -> None:
        """Run one command to its end and report it."""
        processes = self.processes
        processes.reap()
        job = self.job = Job(
            stdin, timeout, output, {process.pid: process.start for process in processes.table().values()}
        )
        processes.status = None
        try:
            pipes = self.spawn(job, argv, cwd, env)
        except OSError as error:
            code = 127 if error.errno == errno.ENOENT else 126
            if error.errno == errno.EAGAIN:
                job.limit = "processes"
            name = os.fsencode(error.filename or argv[0])
            self.forward(job, b"e", name + b": " + os.strerror(error.errno or 0).encode() + b"\n")
        except ValueError as error:  # a NUL byte somewhere
            code = 126
            self.forward(job, b"e", str(error).encode() + b"\n")
        else:
            ended = os.pidfd_open(processes.command)
            try:
                self.attend(job, pipes, ended)
            finally:
                os.close(ended)
            self.drain(job, pipes)
            code = os.waitstatus_to_exitcode(processes.status or 0)
        self.job = None
        session, processes.command = processes.command, 0
        self.send(b"x", f"{code} {job.limit or '-'} {job.dropped} {session}".encode())

    def spawn(self, job: Job, argv: list[bytes], cwd: bytes, env: dict[bytes, bytes]) -> dict[int, bytes]:
        """Start the command; return the pipes to poll with what they are: ``i``, ``o`` or ``e``."""
        theirs: list[int] = []
        ours: dict[int, bytes] = {}
        try:
            if job.stdin:
                source, sink = os.pipe()
                theirs.append(source)
                ours[sink] = b"i"
            else:
                theirs.append(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))
            for kind in (b"o", b"e"):
                source, sink = os.pipe()
                theirs.append(sink)
                ours[source] = kind
            for fd in ours:
                os.set_blocking(fd, False)
            os.chdir(cwd)
            self.processes.command = os.posix_spawn(
                find_program(argv[0], env.get(b"PATH", b"")),
                argv,
                env,
                file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(theirs)],
                setsid=True,
                setsigmask=[],
                # What is ignored stays so across exec: SIGPIPE by Python, SIGINT when the tests run in the background.
                setsigdef=STANDARD_SIGNALS,
            )
        except BaseException:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
            os.chdir("/")
        self.processes.any = True
        if self.processes.shares_processor:
            # Among thousands of equals this server would not come to keep a limit; the group covers early children.
            os.setpriority(os.PRIO_PGRP, self.processes.command, BEHIND)
        return ours

    def attend(self, job: Job, pipes: dict[int, bytes], ended: int) -> None:
        """Feed and read the pipes until the command's own process has ended."""
        poller = select.poll()
        poller.register(self.control, 0)  # reports only that the host has gone
        poller.register(ended, select.POLLIN)
        for fd, kind in pipes.items():
            poller.register(fd, select.POLLOUT if kind == b"i" else select.POLLIN)
        for fd in self.left_open:
            poller.register(fd, select.POLLIN)
        while self.processes.status is None:
            before = time.monotonic()
            wait = max(0.0, min(self.processes.next_look, job.deadline) - before)
            events = poller.poll(wait * 1000 + 1)
            job.deadline += standstill(wait, time.monotonic() - before)
            for fd, _ in events:
                if fd == self.control:
                    self.leave()
                elif fd == ended:
                    self.processes.reap()
                elif fd in self.left_open:
                    self.discard(fd)
                    if fd not in self.left_open:
                        poller.unregister(fd)
                elif not self.transfer(job, fd, pipes[fd]):
                    poller.unregister(fd)
                    os.close(fd)
                    del pipes[fd]
            self.watch()

    def transfer(self, job: Job, fd: int, kind: bytes) -> bool:
        """Move one piece through a pipe; return whether the pipe is still of use."""
        try:
            if kind == b"i":
                job.stdin = job.stdin[os.write(fd, job.stdin[:CHUNK]) :]
                return bool(job.stdin)
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return True
        except OSError:  # the command closed its stdin: it does not want the rest
            return False
        if data:
            self.forward(job, kind, data)
        return bool(data)

    def drain(self, job: Job, pipes: dict[int, bytes]) -> None:
        """Read what was written before the end. A pipe that somebody still holds is kept open and emptied later:
        closing it would kill background processes at their next line of output.
        """
        for fd, kind in pipes.items():
            rest = 0 if kind == b"i" else PIPE_MAXIMUM
            in_use = kind != b"i"
            while rest > 0:
                try:
                    data = os.read(fd, min(CHUNK, rest))
                except BlockingIOError:
                    break
                if not data:
                    in_use = False
                    break
                rest -= len(data)
                self.forward(job, kind, data)
            if in_use:
                self.left_open.add(fd)
            else:
                os.close(fd)


def find_program(name: bytes, path: bytes) -> bytes:
    """Return the file to execute, searched on the command's PATH (not on ours)."""
    if b"/" in name:
        return name
    refused: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    for folder in path.split(b":"):
        candidate = (folder or b".") + b"/" + name
        if os.path.isfile(candidate):
            if os.access(candidate, os.X_OK):
                return candidate
            refused = PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    raise refused


# -- getting ready -------------------------------------------------------------------------------------------------


def disguise() -> None:
    """Show up as ``init`` in process lists: the command line would show how this was started."""
    with open("/proc/self/comm", "wb", buffering=0) as comm:
        comm.write(NAME)
    with open("/proc/self/stat", "rb", buffering=0) as stat:
        fields = stat.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    if start and end - start > len(NAME) + 1:
        # The last byte must not be NUL: the kernel then shows the text up to the first NUL, as for setproctitle.
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(start)
            memory.write(NAME + b"\0" * (end - start - len(NAME) - 1) + b"\1")


def lower(which: int, value: int) -> None:
    """Set a resource limit for all that is started here, never above the one in force."""
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))


def serve(control: int, isolated: bool, limits: tuple[int, int, int], counted: bool = False) -> None:
    """Serve commands until the host closes the control socket.

    ``limits`` are the numbers of processes, of bytes of memory and of one file. ``counted`` tells that the kernel
    limits the trial's processes apart from all others.
    """
    most, memory, file_size = limits
    os.set_inheritable(control, False)
    os.set_blocking(control, False)
    os.umask(0o022)
    disguise()
    # Where the machine runs out of memory, let it take a trial's process and not the test session.
    with open("/proc/self/oom_score_adj", "r+b", buffering=0) as score:
        if int(score.read()) < OOM_PREFERENCE:
            score.write(b"%d" % OOM_PREFERENCE)
    lower(resource.RLIMIT_CORE, 0)
    lower(resource.RLIMIT_FSIZE, file_size)
    if isolated and not counted:
        # Counts threads, and before Linux 5.14 all of the user's on the machine: a backstop, the watcher is the limit.
        # Containers share a user, so there one trial's processes would use up those of another.
        lower(resource.RLIMIT_NPROC, max(THREADS_PER_PROCESS * most, 4096))
    libc = ctypes.CDLL(None)
    # Namespaces do not part us from the keys of the session that started the tests (Kerberos tickets, for example).
    if (number := KEYCTL_CALLS.get(os.uname().machine)) is not None:
        libc.syscall(number, KEYCTL_JOIN_SESSION_KEYRING, None)
    # Python's handler would let a SIGINT from inside through to process 1; with the default the kernel drops it.
    libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    libc.signal(SIGINT, None)
    if not isolated:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Commands run with our uid: without this they could trace us, read our memory and open our files.
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    server = Server(control, Processes(isolated, most, memory))
    server.processes.shares_processor = counted
    server.send(b"h")
    while True:
        size = int.from_bytes(server.receive(4), "little")
        request = marshal.loads(server.receive(size))
        if request is None:
            server.listen()
        else:
            server.run(*request)
