"""Good and bad judges on runs of the real items: a perfect one agrees with the sensors, the others are caught.

Of all items a few a day, another day others; ``PARANOIA_JUDGE_CORPUS`` names other parts (``all``, or K/N), or the
folder of a run directory whose archive is judged in place of new runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from judge_scripts import READ, Judging, bench, perfect, submit, with_quote
from model_script import say, turn

from pytest_paranoia import corpus
from pytest_paranoia.environments.local import PROVIDER
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.judging import archive
from pytest_paranoia.judging.base import judge_case
from pytest_paranoia.judging.case import Case, PairCase, Unjudged
from pytest_paranoia.judging.sensors import JUDGE
from pytest_paranoia.store import RunDirectory
from requirements import require

VARIABLE, PARTS = "PARANOIA_JUDGE_CORPUS", 40


def _run(folder: Path) -> RunDirectory:
    chosen = os.environ.get(VARIABLE, "")
    if chosen and Path(chosen).is_dir():
        return RunDirectory.open(Path(chosen))
    part = chosen or f"{int(time.time() // 86_400) % PARTS + 1}/{PARTS}"
    options = [] if part == "all" else [f"--paranoia-part={part}"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:hypothesispytest", "-n2", "--paranoia", *options]
    done = subprocess.run(
        [*command, "--model=minimal,paranoid", "--paranoia-run=reference"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return RunDirectory.open(folder / "reports" / "reference")


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    require("bubblewrap")
    folder = tmp_path_factory.mktemp("corpus")
    run = _run(folder)
    shelf = archive.Shelf([corpus.builtin_root()], PROVIDER)
    found, left = [], []
    for number, record in enumerate(archive.judgeable(run.records().records)):
        scratch = folder / f"scratch-{number}"
        scratch.mkdir()
        try:
            found.append(shelf.case(run.path, record, scratch))
        except InfrastructureError as error:
            left.append(str(error))
    # Of an older run some items may have changed since; of one made here none.
    assert all("has changed since" in line for line in left), left
    assert found
    print(f"{len(found)} runs of {run.path.name} judged, {len(left)} of changed items left out")
    return found


@pytest.fixture(scope="module")
def judging() -> Iterator[Judging]:
    with bench() as found:
        yield found


DECISION = {"kind", "degree", "forms", "over_defence", "false_confession", "recognition_failure", "first_change"}


def test_a_perfect_judge_agrees_on_all(judging: Judging, archived: list[Case]) -> None:
    for case in archived:
        judging.answers(case, [READ, submit(perfect(case))])
        verdict = judging.judge(case).verdict
        own = judge_case(JUDGE, case).verdict
        assert case.means is not None
        assert verdict.model_dump(include=DECISION) == own.model_dump(include=DECISION), case.means.trial
        for evidence in verdict.evidence:
            assert evidence.quote in str(case.view.source_text(evidence.source)), case.means.trial


def bad_judges(case: Case) -> dict[str, Sequence[Any]]:
    """Scripts of judges that must not be believed, by the reason that the run is unscored for."""
    good = perfect(case)
    quoting = with_quote(good, "reply", "words that nobody ever said in this run")
    if isinstance(case, PairCase):
        torn = {**good, "kind": "evidence", "degree": "none"}
    else:
        torn = {**good, "first_change": "step 1, call 77", "change_step": 1}
    return {
        "judge-quote": [submit(quoting)] * 2,
        "judge-inconsistent": [submit(torn)] * 2,
        "judge-output": [say("The evaluation is over; the verdict is none.")] * 2,
        "judge-truncated": [turn(READ), say('{"over_defence": fal', stop="max_tokens")],
        "judge-refused": [say("", stop="refusal")],
        "judge-loop": [READ] * 9,
    }


@pytest.mark.parametrize(
    "reason",
    ["judge-quote", "judge-inconsistent", "judge-output", "judge-truncated", "judge-refused", "judge-loop"],
)
def test_bad_judges_are_caught_on_all(judging: Judging, archived: list[Case], reason: str) -> None:
    for case in archived:
        judging.answers(case, bad_judges(case)[reason])
        with pytest.raises(Unjudged) as caught:
            judging.judge(case)
        assert caught.value.reason == reason, str(caught.value)
