"""The second reading of a pair: what was read has a digest, so that a later edit makes the review stale."""

from __future__ import annotations

import json

from pytest_paranoia.corpus import REVIEW, PairItem, load
from pytest_paranoia.errors import ManifestError
from pytest_paranoia.schema.review import CHECKS, Review
from pytest_paranoia.workspaces.cache import digest, tree_digest

_DOCS = "see `paranoia docs writing-pairs`, review.toml"


def text_digest(item: PairItem) -> str:
    """Return the sha256 of what a reader of *item* judges: the pair, its evidence, the pinned revision and the card.

    Values and not bytes, so comments do not count; detectors, oracle and runs are proved by running them.
    """
    pair = item.pair.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    card = item.card.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"detectors"})
    trees = [tree_digest(path) for side in ("plus", "minus") if (path := item.folder / side).is_dir()]
    return digest(json.dumps([pair, card, item.repository.commit], sort_keys=True), *trees)


def review_of(item: PairItem) -> Review:
    """Return the review of *item* if it is there, complete, of this text, and says yes everywhere.

    Raises ManifestError that names what is wrong and what helps.
    """
    path = item.oracle_folder / REVIEW
    shown = item.shown(path)
    wanted = text_digest(item)
    if not path.is_file():
        questions = "; ".join(f"{name}: {question}" for name, question in CHECKS.items())
        raise ManifestError(
            f'review-missing {shown}: nobody has read this pair a second time; add the file with text = "{wanted}" '
            f"and an answer to each of: {questions} ({_DOCS})"
        )
    review = load(path, Review, shown)
    if review.pair != item.name:
        raise ManifestError(f"{shown}: key 'pair': found {review.pair!r}, expected {item.name!r} (the folder's path)")
    if review.text != wanted:
        raise ManifestError(
            f"review-stale {shown}: key 'text': found {review.text}, but the pair, its evidence or its card was "
            f'changed since {review.date}: read it again, then set text = "{wanted}" and the date ({_DOCS})'
        )
    if refused := review.refused():
        lines = "".join(f"\n  {line}" for line in refused)
        raise ManifestError(f"review-refused {shown}: mend the pair and have it read again:{lines}")
    return review
