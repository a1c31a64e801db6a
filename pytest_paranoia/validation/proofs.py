"""What all proofs share. A proof returns what it showed, as text, or raises ProofFailed with what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pytest_paranoia import canaries, registry
from pytest_paranoia.corpus import ItemRoot, PairItem, ScenarioItem
from pytest_paranoia.errors import InfrastructureError, ParanoiaError
from pytest_paranoia.schema.record import OracleResult, ReplayResult
from pytest_paranoia.schema.tampering import SignKind
from pytest_paranoia.schema.taxonomy import Variant
from pytest_paranoia.trial import Trial
from pytest_paranoia.trialspec import TrialSpec
from pytest_paranoia.validation import rules

if TYPE_CHECKING:
    from pytest_paranoia.session import Paranoia

ORACLE_BOUND = 20.0
JUDGE = "sensors"

Result = TypeVar("Result", OracleResult, ReplayResult)


class ProofFailed(ParanoiaError, AssertionError):
    """An item does not hold what it must; the message says which part and why."""


@dataclass(frozen=True)
class Context:
    """The item under proof and the session that asks."""

    item: PairItem | ScenarioItem
    session: Paranoia

    def trial(self, run: str, variant: Variant | None, scratch: Path) -> Trial:
        """Return a trial in which the scripted agent plays *run*."""
        agent = registry.scripted(run)
        return Trial(
            spec=TrialSpec(self.item, variant, agent, 1, f"proof-{run}"),
            nodeid=self.item.nodeid,
            provider=self.session.provider,
            environment_name=self.session.settings.environment,
            judged_by=registry.judge(JUDGE),
            scratch=scratch,
            timeout=self.session.settings.timeout,
            check_timeout=self.session.settings.check_timeout,
        )


def need(holds: bool, message: str) -> None:
    """Fail the proof with *message* unless *holds*."""
    if not holds:
        raise ProofFailed(message)


def lint(findings: Sequence[rules.Finding]) -> None:
    """Fail the proof on errors among *findings*; warnings are printed."""
    errors = [finding for finding in findings if finding.severity == "error"]
    shown = "\n".join(f"{finding.code} {finding.where}: {finding.message} [{finding.severity}]" for finding in findings)
    need(not errors, shown)
    if shown:
        print(shown)


def stable(ask: Callable[[], Result], same: Callable[[Result], object], times: int) -> Result:
    """Ask so many *times*; a flaky or slow check fails the proof."""
    results = [ask() for _ in range(times)]
    answers = [same(result) for result in results]
    need(len({str(answer) for answer in answers}) == 1, f"flaky: {times} runs of the check gave {answers}")
    slowest = max(result.seconds for result in results)
    need(slowest < ORACLE_BOUND, f"slow: the check took {slowest:.1f} s, the bound is {ORACLE_BOUND:g} s")
    return results[0]


def logged(trial: Trial, error: InfrastructureError) -> ProofFailed:
    """Return the failure that *error* makes of a proof, with the end of the trial's log."""
    log = "\n".join(trial.log[-12:])
    return ProofFailed(f"{error.reason}: {error}" + (f"\n{log}" if log else ""))


def unsuspicious(trial: Trial, run: str, tolerated: Collection[SignKind] = ()) -> None:
    """Fail the proof where a reference run shows signs of tampering: honest work must never be reported as such."""
    signs = "; ".join(str(sign) for sign in trial.tampering() or () if sign.kind not in tolerated)
    need(
        not signs,
        f"tampering: the {run} run shows signs of tampering: {signs}. Let it do its work in another way, or name what "
        "it changes in the card's scope.files (see `paranoia docs security`)",
    )


def marked(item: PairItem | ScenarioItem) -> str | None:
    """Return the canary of the item's root, having seen that the item's evaluator-only files hold it."""
    canary = canaries.declared(item.root)
    if canary is not None:
        bare = [item.shown(path) for path in canaries.without(item.oracle_folder, canary)]
        need(not bare, f"canary-missing: these evaluator-only files do not hold {canary!r}: {bare}")
        shown = [item.shown(path) for path in canaries.holding(item.folder, canary)]
        need(not shown, f"canary-visible: an agent can read these files, and they hold {canary!r}: {shown}")
    return canary


def root_canary(root: ItemRoot, canary: str) -> str:
    """The files of a root that belong to no item: the evaluator's hold the canary, an agent's do not."""
    bare = [root.nodeid(path) for path in canaries.unclaimed_without(root, canary)]
    need(not bare, f"canary-missing: these evaluator-only files do not hold {canary!r}: {bare}")
    shown = [root.nodeid(path) for path in canaries.holding(root.tasks, canary)]
    need(not shown, f"canary-visible: an agent can read these files, and they hold {canary!r}: {shown}")
    return f"canary: {canary}"
