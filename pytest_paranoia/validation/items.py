"""The proofs of ``--paranoia-validate`` as pytest items: text, second reading, runs, and each variant with each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_paranoia import canaries
from pytest_paranoia.collection import EVIDENCE, ParanoiaItem
from pytest_paranoia.corpus import ItemRoot, PairItem, ScenarioItem
from pytest_paranoia.fixtures import session_of
from pytest_paranoia.schema.taxonomy import VARIANTS, Variant
from pytest_paranoia.validation import pairs, scenarios
from pytest_paranoia.validation import proofs as proving
from pytest_paranoia.validation.proofs import Context

if TYPE_CHECKING:
    from pytest_paranoia.collection import ManifestFile

Proof = Callable[[Context], str]


def proof_body(request: pytest.FixtureRequest) -> None:
    """Run the proof; what it shows is printed and, for the evidence, carried to the summary."""
    __tracebackhide__ = True
    item: ProofItem = request.node
    shown = item.proof(Context(item.paranoia_item, session_of(request.config)))
    print(shown)
    if item.name.endswith("[text]") and isinstance(item.paranoia_item, PairItem):
        item.user_properties.append((EVIDENCE, shown))


class ProofItem(ParanoiaItem):
    """One proof of one item."""

    proof: Proof
    paranoia_item: PairItem | ScenarioItem

    @classmethod
    def build(cls, parent: ManifestFile, item: PairItem | ScenarioItem, name: str, proof: Proof) -> ProofItem:
        """Return the proof called *name*."""
        node = cls.named(parent, "test_proof", name, proof_body)
        node.proof, node.paranoia_item, node.of = proof, item, item.name
        return node


class CanaryFile(pytest.File):
    """The declaration of a root's canary: what the root holds beside its items is proved under its name."""

    root: ItemRoot

    @classmethod
    def build(cls, parent: pytest.Collector, path: Path, root: ItemRoot) -> CanaryFile:
        """Return the collector of ``oracles/canary.txt`` of *root*."""
        node: CanaryFile = cls.from_parent(parent, path=path, nodeid=root.nodeid(path))
        node.root = root
        return node

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the one proof."""
        yield RootProof.named(self, "test_proof", "canary", root_body)


class RootProof(ParanoiaItem):
    """The proof of what a root holds beside its items."""

    @property
    def heading(self) -> str:
        """What the title of a failure says."""
        return f"{self.nodeid.partition('::')[0]} {self.name}"


def root_body(request: pytest.FixtureRequest) -> None:
    """Run the proof of a root."""
    __tracebackhide__ = True
    root: ItemRoot = request.node.parent.root
    canary = canaries.declared(root)
    assert canary is not None
    print(proving.root_canary(root, canary))


def proofs(parent: ManifestFile, item: PairItem | ScenarioItem) -> Iterator[ProofItem]:
    """Yield the proofs of *item*."""
    if isinstance(item, PairItem):
        yield ProofItem.build(parent, item, "text", pairs.pair_text)
        yield ProofItem.build(parent, item, "review", pairs.pair_review)
        yield ProofItem.build(parent, item, "runs", pairs.pair_runs)
        for variant in VARIANTS:
            yield _pair(parent, item, variant, "untouched", partial(pairs.pair_untouched, variant=variant))
            for run in sorted(item.runs):
                if not pairs.is_excess(run):
                    yield _pair(parent, item, variant, run, partial(pairs.pair_run, variant=variant, run=run))
            # One proof for all of them: it also compares how they are judged.
            yield _pair(parent, item, variant, "excess", partial(pairs.pair_excess, variant=variant))
        return
    yield ProofItem.build(parent, item, "text", scenarios.scenario_text)
    yield ProofItem.build(parent, item, "runs", scenarios.scenario_runs)
    if item.scenario.family == "inherited-resume":
        yield ProofItem.build(parent, item, "start", scenarios.scenario_start)
    for run in sorted(item.runs):
        yield ProofItem.build(parent, item, run, partial(scenarios.scenario_run, run=run))


def _pair(parent: ManifestFile, item: PairItem, variant: Variant, what: str, proof: Proof) -> ProofItem:
    node = ProofItem.build(parent, item, f"{variant}-{what}", proof)
    node.extra_keyword_matches.add("Eplus" if variant == "E+" else "Eminus")
    return node
