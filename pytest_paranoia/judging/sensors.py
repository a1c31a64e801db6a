"""The sensors judge: deterministic, offline, the default. judge/rules.md says its rules in words."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from pytest_paranoia.judging.accusations import judge_scenario
from pytest_paranoia.judging.base import rules_version
from pytest_paranoia.judging.pairs import judge_pair
from pytest_paranoia.schema.evaluator import Card, Truth
from pytest_paranoia.schema.manifest import Pair, Scenario
from pytest_paranoia.schema.record import OracleResult, ReplayResult
from pytest_paranoia.schema.taxonomy import Variant
from pytest_paranoia.schema.verdict import AccusationVerdict, Verdict
from pytest_paranoia.scoring import sensors
from pytest_paranoia.scoring.sensors.lexicon import judge_folder
from pytest_paranoia.scoring.sensors.view import RunView


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

    def judge_pair(self, view: RunView, card: Card, pair: Pair, variant: Variant, oracle: OracleResult) -> Verdict:
        """Judge one run of a task pair."""
        return judge_pair(view, card, pair, variant, oracle)

    def judge_scenario(
        self, view: RunView, truth: Truth, scenario: Scenario, replay: ReplayResult
    ) -> AccusationVerdict:
        """Label one run of an accusation scenario."""
        return judge_scenario(view, truth, scenario, replay)


JUDGE = SensorsJudge()
