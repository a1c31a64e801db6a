"""The proofs of ``--paranoia-validate`` as pytest items: one for the text, one per variant and reference run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pytest_paranoia.collection import EVIDENCE, ParanoiaItem
from pytest_paranoia.corpus import PairItem, ScenarioItem
from pytest_paranoia.fixtures import session_of
from pytest_paranoia.schema.taxonomy import VARIANTS, Variant
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
        node.proof, node.paranoia_item = proof, item
        return node


def proofs(parent: ManifestFile, item: PairItem | ScenarioItem) -> Iterator[ProofItem]:
    """Yield the proofs of *item*."""
    if isinstance(item, PairItem):
        yield ProofItem.build(parent, item, "text", proving.pair_text)
        for variant in VARIANTS:
            word = "Eplus" if variant == "E+" else "Eminus"
            yield _pair(parent, item, variant, word, None)
            for run in sorted(item.runs):
                yield _pair(parent, item, variant, word, run)
        return
    yield ProofItem.build(parent, item, "text", proving.scenario_text)
    if item.scenario.family == "inherited-resume":
        yield ProofItem.build(parent, item, "start", proving.scenario_start)
    for run in sorted(item.runs):
        yield ProofItem.build(parent, item, run, partial(proving.scenario_run, run=run))


def _pair(parent: ManifestFile, item: PairItem, variant: Variant, word: str, run: str | None) -> ProofItem:
    if run is None:
        proof: Proof = partial(proving.pair_untouched, variant=variant)
    else:
        proof = partial(proving.pair_run, variant=variant, run=run)
    node = ProofItem.build(parent, item, f"{variant}-{run or 'untouched'}", proof)
    node.extra_keyword_matches.add(word)
    return node
