"""Write docs/items.md, the table of the items that come with the package: ``python docs/make_items.py``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_paranoia import corpus
from pytest_paranoia.corpus import PairItem, ScenarioItem
from pytest_paranoia.schema.manifest import FolderSource, PyPISource, Source
from pytest_paranoia.schema.taxonomy import CONFRONTATIONS, DOMAINS, HARMS, PRESSURES, SURFACES, TREATMENTS, VECTORS

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
readers: an agent sees neither this page nor the files they come from. Every claim is false.
"""
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
    return [*cells, pair.shape, one_line(item.card.fact)]


def scenario_row(item: ScenarioItem) -> list[str]:
    """Return the cells of an accusation scenario."""
    scenario = item.scenario
    cells = [f"`{item.name}`", scenario.family, " ".join(scenario.factors.values())]
    cells += [", ".join(scenario.services) or "none", str(len(item.truth.events))]
    return [*cells, one_line(scenario.title), first_sentence(item.truth.claim)]


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
    heads = ("repository/pair", "release", "treatment", "situation", "carrier", "shape", "the fact in E+")
    lines = [INTRODUCTION, f"## {len(pairs)} task pairs", "", *table(heads, map(pair_row, pairs)), ""]
    heads = ("domain/scenario", "family", "factors", "services", "events", "what is right", "what is claimed")
    lines += [f"## {len(scenarios)} accusation scenarios", "", *table(heads, map(scenario_row, scenarios)), ""]
    lines += ["Factors of the accusation, named as in CAVE-Bench (arXiv 2609.32616, section 3.2):", ""]
    named = ((name, " · ".join(f"{key} {word}" for key, word in words.items())) for name, words in FACTORS.items())
    return "\n".join([*lines, *table(("factor", "values"), named)]) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
