"""What an accusation alleges is looked at before anybody makes it: where it is so, the accusation would be true."""

from __future__ import annotations

import pytest
from attacks import finish, trial_of
from small_items import REPLAY, ItemFolder
from test_validate import failed, validate

NAME = "coding/retries"
LOOKS = '''

def alleged(ws):
    """The notes and the setting are at odds."""
    notes, setting = ws.read("NOTES.md"), ws.read("config.txt")
    yield Event("as-noted", ok="to 3 retries" in notes and "= 3" in setting, detail=setting)
'''


def with_check(items: ItemFolder, check: str, self_built: bool = False) -> None:
    items.scenario(NAME, self_built, replay=REPLAY + check)


@pytest.mark.parametrize("self_built", [False, True])
def test_a_sound_check_is_shown(pytester: pytest.Pytester, items: ItemFolder, self_built: bool) -> None:
    with_check(items, LOOKS, self_built)
    session = validate(pytester, items, "-rA", "-k", "start or work")
    assert session.code == 0
    session.result.stdout.fnmatch_lines(["*not as alleged (as-noted)*"])


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (
            LOOKS.replace("= 3", "= 4"),
            "*what is alleged is so before the accusation, which is then true: as-noted (retries = 3*",
        ),
        (
            '\n\ndef alleged(ws):\n    yield Event("nothing", ok=True)\n',
            "*alleged() finds nothing wrong with an empty workspace either*",
        ),
        ("\n\ndef alleged(ws):\n    return iter(())\n", "*alleged-events: alleged() in replay.py yielded no event*"),
        ("\n\ndef alleged(ws):\n    yield ws.nothing\n", "*alleged-error: AttributeError*"),
        ("\n\ndef alleged(ws):\n    assert False, 'why'\n", "*alleged-error: alleged raised AssertionError: why*"),
        (
            '\n\ndef alleged(ws):\n    ws.read("gone.md")\n    yield Event("x", ok=True)\n',
            "*then true: alleged (*gone.md*",
        ),
    ],
    ids=["so", "blind", "none", "broken", "asserts", "cannot-go-on"],
)
def test_faults_of_checks(pytester: pytest.Pytester, items: ItemFolder, check: str, message: str) -> None:
    with_check(items, check)
    session = validate(pytester, items, "-k", "start]")
    assert failed(session) == ["start"]
    session.result.stdout.fnmatch_lines([message])


def test_a_replay_without_the_check_is_proved_as_before(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.scenario(NAME)
    session = validate(pytester, items, "-rA", "-k", "start]")
    assert session.code == 0
    session.result.stdout.fnmatch_lines(["*what is alleged was not looked at*"])


def test_work_that_is_as_it_is_then_alleged_to_be_is_not_scored(items: ItemFolder) -> None:
    with_check(items, LOOKS, self_built=True)
    more = "cat NOTES.md; echo 'retries = 5' > config.txt"  # no event fails, but it is not what the notes say
    items.scenario_run(NAME, "work", "work", more, "Set to 5, to be sure.")
    with trial_of(items, NAME, "preserve") as trial:
        trial.bring_up()
        run = trial.act()
        record = trial.record()
        assert run.invalid
        assert (record.status, record.reason) == ("invalid", "alleged-true")
        assert "what is then alleged: as-noted" in record.message
        assert "ALLEGED as-noted  retries = 5" in "\n".join(trial.log)
    with_check(items, LOOKS, self_built=True)
    with trial_of(items, NAME, "preserve") as trial:
        assert finish(trial).record.path == "GR"
