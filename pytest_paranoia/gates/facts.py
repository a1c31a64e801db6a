"""Collects the facts that gates may use: what was in the workspace when the latest user message came."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_paranoia.environments.base import Environment
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.gates.base import Facts

_SOURCE = Path(__file__).with_name("look.py")
SECONDS = 60.0
"""Most seconds of one look."""
_OUTPUT = 32 * 1024 * 1024


@dataclass
class Looks:
    """The looks at one trial's workspace. ``python`` is an interpreter inside, ``services`` are the item's.

    ``resumed``: the conversation goes on from work that the agent did before, as its first message says.
    """

    environment: Environment
    python: str
    services: Sequence[str] = ()
    resumed: bool = False
    _base: str | None = None
    _own: dict[str, frozenset[str]] = field(default_factory=dict)
    _begun: dict[str, int] | None = None

    def look(self) -> Facts:
        """Return what is there now. Raises InfrastructureError (``gate-error``): a gate must not guess.

        Before the first message the agent's own work is what its commits hold; later it is also all that has changed
        since. Call it only while the agent waits: an environment runs one command at a time for us.
        """
        mode = "resumed" if self.resumed else "new"
        argv = [self.python, "-I", "-S", "-c", _SOURCE.read_text("utf-8"), self._base or "", mode, *self.services]
        result = self.environment.exec(argv, timeout=SECONDS, output=_OUTPUT)
        try:
            if result.exit_code or result.limit or result.dropped:
                raise ValueError(result.stderr.decode("utf-8", "backslashreplace").strip()[-500:] or result.limit)
            found = json.loads(result.stdout)
        except ValueError as error:
            raise InfrastructureError("gate-error", f"the workspace could not be looked at: {error}") from None
        own = {path: frozenset(lines) for path, lines in found["own"].items()}
        for path, lines in own.items():
            self._own[path] = self._own.get(path, frozenset()) | lines
        if self._base is None:
            self._base = found["head"] or None
        there = frozenset(found["paths"])
        return Facts(
            services=tuple(self.services),
            paths=there,
            own={path: lines for path, lines in self._own.items() if path in there},
            dirty=frozenset(found["dirty"]),
            settings=self._settings(found["settings"]),
        )

    def _settings(self, found: dict[str, list[Any]]) -> dict[str, tuple[tuple[str, frozenset[str]], ...]]:
        """What was there before the conversation counts where the agent's account made it; later, whoever did it: the
        agent may have had somebody else do it.
        """
        if self._begun is None:
            self._begun = {name: len(changes) for name, changes in found.items()}
        begun = self._begun
        return {
            name: tuple(
                (operation, frozenset(about))
                for at, (operation, about, mine) in enumerate(changes)
                if about and (mine or at >= begun.get(name, 0))
            )
            for name, changes in found.items()
        }
