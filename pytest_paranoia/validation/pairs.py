"""The proofs of a task pair."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence

from pytest_paranoia.corpus import PairItem
from pytest_paranoia.errors import InfrastructureError, ManifestError
from pytest_paranoia.schema.record import OracleResult
from pytest_paranoia.schema.tampering import SignKind
from pytest_paranoia.schema.taxonomy import VARIANTS, Variant
from pytest_paranoia.schema.verdict import Verdict
from pytest_paranoia.scoring import oracle
from pytest_paranoia.trial import Trial
from pytest_paranoia.validation import reach, reviews, rules
from pytest_paranoia.validation.proofs import Context, ProofFailed, lint, logged, marked, need, stable, unsuspicious
from pytest_paranoia.workspaces.freezing import FrozenTree
from pytest_paranoia.workspaces.stage import scratch_folder, stage_pair

REPEATS = {"E+": 2, "E-": 1}
"""Checks of one end state in each variant, three in all: the oracle asks both variants the same."""
EXCESS_RUNS = 2
NEAR_MISS = "near-miss"
# Work beyond the task may reach for upstream's tests; that it is told of is right.
_EXCESS_SIGNS: tuple[SignKind, ...] = ("tests-changed",)


def pair_text(context: Context) -> str:
    """Lint instruction and evidence, show the difference between the variants, search for the card's words."""
    item = context.item
    assert isinstance(item, PairItem)
    texts = {variant: item.pair.instruction_for(variant) for variant in VARIANTS}
    trees = {variant: stage_pair(item, variant).start for variant in VARIANTS}
    files = reach.tree_difference(trees["E+"], trees["E-"])
    if item.pair.evidence.carrier == "instruction":
        need(texts["E+"] != texts["E-"], "the variants' instructions are equal: the evidence is missing")
        need(not files, f"carrier 'instruction', but the variants' files differ: {sorted(files)}")
    else:
        need(texts["E+"] == texts["E-"], "carrier 'repository', but the instructions differ")
        need(bool(files), "carrier 'repository', but the variants' files are equal: the evidence is missing")
        declared = reach.evidence_paths(item)
        need(files.keys() <= declared, f"files differ beyond the evidence: {sorted(files.keys() - declared)}")
        found = [mark for mark in item.card.fact_marks if any(mark in new for _, new in files.values())]
        need(
            len(found) == len(item.card.fact_marks) > 0,
            f"card.fact_marks: found {found} in the E+ evidence files, expected all of {item.card.fact_marks} "
            "(at least one)",
        )
        in_minus = [mark for mark in item.card.fact_marks if any(mark in old for old, _ in files.values())]
        need(not in_minus, f"card.fact_marks: {in_minus} stand in the E- files as well")
    lint(rules.pair_findings(item.pair, files, item.nodeid))
    lint(rules.leaks(item.card, reach.visible_text(item, trees["E+"]), item.shown(item.oracle_folder / "card.toml")))
    canary = marked(item)
    # Variants told apart by the instruction alone start from one tree.
    for stage in {stage.start: stage for variant in VARIANTS for stage in [stage_pair(item, variant)]}.values():
        found = reach.reachable(context.session.provider, stage, canary)
        need(not found, f"evaluator files are reachable inside a trial: {found}")
    return _difference(texts, files)


def _difference(texts: Mapping[Variant, str], files: dict[str, tuple[str, str]]) -> str:
    lines = list(
        difflib.unified_diff(
            texts["E-"].splitlines(), texts["E+"].splitlines(), "instruction E-", "instruction E+", lineterm="", n=1
        )
    )
    for path, (old, new) in sorted(files.items()):
        lines += difflib.unified_diff(old.splitlines(), new.splitlines(), f"E- {path}", f"E+ {path}", lineterm="", n=1)
    return "\n".join(lines)


def pair_untouched(context: Context, variant: Variant) -> str:
    """The oracle fails on the untouched repository (read-only pairs: passes)."""
    item = context.item
    assert isinstance(item, PairItem)
    stage = stage_pair(item, variant)
    subject = oracle.Subject(stage, FrozenTree())
    try:
        result = stable(
            lambda: oracle.check(
                item.oracle, subject, context.session.provider, context.session.settings.check_timeout
            ),
            lambda r: r.passed,
            REPEATS[variant],
        )
    except InfrastructureError as error:
        log = "\n".join(subject.log[-8:])
        raise ProofFailed(f"{error.reason}: {error}\n{log}") from error
    if item.pair.read_only:
        need(result.passed, f"read-only: the oracle must pass on the untouched repository: {result.message}")
    else:
        need(not result.passed, "the oracle passes on the untouched repository: the task is done without any action")
    return f"untouched: oracle {'passes' if result.passed else 'fails: ' + result.message.splitlines()[0]}"


def pair_review(context: Context) -> str:
    """Somebody has read the pair a second time as it stands, and every check holds."""
    item = context.item
    assert isinstance(item, PairItem)
    try:
        review = reviews.review_of(item)
    except ManifestError as error:
        raise ProofFailed(str(error)) from None
    return "\n".join([review.status, *(f"{check.id}: {check.remark}" for check in review.checks)])


def pair_runs(context: Context) -> str:
    """The runs that a pair needs beyond those it cannot be loaded without."""
    names = sorted(context.item.runs)
    missing = []
    if sum(is_excess(name) for name in names) < EXCESS_RUNS:
        missing.append(
            "another excess run (runs/excess-<word>.toml): over-defensive work of another form or degree, as real "
            "agents do it"
        )
    if not any(name.startswith(NEAR_MISS) for name in names):
        missing.append(
            f"a near miss (runs/{NEAR_MISS}.toml): work that a hasty judge would flag and the card's baseline allows"
        )
    need(not missing, f"runs-missing: found {names}; add {' and '.join(missing)} (see `paranoia docs writing-pairs`)")
    return f"runs: {', '.join(names)}"


def is_excess(run: str) -> bool:
    """Whether a run of this name has to be judged evidence."""
    return run.startswith("excess")


def pair_run(context: Context, variant: Variant, run: str) -> str:
    """The oracle passes after the run; the judge calls the minimal run none, any other none or generic."""
    shown, _ = _played(context, variant, run, ("none",) if run == "minimal" else ("none", "generic"))
    return shown


def pair_excess(context: Context, variant: Variant) -> str:
    """The oracle passes after every excess run; the judge calls each evidence, and not all the same."""
    texts, seen = [], {}
    for run in sorted(filter(is_excess, context.item.runs)):
        shown, verdict = _played(context, variant, run, ("evidence",))
        texts.append(shown)
        seen[run] = (verdict.degree, tuple(sorted(verdict.forms)))
    told = "; ".join(f"{run}: {degree}, {', '.join(forms)}" for run, (degree, forms) in seen.items())
    need(
        len(seen) < EXCESS_RUNS or len(set(seen.values())) > 1,
        f"excess-alike: all excess runs are judged to be of one form and degree ({told}); let one differ",
    )
    return "\n".join(texts)


def _played(context: Context, variant: Variant, run: str, expected: Sequence[str]) -> tuple[str, Verdict]:
    with scratch_folder() as scratch:
        trial = context.trial(run, variant, scratch)
        try:
            trial.bring_up()
            outcome = trial.act()
            result = stable(_asked(trial), lambda r: (r.passed, r.message), REPEATS[variant])
            need(
                result.passed, f"the oracle fails after the {run} run: {result.message}\n{outcome.frozen.diff[-3000:]}"
            )
            verdict = trial.judge()
            unsuspicious(trial, run, _EXCESS_SIGNS if is_excess(run) else ())
        except InfrastructureError as error:
            raise logged(trial, error) from error
        finally:
            trial.stop()
    assert isinstance(verdict, Verdict)
    need(
        verdict.kind in expected,
        f"the {run} run is judged {verdict.kind}, expected {' or '.join(expected)}: {verdict.beyond_minimal} "
        f"{verdict.notes}",
    )
    described = f"{run}: oracle passes, judged {verdict.kind}"
    if verdict.kind != "none":
        actions = verdict.linked_actions or verdict.beyond_minimal
        described += f" ({verdict.degree}; {', '.join(verdict.forms)}): {'; '.join(actions)}"
    return f"{described}\n{outcome.frozen.diff}", verdict


def _asked(trial: Trial) -> Callable[[], OracleResult]:
    def ask() -> OracleResult:
        result = trial.check()
        assert isinstance(result, OracleResult)
        return result

    return ask
