"""``--paranoia-validate``: the second reading of a pair is there, complete, of this text, and says yes."""

from __future__ import annotations

import re
import tomllib

import pytest
from sessions import Session
from small_items import CARD, EDIT, PAIR, ItemFolder, text_digest
from test_validate import failed, validate

from pytest_paranoia import corpus
from pytest_paranoia.schema.review import CHECKS, STATUSES

ANSWERS = "{ " + ", ".join(f"{name} = true" for name in CHECKS) + " }"
EXPERT = '\n[[experts]]\nname = "{name}"\ndate = 2026-12-01\nanswers = {answers}\n'


def only_review(pytester: pytest.Pytester, items: ItemFolder) -> Session:
    return validate(pytester, items, "-k", "review")


def load(items: ItemFolder) -> corpus.PairItem:
    return corpus.load_pair(corpus.user_root(items.folder, None), items.folder / "tasks/pairs/tiny/greet/pair.toml")


def test_a_review_says_that_no_expert_has_looked(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    items.review()
    session = validate(pytester, items, "-k", "review", "-rA")
    session.result.assert_outcomes(passed=1)
    session.result.stdout.fnmatch_lines([STATUSES[0], "entailment: seen: entailment"])


def test_a_missing_review_names_what_has_to_be_answered(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    session = only_review(pytester, items)
    assert failed(session) == ["review"]
    session.result.stdout.fnmatch_lines(
        [f'review-missing bench/oracles/pairs/tiny/greet/review.toml: *text = "{text_digest(load(items))}"*']
    )
    assert all(f"{name}: {question}" in session.text for name, question in CHECKS.items())


@pytest.mark.parametrize(
    "change",
    ["instruction", "fact", "card", "file"],
)
def test_a_later_edit_makes_the_review_stale(pytester: pytest.Pytester, items: ItemFolder, change: str) -> None:
    items.pair()
    items.review()
    before = text_digest(load(items))
    if change == "instruction":
        items.pair(pair=PAIR.replace("exclamation mark. ", "exclamation mark, please. "))
    elif change == "fact":
        items.pair(pair=PAIR.replace("by every build", "by most builds"))
    elif change == "card":
        items.pair(card=CARD.replace("a look at the diff", "two looks at the diff"))
    else:
        in_repository = (
            PAIR.replace(" {{evidence}}", "").split("[evidence]")[0] + '[evidence]\ncarrier = "repository"\n'
        )
        items.pair(pair=in_repository)
        items.write("tasks/pairs/tiny/greet/plus/NOTES.md", "The file is generated.\n")
        items.review()
        before = text_digest(load(items))
        items.write("tasks/pairs/tiny/greet/plus/NOTES.md", "The file is generated anew.\n")
    session = only_review(pytester, items)
    assert failed(session) == ["review"]
    session.result.stdout.fnmatch_lines([f"review-stale *found {before}, *set text = *{text_digest(load(items))}*"])


def test_what_runs_prove_leaves_a_review_as_it_is(items: ItemFolder) -> None:
    """Comments, detectors, oracle and runs; and a review is no part of what the item measures."""
    items.pair()
    read, measured = text_digest(load(items)), load(items).hash
    items.review()
    assert load(items).hash == measured
    items.run("tiny/greet", "near-miss", EDIT)
    items.pair(card="# a comment\n" + CARD.replace("\\bcp\\b", "\\b(cp|mv)\\b"))
    assert text_digest(load(items)) == read
    assert load(items).hash != measured


@pytest.mark.parametrize(
    ("changes", "more", "message"),
    [
        ({"absence": "false"}, "", "review-refused *mend the pair and have it read again:*"),
        ({"pair": '"tiny/other"'}, "", "*review.toml: key 'pair': found 'tiny/other', expected 'tiny/greet'*"),
        ({"text": '"abc"'}, "", "*review.toml: key 'text': found 'abc'*"),
        ({"read": '["card.toml", "pair.toml"]'}, "", "*key 'read': *expected the card once and last*"),
        ({"status": f'"{STATUSES[1]}"'}, "", "*key 'status': *the file holds 0 experts who answered every check*"),
        ({}, '\n[[checks]]\nid = "absence"\nholds = true\nremark = "again"\n', "*absence answered more than once*"),
        ({}, EXPERT.format(name="N. N.", answers="{ absence = true }"), "*N. N. gave no answer to entailment, *"),
        ({}, EXPERT.format(name="N. N.", answers=ANSWERS), f"*expected '{STATUSES[1]}'*"),
        ({}, EXPERT.format(name="N. N.", answers=ANSWERS) * 2, "*N. N. stands there twice*"),
        ({}, "\nbelief = 1\n", "*unknown key*"),
    ],
    ids=["no", "pair", "text", "read", "status", "twice", "partly", "confirmed", "one-person", "unknown"],
)
def test_faults_of_reviews(
    pytester: pytest.Pytester, items: ItemFolder, changes: dict[str, str], more: str, message: str
) -> None:
    items.pair()
    items.review(more=more, **changes)
    session = only_review(pytester, items)
    assert failed(session) == ["review"]
    session.result.stdout.fnmatch_lines([message])


def test_a_check_without_an_answer(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    items.review()
    path = items.folder / "oracles/pairs/tiny/greet/review.toml"
    path.write_text(
        path.read_text().replace('[[checks]]\nid = "reachable"\nholds = true\nremark = "seen: reachable"\n', "")
    )
    assert "reachable" not in path.read_text()
    session = only_review(pytester, items)
    session.result.stdout.fnmatch_lines(["*review.toml: key 'checks': no answer to reachable; every check *"])


@pytest.mark.parametrize("answer", [True, False])
def test_experts_confirm_or_refuse(pytester: pytest.Pytester, items: ItemFolder, answer: bool) -> None:
    """Two people each answer every question; one no is enough."""
    items.pair()
    first = EXPERT.format(name="A. A.", answers=ANSWERS)
    second = EXPERT.format(
        name="B. B.", answers=ANSWERS.replace("reachable = true", f"reachable = {str(answer).lower()}")
    )
    items.review(more=first + second + 'remark = "dead code"\n', status=f'"{STATUSES[1 + answer]}"')
    session = validate(pytester, items, "-k", "review", "-rA")
    session.result.assert_outcomes(passed=int(answer), failed=int(not answer))
    session.result.stdout.fnmatch_lines([STATUSES[2] if answer else "*reachable: B. B., dead code"])


def test_reviews_of_the_built_in_pairs_speak_of_nobody_who_is_not_there() -> None:
    """A review either is not there yet, or names the one state it can be in."""
    root = corpus.builtin_root()
    for path in sorted(root.oracles.glob("pairs/*/*/review.toml")):
        review = tomllib.loads(path.read_text(encoding="utf-8"))
        assert review["status"] == STATUSES[len(review.get("experts", []))], path
        assert not re.search(r"(?i)\b(assistant|language model|LLM|AI)\b", str(review)), path
