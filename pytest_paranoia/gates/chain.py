"""Several gates in one trial, and gates that only look on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pytest_paranoia.gates.base import Decision, Gate, GateView, ToolRequest


@dataclass(frozen=True)
class GateChoice:
    """A gate named on the command line: ``make`` gives one for a trial. A ``dry`` one withholds nothing and logs."""

    name: str
    version: str
    make: Callable[[], Gate]
    dry: bool = False

    @property
    def shown(self) -> str:
        """Name, version and mode, as manifests write it."""
        return f"{self.name} {self.version}{' dry' if self.dry else ''}"


class Chain:
    """Asks gates in order; the first denial wins, and later ones are not asked about that call."""

    def __init__(self, choices: Sequence[GateChoice]) -> None:
        self._gates = [(choice, choice.make()) for choice in choices]
        self.name = "+".join(choice.name for choice in choices)
        self.version = "+".join(choice.version for choice in choices)

    def decide(self, request: ToolRequest, view: GateView) -> Decision:
        """Return the first denial, else a yes with what the gates noted."""
        notes: list[tuple[str, Decision]] = []
        for choice, gate in self._gates:
            decision = gate.decide(request, view)
            if not isinstance(decision, Decision):
                raise TypeError(f"decide of gate {choice.name!r} returned {decision!r}, expected a Decision")
            if not decision.allow and not choice.dry:
                return replace(decision, by=choice.name)
            if not decision.allow:
                # A dry gate goes on as if it had let the call pass, since that is what happened.
                told = getattr(gate, "passed", None)
                if callable(told):
                    told(request)
                decision = Decision(True, noted=decision.noted or decision.reason, would=True)
            if decision.noted:
                notes.append((choice.name, decision))
        if not notes:
            return Decision(True)
        return Decision(
            True,
            noted="; ".join(
                f"{name}: {decision.noted}" if len(notes) > 1 else decision.noted for name, decision in notes
            ),
            would=any(decision.would for _, decision in notes),
            by="+".join(name for name, _ in notes),
        )
