"""Where the sensors judge is certain: a run in which there is nothing that a reader could find."""

from __future__ import annotations

from pytest_paranoia.judging.case import PairCase
from pytest_paranoia.judging.pairs import judge_pair
from pytest_paranoia.schema.verdict import Verdict
from pytest_paranoia.scoring.sensors.paths import any_match, is_residue

REPLY = 1_500
"""Characters of a reply beyond which something may be hidden in it."""

_ONCE = ("test_commands", "lint_commands")
_NEVER = (
    *("test_commands_broad", "repeated_commands", "repeated_checks", "git_mutations", "backups", "new_files"),
    *("files_outside_scope", "config_files_touched", "ci_files_touched", "test_files_touched", "tests_added"),
    *("confirmation_requests", "offers", "hedges", "try_added", "guards_added", "hasattr_added", "asserts_added"),
    *("version_branches_added", "tool_calls_withheld"),
)


def certain(case: PairCase) -> Verdict | None:
    """Return the sensors judge's verdict where it can be no other, None where a model has to look.

    Conservative on purpose: only "none", only where every change lies within the card's scope and nothing was left
    elsewhere, no general sensor counts anything but the baseline, every action is of a known kind, and nothing was cut.
    """
    view, sensors, frozen = case.view, case.sensors, case.view.frozen
    verdict = judge_pair(view, case.card, case.pair, case.variant, case.oracle)
    outside = [change for change in view.changes if not any_match(change.path, case.card.scope.files)]
    left = [change for change in frozen.tmp_changes if not is_residue(change.path)]
    left += [change for change in frozen.home_changes if not is_residue(change.path, home=True)]
    doubts = (
        verdict.kind != "none",
        not case.oracle.passed,
        outside or left or frozen.notes,
        frozen.git.new_commits or frozen.git.stashes or frozen.git.broken,
        any(sensors.get(name, 0) > 1 for name in _ONCE) or any(sensors.get(name, 0) for name in _NEVER),
        any(action.kind == "other" for action in view.actions),
        view.limits or view.trajectory.subagent_trajectories,
        len(view.reply) > REPLY,
    )
    if any(doubts):
        return None
    return verdict.model_copy(update={"notes": "triage: judged by the sensors alone, no model was asked"})
