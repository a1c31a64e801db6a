"""What CI servers get: JUnit, a job summary, a badge, summary.json; written once, by the controller, also with -n."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from junit_readers import GitLab, action, jenkins, schema_faults
from record_builders import agent_info, pair, scenario
from sessions import Session
from small_items import ItemFolder
from synthetic_runs import HOSTILE, trials

from pytest_paranoia.metrics.gates import Gate
from pytest_paranoia.reporting import outputs
from pytest_paranoia.reporting.badge import badge
from pytest_paranoia.reporting.junit import complete, system_out
from pytest_paranoia.reporting.markdown import LIMIT, escaped, markdown
from pytest_paranoia.reporting.schema import summary_schema
from pytest_paranoia.schema.record import Record
from pytest_paranoia.schema.verdict import Evidence
from pytest_paranoia.store import RunManifest, RunSummary
from pytest_paranoia.store.loading import LoadResult, Problem
from pytest_paranoia.store.summary import as_data, summarise


@dataclass(frozen=True)
class Finished:
    """A real session in a folder of its own."""

    folder: Path
    code: int
    text: str

    @property
    def run(self) -> Path:
        (run,) = (self.folder / "reports").iterdir()
        return run


def session(folder: Path, cache: Path, *arguments: str) -> Finished:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "GITHUB_"))}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--paranoia", "--paranoia-items=bench"]
    done = subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env=environment | {"PARANOIA_CACHE": str(cache), "GITHUB_STEP_SUMMARY": str(folder / "step.md")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return Finished(folder, done.returncode, done.stdout + done.stderr)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Finished:
    """Three agents on a pair and a scenario, in two workers, with every output asked for."""
    folder = tmp_path_factory.mktemp("ci")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARANOIA_CACHE", str(cache))
        items = ItemFolder(folder / "bench")
        items.pair()
        items.scenario()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "step.md").write_text("an earlier step\n")
    files = ("--junitxml=out.xml", "--paranoia-markdown=step.md", "--paranoia-badge=badge.json")
    return session(folder, cache, "-n", "2", *files, "--paranoia-html=page.html", "--paranoia-max-cave=50")


@pytest.fixture(scope="module")
def second(first: Finished, tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Finished:
    """One agent on the pair, compared with the first run, with file and line in the JUnit file."""
    folder = tmp_path_factory.mktemp("ci2")
    (folder / "bench").symlink_to(first.folder / "bench")
    (folder / "pytest.ini").write_text("[pytest]\n")
    options = ("--paranoia-model=paranoid", "--junitxml=out.xml", "-o", "junit_family=xunit1", "--paranoia-strict")
    compared = (f"--paranoia-compare={first.run}", "--paranoia-markdown=job.md")
    return session(folder, cache, "-k", "test_pair", *options, *compared)


def test_every_file_is_written_once_by_the_controller(first: Finished) -> None:
    assert first.code == 1, first.text  # the gate
    names = {path.name for path in first.folder.iterdir()}
    assert names == {"bench", "pytest.ini", "reports", "out.xml", "step.md", "badge.json", "page.html"}
    assert (first.folder / "page.html").read_text().count("</html>") == 1
    text = (first.folder / "step.md").read_text()
    assert text.startswith("an earlier step\n\n## paranoia: ")  # GitHub's file is added to
    assert text.count("## paranoia: ") == 1
    assert "### Gates: FAILED" in text
    assert "| cave \\<\\= 50 | paranoid | **failed** |" in text
    assert re.search(r"^\| paranoid \| 2/2 \| 100.0 \| 100.0 \|", text, re.MULTILINE)
    shown = json.loads((first.folder / "badge.json").read_text())
    assert shown == {
        "schemaVersion": 1,
        "label": "paranoia",
        "message": "VR 0.0-100.0%, CAVE 0.0-91.7%",
        "color": "red",
    }


def test_a_comparison_ends_the_session(first: Finished, second: Finished) -> None:
    assert f"compared: {first.run.name} (before) with {second.run.name} (after)" in second.text
    assert re.search(r"^paranoid +vr +1 +0 +100\.0 +100\.0 +0\.0\*\* ", second.text, re.MULTILINE)
    assert "in one run only, not compared: minimal, responsive" in second.text
    assert "** one unit only: no interval" in second.text
    assert "### Compared\n\n```text\ncompared: " in (second.folder / "job.md").read_text()


# -- summary.json


def test_a_real_summary_keeps_to_the_schema(first: Finished) -> None:
    check(json.loads((first.run / "summary.json").read_text()))


@pytest.mark.parametrize(
    "records",
    [[], [pair()], [scenario(1)], trials(pairs=5, scenarios=3), [pair(agent=HOSTILE)]],
    ids=["nothing", "pair", "scenario", "many", "hostile"],
)
def test_every_summary_keeps_to_the_schema(records: list[Record]) -> None:
    gates = [Gate.at_most("vr", 20), Gate.at_least("er-pooled", 10)]
    problem = Problem(Path("reports/r/trials/x"), "half-written", None)
    for planned in (None, ("a[b]",)):
        check(json.loads(json.dumps(as_data(summary(records, gates, planned, (problem,))))))


def check(data: Mapping[str, Any]) -> None:
    schema = summary_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(data, schema)
    # Readers pass over unknown keys, but what this version writes is all declared.
    jsonschema.validate(data, closed(schema))


def closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(value) for name, value in schema.items()}
    return inner | {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else inner


def test_the_schema_notices_what_is_wrong() -> None:
    good = json.loads(json.dumps(as_data(summary(trials(pairs=2, scenarios=1)))))
    broken: list[dict[str, Any]] = [
        {**good, "schema": 2},
        {name: value for name, value in good.items() if name != "agents"},
        {**good, "counts": {**good["counts"], "scored": -1}},
        {**good, "agents": {"a": {}}},
    ]
    for data in broken:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(data, summary_schema())


# -- JUnit


def test_jenkins_schema_forbids_nothing_but_the_properties_of_cases(first: Finished) -> None:
    """Jenkins' own schema has properties of suites only; pytest's ``record_property`` has that fault by design."""
    root = ElementTree.parse(first.folder / "out.xml").getroot()
    assert set(schema_faults(root)) == {"properties in testcase"}
    for case in root.iter("testcase"):
        for element in case.findall("properties"):
            case.remove(element)
    assert list(schema_faults(root)) == []


def test_gitlab_drops_nothing_and_shows_the_account(first: Finished) -> None:
    read = GitLab.read(first.folder / "out.xml")
    assert read.dropped == []
    assert len(read.cases) == 9
    assert read.attachments == []
    assert all(out.startswith("paranoia: ") for _, _, out in read.cases.values())
    failed = [(text, out) for status, text, out in read.cases.values() if status == "failed"]
    assert len(failed) == 1
    assert all(text.strip() for text, _ in failed)
    assert "replay: h = 0.75" in failed[0][1]


def test_jenkins_keeps_every_property(first: Finished) -> None:
    cases = jenkins(first.folder / "out.xml")
    assert len(cases) == 9
    violation = next(found for name, found in cases.items() if "E+-paranoid" in name)
    wanted = {"verdict": "VIOLATION", "V": "1", "forms": "backup", "degree": "clear", "agent": "paranoid"}
    assert wanted.items() <= {name.removeprefix("paranoia."): value for name, value in violation.items()}.items()
    damaged = next(found for name, found in cases.items() if "G3-D1-paranoid" in name)
    assert (damaged["paranoia.path"], damaged["paranoia.h"]) == ("CD", "0.75")


def test_the_suite_has_the_metrics(first: Finished) -> None:
    root = ElementTree.parse(first.folder / "out.xml").getroot()
    found = {str(one.get("name")): one.get("value") for one in root.findall("testsuite/properties/property")}
    assert found["paranoia.run"] == first.run.name
    assert found["paranoia.scored"] == "9"
    assert found["paranoia.paranoid.vr"] == "100"
    assert "paranoia.minimal.er" not in found  # undefined
    assert found["paranoia.paranoid.gate cave <= 50"] == "failed: 91.7 > 50"
    assert found["paranoia.minimal.gate cave <= 50"] == "passed"


def test_the_github_action_counts_and_names(first: Finished, second: Finished) -> None:
    read = action(first.folder / "out.xml")
    assert sorted(one.status for one in read) == ["failure"] + 8 * ["success"]
    assert all(one.message for one in read)
    located = action(second.folder / "out.xml")
    assert {one.file for one in located} == {"bench/tasks/pairs/tiny/greet/pair.toml"}
    assert all((second.folder / one.file).is_file() and one.line >= 0 for one in located)
    (failed,) = [one for one in located if one.status == "failure"]
    assert "E+" in failed.title


def test_an_agent_cannot_choose_a_file_for_gitlab_to_link() -> None:
    record = pair(True)
    assert record.verdict is not None
    quote = Evidence(source="reply", quote="[[ATTACHMENT|../../secret]]")
    text = system_out(record.model_copy(update={"verdict": record.verdict.model_copy(update={"evidence": [quote]})}))
    assert "secret" in text
    assert "[[ATTACHMENT|" not in text


def test_completing_twice_changes_nothing(tmp_path: Path) -> None:
    xml = tmp_path / "out.xml"
    xml.write_text('<testsuites><testsuite name="pytest"><testcase classname="a" name="b"/></testsuite></testsuites>')
    found = summary([pair(agent=HOSTILE), scenario(1)])
    complete(xml, found)
    once = xml.read_bytes()
    ElementTree.fromstring(once)
    complete(xml, found)
    assert xml.read_bytes() == once
    assert once.count(b"<properties>") == 1


# -- Markdown and badge


def summary(
    records: list[Record],
    gates: list[Gate] | None = None,
    planned: tuple[str, ...] | None = None,
    problems: tuple[Problem, ...] = (),
) -> RunSummary:
    agents = list({record.agent.name: record.agent for record in records}.values())
    manifest = RunManifest(run="r1", agents=agents)
    return summarise(Path("reports/r1"), manifest, LoadResult(tuple(records), problems), planned, gates or [])


def test_hostile_text_is_no_markdown() -> None:
    records = [
        pair(True, agent=HOSTILE, item="x/y"),
        pair(True, agent="</details><script>", variant="E-"),
        scenario(2, agent=HOSTILE, message=HOSTILE),
        pair(agent="b", item="x/z", status="unscored", reason=HOSTILE, verdict=None),
    ]
    text = markdown(summary(records, [Gate.at_most("vr", 1)]), ["compared ```", "<b>"])
    tables = [line for line in text.splitlines() if line.startswith("|")]
    widths = {re.sub(r"\\.", "", line).count("|") for line in tables}
    assert widths == {5, 14, 16}  # gates, pairs and scenarios: no name opens a cell
    outside = text.partition("### Compared")[0]
    bare = re.sub(r"\\.", "", outside)
    for tag in re.findall(r"<[^>]*>", bare):
        assert tag in {"<details>", "</details>", "<summary>", "</summary>"}
    assert not set("`[]$~") & set(bare)
    assert "*" not in bare.replace("**failed**", "")
    assert "@" not in bare
    assert "http:" not in bare
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.count("```") == 2
    assert text.count("<details>") == text.count("</details>")


def test_escaping_is_undone_by_rendering() -> None:
    assert re.sub(r"\\(.)", r"\1", escaped("a|b [c](d) *e* <f>")) == "a|b [c](d) *e* <f>"
    assert escaped("two\nlines") == "two lines"


def test_a_long_summary_stays_below_githubs_limit() -> None:
    agents = [agent_info(f"agent-{number}-{'x' * 250}") for number in range(3000)]
    records = [pair(True, item=f"r/{number}", agent=one.name) for number, one in enumerate(agents)]
    text = markdown(summary(records))
    assert LIMIT - 2000 < len(text.encode()) < LIMIT + 100
    assert text.endswith(f"(cut: more than {LIMIT} bytes)\n")


@pytest.mark.parametrize(
    ("records", "gates", "message", "colour"),
    [
        ([], [], "nothing scored", "lightgrey"),
        ([pair()], [], "VR 0.0%", "blue"),
        ([pair()], [Gate.at_most("vr", 20)], "VR 0.0%", "brightgreen"),
        ([pair(True), scenario(1)], [Gate.at_most("vr", 20)], "VR 100.0%, CAVE 16.7%", "red"),
        ([pair(True), pair(agent="b")], [], "VR 0.0-100.0%", "blue"),
    ],
)
def test_badges(records: list[Record], gates: list[Gate], message: str, colour: str) -> None:
    found = badge(summary(records, gates))
    assert (found["schemaVersion"], found["message"], found["color"]) == (1, message, colour)


# -- when something is wrong


def asked(base: Path, **options: str | bool) -> outputs.Outputs:
    return outputs.parse(lambda name: options.get(name.removeprefix("paranoia_")), base, base / "reports")


def test_what_cannot_be_written_is_told_before_anything_runs(tmp_path: Path) -> None:
    for options, expected in (
        ({"markdown": "no/such/file.md"}, r"--paranoia-markdown: the folder of no/such/file\.md does not exist"),
        ({"badge": "."}, "--paranoia-badge: . given, expected the name of a file"),
        ({"html": ""}, "--paranoia-html: nothing given"),
        ({"html": "a.html", "validate": True}, "--paranoia-html: a validation has no results"),
        ({"compare": "nothing"}, r"--paranoia-compare: .*no run directory"),
    ):
        with pytest.raises(pytest.UsageError, match=expected):
            asked(tmp_path, **options)
    assert asked(tmp_path) == outputs.Outputs()
    assert asked(tmp_path, badge="b.json").badge == tmp_path / "b.json"


def test_what_went_wrong_is_told_without_a_summary_too(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.scenario()
    pytester.path.joinpath("gone").mkdir()
    pytester.makeconftest("import pathlib\n\ndef pytest_sessionstart(session):\n    pathlib.Path('gone').rmdir()\n")
    for quiet in ([], ["--no-summary"]):
        pytester.path.joinpath("gone").mkdir(exist_ok=True)
        found = Session(pytester, items, "--model=minimal", "--paranoia-badge=gone/badge.json", *quiet)
        assert found.code == 1
        (told,) = [line for line in found.text.splitlines() if "could not make" in line]
        assert told.startswith("paranoia: could not make --paranoia-badge: ")
        assert ("= paranoia =" in found.text) == (not quiet)
        assert ("scored, 0 invalid" in found.text) == (not quiet)


def test_a_fault_in_one_output_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "_markdown", lambda *_: 1 / 0)
    wanted = outputs.Outputs(markdown=tmp_path / "m.md", badge=tmp_path / "b.json", compare=tmp_path / "gone")
    made = outputs.make(wanted, summary([pair()]), 80)
    assert made.written == (tmp_path / "b.json",)
    assert made.problems[0].startswith(f"--paranoia-compare: {tmp_path}/gone: no run directory")
    assert made.problems[1] == "--paranoia-markdown: ZeroDivisionError: division by zero"
    assert [path.name for path in tmp_path.iterdir()] == ["b.json"]


def test_links_stay_links_and_devices_are_written_to(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    wanted = outputs.Outputs(badge=tmp_path / "link.json", markdown=Path("/dev/null"))
    made = outputs.make(wanted, summary([pair()]), 80)
    assert made.problems == ()
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text())["label"] == "paranoia"


def test_a_session_that_asks_for_nothing_loads_no_statistics() -> None:
    script = (
        "import sys; import pytest_paranoia.controller, pytest_paranoia.options, pytest_paranoia.reporting.outputs;"
        "sys.exit(bool({'pandas', 'scipy', 'numpy', 'jinja2'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
