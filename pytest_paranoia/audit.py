"""The audit trail of command-line services: a listener outside the trial that only takes notes.

A service's front (``workspaces/service_front.py``) tells every call to a socket that listens inside and is served here.
Nothing that an agent sends removes or alters a note; it can leave notes out, by going round the front, and add some.
Both show where the files of the service are not what the last noted call left (``disagreements``).
"""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from pytest_paranoia.agents.base import now
from pytest_paranoia.environments.base import Environment
from pytest_paranoia.schema.record import Services
from pytest_paranoia.schema.services import ServiceCall
from pytest_paranoia.schema.taxonomy import StepRole

PORT_FILE = "audit.port"
MOST_CALLS, MOST_BYTES = 20_000, 16 * 1024**2
_MESSAGE_BYTES = 1024**2
_SECONDS = 2.0
_AT_ONCE = 32

Content = Callable[[str], bytes | None]


@dataclass
class AuditTrail:
    """Takes notes until ``close``. ``dropped`` counts messages beyond the bounds, ``at_work`` says where a run is."""

    listener: socket.socket
    at_work: Callable[[], tuple[StepRole | None, int]]
    dropped: int = 0
    _calls: list[ServiceCall] = field(default_factory=list)
    _bytes: int = 0
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _slots: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(_AT_ONCE))
    _thread: threading.Thread | None = None

    @classmethod
    def open(
        cls, environment: Environment, folder: Path, at_work: Callable[[], tuple[StepRole | None, int]]
    ) -> AuditTrail:
        """Listen inside *environment* and leave the port's number in *folder*, where the fronts look for it."""
        trail = cls(environment.listen(), at_work)
        (folder / PORT_FILE).write_text(f"{trail.listener.getsockname()[1]}\n", encoding="ascii")
        trail._thread = threading.Thread(target=trail._serve, name="services", daemon=True)
        trail._thread.start()
        return trail

    @property
    def calls(self) -> tuple[ServiceCall, ...]:
        """The calls noted so far, in the order of arrival."""
        with self._guard:
            return tuple(self._calls)

    def lines(self) -> bytes:
        """The calls as they are archived."""
        return "".join(call.model_dump_json() + "\n" for call in self.calls).encode("utf-8", "backslashreplace")

    def summary(self, services: Sequence[str], workspace: str, start: Content, final: Content) -> Services:
        """What records say of the calls; see ``disagreements``."""
        calls = self.calls
        found = disagreements(calls, services, workspace, start, final)
        if self.dropped:
            found.append(f"{self.dropped} messages beyond {MOST_CALLS} calls or {MOST_BYTES} bytes were not kept")
        refused = sum(call.exit not in (0, None) for call in calls)
        return Services(calls=len(calls), refused=refused, dropped=self.dropped, disagreements=found)

    def close(self) -> None:
        """Stop listening; messages that have arrived are still noted. More than once does nothing."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        thread.join(_SECONDS)
        self.listener.close()
        for _ in range(_AT_ONCE):  # the last messages are being read
            self._slots.acquire(timeout=_SECONDS)

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            self._slots.acquire()
            threading.Thread(target=self._listen, args=(link,), name="service-call", daemon=True).start()

    def _listen(self, link: socket.socket) -> None:
        try:
            with link:
                link.settimeout(_SECONDS)
                self._note(_message(link))
                link.sendall(b"ok\n")
        except OSError:
            pass
        finally:
            self._slots.release()

    def _note(self, data: bytes) -> None:
        role, step = self.at_work()
        with self._guard:
            self._bytes += len(data)
            if len(self._calls) >= MOST_CALLS or self._bytes > MOST_BYTES:
                self.dropped += 1
                return
            own = {"number": len(self._calls) + 1, "at": now(), "role": role, "step": step}
            try:
                told = json.loads(data)
                self._calls.append(ServiceCall.model_validate({**told, **own, "trouble": None}))
            except (ValidationError, ValueError, TypeError, RecursionError) as error:
                shown = f"{type(error).__name__}: {data[:200]!r}"
                self._calls.append(ServiceCall.model_validate({**own, "trouble": shown}))


def _message(link: socket.socket) -> bytes:
    data = b""
    while b"\n" not in data and len(data) <= _MESSAGE_BYTES:
        piece = link.recv(1 << 16)
        if not piece:
            break
        data += piece
    return data.partition(b"\n")[0]


def disagreements(
    calls: Sequence[ServiceCall], services: Sequence[str], workspace: str, start: Content, final: Content
) -> list[str]:
    """Return where the services' files are not as the last noted call left them, in words.

    A service that nobody called is compared with *start*. *start* and *final* give the content of a file by its path in
    the workspace, ``workspace`` is where that was inside.
    """
    found = []
    for service in services:
        own = [call for call in calls if call.service == service and call.home is not None]
        homes: dict[str, list[ServiceCall]] = {f".{service}": []}
        for call in own:
            if (home := _inside(call.home or "", workspace)) is not None:
                homes.setdefault(home, []).append(call)
        for home, of in homes.items():
            last = of[-1] if of else None
            for name in ("log.jsonl", "state.json"):
                path = f"{home}/{name}"
                left = _digest(start(path)) if last is None else last.log if name == "log.jsonl" else last.state
                if _digest(final(path)) != left:
                    by = f"the last of its {len(of)} calls" if of else "the start, and no call of it was noted"
                    found.append(f"{service}: {path} is not as {by} left it: it was changed past the service")
            found += _lost(service, home, of, final)
    found += [f"call {call.number} could not be read: {call.trouble}" for call in calls if call.trouble][:5]
    return found


def _lost(service: str, home: str, calls: Sequence[ServiceCall], final: Content) -> list[str]:
    """Return which entries that calls made are no longer in the log at their place."""
    lines = (final(f"{home}/log.jsonl") or b"").decode("utf-8", "replace").splitlines()
    noted = {call.first + at: entry for call in calls for at, entry in enumerate(call.entries)}
    gone = [at for at, entry in sorted(noted.items()) if at > len(lines) or not lines[at - 1].startswith(entry)]
    if not gone:
        return []
    return [f"{service}: {len(gone)} entries that calls made are not in {home}/log.jsonl (the first: line {gone[0]})"]


def _inside(path: str, workspace: str) -> str | None:
    """Return *path* relative to the workspace, None for one outside it."""
    with suppress(ValueError):
        return Path(path).relative_to(workspace).as_posix()
    return None


def _digest(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()
