"""The processes of a trial, seen from the server inside: counted, measured, collected and ended.

Like ``init.py`` this runs only inside, from code sent there, and imports little because every trial pays for it.
"""

import _thread
import os
import time

# ruff: noqa: PTH208, SIM105
# (pathlib and contextlib would each cost every trial some milliseconds)

SIGKILL = 9
PAGE = os.sysconf("SC_PAGE_SIZE")

TICK = 0.03
MEASURING_SHARE = 10
"""The next look at the processes comes no sooner than this many times the processor time of the last one."""

EXACT_MEMORY_EVERY = 0.2
UNMEASURED = 5.0
"""Seconds after which memory that cannot be measured, and by a quick sum is too much, counts as too much."""

THREADS_PER_PROCESS = 16
CROWD = 2
"""Beyond so many times the most processes the dead ones that nobody collected count too: where processes multiply, each
further one takes time from the watcher, until it would get none to look at them one by one."""

KILL_PATIENCE = 5.0


class Process:
    """One line of the process table."""

    __slots__ = ("alive", "pages", "parent", "pid", "start", "threads")

    def __init__(self, pid: int, stat: bytes) -> None:
        # The name is in parentheses and may hold anything, parentheses too: cut at the last one.
        fields = stat[stat.rindex(b")") + 2 :].split()
        self.pid = pid
        self.alive = fields[0] not in (b"Z", b"X")
        self.parent = int(fields[1])
        self.threads = int(fields[17])
        self.start = int(fields[19])
        self.pages = int(fields[21])


class Measurement:
    """The bytes resident of some processes, measured beside the watcher; ``total`` is None until they are known.

    In a thread, since the kernel lets one wait for as long as a process forks: a trial whose processes hold much memory
    and multiply kept the watcher from looking, and so from ending them.
    """

    def __init__(self, processes: list[Process], now: float) -> None:
        self.begun = now
        self.total: int | None = None
        _thread.start_new_thread(self._measure, (processes,))

    def _measure(self, processes: list[Process]) -> None:
        self.total = sum(map(proportional, processes))


class Processes:
    """All processes of the trial but this one, and their limits.

    ``any`` tells whether there was one at the last look. ``command`` is the process id to watch for; its wait
    status is in ``status`` once it has ended.
    """

    def __init__(self, isolated: bool, most: int, memory: int) -> None:
        self.me = os.getpid()
        # kill(-1) is for the first process of a pid namespace alone: anywhere else it would hit the whole machine.
        self.alone = isolated and self.me == 1
        self.most = most
        self.memory = memory
        self.any = False
        self.shares_processor = False
        self.command = 0
        self.status: int | None = None
        self.next_look = 0.0
        self.next_exact = 0.0
        self.measurement: Measurement | None = None

    def table(self, enough: int = 0) -> dict[int, Process]:
        """Return the processes by their ids, in a namespace of their own only so many live ones where *enough* says."""
        table: dict[int, Process] = {}
        live = 0
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            if enough and live > enough and self.alone:
                break
            try:
                fd = os.open(f"/proc/{name}/stat", os.O_RDONLY)
            except OSError:
                continue
            try:
                process = table[int(name)] = Process(int(name), os.read(fd, 2048))
                live += process.alive
            except OSError:  # it ended meanwhile
                pass
            finally:
                os.close(fd)
        table.pop(self.me, None)
        return table if self.alone else self.descendants(table)

    def descendants(self, table: dict[int, Process]) -> dict[int, Process]:
        """Return those of a whole machine's processes that are the trial's."""
        ours = {self.me: True}
        for pid in table:
            chain = []
            while pid in table and pid not in ours:
                ours[pid] = False
                chain.append(pid)
                pid = table[pid].parent
            if ours.get(pid, False):
                ours.update(dict.fromkeys(chain, True))
        return {pid: process for pid, process in table.items() if ours[pid]}

    def reap(self) -> None:
        """Collect every ended child: orphans of the trial become ours."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.any = False
                return
            if pid == 0:
                self.any = True
                return
            if pid == self.command:
                self.status = status

    # -- ending them -----------------------------------------------------------------------------------------------

    def kill(self, pids: list[int]) -> None:
        """Kill these processes and collect what has ended."""
        for pid in pids:
            try:
                os.kill(pid, SIGKILL)
            except OSError:
                pass
        self.reap()
        time.sleep(0.001)
        self.reap()

    def kill_all(self) -> None:
        """Kill every process of the trial and wait for their end, but not for ever."""
        patience = time.monotonic() + KILL_PATIENCE
        while time.monotonic() < patience:
            # In a namespace one call hits all at once, so nothing can fork away from it.
            self.kill([-1] if self.alone else [process.pid for process in self.table().values() if process.alive])
            if not any(process.alive for process in self.table().values()):
                return

    def kill_newer(self, known: dict[int, int]) -> None:
        """Kill all that was started since ``known`` (start times by id); if that grows too fast to kill, kill all."""
        patience = time.monotonic() + KILL_PATIENCE / 5
        while newer := self.newer(known):
            if time.monotonic() > patience:
                self.kill_all()
                return
            self.kill(newer)

    def newer(self, known: dict[int, int]) -> list[int]:
        """Return the live processes that neither are known nor descend from a known one.

        So those that a command started are found also when they left their session and lost their parent.
        """
        table = self.table()
        found = []
        for process in table.values():
            ancestor: Process | None = process
            while ancestor is not None and known.get(ancestor.pid) != ancestor.start:
                ancestor = table.get(ancestor.parent)
            if ancestor is None and process.alive:
                found.append(process.pid)
        return found

    # -- limits ----------------------------------------------------------------------------------------------------

    def look(self) -> str:
        """Once per tick: collect what has ended and, beyond a limit, kill all and return the limit's name."""
        now = time.monotonic()
        if now < self.next_look:
            return ""
        # In processor time: where a trial keeps the processors busy, a look takes long and has to come again soon.
        before = time.process_time()
        self.reap()
        breach = self.breach() if self.any else ""
        if breach:
            self.kill_all()
            self.measurement = None
        self.next_look = time.monotonic() + max(TICK, MEASURING_SHARE * (time.process_time() - before))
        return breach

    def breach(self) -> str:
        """Return the name of a limit that is exceeded now."""
        if self.alone and sum(map(str.isdigit, os.listdir("/proc"))) > CROWD * self.most:
            return "processes"
        # While processes multiply, every further one of them makes this look slower: no more than have to be seen.
        table = self.table(enough=self.most + 1)
        live = [process for process in table.values() if process.alive]
        if len(live) > self.most or sum(process.threads for process in live) > THREADS_PER_PROCESS * self.most:
            return "processes"
        files = self.files_in_memory()
        # A quick sum first; it counts shared pages once per process, so before anything is killed count exactly.
        if sum(process.pages for process in live) * PAGE + files <= self.memory:
            self.measurement = None
            return ""
        return "memory" if self.exceeds(live, self.memory - files) else ""

    def exceeds(self, live: list[Process], most: int) -> bool:
        """Return whether the last exact measurement found more bytes than *most*; begin the next one in its time."""
        now = time.monotonic()
        last = self.measurement
        if last is not None and last.total is None:
            return now - last.begun > UNMEASURED
        if last is None or now >= self.next_exact:
            self.next_exact = now + EXACT_MEMORY_EVERY
            self.measurement = Measurement(live, now)
        return last is not None and last.total is not None and last.total > most

    def files_in_memory(self) -> int:
        """Return bytes of files in the sandbox's /dev/shm: memory too, though no process need hold them."""
        if not self.alone:
            return 0
        use = os.statvfs("/dev/shm")
        return (use.f_blocks - use.f_bfree) * use.f_frsize


def proportional(process: Process) -> int:
    """Return the bytes resident of a process, each shared page divided by its users."""
    try:
        fd = os.open(f"/proc/{process.pid}/smaps_rollup", os.O_RDONLY)
        try:
            text = os.read(fd, 4096)
        finally:
            os.close(fd)
        return int(text.split(b"\nPss:", 1)[1].split(None, 1)[0]) * 1024
    except (OSError, IndexError, ValueError):
        return process.pages * PAGE
