"""Without ``--paranoia`` the plugin is not there: nothing imported, written, printed or offered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

MODULES = ["pytest_paranoia", "pytest_paranoia.plugin"]
HEAVY = ["docker", "filelock", "openai", "pandas", "pydantic", "scipy"]

SUITE = """
import warnings
import pytest

@pytest.fixture
def broken():
    raise RuntimeError("broken")

@pytest.mark.parametrize("value", [1, 2, "E+"])
def test_values(value):
    assert value != 2

def test_error(broken): pass
def test_skip(): pytest.skip("not now")
def test_warns(): warnings.warn("careful")
@pytest.mark.xfail
def test_expected(): assert False
class TestClass:
    def test_in_class(self, tmp_path, record_property):
        record_property("key", "value")
"""

# Other plugins of the development environment import what they like and print timings of their own.
FEW = [
    word for name in ("hypothesispytest", "anyio", "cacheprovider", "html", "metadata") for word in ("-p", f"no:{name}")
]
WITHOUT = ["-p", "no:paranoia"]


@pytest.fixture(autouse=True)
def places(pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A suite, and every place where a file could be left, to be found as it was."""
    for variable in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "PARANOIA_CACHE"):
        (tmp_path / variable).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    pytester.makepyfile(test_suite=SUITE)
    yield
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert left == []


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess(*FEW, *arguments, timeout=60)


def shown(result: pytest.RunResult) -> str:
    """What a session printed, byte by byte, but for its duration and the line that names the plugins."""
    text = result.stdout.str() + "\n=== stderr\n" + result.stderr.str()
    text = re.sub(r"\bin \d+\.\d+s( \(\d+:\d+:\d+\))?", "in 0.00s", text)
    text = re.sub(r"=+( .* in 0\.00s )=+", r"=\1=", text)
    lines = [line.replace("paranoia-0.1.0", "") for line in text.splitlines()]
    return "\n".join(re.sub(r"[, ]+", " ", line).strip() if line.startswith("plugins:") else line for line in lines)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-v", "-ra"],
        ["-q"],
        ["--collect-only", "-q"],
        ["-k", "values and not E"],
        ["--strict-markers", "-x"],
        ["--setup-plan"],
        ["--trace-config", "-p", "no:terminal"],
        ["--markers"],
        ["--fixtures", "-v"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_the_output_is_the_same_byte_by_byte(pytester: pytest.Pytester, arguments: list[str]) -> None:
    ours, without = run(pytester, *arguments), run(pytester, *WITHOUT, *arguments)
    assert shown(ours) == shown(without)
    assert ours.ret == without.ret


@pytest.mark.parametrize("arguments", [["-v"], ["-q", "-ra"]], ids=" ".join)
def test_the_output_is_the_same_with_xdist(pytester: pytest.Pytester, arguments: list[str]) -> None:
    ours, without = (run(pytester, "-n", "2", *more, *arguments) for more in ([], WITHOUT))

    def lines(result: pytest.RunResult) -> list[str]:
        # Which worker is first is chance: its name goes, and so does the order.
        plain = re.sub(r"\[ *\d+%\]", "", shown(result))
        return sorted(re.sub(r"\[gw\d\]|gw\d", "gw", plain).split("\n"))

    def without_dots(found: list[str]) -> list[str]:
        return [line for line in found if not re.fullmatch(r"[.FEsx]+ *", line)]

    assert without_dots(lines(ours)) == without_dots(lines(without))
    assert ours.ret == without.ret


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_no_file_and_the_same_junit(pytester: pytest.Pytester, workers: list[str]) -> None:
    # Not where pytester itself writes.
    folder = pytester.mkdir("project")
    (pytester.path / "test_suite.py").rename(folder / "test_suite.py")
    reports = {}
    for name, more in (("with", []), ("without", WITHOUT)):
        run(pytester, "--rootdir", str(folder), str(folder), *workers, *more, "--junitxml", f"{name}.xml")
        root = ElementTree.parse(pytester.path / f"{name}.xml").getroot()
        for element in root.iter():
            for attribute in ("time", "timestamp"):
                element.attrib.pop(attribute, None)
        cases = sorted(ElementTree.tostring(case) for case in root.iter("testcase"))
        reports[name] = ([re.sub(rb"gw\d", b"gw", case) for case in cases], [suite.attrib for suite in root])
    assert reports["with"] == reports["without"]
    assert [path.name for path in folder.iterdir()] == ["test_suite.py"]
    names = {path.name for path in pytester.path.iterdir() if not path.name.startswith("runpytest-")}
    assert names == {"project", "with.xml", "without.xml", "stdout", "stderr"}


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_nothing_is_imported_beyond_the_hook_module(pytester: pytest.Pytester, workers: list[str]) -> None:
    pytester.makepyfile(
        test_suite=f"""
        import sys
        def test_modules(pytestconfig):
            ours = [name for name in sys.modules if name.partition(".")[0] == "pytest_paranoia"]
            assert sorted(ours) == {MODULES}
            assert [name for name in {HEAVY} if name in sys.modules] == []
            names = [name for name, _ in pytestconfig.pluginmanager.list_name_plugin() if "paranoia" in name]
            assert names == ["paranoia"]
        def test_at_the_end(): pass
        """
    )
    pytester.makeconftest(
        f"""
        import sys
        def pytest_unconfigure(config):
            ours = sorted(name for name in sys.modules if name.partition(".")[0] == "pytest_paranoia")
            print("modules", ours == {MODULES} or ours)
        """
    )
    result = run(pytester, *workers)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["modules True"])


def test_help_shows_our_group_and_changes_nothing_else(pytester: pytest.Pytester) -> None:
    ours, without = (run(pytester, *more, "--help").outlines for more in ([], WITHOUT))
    position = next(number for number, line in enumerate(ours) if line.startswith("unnecessary defensive work"))
    end = next(number for number in range(position, len(ours)) if not ours[number].strip())
    assert [line for line in ours[:position] + ours[end + 1 :] if line] == [line for line in without if line]
    options = [line.split()[0].rstrip(",") for line in ours[position:end] if line.startswith("  -")]
    assert "--paranoia" in options
    assert {option for option in options if not option.startswith("--paranoia")} <= {"--model", "--model=AGENT"}
    assert max(map(len, ours[position:end])) <= 80


def test_options_of_the_project_alone_do_not_switch_it_on(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\n")
    plain = run(pytester)
    pytester.makeini("[pytest]\naddopts = --model no-such-agent --paranoia-items no-such-folder --paranoia-max-vr 20\n")
    assert shown(run(pytester)) == shown(plain)


def test_a_gate_without_the_switch_is_refused(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--paranoia-max-vr", "20")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --paranoia-max-vr: has no effect without --paranoia; add it"])


def test_the_plugin_can_be_switched_off(pytester: pytest.Pytester) -> None:
    result = run(pytester, *WITHOUT, "--paranoia")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unrecognized arguments: --paranoia*"])
