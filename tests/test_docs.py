"""The documentation against the code: what it names exists, what exists is named, and its examples work."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import get_args
from xml.etree import ElementTree

import pytest
import record_builders
from pydantic import BaseModel
from sessions import Session
from small_items import ItemFolder

from pytest_paranoia import corpus
from pytest_paranoia.plugin import pytest_addoption, pytest_load_initial_conftests
from pytest_paranoia.reporting import grids
from pytest_paranoia.schema import evaluator, manifest, review
from pytest_paranoia.schema.taxonomy import PATHS, SITUATIONS, TREATMENTS, VARIANTS
from pytest_paranoia.store import RunDirectory, RunManifest, results

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
OPTION = re.compile(r"--(?:paranoia|model)[a-z-]*(?<!-)")


def options() -> set[str]:
    """The plugin's options, as its hooks register them."""
    parser = pytest.Parser(_ispytest=True)
    pytest_addoption(parser)
    late = pytest_load_initial_conftests(parser)
    next(late)
    late.close()
    return {name for option in parser.getgroup("paranoia").options for name in option.names()} | {"--model"}


def script(name: str) -> ModuleType:
    """A script of docs/, imported."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def examples(page: str) -> Iterator[tuple[str, str]]:
    """The files that a page gives in full: a path in backticks on a line of its own, then a fenced block."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for match in re.finditer(r"^`([\w./-]+)`\n\n```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield match[1], match[2]


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_option_is_described() -> None:
    rows = re.findall(r"^\|.*\|$", (DOCS / "running.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert options() <= {name for row in rows for name in OPTION.findall(row)}


def test_no_other_option_is_named() -> None:
    assert set(OPTION.findall(TEXT)) <= options() | {"--model"}


def test_every_exit_status_is_described() -> None:
    rows = re.findall(r"^\| (\d) \| .+ \|$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert {str(int(code)) for code in pytest.ExitCode} <= set(rows)


def test_every_score_and_path_is_described() -> None:
    readme = README.read_text(encoding="utf-8")
    for name in ("TSR", "VR", "ER", "delta", *(name.upper() for name in grids._SCORES), *PATHS):
        assert re.search(rf"\b{name}\b", readme), name
    for word in ("undef", "invalid", "unscored"):
        assert f"**{word}**" in readme


def models(module: ModuleType) -> list[type[BaseModel]]:
    found = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, BaseModel)]
    return [model for model in found if model.__module__ == module.__name__]


@pytest.mark.parametrize("module", [manifest, evaluator, review], ids=["tasks", "oracles", "reviews"])
def test_every_key_is_described(module: ModuleType) -> None:
    pages = "\n".join(
        (DOCS / name).read_text(encoding="utf-8") for name in ("writing-pairs.md", "writing-scenarios.md")
    )
    code = set(
        re.findall(r"[\w-]+", " ".join(re.findall(r"`[^`\n]+`|^[a-z_.]+ = |^\[+[\w.]+\]+", pages, re.MULTILINE)))
    )
    missing = {
        f"{model.__name__}.{key}"
        for model in models(module)
        for key in (field.alias or name for name, field in model.model_fields.items())
        if key not in code
    }
    assert not missing


def test_every_closed_word_is_described() -> None:
    pages = (DOCS / "writing-pairs.md").read_text(encoding="utf-8")
    words = {
        *get_args(manifest.Pair.model_fields["shape"].annotation),
        *get_args(evaluator.CommandDetector.model_fields["form"].annotation),
        *review.CHECKS,
        *review.CHECKS.values(),
        *review.STATUSES,
        *(
            get_args(model.model_fields["on"].annotation)[0]
            for model in models(evaluator)
            if "on" in model.model_fields
        ),
    }
    assert not {word for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", pages)}


def test_every_column_of_the_results_is_described() -> None:
    page = (DOCS / "records.md").read_text(encoding="utf-8")
    assert not [name for name in results.COLUMNS if f"`{name}`" not in page]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        assert "://" not in target, "links stay in the project"
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), target


def test_targets_of_make_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"^    make ([a-z]+)\b", TEXT, re.MULTILINE)) <= set(targets)


def test_the_table_of_items_is_up_to_date() -> None:
    made = script("make_items").page()
    assert (DOCS / "items.md").read_text(encoding="utf-8") == made, "run: python docs/make_items.py"


def test_the_coverage_counts_every_pair_once() -> None:
    """Against the manifests as they lie there, and against the paper: 50 tasks for each treatment."""
    text = (DOCS / "items.md").read_text(encoding="utf-8")
    pairs = [tuple(row.split(" | ")[2:4]) for row in re.findall(r"^\| (`[\w-]+/[\w-]+` \| .+) \|$", text, re.MULTILINE)]
    pairs = [pair for pair in pairs if pair[0] in TREATMENTS]
    assert f"## {len(pairs)} task pairs" in text
    for treatment, names in SITUATIONS.items():
        block = text.partition(f"\n| {treatment} | pairs | ")[2].partition("\n\n")[0]
        rows = re.findall(r"^\| ([^|]+) \| (\d+) \(\d+ %\) \| (\d+) \(\d+ %\) \| (.+) \|$", block, re.MULTILINE)
        assert [row[0] for row in rows] == list(names)
        assert sum(int(row[2]) for row in rows) == 50
        for name, count, _, which in rows:
            assert pairs.count((treatment, name)) == int(count) == which.count("`") // 2
    covered = len({situation for _, situation in pairs})
    assert f"{covered} of 44 situations are covered" in text


def test_a_repository_has_one_pair_for_a_treatment_at_most() -> None:
    root = corpus.builtin_root()
    held: dict[tuple[str, str], list[str]] = {}
    for path in root.tasks.glob("pairs/*/*/pair.toml"):
        treatment = tomllib.loads(path.read_text(encoding="utf-8"))["treatment"]
        held.setdefault((path.parent.parent.name, treatment), []).append(path.parent.name)
    assert len(held) >= 8
    assert {place: names for place, names in held.items() if len(names) > 1} == {}


def test_the_examples_of_the_treatments_are_pairs_as_they_are() -> None:
    """Every quotation stands in the manifest of the pair named before it, and each treatment has its example."""
    seen = {}
    for part in (DOCS / "treatments.md").read_text(encoding="utf-8").split("\n## ")[1:5]:
        match = re.search(r"^`([\w-]+/[\w-]+)`, situation \*(.+)\*\. The agent is told:$", part, re.MULTILINE)
        assert match is not None, part[:60]
        path = corpus.content_root() / f"tasks/pairs/{match[1]}/pair.toml"
        pair = corpus.load(path, manifest.Pair, match[1])
        seen[pair.treatment] = part.partition(":")[0].lower()
        assert match[2] == pair.situation
        told = re.findall(r"^> (.+)$", part, re.MULTILINE)
        words = [" ".join(pair.instruction_for(variant).split()) for variant in VARIANTS]
        assert told[0] in words[0]
        assert told[0] in words[1]
        if pair.evidence.carrier == "instruction":
            assert told[1:] == [pair.evidence.plus, pair.evidence.minus]
    assert seen == {treatment: treatment for treatment in TREATMENTS}


def test_the_picture_shows_the_tables_of_today() -> None:
    drawn = " ".join(ElementTree.parse(DOCS / "summary.svg").getroot().itertext())
    heads = ["task pairs", "accusation scenarios", "violations:", "damaged scenarios:", "gates"]
    heads += [*(name.upper() for name in grids._SCORES), *PATHS, *grids._SHORT.values(), "TSR", "VR", "ER"]
    assert not [head for head in heads if head not in drawn], "run: python docs/make_picture.py reports/RUN"


def test_the_picture_is_drawn_from_a_run(
    pytester: pytest.Pytester, items: ItemFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items.scenario("coding/retries")
    session = Session(pytester, items, "--model=paranoid", "--paranoia-max-cave=50")
    assert session.code == 1
    picture = tmp_path / "summary.svg"
    monkeypatch.setattr("sys.argv", ["make_picture", str(session.run), "--output", str(picture)])
    script("make_picture").main()
    drawn = list(ElementTree.parse(picture).getroot().itertext())
    assert "FAIL" in drawn
    assert any("coding/retries[G3-D1-paranoid-run1]" in text for text in drawn)


def test_the_complete_pair_validates(pytester: pytest.Pytester, items: ItemFolder) -> None:
    for path, text in examples("writing-pairs.md"):
        items.write(path, text)
    session = Session(pytester, items, "--paranoia-validate", active=False)
    session.result.assert_outcomes(passed=11)


def test_the_complete_scenario_validates(pytester: pytest.Pytester, items: ItemFolder) -> None:
    for path, text in examples("writing-scenarios.md"):
        items.write(path, text)
    session = Session(pytester, items, "--paranoia-validate", active=False)
    session.result.assert_outcomes(passed=8)


def test_examples_hold_no_broken_json_or_python() -> None:
    for page in PAGES:
        for language, block in re.findall(r"^```(python|json)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            compile(block, str(page), "exec") if language == "python" else json.loads(block)


# Put together here, so that this file does not name what it looks for.
@pytest.mark.parametrize(("page", "call"), [("statistics.md", "analyse("), ("records.md", "RunDirectory.open(")])
def test_what_reads_a_run_does_so_as_written(
    page: str, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = [block for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) if call in block]
    indented = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.MULTILINE)
    blocks += [textwrap.dedent(block) for block in indented if call in block]
    run = RunDirectory.create(tmp_path / "reports", RunManifest(), "RUN")
    for record in record_builders.scripted():
        run.write_trial(record, {})
    run.close()
    monkeypatch.chdir(tmp_path)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})


HOSTS = [".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("debian", "org"))]
MACHINE = re.compile(r"(?<![\w.-])/(?:work|root)/\w|(?<![\w.-])/home/(?!agent\b)\w")


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs a git checkout: {done.stderr.strip()}")
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_no_registry_host_and_no_path_of_a_machine_is_named() -> None:
    found = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        named = [host for host in HOSTS if host in text] + [match.group() for match in MACHINE.finditer(text)]
        found += [f"{path.relative_to(ROOT)}: {name}" for name in named]
    assert not found
