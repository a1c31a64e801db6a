"""The environments with real processes: what a trial can see and do, which limits end it, what is left of it."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import pytest_paranoia
from pytest_paranoia.environments import bubblewrap, channel, processes
from pytest_paranoia.environments.base import EnvironmentSpec, ExecResult, Limits, Mount
from pytest_paranoia.environments.docker.provider import PROVIDER as DOCKER
from pytest_paranoia.environments.local import PROVIDER, LocalEnvironment
from pytest_paranoia.environments.served import ServedEnvironment
from pytest_paranoia.errors import InfrastructureError
from requirements import require

PYTHON = bubblewrap.interpreter()
MIB = 1 << 20
Start = Callable[..., ServedEnvironment]
NEEDS = {"sandbox": "bubblewrap", "docker": "docker"}


def spec_in(folder: Path, **options: Any) -> EnvironmentSpec:
    for name in ("workspace", "scratch"):
        (folder / name).mkdir(exist_ok=True)
    return EnvironmentSpec(folder / "workspace", folder / "scratch", **options)


def make(kind: str, spec: EnvironmentSpec) -> ServedEnvironment:
    return DOCKER.create(spec) if kind == "docker" else LocalEnvironment(spec, isolated=kind == "sandbox")


@contextmanager
def starter(folder: Path, kind: str) -> Iterator[Start]:
    if kind in NEEDS:
        require(NEEDS[kind])
    running: list[ServedEnvironment] = []

    def start(**options: Any) -> ServedEnvironment:
        environment = make(kind, spec_in(folder, **options))
        environment.start()
        running.append(environment)
        return environment

    yield start
    for environment in running:
        environment.stop()


@pytest.fixture
def start_sandbox(tmp_path: Path) -> Iterator[Start]:
    """Start a sandbox of this machine."""
    with starter(tmp_path, "sandbox") as function:
        yield function


@pytest.fixture(params=["sandbox", "docker"])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """Start what keeps a trial apart from the machine, in both ways that there are."""
    with starter(tmp_path, request.param) as function:
        yield function


@pytest.fixture(params=["sandbox", "host", "docker"])
def kind(request: pytest.FixtureRequest) -> str:
    """How a trial runs: two ways that keep it apart, and without."""
    return str(request.param)


@pytest.fixture
def start_either(kind: str, tmp_path: Path) -> Iterator[Start]:
    """Start an environment of each kind: what must not differ between them."""
    with starter(tmp_path, kind) as function:
        yield function


def shell(environment: ServedEnvironment, script: str, **options: Any) -> ExecResult:
    return environment.exec(["sh", "-c", script], **options)


def interpreter(environment: ServedEnvironment) -> str:
    return DOCKER.base().facts.python if environment.name == "docker" else PYTHON


def python(environment: ServedEnvironment, source: str, **options: Any) -> ExecResult:
    return environment.exec([interpreter(environment), "-I", "-S", "-c", source], **options)


def text(result: ExecResult) -> str:
    assert result.exit_code == 0, result
    assert result.limit is None, result
    return result.stdout.decode().strip()


_numbers = iter(range(1, 1000))


def unique_sleep() -> str:
    """Return the argument of a sleep that no other process of the machine has."""
    return f"{3000 + next(_numbers)}.{os.getpid()}"


def running_on_host(word: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if word.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def wait_for(condition: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


# -- running commands ----------------------------------------------------------------------------------------------


def test_exit_codes_and_signals(start_either: Start) -> None:
    environment = start_either()
    assert environment.exec(["true"]).exit_code == 0
    assert shell(environment, "exit 7").exit_code == 7
    assert shell(environment, "kill -9 $$").exit_code == -9
    assert shell(environment, "kill -TERM $$").exit_code == -15


def test_program_that_cannot_run(start_either: Start, tmp_path: Path) -> None:
    environment = start_either()
    missing = environment.exec(["no-such-program"])
    assert (missing.exit_code, missing.stderr) == (127, b"no-such-program: No such file or directory\n")
    (tmp_path / "workspace/plain").write_text("text")
    assert environment.exec(["./plain"]).exit_code == 126
    nowhere = environment.exec(["true"], cwd="nowhere")
    assert nowhere.exit_code == 127
    assert b"nowhere: No such file" in nowhere.stderr
    assert environment.exec(["true"]).exit_code == 0


def test_odd_words(start_either: Start) -> None:
    environment = start_either()
    assert environment.exec(["printf", "a\0b"]).exit_code == 126
    assert environment.exec(["true"], env={"A=B": "c"}).exit_code == 126
    assert environment.exec(["printf", "%s", "\ud800"]).stdout == b"?"
    assert environment.exec(["true", "x" * (1 << 20)]).exit_code == 126
    with pytest.raises(ValueError, match="needs a program"):
        environment.exec([])
    assert environment.exec(["true"]).exit_code == 0


def test_cwd_and_variables(start_either: Start, tmp_path: Path) -> None:
    environment = start_either(env={"ROOT": "{workspace}/src", "BRACES": "{other}"})
    (tmp_path / "workspace/src").mkdir()
    assert text(environment.exec(["pwd"])) == environment.workspace
    assert text(environment.exec(["pwd"], cwd="src")) == f"{environment.workspace}/src"
    assert text(environment.exec(["pwd"], cwd="/usr")) == "/usr"
    assert (
        text(shell(environment, "echo $ROOT $BRACES $X", env={"X": "1"})) == f"{environment.workspace}/src {{other}} 1"
    )
    assert text(shell(environment, "echo $X")) == ""


def test_stdin(start_either: Start) -> None:
    environment = start_either()
    data = os.urandom(3 * MIB)
    assert environment.exec(["cat"], stdin=data).stdout == data
    assert environment.exec(["cat"]).stdout == b""
    assert environment.exec(["true"], stdin=data).exit_code == 0


def test_output_is_binary_and_kept_apart(start_either: Start) -> None:
    environment = start_either()
    result = python(environment, "import os; os.write(1, bytes(range(256)) * 4000); os.write(2, b'\\xff')")
    assert result.stdout == bytes(range(256)) * 4000
    assert result.stderr == b"\xff"
    odd = os.fsdecode(b"\xff'\"$x\n")
    assert environment.exec(["printf", "%s", odd]).stdout == b"\xff'\"$x\n"


def test_output_streams(start_either: Start) -> None:
    environment = start_either()
    seen: list[tuple[str, bytes, float]] = []
    begin = time.monotonic()
    result = shell(
        environment,
        "echo one; sleep 0.6; echo two >&2",
        on_output=lambda stream, data: seen.append((stream, data, time.monotonic() - begin)),
    )
    assert [(stream, data) for stream, data, _ in seen] == [("stdout", b"one\n"), ("stderr", b"two\n")]
    assert seen[1][2] - seen[0][2] > 0.3
    assert result.seconds == pytest.approx(0.6, abs=0.5)


def test_background_processes_live_on(start_either: Start) -> None:
    environment = start_either()
    begin = time.monotonic()
    # It keeps the command's stdout: that must neither delay the command's end nor kill it at its next line.
    assert text(shell(environment, "(while sleep 0.05; do echo more; done) & echo started $!")).startswith("started")
    assert time.monotonic() - begin < 2
    time.sleep(0.3)
    assert text(shell(environment, "(while sleep 0.05; do date > tick; done) > /dev/null 2>&1 &")) == ""
    time.sleep(0.2)
    assert text(shell(environment, "rm tick; sleep 0.4; ls")) == "tick"


def test_signals_have_their_defaults(start_either: Start) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        environment = start_either()
    finally:
        signal.signal(signal.SIGINT, before)
    status = text(environment.exec(["cat", "/proc/self/status"]))
    masks = {
        line.split(":")[0]: int(line.split()[1], 16)
        for line in status.splitlines()
        if line[:3] == "Sig" and line[3] != "Q"
    }
    assert masks["SigBlk"] == 0
    assert masks["SigIgn"] & ((1 << 31) - 1) == 0


def test_commands_get_no_open_files(start_either: Start) -> None:
    environment = start_either()
    assert text(python(environment, "import os; print(sorted(os.listdir('/proc/self/fd')))")) == "['0', '1', '2', '3']"


def test_git_works(start_either: Start) -> None:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    environment = start_either()
    text(shell(environment, "git init -q . && echo a > a && git add a && git commit -qm first"))
    assert text(shell(environment, "git log --format='%an %ae %D'")) == "Agent agent@localhost HEAD -> main"


def test_locate(start_either: Start, tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    (tool / "bin").mkdir(parents=True)
    (tool / "bin/hello").write_text("#!/bin/sh\necho hello\n")
    (tool / "bin/hello").chmod(0o755)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "workspace")
    environment = start_either(mounts=[Mount(tool, "/opt/tool")], path=[tool / "bin"])
    (tmp_path / "workspace/file").write_text("here")
    for host in (tmp_path / "workspace/file", link / "file", tmp_path / "workspace/../workspace/file"):
        assert text(environment.exec(["cat", environment.locate(host)])) == "here"
    assert text(environment.exec(["hello"])) == "hello"
    home, tmp = (tmp_path / "scratch" / name for name in ("home", "tmp"))
    assert text(shell(environment, "echo $HOME $TMPDIR")) == f"{environment.locate(home)} {environment.locate(tmp)}"
    for host in (tmp_path, tmp_path / "scratch", Path("/etc/passwd"), tmp_path / "workspace/../elsewhere"):
        with pytest.raises(ValueError, match="not visible inside"):
            environment.locate(host)
    if environment.isolated:
        assert environment.locate(tool / "bin") == "/opt/tool/bin"


# -- the sandbox ---------------------------------------------------------------------------------------------------


def test_the_machine_is_not_visible(start_sandbox: Start) -> None:
    environment = start_sandbox()
    visible = set(text(environment.exec(["ls", "-A", "/"])).split())
    own = {"dev", "etc", "home", "proc", "run", "tmp", "usr", "var", "workspace"}
    system = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}
    folders = bubblewrap.interpreter_folders()
    assert own <= visible
    assert visible <= own | system | {folder.parts[1] for folder in folders}
    for folder in folders:
        for parent in folder.parents[:-1]:
            inside = {other.relative_to(parent).parts[0] for other in folders if other.is_relative_to(parent)}
            assert set(text(environment.exec(["ls", "-A", str(parent)])).split()) == inside
    assert text(environment.exec(["ls", "-A", "/home"])) == "agent"
    assert text(environment.exec(["ls", "-A", "/run"])) == ""
    assert shell(environment, f"test -e {Path(__file__).parent}").exit_code == 1
    assert text(shell(environment, "whoami; id -u; hostname; cat /etc/hostname")) == "agent\n1000\ndev\ndev"


def test_workspace_home_and_tmp_are_the_trials_own(start: Start, tmp_path: Path) -> None:
    environment = start()
    text(shell(environment, "echo w > /workspace/w; echo h > ~/h; echo t > $TMPDIR/t"))
    assert (environment.workspace, text(environment.exec(["pwd"]))) == ("/workspace", "/workspace")
    assert text(shell(environment, "echo $HOME $TMPDIR")) == "/home/agent /tmp"
    for name in ("workspace/w", "scratch/home/h", "scratch/tmp/t"):
        assert (tmp_path / name).exists()
    assert text(environment.exec(["ls", "/tmp"])) == "t"


def test_everything_else_is_read_only(start: Start, tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.mkdir()
    environment = start(mounts=[Mount(tool, "/opt/tool")])
    folders = ["/", "/usr", "/usr/bin", "/etc", "/dev", "/home", "/run", "/var", "/opt", "/opt/tool"]
    for folder in [*folders, *map(str, bubblewrap.interpreter_folders())]:
        assert shell(environment, f"touch {folder}/new").exit_code == 1, folder
    assert shell(environment, "echo x >> /etc/passwd").exit_code != 0


def test_no_setting_of_the_kernel_can_be_written(start: Start) -> None:
    environment = start()
    script = r"""
        cd /proc; for name in *; do case $name in [0-9]*|self|thread-self) continue;; esac
        find "$name" -type f -writable 2> /dev/null; done"""
    assert text(shell(environment, script + "; true")) == ""
    assert shell(environment, "cat /proc/sys/kernel/ostype > /proc/sys/kernel/core_pattern").exit_code != 0


def test_no_capability_and_no_way_to_one(start: Start) -> None:
    environment = start()
    status = text(environment.exec(["cat", "/proc/self/status"]))
    capabilities = [line.split()[1] for line in status.splitlines() if line.startswith("Cap")]
    assert {int(mask, 16) for mask in capabilities} == {0}
    assert "NoNewPrivs:\t1" in status
    assert shell(environment, "unshare -Ur true").exit_code != 0


def test_a_file_that_may_not_be_read_cannot_be_read(start: Start) -> None:
    environment = start()
    result = shell(environment, "echo secret > closed; chmod 000 closed; cat closed")
    assert result.exit_code == 1
    assert b"Permission denied" in result.stderr


def test_processes_of_the_machine_are_not_visible(start: Start) -> None:
    environment = start()
    listing = text(shell(environment, "cd /proc; for p in [0-9]*; do tr '\\0' ' ' < $p/cmdline; cat $p/comm; done"))
    assert listing.startswith("init init\n")
    assert 2 <= len(listing.splitlines()) <= 5
    for word in ("pytest", "paranoia", "bwrap", "python", "eval", "marshal"):
        assert word not in listing


def test_variables_of_the_session_are_not_visible(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVIDER_API_KEY", "not-for-agents")
    environment = start()
    assert b"not-for-agents" not in shell(environment, "env; cat /proc/*/environ").stdout
    assert {line.split("=")[0] for line in text(environment.exec(["env"])).splitlines()} == {
        *("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER"),
    }


def test_only_the_loopback_device(start: Start) -> None:
    environment = start()
    source = r"""
import errno, socket
print(sorted(line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line))
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
server.accept()[0].sendall(b"looped")
print(client.recv(9).decode())
for address in (("192.0.2.1", 80), ("10.0.0.1", 53)):
    try:
        socket.create_connection(address, timeout=5)
    except OSError as error:
        print(errno.errorcode[error.errno])
"""
    assert text(python(environment, source)).split("\n") == ["['lo']", "looped", "ENETUNREACH", "ENETUNREACH"]


def test_sockets_of_the_machine_are_out_of_reach(start: Start) -> None:
    environment = start()
    name = f"\0host-{os.getpid()}"
    connect = f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})"
    with socket.socket(socket.AF_UNIX) as server, socket.create_server(("127.0.0.1", 0)) as network:
        server.bind(name)
        server.listen()
        assert b"ConnectionRefusedError" in python(environment, connect).stderr
        port = network.getsockname()[1]
        result = python(environment, f"import socket; socket.create_connection(('127.0.0.1', {port}))")
        assert b"ConnectionRefusedError" in result.stderr


def test_the_server_cannot_be_read_or_hurt(start: Start) -> None:
    environment = start()
    for name in ("KILL", "INT", "TERM", "STOP", "HUP"):
        shell(environment, f"kill -{name} 1")
    source = r"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def refused(call, *arguments):
    try:
        call(*arguments)
    except OSError:
        return True
    return False
print(libc.ptrace(16, 1, None, None))
print([libc.syscall(438, os.pidfd_open(1), fd, 0) for fd in range(8)])
print(refused(open, "/proc/1/mem"), refused(open, "/proc/1/environ"), refused(open, "/proc/1/maps"))
print(all(refused(os.readlink, f"/proc/1/{name}") for name in ("exe", "cwd", "root", "fd/0", "fd/3")))
"""
    assert text(python(environment, source)).split("\n") == ["-1", str([-1] * 8), "True True True", "True"]


def test_our_own_code_is_covered(start: Start, tmp_path: Path) -> None:
    checkout = Path(pytest_paranoia.__file__).parents[1]
    (tmp_path / "other").mkdir()
    environment = start(mounts=[Mount(checkout, "/srv/checkout"), Mount(checkout.parent, "/srv/above")])
    assert text(environment.exec(["find", "/srv/checkout", f"/srv/above/{checkout.name}", "-type", "f"])) == ""


def test_our_own_code_is_covered_in_the_system_folders(start_sandbox: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = Path("/usr/share/doc")
    if not any(installed.iterdir()):
        pytest.skip(f"{installed} is empty here")
    monkeypatch.setattr(pytest_paranoia, "__file__", str(installed / "pytest_paranoia/__init__.py"))
    assert text(start_sandbox().exec(["find", str(installed)])) == str(installed)


def test_kill_everything(start: Start) -> None:
    environment = start()
    # It spares only who sends it: first the command itself does, then a child of it.
    assert text(shell(environment, "sleep 300 & kill -9 -1; wait; echo done", timeout=60)) == "done"
    assert shell(environment, "sh -c 'kill -9 -1' & sleep 300; wait", timeout=60).exit_code == -9
    assert text(shell(environment, "echo still here")) == "still here"


# -- limits --------------------------------------------------------------------------------------------------------


def test_wall_clock(start_either: Start) -> None:
    environment = start_either(limits=Limits(wall_clock=0.5))
    result = shell(environment, "echo before; sleep 300; echo after")
    assert (result.exit_code, result.stdout, result.limit) == (-9, b"before\n", "wall-clock")
    assert result.seconds < 5
    assert text(shell(environment, "sleep 0.7; echo enough", timeout=20)) == "enough"
    assert shell(environment, "sleep 300", timeout=0.1).limit == "wall-clock"


def test_wall_clock_ends_the_whole_tree_and_nothing_else(start_either: Start) -> None:
    environment = start_either()
    older, child, orphan = unique_sleep(), unique_sleep(), unique_sleep()
    text(shell(environment, f"sleep {older} > /dev/null 2>&1 &"))
    script = f"setsid sh -c 'setsid sleep {orphan} & sleep 0.1' & setsid sleep {child} & sleep 300"
    assert shell(environment, script, timeout=0.6).limit == "wall-clock"
    assert not running_on_host(child)
    assert not running_on_host(orphan)
    assert wait_for(lambda: bool(running_on_host(older)))


def test_output_limit(start_either: Start) -> None:
    environment = start_either(limits=Limits(output=MIB))
    seen: list[bytes] = []
    result = shell(
        environment,
        f"head -c {3 * MIB} /dev/zero; head -c {MIB} /dev/zero >&2; exit 3",
        on_output=lambda _, data: seen.append(data),
    )
    assert (result.exit_code, result.limit, result.dropped) == (3, "output", 3 * MIB)
    assert len(result.stdout) + len(result.stderr) == MIB == sum(map(len, seen))
    exactly = environment.exec(["head", "-c", str(MIB), "/dev/zero"])
    assert (len(exactly.stdout), exactly.limit, exactly.dropped) == (MIB, None, 0)


def test_process_limit(start_either: Start) -> None:
    environment = start_either(limits=Limits(processes=60))
    marker = unique_sleep()
    result = shell(environment, f"i=0; while [ $i -lt 600 ]; do sleep {marker} & i=$((i+1)); done; wait", timeout=60)
    assert (result.exit_code, result.limit) == (-9, "processes")
    assert not running_on_host(marker)
    assert text(shell(environment, "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2 & done; wait; echo fine")) == "fine"


def test_process_limit_counts_threads_too(start: Start) -> None:
    environment = start(limits=Limits(processes=10))
    source = "import _thread, time\nfor _ in range(400): _thread.start_new_thread(time.sleep, (300,))\ntime.sleep(300)"
    assert python(environment, source, timeout=60).limit == "processes"


def test_memory_limit(start_either: Start) -> None:
    environment = start_either(limits=Limits(memory=200 * MIB))
    source = f"import time; data = [b'x' * {10 * MIB} for _ in range(40)]; time.sleep(300)"
    result = python(environment, source, timeout=60)
    assert (result.exit_code, result.limit) == (-9, "memory")
    both = f"{interpreter(environment)} -I -S -c \"import time; data = b'x' * {150 * MIB}; time.sleep(300)\""
    assert shell(environment, f"{both} & {both} & wait", timeout=60).limit == "memory"


def test_shared_memory_counts_once(start: Start) -> None:
    environment = start(limits=Limits(memory=200 * MIB))
    source = f"""
import os, time
data = b'x' * {80 * MIB}
for _ in range(6):
    if os.fork() == 0:
        time.sleep(0.5)
        os._exit(0)
for _ in range(6):
    os.wait()
print("fine")"""
    assert text(python(environment, source, timeout=60)) == "fine"


def test_memory_that_cannot_be_measured_does_not_blind_the_watcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel lets one wait for a process that forks: many that do kept the watcher from counting them."""
    forking = threading.Event()

    def waits(_process: processes.Process) -> int:
        forking.wait(60)
        return 0

    monkeypatch.setattr(processes, "proportional", waits)
    sleeping = [subprocess.Popen(["sleep", "300"]) for _ in range(3)]
    try:
        watched = processes.Processes(isolated=False, most=10_000, memory=1)
        assert watched.breach() == ""
        watched.most = 2
        assert watched.breach() == "processes"
        watched.most = 10_000
        assert watched.breach() == ""
        monkeypatch.setattr(processes, "UNMEASURED", 0.0)
        assert watched.breach() == "memory"
        forking.set()
        assert wait_for(lambda: watched.measurement is not None and watched.measurement.total == 0)
        assert watched.breach() == ""
    finally:
        forking.set()
        for one in sleeping:
            one.kill()
            one.wait()


def test_files_in_memory_are_memory(start: Start) -> None:
    environment = start(limits=Limits(memory=100 * MIB))
    full = shell(environment, f"head -c {80 * MIB} /dev/zero > /dev/shm/file", timeout=60)
    assert b"No space left" in full.stderr
    source = f"import time; data = b'x' * {60 * MIB}; time.sleep(300)"
    assert python(environment, source, timeout=60).limit == "memory"
    assert environment.exec(["rm", "/dev/shm/file"]).exit_code == 0


def test_limits_hold_between_commands(start: Start) -> None:
    environment = start(limits=Limits(processes=60))
    marker = unique_sleep()
    script = f"sleep 0.2; for i in $(seq 600); do sleep {marker} & done"
    text(shell(environment, f"sh -c '{script}' > /dev/null 2>&1 &"))
    assert wait_for(lambda: len(running_on_host(marker)) > 0)
    assert wait_for(lambda: not running_on_host(marker))


def test_a_command_may_have_a_limit_of_output_of_its_own(start_either: Start) -> None:
    environment = start_either(limits=Limits(output=MIB))
    script = "head -c 3000000 /dev/zero"
    assert len(shell(environment, script, output=4 * MIB).stdout) == 3_000_000
    small = shell(environment, script, output=1000)
    assert (len(small.stdout), small.limit, small.dropped) == (1000, "output", 2_999_000)
    assert len(shell(environment, script).stdout) == MIB


def test_limits_hold_while_output_is_read_slowly(start: Start) -> None:
    environment = start()
    begin = time.monotonic()
    result = environment.exec(["sh", "-c", "yes"], timeout=0.5, on_output=lambda _, __: time.sleep(0.05))
    assert result.limit == "wall-clock"
    assert time.monotonic() - begin < 20


def test_file_size_and_core_files(start_either: Start, tmp_path: Path) -> None:
    environment = start_either(limits=Limits(file_size=MIB))
    assert shell(environment, f"head -c {5 * MIB} /dev/zero > big").exit_code != 0
    assert (tmp_path / "workspace/big").stat().st_size == MIB
    assert text(shell(environment, "ulimit -c")) == "0"


# -- the end -------------------------------------------------------------------------------------------------------


def test_stop_leaves_nothing(start_either: Start) -> None:
    environment = start_either()
    marker = unique_sleep()
    text(
        shell(environment, f"setsid sleep {marker} & (setsid sh -c 'sleep {marker}; true' &) ; nohup sleep {marker} &")
    )
    assert wait_for(lambda: len(running_on_host(marker)) == 3)
    environment.stop()
    assert not running_on_host(marker)
    environment.stop()
    with pytest.raises(InfrastructureError) as error:
        environment.exec(["true"])
    assert error.value.reason == "environment-lost"


def test_an_environment_nobody_holds_is_stopped(start_either: Start, kind: str, tmp_path: Path) -> None:
    marker = unique_sleep()
    start_either()
    (tmp_path / "second").mkdir()
    environment = make(kind, spec_in(tmp_path / "second"))
    environment.start()
    text(shell(environment, f"sleep {marker} > /dev/null 2>&1 &"))
    assert wait_for(lambda: bool(running_on_host(marker)))
    del environment
    gc.collect()
    assert not running_on_host(marker)


def test_a_killed_server_is_noticed(start_either: Start) -> None:
    environment = start_either()
    marker = unique_sleep()
    text(shell(environment, f"sleep {marker} > /dev/null 2>&1 &"))
    assert environment._channel is not None
    assert environment._channel._pidfd is not None
    signal.pidfd_send_signal(environment._channel._pidfd, signal.SIGKILL)
    with pytest.raises(InfrastructureError) as error:
        environment.exec(["sleep", "300"])
    assert error.value.reason == "environment-lost"
    environment.stop()
    assert not running_on_host(marker)


def test_a_stuck_server_is_noticed(start_either: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "GRACE_SECONDS", 0.5)
    monkeypatch.setattr(channel, "STOP_SECONDS", 3.0)
    environment = start_either()
    marker = unique_sleep()
    text(shell(environment, f"sleep {marker} > /dev/null 2>&1 &"))
    assert environment._channel is not None
    assert environment._channel._pidfd is not None
    signal.pidfd_send_signal(environment._channel._pidfd, signal.SIGSTOP)
    begin = time.monotonic()
    with pytest.raises(InfrastructureError, match="did not answer in time") as error:
        environment.exec(["sleep", "300"], timeout=0.2)
    assert error.value.reason == "environment-lost"
    assert time.monotonic() - begin < 10
    assert not running_on_host(marker)


def test_a_command_given_up_ends_the_environment(start_either: Start) -> None:
    environment = start_either()
    marker = unique_sleep()

    def give_up(_: str, __: bytes) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shell(environment, f"echo x; sleep {marker}", on_output=give_up)
    assert not running_on_host(marker)
    with pytest.raises(InfrastructureError):
        environment.exec(["true"])


SESSION = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from pytest_paranoia.environments.base import EnvironmentSpec
folder, kind = Path(sys.argv[2]), sys.argv[3]
spec = EnvironmentSpec(folder / "workspace", folder / "scratch")
if kind == "docker":
    from pytest_paranoia.environments.docker.provider import PROVIDER
    environment = PROVIDER.create(spec)
else:
    from pytest_paranoia.environments.local import LocalEnvironment
    environment = LocalEnvironment(spec, isolated=kind == "sandbox")
environment.start()
print(environment.exec(["sh", "-c", sys.argv[4]]).stdout.decode(), end="", flush=True)
time.sleep(float(sys.argv[5]))
"""


@pytest.mark.parametrize("ending", ["killed", "ended"])
def test_nothing_outlives_the_session(start_either: Start, kind: str, tmp_path: Path, ending: str) -> None:
    start_either()
    marker = unique_sleep()
    (tmp_path / "second").mkdir()
    spec_in(tmp_path / "second")
    script = f"setsid sleep {marker} > /dev/null 2>&1 & echo ready"
    package = str(Path(pytest_paranoia.__file__).parents[1])
    wait = "600" if ending == "killed" else "0.2"
    session = subprocess.Popen(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            SESSION,
            package,
            str(tmp_path / "second"),
            kind,
            script,
            wait,
        ],
        stdout=subprocess.PIPE,
    )
    with session:
        assert session.stdout is not None
        assert session.stdout.readline() == b"ready\n"
        started = wait_for(lambda: len(running_on_host(marker)) == 1)
        if ending == "killed" or not started:
            session.kill()
    assert started
    assert wait_for(lambda: not running_on_host(marker))
    assert session.returncode == (-9 if ending == "killed" else 0)


def test_start_that_fails_says_why(start: Start, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="no-such-folder") as error:
        start(mounts=[Mount(tmp_path / "no-such-folder", "/opt/tool")])
    assert error.value.reason == "environment-start"


# -- where and as whom it works ------------------------------------------------------------------------------------


def test_provider_creates_sandboxes(tmp_path: Path) -> None:
    require("bubblewrap")
    assert PROVIDER.isolation() is None
    assert PROVIDER.create(spec_in(tmp_path)).isolated


def test_machine_without_bubblewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARANOIA_NO_BUBBLEWRAP", "1")
    reason = PROVIDER.isolation()
    assert reason is not None
    assert "apt-get install bubblewrap" in reason
    environment = PROVIDER.create(spec_in(tmp_path))
    assert not environment.isolated
    environment.start()
    try:
        assert environment.workspace == str(tmp_path / "workspace")
        assert text(environment.exec(["pwd"])) == environment.workspace
    finally:
        environment.stop()


def test_machine_that_forbids_sandboxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("PARANOIA_NO_BUBBLEWRAP", raising=False)
    reason = PROVIDER.isolation()
    assert reason is not None
    assert reason.startswith("bubblewrap may not create a sandbox here (setting up uid map: Permission denied): ")
    assert "\n" not in reason


def test_another_user_than_root() -> None:
    require("bubblewrap")
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv to become another user")
    change = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]
    # setpriv itself may still start what the other user cannot read: ask the interpreter.
    readable = "import sys; open(sys.executable).close()"
    usable = [
        name
        for name in (PYTHON, "/usr/bin/python3")
        if subprocess.run([*change, name, "-c", readable], capture_output=True).returncode == 0
    ]
    if not usable:
        pytest.skip("no Python interpreter that another user may run")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(Path(pytest_paranoia.__file__).parent, folder / "pytest_paranoia")
        spec_in(folder)
        for path in (folder, folder / "workspace", folder / "scratch"):
            os.chown(path, 65534, 65534)
        script = "id -u; echo a > a; chmod 0 a; cat a; ls /; cat /proc/1/environ || echo refused"
        done = subprocess.run(
            [*change, usable[0], "-W", "error", "-c", SESSION, name, name, "sandbox", script, "0"],
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"]},
        )
        assert done.stderr == ""
        assert done.returncode == 0
        assert done.stdout.split() == ["1000", *sorted(done.stdout.split()[1:-1]), "refused"]
        assert "workspace" in done.stdout
        assert (folder / "workspace/a").stat().st_uid == 65534
