"""JUnit output, through real pytest sessions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_builders import invalid, pair, scenario, unscored

from pytest_paranoia.reporting.junit import PREFIX, add_system_out, address, properties, system_out
from pytest_paranoia.schema.record import OracleResult, Record
from pytest_paranoia.store import StoreError

HERE = Path(__file__).parent
NASTY = 'bell\x07 escape\x1b[31m nul\x00 lone\udc80 astral\U0001f600 <tag> & "quote" ]]> \ufffe ü\u2028'

SUITE = """
import sys
sys.path[:0] = {path!r}
import pytest
from record_builders import pair, scenario
from pytest_paranoia.reporting.junit import properties
NASTY = {nasty!r}

@pytest.mark.parametrize("record", [
    pytest.param(pair(True), id="transfer-E+-opus-5-run1"),
    pytest.param(scenario(1, 2, 1.0, 1.0), id="G3-opus-5-run1"),
    pytest.param(pair(message=NASTY, situation=NASTY), id="nasty-\\x1b"),
])
def test_pair(record, record_property):
    for name, value in properties(record):
        record_property(name, value)
    print("captured")
    assert "G3" not in str(record.factors)

class TestGroup:
    def test_inside(self): pass

@pytest.fixture
def broken():
    yield
    raise RuntimeError("teardown")

def test_torn(broken): assert False
"""


def run_suite(folder: Path, *options: str) -> tuple[Path, list[str]]:
    """Run a real session below *folder*; return its JUnit file and the nodeids."""
    suite = folder / "sub" / "test_suite.py"
    suite.parent.mkdir(exist_ok=True)
    suite.write_text(SUITE.format(path=[str(HERE), str(HERE.parent)], nasty=NASTY), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n")
    xml = folder / "out.xml"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "xdist.plugin",
        "-p",
        "no:cacheprovider",
        f"--junitxml={xml}",
        *options,
        "sub",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent)])
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    file = "sub/test_suite.py"
    names = ["test_pair[transfer-E+-opus-5-run1]", "test_pair[G3-opus-5-run1]", "test_pair[nasty-\\x1b]"]
    return xml, [f"{file}::{name}" for name in (*names, "TestGroup::test_inside", "test_torn")]


@pytest.mark.parametrize(
    "options",
    [(), ("-n", "1"), ("--junitprefix=some.prefix", "-o", "junit_logging=all", "-o", "junit_family=xunit1")],
    ids=["plain", "xdist", "other-layout"],
)
def test_properties_and_system_out_land_in_their_testcase(tmp_path: Path, options: tuple[str, ...]) -> None:
    xml, nodeids = run_suite(tmp_path, *options)
    before = ElementTree.parse(xml).getroot()
    texts = {nodeid: f"text of {nodeid} {NASTY}" for nodeid in nodeids}
    assert add_system_out(xml, texts | {"sub/test_suite.py::absent": "x"}) == ["sub/test_suite.py::absent"]
    after = ElementTree.parse(xml).getroot()
    cases, old_cases = list(after.iter("testcase")), list(before.iter("testcase"))
    assert len(cases) == len(old_cases)
    for case, old in zip(cases, old_cases, strict=True):
        assert case.attrib == old.attrib
        (out,) = case.findall("system-out")
        text = out.text or ""
        assert str(case.get("name")) in text
        assert "bell#x07 escape#x1B[31m nul#x00" in text
        assert '<tag> & "quote" ]]>' in text
        assert text.startswith((old.findtext("system-out") or "").rstrip())
        tags = [child.tag for child in case]
        assert tags == sorted(tags, key=["properties", "skipped", "error", "failure", "system-out", "system-err"].index)
        assert [child.tag for child in old if child.tag != "system-out"] == [
            child.tag for child in case if child.tag != "system-out"
        ]
    check_properties(after)
    once = xml.read_bytes()
    add_system_out(xml, texts)
    assert xml.read_bytes() == once
    assert sorted(path.name for path in tmp_path.iterdir() if "out.xml" in path.name) == ["out.xml"]


def check_properties(root: ElementTree.Element) -> None:
    found = {
        case.get("name"): {prop.get("name"): prop.get("value") for prop in case.iter("property")}
        for case in root.iter("testcase")
    }
    violation = found["test_pair[transfer-E+-opus-5-run1]"]
    assert violation[f"{PREFIX}verdict"] == "VIOLATION"
    assert violation[f"{PREFIX}forms"] == "backup, guard"
    damaged = found["test_pair[G3-opus-5-run1]"]
    assert {name: damaged[PREFIX + name] for name in ("path", "h", "f", "e", "factors")} == {
        "path": "CD",
        "h": "0.5",
        "f": "1",
        "e": "1",
        "factors": "G3 D4 Q2 P1 S1",
    }
    assert str(found["test_pair[nasty-\\x1b]"][f"{PREFIX}situation"]).startswith("bell#x07")


@pytest.mark.parametrize("record", [pair(), pair(True, done=False), scenario(1), unscored(pair()), invalid(scenario())])
def test_properties_are_plain_strings_and_complete(record: Record) -> None:
    listed = properties(record)
    assert all(type(name) is str and type(value) is str for name, value in listed)
    values = dict(listed)
    assert len(values) == len(listed)
    assert {"paranoia.verdict", "paranoia.agent", "paranoia.run", "paranoia.status"} <= values.keys()
    assert ("paranoia.reason" in values) == (record.status != "scored")
    assert ("paranoia.V" in values) == (record.verdict is not None)


@given(st.text(st.characters(codec=None), max_size=60))
def test_any_text_is_carried_safely(text: str) -> None:
    changes: dict[str, Any] = {"message": text, "situation": text, "oracle": OracleResult(passed=False, message=text)}
    for record in (pair(True, **changes), unscored(pair(**changes), reason=text)):
        for value in [system_out(record), *(value for _, value in properties(record))]:
            escaped = value.replace("&", "").replace("<", "")
            ElementTree.fromstring(f"<a>{escaped}</a>")
            value.encode("utf-8")


def test_cost_is_there_where_it_is_known() -> None:
    record = pair()
    assert f"{PREFIX}cost" not in dict(properties(record))  # unknown is not 0
    paid = record.model_copy(update={"usage": record.usage.model_copy(update={"cost_usd": 0.0125})})
    assert dict(properties(paid))[f"{PREFIX}cost"] == "0.012500"
    assert dict(properties(paid))[f"{PREFIX}seconds"] == f"{record.timing.agent:.1f}"


def test_system_out_tells_the_story() -> None:
    text = system_out(pair(True, done=False))
    for expected in (
        "paranoia: VIOLATION, task not done\n",
        "oracle: failed: assert 1 == 2",
        "V = 1: evidence, degree clear, forms backup, guard",
        "  - copied the file first",
        "  - [step 2] cp a a.bak",
    ):
        assert expected in text
    assert "unscored: judge-no-answer" in system_out(unscored(pair()))
    assert "replay: h = 0.5 (event0 FAILED, event1 ok)" in system_out(scenario(1))


def test_addresses_follow_pytest() -> None:
    nodeid = "tasks/pairs/dynaconf/ci-owns-tests/pair.toml::test_pair[transfer-E+-opus-5-run1]"
    assert address(nodeid) == ("tasks.pairs.dynaconf.ci-owns-tests.pair.toml", "test_pair[transfer-E+-opus-5-run1]")
    assert address("a/test_b.py::TestC::test_d[x::y/z[0]]") == ("a.test_b.TestC", "test_d[x::y/z[0]]")


@pytest.mark.parametrize("content", [b"", b"<testsuites><testcase", b"\xff\xfe\x00"])
def test_a_broken_report_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    xml = tmp_path / "out.xml"
    xml.write_bytes(content)
    with pytest.raises(StoreError, match=r"out\.xml: the JUnit report cannot be read"):
        add_system_out(xml, {"a::b": "x"})
    assert xml.read_bytes() == content


def test_a_report_that_is_no_file_is_left_alone(tmp_path: Path) -> None:
    assert add_system_out(Path("/dev/null"), {"a::b": "x"}) == ["a::b"]
    assert add_system_out(tmp_path / "missing.xml", {"a::b": "x"}) == ["a::b"]


def test_a_linked_report_stays_linked(tmp_path: Path) -> None:
    (tmp_path / "real.xml").write_text('<testsuites><testcase classname="a" name="b"/></testsuites>')
    (tmp_path / "link.xml").symlink_to("real.xml")
    assert add_system_out(tmp_path / "link.xml", {"a.py::b": "x"}) == []
    assert (tmp_path / "link.xml").is_symlink()
    assert "<system-out>x</system-out>" in (tmp_path / "real.xml").read_text()
