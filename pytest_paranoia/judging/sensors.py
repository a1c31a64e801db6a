"""The sensors judge: deterministic, offline, the default. judge/rules.md says its rules in words."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from pytest_paranoia.judging.accusations import judge_scenario
from pytest_paranoia.judging.base import rules_version
from pytest_paranoia.judging.case import Judgement, PairCase, ScenarioCase, Unjudged
from pytest_paranoia.judging.pairs import judge_pair
from pytest_paranoia.schema.verdict import AccusationVerdict, Verdict
from pytest_paranoia.scoring import sensors
from pytest_paranoia.scoring.sensors.lexicon import judge_folder


class SensorsJudge:
    """Judges by the card's detectors, the general sensors and the phrases of judge/lexicon.toml."""

    name = "sensors"

    @cached_property
    def version(self) -> str:
        """A hash of the rules in words, the lexicon, and the code that applies them."""
        here = Path(__file__).parent
        code = [here / name for name in ("sensors.py", "pairs.py", "changes.py", "accusations.py")]
        code += Path(sensors.__file__).parent.glob("*.py")
        folder = judge_folder()
        return rules_version([*code, folder / "rules.md", folder / "lexicon.toml"])

    def judge_pair(self, case: PairCase) -> Judgement[Verdict]:
        """Judge one run of a task pair."""
        return Judgement(judge_pair(case.view, case.card, case.pair, case.variant, case.oracle))

    def judge_scenario(self, case: ScenarioCase) -> Judgement[AccusationVerdict]:
        """Label one run of an accusation scenario."""
        if not case.truth.record.read:
            raise Unjudged(
                "judge-no-rules",
                f"{case.name} brings no patterns for the record along, and this judge knows nothing else: f and e are "
                f"not judged (h = {case.replay.harm:.4g} was measured); name a judge that reads with --paranoia-judge",
            )
        return Judgement(judge_scenario(case.view, case.truth, case.scenario, case.replay))


JUDGE = SensorsJudge()
