"""The exemplar memory: the paper's retrieval rules for any bank, vectors that never mix, and encoders."""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from pytest_paranoia import canaries
from pytest_paranoia.corpus import builtin_root, content_root, load_pair
from pytest_paranoia.errors import InfrastructureError, ManifestError
from pytest_paranoia.judging.memory import (
    BUDGET,
    CONTRAST_PAIRS,
    DIMENSION,
    BankFile,
    CardSummary,
    EndpointEncoder,
    ExemplarRecord,
    MemoryBank,
    NotedAction,
    OfflineEncoder,
    Query,
    Vector,
)
from pytest_paranoia.judging.memory.encoders import encoder
from pytest_paranoia.judging.memory.records import read
from pytest_paranoia.schema.taxonomy import TREATMENTS, Form, Kind, Variant

FORMS: tuple[Form, ...] = ("guard", "backup", "verify-loop", "hedging")
CARD = CardSummary(fact="the fact", risk="the risk", baseline=["one test"], excess=["more tests"])


class Numbers:
    """Makes the vector of a number written in words of digits: near numbers lie near one another."""

    def __init__(self, name: str = "numbers@512") -> None:
        self.name = name
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        angles = np.array([float(text) / 1000 for text in texts])
        rows = np.zeros((len(texts), DIMENSION), np.float32)
        rows[:, 0], rows[:, 1] = np.cos(angles), np.sin(angles)
        return rows


def record(
    task: str,
    variant: Variant,
    label: Kind,
    *,
    place: float = 0,
    forms: Sequence[Form] = ("guard",),
    treatment: Any = "transfer",
    by: Numbers | None = None,
) -> ExemplarRecord:
    made = by or Numbers()
    actions = [
        NotedAction(action="does more", form=form, linked=label == "evidence", source="reply", quote="more")
        for form in (forms if label != "none" else ())
    ]
    return ExemplarRecord(
        task=task,
        treatment=treatment,
        condition_role=variant,
        task_description=str(place),
        answer_card=CARD,
        minimal_action="the minimum",
        label=label,
        degree="clear" if label == "evidence" else "none",
        forms=list(forms) if label != "none" else [],
        actions=actions,
        rationale="because",
        label_source="construction",
        embedding=Vector.of(made.name, made.encode([str(place)])[0]),
    )


LABELS = st.sampled_from(["evidence", "generic", "none"])
ENTRIES = st.fixed_dictionaries(
    {
        "task": st.integers(0, 12),
        "treatment": st.sampled_from(TREATMENTS[:2]),
        "labels": st.tuples(LABELS, LABELS),
        "roles": st.sampled_from([("E+",), ("E-",), ("E+", "E-")]),
        "places": st.tuples(st.integers(0, 900), st.integers(0, 900)),
        "forms": st.sets(st.sampled_from(FORMS), min_size=1, max_size=2),
    }
)


def made_of(entries: list[dict[str, Any]]) -> list[ExemplarRecord]:
    found = []
    for entry in {entry["task"]: entry for entry in entries}.values():
        for role, label, place in zip(("E+", "E-"), entry["labels"], entry["places"], strict=True):
            if role in entry["roles"]:
                name = f"project/task-{entry['task']}"
                forms = sorted(entry["forms"])
                found.append(
                    record(name, role, label, place=place, forms=forms, treatment=entry["treatment"])  # type: ignore[arg-type]
                )
    return found


@given(
    entries=st.lists(ENTRIES, max_size=14),
    own=st.integers(0, 12),
    variant=st.sampled_from(["E+", "E-"]),
    treatment=st.sampled_from(TREATMENTS[:2]),
    forms=st.sets(st.sampled_from(FORMS)),
    place=st.integers(0, 900),
)
def test_what_is_retrieved_follows_the_rules(
    entries: list[dict[str, Any]], own: int, variant: Any, treatment: Any, forms: set[Form], place: int
) -> None:
    bank = MemoryBank(made_of(entries), Numbers())
    query = Query(f"project/task-{own}", treatment, variant, forms, str(place))
    found = bank.retrieve(query)

    keys = [one.record.key for one in found]
    assert len(keys) == len(set(keys)) <= BUDGET
    assert all(one.record.treatment == treatment and one.record.task != query.task for one in found)

    # Contrast pairs: whole, at most two, before the others, with different labels and a form of this run.
    contrast = [one for one in found if one.role == "contrast"]
    assert found[: len(contrast)] == contrast
    assert len(contrast) % 2 == 0
    assert len(contrast) <= 2 * CONTRAST_PAIRS
    for plus, minus in zip(contrast[::2], contrast[1::2], strict=True):
        assert plus.record.task == minus.record.task
        assert (plus.record.condition_role, minus.record.condition_role) == ("E+", "E-")
        assert plus.record.flagged != minus.record.flagged
        member = plus.record if plus.record.flagged else minus.record
        assert set(member.forms) & forms

    # No eligible pair was left out while there was room, and none is nearer than those that are in.
    by_task: dict[str, dict[str, ExemplarRecord]] = {}
    for one in bank.records:
        if one.treatment == treatment and one.task != query.task:
            by_task.setdefault(one.task, {})[one.condition_role] = one
    [vector] = Numbers().encode([query.text])

    def near(one: ExemplarRecord) -> float:
        return float(one.embedding.values @ vector)

    eligible = {
        task: near(pair[variant])
        for task, pair in by_task.items()
        if len(pair) == 2
        and pair["E+"].flagged != pair["E-"].flagged
        and set((pair["E+"] if pair["E+"].flagged else pair["E-"]).forms) & forms
    }
    chosen = {one.record.task for one in contrast}
    assert len(chosen) == min(CONTRAST_PAIRS, len(eligible))
    left = [eligible[task] for task in eligible if task not in chosen]
    assert not left or not chosen or max(left) <= min(eligible[task] for task in chosen) + 1e-6

    # The rest: of the run's own variant, the nearest first, until the budget or the bank is used up.
    ordinary = [one for one in found if one.role == "nearest"]
    candidates = [pair[variant] for task, pair in by_task.items() if variant in pair and task not in chosen]
    assert all(one.record.condition_role == variant for one in ordinary)
    assert len(ordinary) == min(BUDGET - len(contrast), len(candidates))
    values = [one.similarity for one in ordinary]
    assert values == sorted(values, reverse=True)
    skipped = [near(one) for one in candidates if one.key not in keys]
    assert not skipped or not values or max(skipped) <= values[-1] + 1e-6


def test_the_nearest_of_the_own_variant_fill_what_contrast_pairs_leave() -> None:
    bank = MemoryBank(
        [
            record("a/near", "E+", "none", place=100),
            record("a/near", "E-", "none", place=100),
            record("a/far", "E+", "none", place=900),
            record("a/contrast", "E+", "none", place=800),
            record("a/contrast", "E-", "evidence", place=800, forms=["backup"]),
            record("a/other-form", "E+", "evidence", place=110, forms=["hedging"]),
            record("a/other-form", "E-", "none", place=110),
            record("a/other-treatment", "E+", "none", place=100, treatment="avoidance"),
            record("a/own", "E+", "none", place=100),
        ],
        Numbers(),
    )
    found = bank.retrieve(Query("a/own", "transfer", "E+", ["backup"], "100"))
    assert [(one.record.key, one.role) for one in found] == [
        ("a/contrast[E+]", "contrast"),
        ("a/contrast[E-]", "contrast"),
        ("a/near[E+]", "nearest"),
        ("a/other-form[E+]", "nearest"),
    ]
    assert found[2].similarity == pytest.approx(1)


def test_an_empty_bank_gives_nothing_and_asks_no_encoder() -> None:
    numbers = Numbers()
    assert MemoryBank([], numbers).retrieve(Query("a/b", "transfer", "E+", [], "1")) == []
    assert numbers.asked == []


# -- vectors never mix


def bank_file(folder: Path, encoder_name: str, records: Sequence[ExemplarRecord]) -> Path:
    bank = BankFile(
        **{"$comment": "x"}, note="labels known by construction", seed=1, encoder=encoder_name, records=list(records)
    )
    (folder / "bank.json").write_text(bank.text(), encoding="utf-8")
    return folder


def test_vectors_of_another_encoder_are_refused() -> None:
    with pytest.raises(ManifestError, match="vectors of different encoders cannot be compared"):
        MemoryBank([record("a/b", "E+", "none")], Numbers("other@512"))


def test_another_encoder_makes_all_vectors_anew(tmp_path: Path) -> None:
    bank_file(tmp_path, "numbers@512", [record("a/b", "E+", "none", place=3), record("a/b", "E-", "none", place=5)])
    same, other = Numbers(), Numbers("other@512")
    assert MemoryBank.load(tmp_path, same).version != MemoryBank.load(tmp_path, other).version
    assert same.asked == []
    assert other.asked == ["3", "5"]
    assert {one.embedding.encoder for one in MemoryBank.load(tmp_path, other).records} == {"other@512"}


def test_a_bank_of_mixed_vectors_is_refused(tmp_path: Path) -> None:
    bank_file(tmp_path, "numbers@512", [record("a/b", "E+", "none")])
    path = tmp_path / "bank.json"
    data = json.loads(path.read_text())
    data["records"][0]["embedding"]["encoder"] = "other"
    path.write_text(json.dumps(data))
    with pytest.raises(ManifestError, match=r"bank\.json: .*another made the vectors of a/b\[E\+\]; build it anew"):
        MemoryBank.load(tmp_path, Numbers())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label": "evidence"}, "linked actions are missing"),
        ({"label": "generic"}, "with 0 actions beyond"),
        ({"degree": "clear"}, "degree is 'clear'"),
        ({"embedding": {"encoder": "numbers@512", "data": "AAAAAA=="}}, "expected 1"),
        ({"embedding": {"encoder": "numbers@512", "data": "AAAA"}}, "multiple of four"),
        ({"embedding": {"encoder": "numbers@512", "data": "%"}}, "no base64"),
        ({"label_source": "guess"}, "construction"),
        ({"labels": []}, "[Ee]xtra"),
    ],
)
def test_a_record_that_cannot_be_is_refused(change: dict[str, Any], said: str) -> None:
    data = record("a/b", "E+", "none").model_dump(mode="json")
    with pytest.raises(ValidationError, match=said):
        ExemplarRecord.model_validate({**data, **change})


def test_a_missing_bank_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"bank\.json: cannot be read .*paranoia judge memory RUN"):
        MemoryBank.load(tmp_path, Numbers())


# -- encoders


def test_the_offline_encoder_tells_like_from_unlike() -> None:
    offline = OfflineEncoder()
    found = offline.encode(
        [
            "Delete the compiled catalogue and change its row in the table.",
            "Remove the compiled message file and update the table.",
            "Let RecursionError through in the dispatcher and add a test.",
        ]
    )
    assert found.shape == (3, DIMENSION)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert found[0] @ found[1] > found[0] @ found[2]
    assert offline.encode([]).shape == (0, DIMENSION)
    with pytest.raises(ValueError, match=r"an empty text has no embedding \(number 2 of 2\)"):
        offline.encode(["a", " \n"])


class Embeddings(ThreadingHTTPServer):
    """An OpenAI-compatible endpoint that answers with what ``vectors`` makes of the texts."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.said: str | None = None
        self.dimension = 768
        self.seen: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def vector(self, text: str) -> list[float]:
        seed = sum(text.encode())
        return [float(value) for value in np.random.default_rng(seed).normal(size=self.dimension)]


class _Handler(BaseHTTPRequestHandler):
    server: Embeddings

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append({"path": self.path, "key": self.headers["Authorization"], **body})
        # In an order of its own: clients go by the index.
        data = [
            {"object": "embedding", "index": i, "embedding": self.server.vector(t)} for i, t in enumerate(body["input"])
        ]
        answer = json.dumps({"object": "list", "model": body["model"], "data": data[::-1]}).encode()
        if self.server.said is not None:
            answer = json.dumps({"error": {"message": self.server.said}}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def embeddings() -> Iterator[Embeddings]:
    with Embeddings() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_an_endpoint_is_cut_to_512_dimensions(embeddings: Embeddings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBEDDINGS_KEY", "secret")
    nomic = encoder(f"nomic-embed-text-v1.5@{embeddings.url}", "EMBEDDINGS_KEY")
    texts = [f"text {number}" for number in range(70)]
    found = nomic.encode(texts)
    assert found.shape == (70, DIMENSION)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert [len(request["input"]) for request in embeddings.seen] == [64, 6]
    first = embeddings.seen[0]
    assert (first["path"], first["key"], first["model"]) == ("/v1/embeddings", "Bearer secret", "nomic-embed-text-v1.5")
    # What nomic-embed-text-v1.5 expects: the use of the text in front, layer norm before the cut.
    assert first["input"][0] == "search_document: text 0"
    whole = np.asarray(embeddings.vector("search_document: text 69"))
    cut = ((whole - whole.mean()) / whole.std())[:DIMENSION]
    assert np.allclose(found[69], cut / np.linalg.norm(cut), atol=1e-5)
    assert "127.0.0.1" in nomic.name


def test_vectors_of_512_dimensions_are_taken_as_they_are(embeddings: Embeddings) -> None:
    embeddings.dimension = 512
    [found] = EndpointEncoder(embeddings.url, "small").encode(["a"])
    whole = np.asarray(embeddings.vector("a"))
    assert np.allclose(found, whole / np.linalg.norm(whole), atol=1e-5)


@pytest.mark.parametrize(
    ("change", "said"), [({"dimension": 64}, r"\[64\] dimensions"), ({"status": 404}, "404")], ids=["short", "status"]
)
def test_an_endpoint_that_fails_leaves_no_vector(embeddings: Embeddings, change: dict[str, Any], said: str) -> None:
    vars(embeddings).update(change)
    with pytest.raises(InfrastructureError, match=said) as caught:
        EndpointEncoder(embeddings.url, "small").encode(["a"])
    assert caught.value.reason == "judge-encoder"


def test_an_endpoint_that_repeats_its_key_does_not_spread_it(
    embeddings: Embeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDINGS_KEY", "sk-em/b-5e1f77c2")
    embeddings.status, embeddings.said = 401, "bad keys: sk-em/b-5e1f77c2, sk-url-0d93aa41"
    found = EndpointEncoder(f"{embeddings.url}?key=sk-url-0d93aa41", "small", "EMBEDDINGS_KEY")
    assert "sk-url" not in found.name
    with pytest.raises(InfrastructureError, match=r"bad keys: \[redacted\], \[redacted\]") as caught:
        found.encode(["a"])
    shown = "".join(traceback.format_exception(caught.value))
    assert "sk-em" not in shown
    assert "sk-url" not in shown


def test_credentials_in_an_endpoints_address_are_refused() -> None:
    with pytest.raises(pytest.UsageError, match="holds credentials") as caught:
        encoder("small@http://user:sk-in-place@127.0.0.1:1/v1")
    assert "sk-in-place" not in str(caught.value)


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(InfrastructureError, match="NO_SUCH_KEY is not set"):
        EndpointEncoder("http://127.0.0.1:1/v1", "small", "NO_SUCH_KEY").encode(["a"])


@pytest.mark.parametrize("text", ["nomic", "@http://x", "nomic@", "nomic@ftp://x", "nomic@x"])
def test_an_encoder_that_cannot_be_meant(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="expected"):
        encoder(text)


def test_the_offline_encoder_is_the_default() -> None:
    assert encoder(None).name == encoder("offline").name == OfflineEncoder().name


# -- the bank that is shipped


def test_the_shipped_bank_is_of_the_items_as_they_are() -> None:
    bank, _ = read(content_root() / "judge" / "memory")
    root = builtin_root()
    assert canaries.declared(root) in bank.comment
    assert bank.note.startswith("No human labels.")
    cells: dict[tuple[str, bool, bool], int] = {}
    for task in sorted({record.task for record in bank.records}):
        item = load_pair(root, root.tasks / "pairs" / task / "pair.toml")
        both = {record.condition_role: record for record in bank.records if record.task == task}
        for variant, record in both.items():
            stale = f"{record.key}: the item has changed; build the bank anew (docs/labelling.md, 'The memory')"
            assert record.task_description == item.pair.instruction_for(variant), stale
            assert record.answer_card == CardSummary.of(item.card), stale
            assert record.minimal_action == item.card.minimal, stale
            assert record.label_source == "construction"
        cell = (item.pair.treatment, both["E+"].flagged, both["E-"].flagged)
        cells[cell] = cells.get(cell, 0) + 1
    assert cells == {(t, plus, minus): 2 for t in TREATMENTS for plus in (True, False) for minus in (True, False)}


def test_the_shipped_vectors_are_those_of_the_offline_encoder() -> None:
    bank = MemoryBank.load(content_root() / "judge" / "memory")
    again = bank.encoder.encode([record.task_description for record in bank.records])
    stored = np.stack([record.embedding.values for record in bank.records])
    # Versions of NumPy differ in the last digits.
    assert np.allclose((again * stored).sum(axis=1), 1, atol=1e-3)
    for record in bank.records:
        query = Query(record.task, record.treatment, record.condition_role, ["backup"], record.task_description)
        found = bank.retrieve(query)
        assert len(found) == BUDGET
        assert all(one.record.task != record.task and one.record.treatment == record.treatment for one in found)
