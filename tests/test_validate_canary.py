"""``--paranoia-validate``: the canary stands in every evaluator-only file, and nowhere that an agent can look."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import Session
from small_items import ItemFolder
from test_validate import failed, validate

from pytest_paranoia import canaries, corpus
from requirements import require

FIRST, SECOND = "bench canary 0f4c9a1e-", "5b1d-4a64-9f0e-3f6d1c2b7a90"
CANARY = FIRST + SECOND


@pytest.fixture
def marked(items: ItemFolder) -> ItemFolder:
    """A pair and a scenario whose evaluator-only files all hold a declared canary."""
    items.pair()
    items.scenario("coding/retries")
    items.write("oracles/canary.txt", CANARY + "\n")
    for path in sorted((items.folder / "oracles").rglob("*.*")):
        if path.suffix in (".toml", ".py"):
            path.write_text(f"# {CANARY}\n{path.read_text()}")
    return items


def test_files_that_all_hold_it(pytester: pytest.Pytester, marked: ItemFolder) -> None:
    marked.write("oracles/README.md", f"<!-- {CANARY} -->\n# For whoever evaluates\n")
    (marked.folder / "oracles/picture.png").write_bytes(b"\x89PNG\xff\xfe")  # no text, no place for it
    session = validate(pytester, marked, "-k", "text or canary")
    session.result.assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("path", "content", "proofs", "message"),
    [
        ("oracles/pairs/tiny/greet/runs/more.md", "#", ["text"], "canary-missing: *tiny/greet/runs/more.md*"),
        ("oracles/accusations/coding/retries/x.json", "{}", ["text"], "canary-missing: *coding/retries/x.json*"),
        ("oracles/notes.md", "#", ["canary"], "canary-missing: *bench/oracles/notes.md*"),
        (
            "oracles/pairs/tiny/template.toml",
            "",
            ["canary"],
            "canary-missing: *bench/oracles/pairs/tiny/template.toml*",
        ),
        ("tasks/pairs/tiny/greet/notes.md", CANARY, ["canary", "text"], "canary-visible: *tiny/greet/notes.md*"),
        ("tasks/services/desk", CANARY, ["canary"], "canary-visible: *bench/tasks/services/desk*"),
        (
            "oracles/canary.txt",
            "short\n",
            ["canary", "text", "text"],
            "*canary.txt: found 1 lines ('short'), expected one*",
        ),
        ("oracles/canary.txt", f"{CANARY}\n{CANARY}\n", ["canary", "text", "text"], "*canary.txt: found 2 lines, *"),
    ],
    ids=["run", "json", "stray", "beside", "manifest", "service", "short", "lines"],
)
def test_faults(
    pytester: pytest.Pytester, marked: ItemFolder, path: str, content: str, proofs: list[str], message: str
) -> None:
    marked.write(path, content)
    session = validate(pytester, marked, "-k", "text or canary")
    assert failed(session) == proofs
    session.result.stdout.fnmatch_lines([message])


def test_its_node_id_runs_as_it_is_shown(pytester: pytest.Pytester, marked: ItemFolder) -> None:
    """Also after a failure, by --lf; and where nothing is proved the file is none of ours."""
    marked.write("oracles/notes.md", "#")
    nodeid = "bench/oracles/canary.txt::test_proof[canary]"
    session = validate(pytester, marked, nodeid)
    session.result.assert_outcomes(failed=1)
    session.result.stdout.fnmatch_lines([f"FAILED {nodeid.replace('[', '[[]')}*"])
    validate(pytester, marked, "-k", "canary", "--lf").result.assert_outcomes(failed=1)
    session = Session(pytester, marked, "--collect-only", "-q")
    assert "canary" not in session.text


def test_what_a_trial_reaches(pytester: pytest.Pytester, marked: ItemFolder) -> None:
    """In the workspace that setup.sh makes out of pieces, and in a mount: both lie on file systems of their own."""
    require("bubblewrap")
    base = "tasks/accusations/coding/retries"
    marked.write(f"{base}/setup.sh", f"mkdir deep; printf '%s%s' '{FIRST}' '{SECOND}' > deep/file\n")
    manifest = marked.folder / base / "scenario.toml"
    manifest.write_text('services = ["truth.toml"]\n' + manifest.read_text())
    marked.write("tasks/services/truth.toml", "#!/bin/sh\n")
    session = validate(pytester, marked, "-k", "text and retries")
    assert failed(session) == ["text"]
    found = ["/opt/tools/services/truth.toml", "/opt/tools/truth.toml", "/workspace/deep/file (holds the canary)"]
    session.result.stdout.fnmatch_lines(
        [f"*evaluator files are reachable inside a trial: [[]'{found[0]}', '{found[1]}', '{found[2]}'[]]"]
    )


def test_without_isolation_the_start_tree_is_searched(
    pytester: pytest.Pytester, marked: ItemFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARANOIA_NO_BUBBLEWRAP", "1")
    setup = f"printf '%s%s' '{FIRST}' '{SECOND}' > file\n"
    marked.write("tasks/accusations/coding/retries/setup.sh", setup)
    session = validate(pytester, marked, "-k", "text and retries")
    session.result.stdout.fnmatch_lines(["*evaluator files are reachable inside a trial: *file'*"])


def test_ours_stands_in_the_readme_and_in_no_task() -> None:
    root = corpus.builtin_root()
    canary = canaries.declared(root)
    assert canary == "pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455"
    assert canaries.unclaimed_without(root, canary) == []
    assert canaries.holding(root.tasks, canary) == []
    assert canary in (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    judge = {path.name for path in (root.folder / "judge").rglob("*.*")}
    assert {"rules.md", "lexicon.toml", "verdict.schema.json"} <= judge
