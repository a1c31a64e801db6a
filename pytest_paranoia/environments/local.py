"""The ``local`` environment: one bubblewrap sandbox per trial, with one server in it that runs its commands.

Inside, a trial sees its workspace at ``/workspace``, its own HOME and TMP, a read-only system, a loopback device and
nothing else of the machine; it always runs as the user ``agent`` without any capability, also where root started it,
so a file that may not be read cannot be read. Where the machine has no bubblewrap the same server runs commands
directly on the host, for agents that need no guarding (``isolated`` is then False).

Start an environment in a thread that outlives it: the sandbox dies with the thread that started it. The names of
the host folders behind workspace and scratch can be read inside (``/proc/self/mountinfo``): give them neutral ones. A
mount whose target lies in the workspace leaves an empty folder there. Needs Linux 5.3 and bubblewrap 0.8.
"""

from __future__ import annotations

from pytest_paranoia.environments import bubblewrap, ulimits
from pytest_paranoia.environments.base import EnvironmentProvider, EnvironmentSpec
from pytest_paranoia.environments.channel import Channel
from pytest_paranoia.environments.launched import LaunchedChannel
from pytest_paranoia.environments.served import ServedEnvironment


class LocalEnvironment(ServedEnvironment):
    """One trial's place on this machine; see the module's text and ``base.Environment``."""

    name = "local"

    def _connect(self) -> Channel:
        spec = self._spec
        prefix: list[str] = []
        if self.isolated:
            bubblewrap.prepare(spec.scratch)
            prefix = bubblewrap.arguments(bubblewrap.find() or "bwrap", spec)
        return LaunchedChannel(prefix, bubblewrap.interpreter(), spec.limits, mark=f"HOME={self._home}")


class LocalProvider(EnvironmentProvider):
    """Provider of ``--paranoia-environment local``."""

    name = "local"

    def isolation(self) -> str | None:
        """Return None where sandboxes can be built, else the reason with the remedy."""
        return bubblewrap.unavailable()

    def unusable(self) -> str | None:
        """Return None, or which resource limit of this process trials would inherit and fail by."""
        return ulimits.too_low()

    def create(self, spec: EnvironmentSpec) -> LocalEnvironment:
        """Return an environment that is not started yet; not isolated where ``isolation`` says why."""
        return LocalEnvironment(spec, isolated=self.isolation() is None)


PROVIDER = LocalProvider()
