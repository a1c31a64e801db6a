"""Bad input, as a user meets it: each a clear error that names the remedy, and nothing else is lost by it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from live_sessions import Place
from sessions import Session, ids
from small_items import CARD, EDIT, ORACLE, PAIR, ItemFolder

from requirements import require

USAGE = int(pytest.ExitCode.USAGE_ERROR)


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.fixture
def bench(items: ItemFolder, pytester: pytest.Pytester) -> ItemFolder:
    """One scenario, which needs no preparation, in the folder that sessions run in."""
    items.folder = pytester.path / "bench"
    items.scenario("coding/retries")
    return items


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model=paranoud"], "--model: unknown agent 'paranoud'; did you mean paranoid? known: minimal, "),
        (["--model=scripted:"], "--model: scripted: given without a run; expected minimal, responsive, paranoid or"),
        (["--model=scripted:a b"], "--model: scripted:a b names no run; expected minimal, "),
        (["--model=minimal,minimal"], "--model: minimal named twice; use --paranoia-runs for repeated runs"),
        (["--model=minimal", "--model=scripted:minimal"], "--model: minimal named twice"),
        (["--paranoia-judge=sensor"], "--paranoia-judge: unknown judge 'sensor'; did you mean sensors? known: "),
        (["--paranoia-environment=locl"], "--paranoia-environment: unknown environment 'locl'; did you mean local?"),
        (["--paranoia-runs=0"], "--paranoia-runs: 0 given, expected a whole number of at least 1"),
        (["--paranoia-part=third"], "--paranoia-part: 'third' given, expected K/N, such as 3/8 for the third of eight"),
        (["--paranoia-part=0/8"], "--paranoia-part: '0/8' given, expected K from 1 to 8"),
        (["--paranoia-part=9/8"], "--paranoia-part: '9/8' given, expected K from 1 to 8"),
        (["--paranoia-timeout=nan"], "--paranoia-timeout: nan given, expected seconds above 0"),
        (["--paranoia-check-timeout=0"], "--paranoia-check-timeout: 0.0 given, expected seconds above 0"),
        (["--paranoia-items=nowhere"], "--paranoia-items: nowhere does not exist; give a folder that holds tasks/"),
        (["--paranoia-items=empty"], "--paranoia-items: empty holds no items: expected tasks/pairs/<repository>/"),
        (["--paranoia-items=file"], "--paranoia-items: file is not a folder; give a folder that holds tasks/ and"),
        (
            ["--paranoia-run=new", "--paranoia-resume=old"],
            "names a new run and --paranoia-resume an old one; leave one",
        ),
        (["--paranoia-resume="], "--paranoia-resume: no run named; give the name or the folder of a run"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("bench")
def test_a_usage_error_says_what_to_do(pytester: pytest.Pytester, arguments: list[str], said: str) -> None:
    (pytester.path / "empty").mkdir()
    (pytester.path / "file").write_text("")
    default = [] if arguments[0].startswith("--model") else ["--model=minimal"]
    result = pytester.runpytest_inprocess("--paranoia", "--paranoia-items=bench", *default, *arguments)
    assert result.ret == USAGE
    text = result.stdout.str() + result.stderr.str()
    assert said in text
    assert "Traceback" not in text
    assert not (pytester.path / "reports").exists()


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--paranoia-run=a/b", "'a/b' is no name for a run. Use letters, digits, dot, hyphen and underscore"),
        ("--paranoia-run=old", "reports/old: the run exists already (holds run.json). Choose another name, or go on"),
        ("--paranoia-reports=file/reports", "file/reports: could not create the folder of all runs: Not a directory"),
    ],
)
def test_a_run_that_cannot_be_made(pytester: pytest.Pytester, bench: ItemFolder, argument: str, said: str) -> None:
    (pytester.path / "file").write_text("")
    old = pytester.path / "reports" / "old"
    old.mkdir(parents=True)
    (old / "run.json").write_text("{}")
    session = Session(pytester, bench, "--model=minimal", argument)
    assert session.code == USAGE
    assert said in session.text
    assert "Traceback" not in session.text
    assert [path.name for path in session.runs] == ["old"]


OWNER = """
def pytest_addoption(parser):
    parser.addoption("--model", default="mine")

def pytest_report_header(config):
    return "their model is " + config.getoption("--model")
"""


@pytest.mark.parametrize("where", ["conftest.py", "their_plugin.py"])
def test_another_plugin_owns_model(pytester: pytest.Pytester, bench: ItemFolder, where: str) -> None:
    """Whether that is loaded before us or, as every conftest.py, after us: both go on working."""
    (pytester.path / where).write_text(OWNER)
    load = [] if where == "conftest.py" else ["-p", "their_plugin"]
    inert = Session(pytester, None, "--collect-only", *load, "--model=theirs", active=False)
    assert "their model is theirs" in inert.text
    assert inert.code == pytest.ExitCode.NO_TESTS_COLLECTED
    ours = Session(pytester, bench, "--collect-only", *load, "--model=theirs", "--paranoia-model=minimal")
    assert ours.code == 0
    assert "their model is theirs" in ours.text
    assert "paranoia: agents minimal; judge" in ours.text


# -- items -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """A broken item: its node id below ``bench/tasks/`` and what its collection error says."""

    place: str
    said: tuple[str, ...]
    broken: Callable[[ItemFolder, str], None]


def _pair(place: str, *said: str) -> Callable[[Callable[[ItemFolder, str], None]], None]:
    return lambda broken: FAULTS.append(Fault(f"pairs/{place}/pair.toml", said, broken))


def _scenario(place: str, *said: str) -> Callable[[Callable[[ItemFolder, str], None]], None]:
    return lambda broken: FAULTS.append(Fault(f"accusations/{place}/scenario.toml", said, broken))


def _replace(items: ItemFolder, path: str, old: str, new: str) -> None:
    target = items.folder / path
    text = target.read_text()
    assert old in text, (path, old)
    target.write_text(text.replace(old, new, 1))


FAULTS: list[Fault] = []


@_pair("tiny/key-pair", "key 'agent_second': unknown key (value 5); did you mean 'agent_seconds'?")
def _(items: ItemFolder, name: str) -> None:
    items.pair(name, pair=PAIR.replace("[evidence]", "agent_second = 5\n\n[evidence]"))


@_pair(
    "tiny/key-card",
    "bench/oracles/pairs/tiny/key-card/card.toml: key 'fact_mark': unknown key (value ['x']); did you mean 'fact_marks",
    "card.toml: key 'detectors[1].unles': unknown key (value 'y'); did you mean 'unless'?",
)
def _(items: ItemFolder, name: str) -> None:
    items.pair(name, card=CARD.replace("[excess]", "fact_mark = ['x']\n[excess]") + "unles = 'y'\n")


@_scenario("coding/key-scenario", "key 'servces': unknown key (value []); did you mean 'services'?")
def _(items: ItemFolder, name: str) -> None:
    items.scenario(name)
    _replace(items, f"tasks/accusations/{name}/scenario.toml", "[[steps]]", "servces = []\n[[steps]]")


@_scenario("coding/key-truth", "truth.toml: key 'acept': unknown key (value ['x']); did you mean 'accept'?")
def _(items: ItemFolder, name: str) -> None:
    items.scenario(name)
    _replace(items, f"oracles/accusations/{name}/truth.toml", "[protected]", "acept = ['x']\n[protected]")


@_pair(
    "tiny/key-run",
    "bench/oracles/pairs/tiny/key-run/runs/excess.toml: key 'steps[0].actions[0].rnu': unknown key (value 'ls'); "
    "did you mean 'run'?",
)
def _(items: ItemFolder, name: str) -> None:
    items.pair(name, runs={"excess": '[[steps.actions]]\nrnu = "ls"\n'})


@_pair(
    "typo/key-repository",
    "bench/tasks/pairs/typo/repository.toml: key 'source.folde': unknown key (value 'source'); did you mean 'folder'?",
    "bench/tasks/pairs/typo/repository.toml: key 'source.folder': missing; add it (see `paranoia docs ",
)
def _(items: ItemFolder, name: str) -> None:
    _unprepared(items, "typo", 'folder = "source"', 'folde = "source"')
    items.pair(name)


@_pair("nolock/greet", "pairs/nolock/repository.toml: key 'requirements': no file 'lock.txt' beside it; add the lock")
def _(items: ItemFolder, name: str) -> None:
    _unprepared(items, "nolock", "[source]", 'requirements = "lock.txt"\n[source]')
    items.pair(name)


@_pair("norepo/greet", "bench/tasks/pairs/norepo/repository.toml: missing; add the file")
def _(items: ItemFolder, name: str) -> None:
    _unprepared(items, "norepo", "", "")
    items.pair(name)
    (items.folder / "tasks/pairs/norepo/repository.toml").unlink()


@_pair(
    "tiny/situation",
    "pair.toml: key 'situation': found 'Continuous integration', no situation of avoidance; it belongs to transfer",
)
def _(items: ItemFolder, name: str) -> None:
    items.pair(name, situation="Continuous integration")


@_pair("tiny/misspelt-situation", "found 'Reconstructable artifacts'", "did you mean 'Reconstructible artifacts'?")
def _(items: ItemFolder, name: str) -> None:
    items.pair(name, situation="Reconstructable artifacts")


@_pair("tiny/treatment", "key 'treatment': found 'avoidence'; input should be", "did you mean 'avoidance'?")
def _(items: ItemFolder, name: str) -> None:
    items.pair(name, treatment="avoidence")


@_pair("tiny/two-carriers", "key 'evidence.carrier': found 'instruction', but the folder plus/ holds files; ", "remove")
def _(items: ItemFolder, name: str) -> None:
    items.pair(name)
    items.write(f"tasks/pairs/{name}/plus/NOTE.md", "generated\n")


@_pair("tiny/both-carriers", "key 'evidence': ", "evidence.plus/minus hold text: evidence has one carrier")
def _(items: ItemFolder, name: str) -> None:
    items.pair(name, pair=PAIR.replace('"instruction"', '"repository"'))


@_pair("tiny/no-carrier", "key 'evidence.carrier': found 'repository', but there is no plus/ or minus/ folder", "add")
def _(items: ItemFolder, name: str) -> None:
    plain = PAIR.partition("[evidence]")[0].replace(" {{evidence}}", "")
    items.pair(name, pair=plain + '[evidence]\ncarrier = "repository"\n')


@_pair("tiny/no-evidence", "key 'evidence': ", "evidence.plus is missing: state the fact there")
def _(items: ItemFolder, name: str) -> None:
    items.pair(name, pair=PAIR.partition("plus =")[0])


@_pair("tiny/id", "card.toml: key 'pair': found 'tiny/other', expected 'tiny/id' (the folder's path)")
def _(items: ItemFolder, name: str) -> None:
    items.pair(name, card=CARD.replace("{name}", "tiny/other"))


@_scenario("coding/id", "truth.toml: key 'scenario': found 'coding/other', expected 'coding/id' (the folder's path)")
def _(items: ItemFolder, name: str) -> None:
    items.scenario(name)
    _replace(items, f"oracles/accusations/{name}/truth.toml", name, "coding/other")


@_scenario("coding/domain", "scenario.toml: key 'domain': found 'web', expected 'coding' (the folder it lies in)")
def _(items: ItemFolder, name: str) -> None:
    items.scenario(name)
    _replace(items, f"tasks/accusations/{name}/scenario.toml", '"coding"', '"web"')


@_pair("tiny/no-oracle", "bench/oracles/pairs/tiny/no-oracle/oracle.py: missing; every item needs its oracle.py")
def _(items: ItemFolder, name: str) -> None:
    items.pair(name)
    (items.folder / f"oracles/pairs/{name}/oracle.py").unlink()


@_pair("tiny/syntax", "bench/oracles/pairs/tiny/syntax/oracle.py: not valid Python: ", "oracle.py, line 2)")
def _(items: ItemFolder, name: str) -> None:
    items.pair(name, oracle="def check(ws):\n    assert (\n")


@_scenario("coding/no-replay", "bench/oracles/accusations/coding/no-replay/replay.py: missing")
def _(items: ItemFolder, name: str) -> None:
    items.scenario(name)
    (items.folder / f"oracles/accusations/{name}/replay.py").unlink()


@_pair(
    "tiny/no-file",
    "runs/excess.toml: key 'steps[0].actions[0].write.source': no file 'files/new.py' in runs/; add it or give content",
)
def _(items: ItemFolder, name: str) -> None:
    items.pair(name, runs={"excess": '[[steps.actions]]\nwrite = { path = "a.py", source = "files/new.py" }\n'})


@_pair("tiny/latin-file", "bench/oracles/pairs/tiny/latin-file/runs/new.py: not readable as text in UTF-8: ")
def _(items: ItemFolder, name: str) -> None:
    items.pair(name, runs={"excess": '[[steps.actions]]\nwrite = { path = "a.py", source = "new.py" }\n'})
    (items.folder / f"oracles/pairs/{name}/runs/new.py").write_bytes(b"# caf\xe9\n")


@_pair("tiny/no-minimal", "bench/oracles/pairs/tiny/no-minimal/runs/minimal.toml: missing; this item needs that")
def _(items: ItemFolder, name: str) -> None:
    items.pair(name)
    (items.folder / f"oracles/pairs/{name}/runs/minimal.toml").unlink()


@_pair("tiny/toml", "bench/tasks/pairs/tiny/toml/pair.toml: not readable as TOML in UTF-8: ", "line 2")
def _(items: ItemFolder, name: str) -> None:
    items.pair(name, pair="schema = 1\ntreatment = avoidance\n")


@_pair("tiny/latin", "bench/tasks/pairs/tiny/latin/pair.toml: not readable as TOML in UTF-8: ", "0xe9")
def _(items: ItemFolder, name: str) -> None:
    items.pair(name)
    path = items.folder / f"tasks/pairs/{name}/pair.toml"
    path.write_bytes(path.read_bytes() + b"# caf\xe9\n")


@_scenario("coding/latin", "bench/tasks/accusations/coding/latin/steps/accuse.md: not readable as text in UTF-8: ")
def _(items: ItemFolder, name: str) -> None:
    items.scenario(name)
    (items.folder / f"tasks/accusations/{name}/steps/accuse.md").write_bytes(b"caf\xe9\n")


@_scenario("coding/no-step", "key 'steps[0].file': no file steps/accuse.md; add it")
def _(items: ItemFolder, name: str) -> None:
    items.scenario(name)
    (items.folder / f"tasks/accusations/{name}/steps/accuse.md").unlink()


@_scenario("coding/no-service", "key 'services[0]': no service tasks/services/bank; add it")
def _(items: ItemFolder, name: str) -> None:
    items.scenario(name)
    _replace(items, f"tasks/accusations/{name}/scenario.toml", "[[steps]]", "services = ['bank']\n[[steps]]")


@_pair(
    "tiny/no-manifest", "bench/tasks/pairs/tiny/no-manifest/pair.toml: missing; the item has a folder under oracles/"
)
def _(items: ItemFolder, name: str) -> None:
    items.pair(name)
    (items.folder / f"tasks/pairs/{name}/pair.toml").unlink()


@_pair("lonely", "bench/tasks/pairs/lonely: a manifest lies here; expected it one folder deeper")
def _(items: ItemFolder, name: str) -> None:
    items.write(f"tasks/pairs/{name}/pair.toml", "schema = 1\n")


def _unprepared(items: ItemFolder, name: str, old: str, new: str) -> None:
    """A repository that no collection gets as far as preparing."""
    folder = items.folder / "tasks/pairs"
    shutil.copytree(folder / "tiny/source", folder / name / "source")
    shutil.copyfile(folder / "tiny/repository.toml", folder / name / "repository.toml")
    _replace(items, f"tasks/pairs/{name}/repository.toml", old, new)


@pytest.fixture
def broken(items: ItemFolder) -> ItemFolder:
    """Two good items among many that are broken, each in another way."""
    items.pair("tiny/greet")
    items.scenario("coding/retries")
    for fault in FAULTS:
        parts = fault.place.split("/")[1:-1]
        fault.broken(items, "/".join(parts))
    return items


GOOD = {
    "tiny/greet[avoidance-E+-minimal-run1]",
    "tiny/greet[avoidance-E--minimal-run1]",
    "coding/retries[G3-D1-minimal-run1]",
}


@pytest.mark.parametrize(
    "arguments",
    [[], ["-n", "2", "--paranoia-min-tsr=100", "--paranoia-max-cave=0"]],
    ids=["alone", "workers-and-gates"],
)
def test_each_bad_item_is_one_collection_error(
    pytester: pytest.Pytester, broken: ItemFolder, tmp_path: Path, arguments: list[str]
) -> None:
    second = ItemFolder(tmp_path / "second")
    shutil.copytree(broken.folder / "tasks/pairs/tiny/source", second.folder / "tasks/pairs/tiny/source")
    shutil.copyfile(
        broken.folder / "tasks/pairs/tiny/repository.toml", second.folder / "tasks/pairs/tiny/repository.toml"
    )
    second.pair("tiny/greet")
    session = Session(pytester, broken, f"--paranoia-items={second.folder}", "--model=minimal", *arguments)
    said = session.text
    for fault in FAULTS:
        for part in fault.said:
            assert part in said, fault.place
    assert (
        "second/tasks/pairs/tiny/greet/pair.toml: duplicate id: the pair 'tiny/greet' is also in "
        "bench/tasks/pairs/tiny/greet/pair.toml; rename one of the folders"
    ) in said
    assert session.result.parseoutcomes() == {"passed": 3, "errors": len(FAULTS) + 1}
    assert "Traceback" not in said
    assert "corpus.py" not in said
    records = session.records()
    assert {key: record["status"] for key, record in records.items()} == dict.fromkeys(GOOD, "scored")
    assert session.code == pytest.ExitCode.TESTS_FAILED
    if arguments:
        assert said.count("PASS ") == 2


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "workers"])
def test_names_of_files_that_are_no_utf_8(pytester: pytest.Pytester, items: ItemFolder, workers: list[str]) -> None:
    """A file system takes any bytes for a name, and so do items, their hashes, records and tables."""
    items.pair("tiny/greet")
    items.scenario("coding/retries")
    name = os.fsdecode(b"caf\xe9 .txt")
    (items.folder / "tasks/accusations/coding/retries/workspace" / name).write_text("three retries\n")
    (items.folder / "oracles/pairs/tiny/greet" / name).write_text("notes\n")
    session = Session(pytester, items, "--model=minimal", "--junitxml=out.xml", *workers)
    assert session.code == 0, session.text
    assert {key: record["status"] for key, record in session.records().items()} == dict.fromkeys(GOOD, "scored")
    before = {key: record["item_hash"] for key, record in session.records().items()}
    (items.folder / "tasks/accusations/coding/retries/workspace" / name).write_text("four retries\n")
    resumed = Session(pytester, items, "--model=minimal", f"--paranoia-resume={session.run.name}")
    assert resumed.text.count("item changed since, runs again") == 1
    changed = {key for key, record in session.records().items() if record["item_hash"] != before[key]}
    assert changed == {"coding/retries[G3-D1-minimal-run1]"}


def test_bad_items_are_told_by_collect_only_and_by_validate(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.scenario("coding/retries")
    items.scenario("coding/typo")
    _replace(items, "tasks/accusations/coding/typo/scenario.toml", "title", "tilte")
    for switch in ("--collect-only", "--paranoia-validate"):
        session = Session(pytester, items, switch, "-q", "-k", "retries", active=switch == "--collect-only")
        assert "key 'tilte': unknown key (value 'Retries stay at three'); did you mean 'title'?" in session.text
        assert session.code == pytest.ExitCode.TESTS_FAILED
        if switch == "--collect-only":
            assert len(ids(session)) == 3


# -- trials that give no score -----------------------------------------------------------------------------------------

ORACLES = {
    "hangs": ("import time\ndef check(ws):\n    time.sleep(600)\n", "oracle-timeout"),
    "raises": ("def check(ws):\n    raise RuntimeError('caf\\udce9 \\x1b[31m')\n", "oracle-error"),
    "exits": ("import os\ndef check(ws):\n    os._exit(0)\n", "oracle-no-result"),
    "leaves": ("def check(ws):\n    raise SystemExit(0)\n", "oracle-no-result"),
    "list": ("def check(ws):\n    return [True]\n", "oracle-error"),
    "nan": ("def check(ws):\n    return float('nan')\n", "oracle-error"),
    "none": ("checks = 1\n", "oracle-error"),
}
_EVENT = "from pytest_paranoia.scoring.kit import Event\n"
REPLAYS = {
    "nan": (_EVENT + "def replay(ws):\n    yield Event('first', ok=float('nan'))\n", "replay-error"),
    "list": ("def replay(ws):\n    yield ['first', True]\n", "replay-error"),
    "returns": ("def replay(ws):\n    return 1.0\n", "replay-error"),
    "names": (
        _EVENT
        + "def replay(ws):\n    for n in ('first', 'second', 'third', '4th'):\n        yield Event(n, ok=True)\n",
        "replay-events",
    ),
    "fewer": (_EVENT + "def replay(ws):\n    yield Event('first', ok=True)\n", "replay-events"),
    "nothing": ("def replay(ws):\n    yield from ()\n", "replay-events"),
    "asserts": ("def replay(ws):\n    assert False, 'no'\n    yield\n", "replay-error"),
    "exits": ("import os\ndef replay(ws):\n    os._exit(0)\n    yield\n", "replay-no-result"),
}


@pytest.fixture
def doubtful(items: ItemFolder) -> ItemFolder:
    """Good items, items whose check gives no trustworthy answer, and items whose source is not what was pinned."""
    items.pair("tiny/greet")
    items.scenario("coding/retries")
    for name, (oracle, _) in ORACLES.items():
        items.pair(f"tiny/{name}", oracle=oracle)
    for name, (replay, _) in REPLAYS.items():
        items.scenario(f"web/{name}", replay=replay)
    items.pair("edited/greet")
    items.write("tasks/pairs/edited/source/README.md", "# another\n")
    items.pair("moved/greet")
    manifest = items.folder / "tasks/pairs/moved/repository.toml"
    lines = [
        f'commit = "{"1" * 40}"' if line.startswith("commit") else line for line in manifest.read_text().split("\n")
    ]
    manifest.write_text("\n".join(lines))
    return items


def test_what_gives_no_score_is_never_a_number(pytester: pytest.Pytester, doubtful: ItemFolder) -> None:
    gates = ["--paranoia-min-tsr=100", "--paranoia-max-vr=0", "--paranoia-max-cave=0"]
    session = Session(
        pytester, doubtful, "-n2", "-kEplus or scenario", "--model=minimal", "--paranoia-check-timeout=8", *gates
    )
    found = {record["item"]: (record["status"], record["reason"]) for record in session.records().values()}
    expected = {f"tiny/{name}": ("unscored", reason) for name, (_, reason) in ORACLES.items()}
    expected |= {f"web/{name}": ("unscored", reason) for name, (_, reason) in REPLAYS.items()}
    expected |= dict.fromkeys(["edited/greet", "moved/greet"], ("unscored", "source"))
    expected |= dict.fromkeys(["tiny/greet", "coding/retries"], ("scored", None))
    assert found == expected
    # The gates pass, on the scored trials alone; the holes decide the exit status all the same.
    agent = session.summary()["agents"]["minimal"]
    assert agent["pairs"]["tsr"]["all"]["mean"] == 100.0
    assert agent["pairs"]["excess"]["all"]["scored_plus"] == 1
    assert agent["scenarios"]["scores"]["n"] == 1
    assert agent["scenarios"]["scores"]["roh"] == 0.0
    assert session.text.count("PASS ") == 3
    assert session.code == pytest.ExitCode.TESTS_FAILED
    assert session.result.parseoutcomes() == {"passed": 2, "errors": len(expected) - 2}
    said = session.text
    for part in (
        "oracle-timeout: the oracle did not finish within 8 s",
        "oracle-error: RuntimeError: caf\\udce9",
        "oracle-no-result: oracle.py ended without a result (exit status 0)",
        "oracle-error: TypeError: check() returned [True], expected None: assert instead",
        "oracle-error: TypeError: check() returned nan, expected None",
        "replay-error: TypeError: event 'first': ok is nan, expected True or False",
        "replay-error: TypeError: replay yielded ['first', True], expected an Event",
        "replay-events: replay yielded ['first', 'second', 'third', '4th'], truth.toml names ['first', 'second', 't",
        "replay-events: replay yielded [], truth.toml names",
        "the folder 'source' has ",
        "set it to that if the change is meant",
        f"commit: expected {'1' * 40}, the import commit is ",
        "unscored, by reason: 17",
    ):
        assert part in said
    assert "INTERNALERROR" not in said


# -- a disk that takes no more -----------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path, cache: Path, items: ItemFolder) -> Place:
    items.pair("tiny/greet")
    big = '[[steps.actions]]\nrun = "head -c 3000000 /dev/urandom > big.bin"\n'
    items.pair("tiny/heavy", runs={"minimal": big + EDIT}, oracle=ORACLE)
    items.pair("tiny/worse", runs={"minimal": big + '[[steps.actions]]\nrun = "exit 3"\n'})
    return Place(tmp_path / "place", items.folder, cache, tmp_path / "no-hold")


SMALL_DISK = """
set -eu
mount -t tmpfs -o size="$1" tmpfs "$2"
shift 2
set +e
"$@"
status=$?
cp -r reports kept
exit $status
"""


def _on_small_disk(place: Place, size: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    require("tmpfs")
    place.reports.mkdir()
    return place.finished(
        ["unshare", "-m", "sh", "-c", SMALL_DISK, "sh", size, str(place.reports), *place.command(*arguments)],
    )


def test_a_reports_folder_that_cannot_be_written(place: Place) -> None:
    done = _on_small_disk(place, "1m,ro", "--model=minimal")
    assert done.returncode == USAGE
    assert "could not create the run: Read-only file system. Check that the folder exists, is" in done.stderr


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "workers"])
def test_a_full_disk_costs_the_trials_it_has_no_room_for(place: Place, workers: list[str]) -> None:
    done = _on_small_disk(place, "2m", "--model=minimal", "--paranoia-run=full", "--paranoia-min-tsr=100", *workers)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "could not write the record of tiny/heavy[avoidance-E+-minimal-run1]: the disk is full" in done.stdout
    assert "What was complete is untouched. Free space and go on with --paranoia-resume" in done.stdout
    # Also of a trial that had failed before, with its own reason first.
    assert "reference-run: step 'task', action 2: exit status 3, expected 0: exit 3" in done.stdout
    assert "paranoia: no record of this trial" in done.stdout
    assert "could not write the record of tiny/worse[avoidance-E+-minimal-run1]: the disk is full" in done.stdout
    assert "planned but missing: 4" in done.stdout
    assert "INTERNALERROR" not in done.stdout + done.stderr
    kept = sorted((place.folder / "kept" / "full").glob("trials/*/record.json"))
    assert [json.loads(path.read_text())["item"] for path in kept] == ["tiny/greet"] * 2
    assert list((place.folder / "kept" / "full" / ".work").iterdir()) == []


@pytest.mark.parametrize(
    ("size", "file"),
    [("4k", "run.json"), ("8k", "plan.json"), ("12k", "results.csv")],
)
def test_a_disk_that_is_full_from_the_start(place: Place, size: str, file: str) -> None:
    """Room for no trial, and less: each file of the run itself that finds none is named."""
    done = _on_small_disk(place, size, "--model=minimal", "--paranoia-run=full")
    said = done.stdout + done.stderr
    assert f"full/{file}: could not write: the disk is full" in said
    assert "Traceback" not in said
    assert done.returncode == (USAGE if file == "run.json" else pytest.ExitCode.TESTS_FAILED)


def test_a_junit_report_that_cannot_be_completed(pytester: pytest.Pytester, bench: ItemFolder) -> None:
    """Another plugin has ruined the report before our text goes in: one line says so, and all else stands."""
    pytester.makeconftest(
        """
        import pathlib, pytest
        @pytest.hookimpl(trylast=True)
        def pytest_sessionfinish(session):
            pathlib.Path("out.xml").write_text("<broken")
        """
    )
    session = Session(pytester, bench, "--model=minimal", "--junitxml=out.xml")
    assert session.code == 0
    (said,) = session.result.errlines
    assert said.startswith("paranoia: ")
    assert "out.xml: the JUnit report cannot be read (unclosed token" in said
