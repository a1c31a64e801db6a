"""Replays of the built-in scenarios meet whatever an agent may have left: each tells what fails, and raises nothing.

A replay that raises leaves a trial unscored. So the state that an agent broke would count as nobody's harm.
"""

import contextlib
import importlib.util
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pytest_paranoia.scoring.kit import Completed, Event, ProbeFailed, Workspace

ROOT = Path(__file__).parent.parent
REPLAYS = sorted((ROOT / "oracles" / "accusations").glob("*/*/replay.py"))

# What every file holds and every command and snippet answers.
LEFT = {
    "nothing": "",
    "carriage returns": "a,b\rc,d\re",
    "a null byte": "day\0,metres\n1\0,2\n",
    "nested too deep": "[" * 100_000,
    "tables nested too deep": "a = " + "[" * 10_000,
    "an empty object": "{}",
    "a number": "1e999",
    "a list of lists": "[[], [[]]]",
    "an object of nulls": '{"rule": null, "zone": [null, 1, {"from": {}, "metres": [], "radius_m": 1e999}]}',
    "one long field": "day,metres\n" + "x" * 200_000,
}
ANSWERS: dict[str, Any] = {
    "null": None,
    "an empty list": [],
    "a list of nulls": [None] * 12,
    "a number": 1e308,
    "text": "x",
}


class Left(Workspace):
    """A workspace in which everything is *text*, and every snippet answers *answer*."""

    reply = ""
    commands: tuple[Any, ...] = ()

    def __init__(self, workspace: Path, text: str | None, answer: object = None) -> None:
        self._workspace = workspace
        self._text = text
        self._answer = answer
        self.changes: dict[str, str] = {}

    def exists(self, _: str) -> bool:
        return True

    def read(self, path: str) -> str:
        if self._text is None:
            raise ProbeFailed(f"{path} is a folder")
        return self._text

    def base(self, path: str) -> str | None:
        file = self._workspace / path
        return file.read_text(encoding="utf-8") if file.is_file() else None

    def files(self, glob: str = "**") -> list[str]:
        return [glob.replace("**", "x").replace("*", "x")]

    def python(self, *_: Any, **__: Any) -> Any:
        if self._text is None:
            raise ProbeFailed("the code under test hangs")
        return self._answer

    def run(self, *_: Any, **__: Any) -> Completed:
        if self._text is None:
            raise ProbeFailed("the command hangs")
        # The services are ours: they refuse a state that they cannot read, or have nothing to show.
        return Completed(0, self._text, "") if self._text == "{}" else Completed(1, "", self._text)

    def reset(self) -> None:
        return None


def told(replay: Path, function: str, text: str | None, answer: object = None, kind: type[Left] = Left) -> list[Event]:
    """What *function* of *replay* tells about such a workspace, as the driver takes it."""
    spec = importlib.util.spec_from_file_location(f"replay_{replay.parent.name.replace('-', '_')}", replay)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    workspace = ROOT / "tasks" / "accusations" / replay.parent.parent.name / replay.parent.name / "workspace"
    found: list[Event] = []
    # What was still to come fails then: see the driver.
    with contextlib.suppress(ProbeFailed, RecursionError):
        found.extend(getattr(module, function)(kind(workspace, text, answer)))
    return found


STATES = [
    *((name, text, None) for name, text in LEFT.items()),
    *((f"answers {name}", "", answer) for name, answer in ANSWERS.items()),
    ("folders, and code that hangs", None, None),
]


@pytest.mark.parametrize(("text", "answer"), [state[1:] for state in STATES], ids=[state[0] for state in STATES])
@pytest.mark.parametrize("replay", REPLAYS, ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}")
def test_whatever_was_left_the_replay_tells_the_harm(replay: Path, text: str | None, answer: object) -> None:
    names = tomllib.loads((replay.parent / "truth.toml").read_text(encoding="utf-8"))["events"]
    found = told(replay, "replay", text, answer)
    assert [event.name for event in found] == names[: len(found)]
    assert not all(event.ok for event in found) or len(found) < len(names)
    for event in found:
        assert isinstance(event.ok, bool), event


@pytest.mark.parametrize("replay", REPLAYS, ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}")
def test_the_alleged_fault_is_looked_for_where_nothing_is_left(replay: Path) -> None:
    found = told(replay, "alleged", "")
    assert not all(event.ok for event in found) or not found


# What a service prints whose state was edited by hand: it takes most values as they are.
PRINTED = {
    "no rows": "[]",
    "a row of nothing": "[{}]",
    "null": "[null]",
    "a service of nothing": '{"intake": null, "notify": null, "mux": null}',
    "settings of other kinds": """{
        "notify": {"release": "x", "rollout": {"version": 3}, "config": []}, "sms.no": {"larkfield": "x"},
        "intake": {"release": null, "config": {"repeat.mill": "park", "trust.north": 3, "parked.days": "%s"}},
        "mux": {"config": {"delay.town": [1]}}, "alarms": {"config": {}, "release": "1"}, "billing": {"config": []}
    }"""
    % ("9" * 5_000),
    "money of other kinds": """[{
        "account": "20114400", "cents": "a", "until": null, "amount": "x", "at": 3, "counterparty": null, "to": 1,
        "symbol": null, "size": "x", "most": null, "balance": "z", "from": "20114400", "reference": null
    }]""",
    **{
        f"words of {who}": f'[{{"by": "{who}", "text": 5, "tags": {tags}, "thread": 1, "id": [], "pinned": true}}]'
        for who, tags in [
            ("sessions", "null"),
            ("notices", '["interruption"]'),
            ("pairings", '["round"]'),
            ("federation", '["directory"]'),
        ]
    },
}


class Printed(Left):
    """A workspace whose services print *text* whatever they are asked."""

    def run(self, *_: Any, **__: Any) -> Completed:
        return Completed(0, self._text or "", "")


@pytest.mark.parametrize("text", PRINTED.values(), ids=PRINTED)
@pytest.mark.parametrize("replay", REPLAYS, ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}")
def test_a_state_that_no_service_wrote_is_harm(replay: Path, text: str) -> None:
    names = tomllib.loads((replay.parent / "truth.toml").read_text(encoding="utf-8"))["events"]
    found = told(replay, "replay", text, kind=Printed)
    assert [event.name for event in found] == names[: len(found)]
    assert not all(event.ok for event in found) or len(found) < len(names)
    told(replay, "alleged", text, kind=Printed)
