"""The same trial gives the same frozen result, and the same answer of its oracle, in ``local`` and in ``docker``.

Of all items a sixteenth a day, another day another; ``PARANOIA_SAME_RESULT`` names other parts: ``all``, or K/N.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
from typing import Any

import pytest

from pytest_paranoia import corpus, registry
from pytest_paranoia.corpus import PairItem, ScenarioItem
from pytest_paranoia.environments.docker.provider import PROVIDER as DOCKER
from pytest_paranoia.environments.local import PROVIDER as LOCAL
from pytest_paranoia.schema.record import OracleResult
from pytest_paranoia.schema.taxonomy import Variant
from pytest_paranoia.trial import Trial
from pytest_paranoia.trialspec import TrialSpec
from pytest_paranoia.workspaces.freezing import CACHE_NOTE
from pytest_paranoia.workspaces.stage import scratch_folder
from requirements import require

VARIABLE = "PARANOIA_SAME_RESULT"
ROOT = corpus.builtin_root()
RANDOM = re.compile(r"(?<=^tmp[._])\w{8,10}")
"""What mktemp makes up."""


def chosen() -> list[str]:
    """Manifests of the items to play, mixed as ``--paranoia-part`` mixes them."""
    names = sorted(path.parent.relative_to(ROOT.folder).as_posix() for path in corpus.manifests(ROOT))
    part = os.environ.get(VARIABLE, "")
    if part == "all":
        return names
    if match := re.fullmatch(r"(\d+)/(\d+)", part):
        number, count = map(int, match.groups())
    else:
        assert not part, f"{VARIABLE}: {part!r} given, expected all or K/N"
        number, count = datetime.datetime.now(datetime.UTC).timetuple().tm_yday % 16 + 1, 16
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[number - 1 :: count]


@pytest.fixture(autouse=True)
def _both() -> None:
    require("bubblewrap")
    require("docker")


def told(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out caches: what is in them hangs on when a program in the background was ended."""
    return [one for one in changes if one["note"] != CACHE_NOTE]


def played(item: PairItem | ScenarioItem, variant: Variant | None, run: str, environment: str) -> dict[str, Any]:
    """What a trial left, and what its check says of it."""
    with scratch_folder() as scratch:
        trial = Trial(
            spec=TrialSpec(item, variant, registry.scripted(run), 1, run),
            nodeid=item.name,
            provider=DOCKER if environment == "docker" else LOCAL,
            environment_name=environment,
            judged_by=registry.judge("sensors"),
            scratch=scratch,
        )
        try:
            trial.bring_up()
            frozen = trial.act().frozen.frozen.model_dump(mode="json")
            result = trial.check()
        finally:
            trial.stop()
    # A commit holds the time of day, and what git stores is named after its content.
    frozen["changes"] = [one for one in told(frozen["changes"]) if not one["path"].startswith(".git/")]
    # Nothing in there is scored: a log holds times of day, what a tool remembers holds the interpreter's path.
    for part in ("tmp_changes", "home_changes"):
        frozen[part] = sorted((RANDOM.sub("*", one["path"]), one["kind"]) for one in told(frozen[part]))
    print(f"{environment}: {getattr(result, 'message', '')}")
    checked = result.passed if isinstance(result, OracleResult) else [(event.name, event.ok) for event in result.events]
    return {"frozen": frozen, "checked": checked, "limits": trial.limits}


@pytest.mark.parametrize("folder", chosen())
def test_same_result(folder: str) -> None:
    [path] = [path for path in corpus.manifests(ROOT) if path.parent.relative_to(ROOT.folder).as_posix() == folder]
    item = corpus.load_item(ROOT, path)
    cases: list[tuple[Variant | None, str]] = [(None, "minimal"), (None, "paranoid")]
    if isinstance(item, PairItem):
        cases = [("E+", "minimal"), ("E-", "paranoid")]
        if os.environ.get(VARIABLE):
            cases += [("E-", "minimal"), ("E+", "paranoid")]
    for variant, run in cases:
        assert played(item, variant, run, "docker") == played(item, variant, run, "local"), (variant, run)
