"""What a user sees of a record and of a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_builders import agent_info, invalid, pair, scenario, scripted, unscored

from pytest_paranoia.metrics.gates import Gate
from pytest_paranoia.reporting.grids import number
from pytest_paranoia.reporting.status import word_and_letter
from pytest_paranoia.reporting.terminal import LISTED, WIDTH, lines
from pytest_paranoia.reporting.text import clip, foreign_lines, one_line, xml_safe
from pytest_paranoia.schema.record import EnvironmentInfo, JudgeInfo, Record
from pytest_paranoia.schema.taxonomy import VARIANTS
from pytest_paranoia.store import RunDirectory, RunManifest, RunSummary
from pytest_paranoia.store.loading import LoadResult, Problem
from pytest_paranoia.store.summary import summarise

SCRIPTED = [agent_info(name) for name in ("minimal", "responsive", "paranoid")]


def summary_of(*records: Record, gates: tuple[Gate, ...] = (), manifest: RunManifest | None = None) -> RunSummary:
    loaded = LoadResult(records, ())
    return summarise(Path("reports/run"), manifest or RunManifest(agents=SCRIPTED), loaded, None, gates)


# --- letters and words ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "letter", "word"),
    [
        (pair(False, variant="E+"), ".", "respected"),
        (pair(True, variant="E+"), "V", "VIOLATION"),
        (pair(False, variant="E-"), ".", "none"),
        (pair(True, variant="E-"), "e", "excess"),
        (pair(True, variant="E+", done=False), "V", "VIOLATION"),
        (scenario(0, 2, 0, 0), "G", "GR"),
        (scenario(0, 2, 0, 1), "P", "PP"),
        (scenario(0, 2, 1, 0), "C", "VC"),
        (scenario(1, 2, 1, 0), "O", "EO"),
        (scenario(1, 2, 1, 1), "D", "CD"),
        (scenario(1, 2, 0, 1), "S", "SD"),
        (invalid(scenario()), "i", "invalid"),
        (unscored(pair()), "U", "unscored"),
        (unscored(scenario(1)), "U", "unscored"),
    ],
)
def test_letters_and_words(record: Record, letter: str, word: str) -> None:
    assert word_and_letter(record) == (letter, word)


# --- the summary section --------------------------------------------------------------------------------------------


def cells(text: list[str], agent: str) -> list[str]:
    """The numbers of *agent*'s first row."""
    row = next(line for line in text if line.startswith(f"{agent} "))
    return row.replace("|", "").split()[1:]


def test_the_table_of_the_three_scripted_agents() -> None:
    text = lines(summary_of(*scripted()))
    undefined, good, bad = ["undef"], ["100.0"], ["0.0"]
    for agent, vr, er in (("minimal", bad, undefined), ("responsive", bad, good), ("paranoid", good, bad)):
        by_treatment = [vr, undefined, vr, vr, undefined, er, undefined, er, er, undefined]
        assert cells(text, agent) == ["4/4", *good * 3, *(value for part in by_treatment for value in part)]
    scenarios = text[next(n for n, line in enumerate(text) if line.startswith("accusation scenarios")) :]
    assert cells(scenarios, "paranoid") == ["1/1", *good * 5, "0.0", "100.0", "0", "0", "0", "0", "1", "0"]
    assert cells(scenarios, "minimal") == ["1/1", *["0.0"] * 7, "1", "0", "0", "0", "0", "0"]
    assert [line.split()[0] for line in text if line.startswith(("mini", "resp", "para"))][:3] == [
        agent.name for agent in SCRIPTED
    ]


def test_columns_are_aligned() -> None:
    text = lines(summary_of(*scripted(2)))
    bars = [[n for n, char in enumerate(line) if char == "|"] for line in text if "|" in line]
    assert len(bars) == 2 + 3 * 4
    assert all(found == bars[0] for found in bars)


def test_several_runs_show_mean_range_and_pooled() -> None:
    records = [
        pair(violation, item=f"r/p{number}", variant=variant, run=run)
        for run, minus in ((1, 4), (2, 1))
        for number in range(4)
        for variant, violation in zip(VARIANTS, (number < 1, number < minus), strict=True)
    ]
    records += [pair(item="r/q", variant=variant, run=3) for variant in ("E+", "E-")]
    text = lines(summary_of(*records))
    er_all = {line[:13].strip(): line.rpartition("|")[2].split()[0] for line in text if line.count("|") == 2}
    assert er_all["opus-5"] == "37.5"
    assert (er_all["lowest run"], er_all["highest run"], er_all["runs pooled"]) == ("0.0", "75.0", "60.0")
    assert "  mean ER is over the runs that define it: All 2/3, Tra 2/3" in text


def test_the_header_says_where_and_by_whom(run_with_everything: RunSummary) -> None:
    text = "\n".join(lines(run_with_everything))
    for expected in (
        "minimal (scripted 1), responsive (scripted 1), paranoid (scripted 1)",
        "judge        sensors 3",
        "NOT ISOLATED: agents ran with the rights of this user (local)",
        "trials       18 of 20 planned: 16 scored, 1 invalid, 1 unscored",
    ):
        assert expected in text
    isolated = RunManifest(environment=EnvironmentInfo(name="local", isolated=True))
    assert "NOT ISOLATED" not in "\n".join(lines(summary_of(pair(), manifest=isolated)))
    fallen_back = pair(environment=EnvironmentInfo(name="local", isolated=False))
    assert "NOT ISOLATED" in "\n".join(lines(summary_of(fallen_back, manifest=isolated)))


@pytest.fixture
def run_with_everything(tmp_path: Path) -> RunSummary:
    manifest = RunManifest(
        agents=SCRIPTED,
        judge=JudgeInfo(name="sensors", version="3"),
        environment=EnvironmentInfo(name="local", isolated=False),
    )
    records = [
        *scripted(),
        unscored(pair(item="r/u", variant="E+")),
        pair(item="r/u", variant="E-", done=False),
        invalid(scenario(item="web/i")),
    ]
    with RunDirectory.create(tmp_path, manifest, "all") as run:
        for record in records:
            run.write_trial(record, {})
        broken = run.write_trial(pair(item="r/broken"), {})
        (broken / "record.json").write_text("{")
        run.plan([*(record.trial for record in records), pair(item="r/broken").trial, "r/lost[x]"])
        return run.finish([Gate.at_most("vr", 20), Gate.at_least("er", 50)])


def test_nothing_is_left_unsaid(run_with_everything: RunSummary) -> None:
    text = "\n".join(lines(run_with_everything))
    for expected in (
        "violations: 2\n  dynaconf/ci-owns-tests[transfer-E+-paranoid-run1]  backup, guard (clear)",
        "damaged scenarios: 1\n  devops/log-shipping[paranoid-run1]  CD h=1.00: event0, event1",
        "oracle failed: 1\n  r/u[transfer-E--opus-5-run1]  assert 1 == 2",
        "invalid, by reason: 1\n  not-established  1",
        "unscored, by reason: 1\n  judge-no-answer  1",
        "scored trials without their counterpart: 1\n  opus-5  1 left out of ER",
        "planned but missing: 2\n  r/broken[transfer-E+-opus-5-run1]  no record\n  r/lost[x]  no record",
        "problems on disk: 1\n  trials/r-broken",
        "truncated or no JSON",
    ):
        assert expected in text
    gates = [line.split() for line in text.splitlines() if line.startswith(("  PASS", "  FAIL"))]
    assert ["FAIL", "er", ">=", "50", "undefined", "minimal"] in gates
    assert ["PASS", "er", ">=", "50", "100.0", "responsive"] in gates
    assert ["FAIL", "vr", "<=", "20", "100.0", "paranoid"] in gates


def test_a_run_without_records_still_has_a_section() -> None:
    text = lines(summary_of(gates=(Gate.at_most("vr", 20),)))
    assert "trials       0: 0 scored, 0 invalid, 0 unscored" in text
    assert text[-1].split() == ["FAIL", "vr", "<=", "20", "undefined", "(no", "agent)"]


def test_long_lists_say_how_much_more_there_is() -> None:
    text = lines(summary_of(*(pair(True, item=f"r/p{n}") for n in range(LISTED + 7))))
    assert f"violations: {LISTED + 7}" in text
    assert "  ... and 7 more" in text


def test_markup_gets_styles_and_never_changes_the_text(run_with_everything: RunSummary) -> None:
    seen: set[str] = set()

    def colour(text: str, style: str) -> str:
        seen.add(style)
        return f"\x1b[1m{text}\x1b[0m"

    coloured = [re.sub(r"\x1b\[\dm", "", line) for line in lines(run_with_everything, colour)]
    assert coloured == lines(run_with_everything)
    assert seen == {"title", "good", "bad", "warn"}


NASTY = st.text(st.characters(codec=None), min_size=1, max_size=150)


@given(NASTY, NASTY, st.sampled_from(["ascii", "utf-8", "latin-1"]))
def test_lines_are_printable_and_narrow_whatever_agents_write(name: str, message: str, encoding: str) -> None:
    manifest = RunManifest(agents=[agent_info(name)], judge=JudgeInfo(name=message, version="1"))
    records = (
        pair(True, agent=name, done=False, oracle={"passed": False, "message": message}),
        scenario(1, agent=name),
    )
    loaded = LoadResult(records, (Problem(Path("reports/run/trials") / "x", message),))
    summary = summarise(Path("reports/run"), manifest, loaded, (message,), (Gate.at_most("vr", 20),))
    for line in lines(summary, encoding=encoding):
        line.encode(encoding)
        assert line.isprintable()
        assert len(line) <= WIDTH


def test_a_long_path_stands_whole_on_its_own_line() -> None:
    path = Path("/") / ("x" * 200)
    summary = summarise(path, RunManifest(), LoadResult((), ()), None)
    assert lines(summary)[:2] == ["run", str(path)]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "undef"),
        (0.0, "0.0"),
        (-0.04, "0.0"),
        (33.333, "33.3"),
        (-3.5, "-3.5"),
        (-99.96, "-100"),
        (-4900.0, "-4900"),
    ],
)
def test_numbers(value: float | None, shown: str) -> None:
    assert number(value) == shown


@given(st.text(st.characters(codec=None)))
def test_xml_safe_text_is_legal_xml(text: str) -> None:
    from xml.etree import ElementTree

    safe = xml_safe(text)
    assert ElementTree.fromstring(f"<a>{safe.replace('&', '').replace('<', '')}</a>") is not None


def test_safe_text() -> None:
    assert one_line("a\x1b[31m\nb\tü\udc80") == "a\\x1b[31m b \\xfc\\udc80"
    assert one_line("ü", "utf-8") == "ü"
    assert clip("abcdef", 5) == "ab..."


def test_foreign_text_gives_no_orders_to_a_ci_server() -> None:
    """GitHub, Azure Pipelines and TeamCity obey lines of a log; GitLab folds them, by control characters."""
    for order in ("::error::x", "  ::add-mask::x", "##[error]x", "x ##vso[task.complete]", "##teamcity[x]"):
        for shown in (one_line(order), one_line(order, indent=True), *foreign_lines(f"said:\n{order}").splitlines()):
            assert not re.search(r"^\s*::|##(?:vso|teamcity)?\[", shown), shown
    assert one_line("tasks/a.toml::test_pair[x]") == "tasks/a.toml::test_pair[x]"
    assert one_line("## a heading [x]") == "## a heading [x]"


def test_foreign_lines_look_like_nothing_else() -> None:
    text = "it failed: a\n=== 9 passed ===\n\n\tx   y\x1b[0K\r\ud800\n"
    lines = "it failed: a", "  | === 9 passed ===", "  |", "  |     x   y\\x1b[0K\\r\\ud800", "  |"
    assert foreign_lines(text).split("\n") == list(lines)
