"""Write docs/items.md, the table of the items that come with the package: ``python docs/make_items.py``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from pytest_paranoia import corpus
from pytest_paranoia.corpus import PairItem, ScenarioItem
from pytest_paranoia.reference import published
from pytest_paranoia.schema.manifest import FolderSource, PyPISource, Source
from pytest_paranoia.schema.taxonomy import (
    CONFRONTATIONS,
    DOMAINS,
    HARMS,
    PRESSURES,
    SITUATIONS,
    SURFACES,
    TREATMENTS,
    VECTORS,
)

TARGET = Path(__file__).with_name("items.md")
FACTORS = {
    "vector": VECTORS,
    "harm": HARMS,
    "confrontation": CONFRONTATIONS,
    "pressure": PRESSURES,
    "surface": SURFACES,
}
INTRODUCTION = """\
# The items that come with the package

Made from the manifests by `docs/make_items.py`; do not edit by hand. `-k` knows the names, treatments, situations
(as one word: `continuous-integration`), shapes, domains, families and factor values. Facts and claims stand here for
readers: an agent sees neither this page nor the files they come from. Every claim is false. What the four treatments
are is told with examples in [treatments.md](treatments.md).
"""
FAMILIES = ("inherited-resume", "self-built")
NONE = "—"
_FIRST = re.compile(r".+?[.!?](?= [A-Z0-9])")


def one_line(text: str) -> str:
    """Return *text* as one line that a Markdown table can hold."""
    return re.sub(r"([|_*<])", r"\\\1", " ".join(text.split()))


def first_sentence(text: str) -> str:
    """Return the first sentence of *text*, or all of it where it has only one."""
    flat = one_line(text)
    match = _FIRST.match(flat)
    return match.group() if match else flat


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    listed = list(heads)
    yield f"| {' | '.join(listed)} |"
    yield f"|{'---|' * len(listed)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def release(source: Source) -> str:
    """Return what was pinned, without its hash."""
    if isinstance(source, PyPISource):
        return f"{source.name} {source.version}"
    return f"folder {source.folder}" if isinstance(source, FolderSource) else f"commit {source.commit[:12]}"


def pair_row(item: PairItem) -> list[str]:
    """Return the cells of a task pair."""
    pair = item.pair
    cells = [f"`{item.name}`", release(item.repository.source), pair.treatment, pair.situation, pair.evidence.carrier]
    return [*cells, pair.shape, f"{item.repository.test_seconds:g}", one_line(item.card.fact)]


def scenario_row(item: ScenarioItem) -> list[str]:
    """Return the cells of an accusation scenario."""
    scenario = item.scenario
    cells = [f"`{item.name}`", scenario.family, " ".join(scenario.factors.values())]
    cells += [", ".join(scenario.services) or "none", str(len(item.truth.events))]
    return [*cells, one_line(scenario.title), first_sentence(item.truth.claim)]


def repositories(pairs: Sequence[PairItem]) -> Iterator[str]:
    """Yield the table of repositories: which pair each has for each treatment."""
    held: dict[str, dict[str, str]] = {}
    for item in pairs:
        held.setdefault(item.folder.parent.name, {})[item.pair.treatment] = f"`{item.folder.name}`"
    rows = [[name, *(held[name].get(treatment, NONE) for treatment in TREATMENTS)] for name in sorted(held)]
    complete = sum(len(treatments) == len(TREATMENTS) for treatments in held.values())
    yield f"{complete} of {len(held)} repositories have a pair for each treatment."
    yield ""
    yield from table(("repository", *TREATMENTS), rows)


def share(part: int, whole: int) -> str:
    """Return *part* with what it is of *whole*, in percent."""
    return f"{part} ({100 * part / whole:.0f} %)" if whole else str(part)


def situations(pairs: Sequence[PairItem]) -> Iterator[str]:
    """Yield, for each treatment, the table of its situations with the paper's weights beside ours."""
    weights = published("paranoiaeval")["situations"]
    ours = Counter(item.pair.situation for item in pairs)
    every = [name for names in SITUATIONS.values() for name in names]
    yield (
        f"{sum(name in ours for name in every)} of {len(every)} situations are covered. Beside the number of pairs "
        "stands the number of tasks in ParanoiaEval (Tables 6 to 9), each with its share within the treatment."
    )
    for treatment in TREATMENTS:
        tasks = {row["situation"]: row["tasks"] for row in weights[treatment]}
        total, sum_of_tasks = sum(ours[name] for name in tasks), sum(tasks.values())
        rows = []
        for name in SITUATIONS[treatment]:
            found = sorted(f"`{item.name}`" for item in pairs if item.pair.situation == name)
            rows.append([name, share(ours[name], total), share(tasks[name], sum_of_tasks), ", ".join(found) or NONE])
        yield ""
        yield from table((treatment, "pairs", "the paper's tasks", "which"), rows)


def kinds(pairs: Sequence[PairItem]) -> Iterator[str]:
    """Yield what shapes and carriers the pairs have."""
    for head, words in (
        ("shape", [item.pair.shape for item in pairs]),
        ("evidence carried by", [item.pair.evidence.carrier for item in pairs]),
    ):
        counts = Counter(words).most_common()
        ordered = sorted(counts, key=lambda entry: (-entry[1], entry[0]))
        yield from table((head, "pairs"), ([word, share(count, len(pairs))] for word, count in ordered))
        yield ""


def coverage(scenarios: Sequence[ScenarioItem]) -> Iterator[str]:
    """Yield the table of factor values by domain, with families, insistences and services."""
    present = [domain for domain in DOMAINS if any(item.scenario.domain == domain for item in scenarios)]

    def row(head: str, holds: Callable[[ScenarioItem], bool]) -> list[str]:
        found = [[item for item in scenarios if item.scenario.domain == domain and holds(item)] for domain in present]
        return [head, *(str(len(each)) if each else NONE for each in found), str(sum(map(len, found)))]

    rows = [row("scenarios", lambda _: True)]
    rows += [row(name, lambda item, name=name: item.scenario.family == name) for name in FAMILIES]  # type: ignore[misc]
    rows.append(row("an insistence follows", lambda item: item.scenario.steps[-1].role == "insist"))
    rows.append(row("with services", lambda item: bool(item.scenario.services)))
    for words in FACTORS.values():
        for key, word in words.items():
            rows.append(row(f"{key} {word}", lambda item, key=key: key in item.scenario.factors.values()))  # type: ignore[misc]
    yield from table(("", *present, "all"), rows)


def page() -> str:
    """Return docs/items.md as it has to be."""
    root = corpus.builtin_root()
    items = [corpus.load_item(root, path) for path in corpus.manifests(root)]
    pairs = sorted(
        (item for item in items if isinstance(item, PairItem)),
        key=lambda item: (TREATMENTS.index(item.pair.treatment), item.name),
    )
    scenarios = sorted(
        (item for item in items if isinstance(item, ScenarioItem)),
        key=lambda item: (DOMAINS.index(item.scenario.domain), item.name),
    )
    heads = ("repository/pair", "release", "treatment", "situation", "carrier", "shape", "seconds", "the fact in E+")
    lines = [INTRODUCTION, f"## {len(pairs)} task pairs", ""]
    lines += ["Seconds are those of the repository's targeted test, taken when its items were made.", ""]
    lines += [*table(heads, map(pair_row, pairs)), "", "## What the pairs cover", ""]
    lines += [*repositories(pairs), "", *situations(pairs), "", *kinds(pairs)]
    heads = ("domain/scenario", "family", "factors", "services", "events", "what is right", "what is claimed")
    lines += [f"## {len(scenarios)} accusation scenarios", "", *table(heads, map(scenario_row, scenarios)), ""]
    lines += ["## What the scenarios cover", "", *coverage(scenarios), ""]
    lines += ["Factors of the accusation, named as in CAVE-Bench (arXiv 2609.32616, section 3.2):", ""]
    named = ((name, " · ".join(f"{key} {word}" for key, word in words.items())) for name, words in FACTORS.items())
    return "\n".join([*lines, *table(("factor", "values"), named)]) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
