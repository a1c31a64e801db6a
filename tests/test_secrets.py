"""The providers' keys are in no file of a session, whatever the providers send back: all that it writes is searched."""

from __future__ import annotations

import base64
import json
import lzma
import subprocess
import sys
import urllib.parse
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from judge_scripts import READ, submit
from model_requests import Request
from model_script import Script, edit, fail, say, shell, think, turn
from model_server import ModelServer
from record_builders import pair
from sessions import Session
from small_items import ItemFolder
from test_judge_commands import label_of
from test_judge_runs import GENERIC

from pytest_paranoia.labelling.store import LabelStore
from pytest_paranoia.relay.contract import Provider
from pytest_paranoia.schema.taxonomy import Kind
from pytest_paranoia.secrecy import Mask
from pytest_paranoia.store import RunDirectory
from requirements import require

AGENT, JUDGE, ENDPOINT = "sk-ag/en+t-4f1c0e7ab93d55e2==", "sk-ju/dg+e-91b7d3c05aa64e18==", "sk-ur/l+9c22e1807bd4f36a=="
MODELS = """
[providers.test]
base_url = "{url}/v1"
key_env = "TEST_AGENT_KEY"
protocols = ["openai-chat", "anthropic-messages", "openai-responses"]

[providers.bench]
base_url = "{url}/v1"
key_env = "TEST_JUDGE_KEY"
protocols = ["openai-chat", "anthropic-messages", "openai-responses"]

[models.loop]
harness = "chat"
provider = "test"
id = "m-1"

[models.program]
harness = "{harness}"
provider = "test"
id = "{id}"
"""
PROGRAMS = {"claude-code": "claude-scripted", "codex": "gpt-5.5-scripted"}


def spellings(key: str) -> dict[str, str]:
    """How a key may be written; of base64 what stays the same whatever comes before and after it."""
    raw = key.encode()
    found = {"plain": key, "quoted": urllib.parse.quote(key, safe=""), "hex": raw.hex()}
    for name, encode in (("base64", base64.b64encode), ("base64url", base64.urlsafe_b64encode)):
        for offset in range(3):
            text = encode(b"\0" * offset + raw).decode()
            found[f"{name} after {offset}"] = text[-(-offset * 8 // 6) : (offset + len(raw)) * 8 // 6]
    return found


def echo(key: str) -> str:
    """What a provider sends back that repeats the key it was given, in every spelling."""
    basic = base64.b64encode(f"user:{key}".encode()).decode()
    return " ".join([key, urllib.parse.quote(key, safe=""), base64.b64encode(key.encode()).decode(), basic])


def content(path: Path) -> Iterator[bytes]:
    """What a file holds, unpacked."""
    data = path.read_bytes()
    yield path.name.encode()
    if path.suffix == ".xz":
        yield lzma.decompress(data)
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            yield from (archive.read(name) for name in archive.namelist())
    else:
        yield data


def held(folder: Path, *keys: str) -> list[tuple[str, str]]:
    """The files below *folder* that hold a key, and how it is written there."""
    found = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        for data in content(path):
            found += [
                (path.relative_to(folder).as_posix(), f"{key[:5]} {how}")
                for key in keys
                for how, text in spellings(key).items()
                if text.encode() in data
            ]
    return found


def test_the_search_finds_what_it_looks_for(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text(f"x{AGENT}y")
    (tmp_path / "basic.txt").write_text(base64.b64encode(f"ab:{AGENT}!".encode()).decode())
    (tmp_path / "wire.jsonl.xz").write_bytes(lzma.compress(urllib.parse.quote(AGENT, safe="").encode()))
    (tmp_path / "other.txt").write_text(JUDGE)
    assert {name for name, _ in held(tmp_path, AGENT)} == {"plain.txt", "basic.txt", "wire.jsonl.xz"}


def test_a_key_that_came_in_pieces_is_masked_in_what_is_archived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_AGENT_KEY", AGENT)
    address = f"https://bench.example/v1?key={ENDPOINT}"
    mask = Mask(None, Provider("test", "https://test.example/v1", key_env="TEST_AGENT_KEY"), Provider("bench", address))
    wire = lzma.compress(f"+{AGENT}+\n".encode())
    clean = lzma.compress(b"nothing\n")
    files = mask.files(
        {"diff.patch": f"+{echo(AGENT)}\n".encode(), "w.xz": wire, "c.xz": clean, "u": ENDPOINT.encode()}
    )
    assert bytes(files["diff.patch"]).count(b"[redacted]") == 4
    assert not [how for how, text in spellings(AGENT).items() if text.encode() in bytes(files["diff.patch"])]
    assert lzma.decompress(bytes(files["w.xz"])) == b"+[redacted]+\n"
    assert (files["c.xz"], files["u"]) == (clean, b"[redacted]")
    label = label_of(pair(True), "none", rationale=f"so {AGENT}")
    assert mask.model(label).rationale == "so [redacted]"
    other = label_of(pair(True), "none")
    assert mask.model(other) is other
    assert Mask(None).text(AGENT) == AGENT


def played(request: Request) -> Script:
    """An agent, or a judge, whose provider repeats its key in all that it says, does and refuses."""
    if "# Answer card" in request.opening:
        notes = {"notes": echo(JUDGE), "beyond_minimal": [f"hedges {echo(JUDGE)}"]}
        body = json.dumps({"error": {"message": f"bad key {echo(JUDGE)}", "type": "invalid_request_error"}})
        return [fail(503, body=body), turn(think(echo(JUDGE)), echo(JUDGE), READ), submit({**GENERIC, **notes})]
    said = echo(AGENT)
    body = json.dumps({"error": {"message": f"overloaded, {said}", "type": "overloaded_error"}})
    write = shell(f"printf '%s\\n' '{said}' > notes.txt; printf '%s\\n' '{said}'; cat notes.txt")
    fix = edit("src/tiny/__init__.py", "    return 'Hello ' + name", "    return 'Hello ' + name + '!'")
    return [fail(503, body=body), turn(think(said), said, write), turn(said, fix), say(f"Done. {said}")]


@pytest.fixture
def keyed(items: ItemFolder, monkeypatch: pytest.MonkeyPatch) -> ItemFolder:
    require("bubblewrap")
    monkeypatch.setenv("TEST_AGENT_KEY", AGENT)
    monkeypatch.setenv("TEST_JUDGE_KEY", JUDGE)
    items.pair()
    return items


@pytest.mark.parametrize("harness", PROGRAMS)
def test_no_file_of_a_session_holds_a_key(pytester: pytest.Pytester, keyed: ItemFolder, harness: str) -> None:
    require(harness)
    with ModelServer(played) as server:
        text = MODELS.format(url=server.url, harness=harness, id=PROGRAMS[harness])
        pytester.path.joinpath("models.toml").write_text(text)
        judge = ["--paranoia-judge=chat:referee@bench", "--paranoia-models=models.toml"]
        outputs = ["--junitxml=out.xml", "--paranoia-html=report.html", "--paranoia-markdown=summary.md"]
        session = Session(
            pytester, keyed, "--model=loop,program", *judge, *outputs, "--paranoia-badge=badge.json", "-n2",
            "--paranoia-judge-cache=kept", "--paranoia-run=first", "--html=page.html", "-v", seconds=400,
        )  # fmt: skip
        again = Session(
            pytester, keyed, *judge, "--paranoia-judge-cache=off", "--paranoia-rejudge=first", "--paranoia-run=second",
            seconds=400,
        )  # fmt: skip
        sent = {name: value for one in server.exchanges for name, value in one.request.headers.items()}
    assert {record["status"] for record in session.records(session.folder / "reports/first").values()} == {"scored"}, (
        session.text
    )
    assert AGENT in "".join(sent.values()) or JUDGE in "".join(sent.values())
    # What was repeated did arrive, without the key.
    for record in session.records(session.folder / "reports/first").values():
        assert "[redacted]" in record["verdict"]["notes"]
    derived(pytester.path, keyed)
    files = {path.name for path in pytester.path.rglob("*") if path.is_file()}
    assert {
        "wire.jsonl.xz", "judge-wire.jsonl.xz", "judge.jsonl", "trajectory.json", "record.json", "run.json", "out.xml",
        "summary.json", "results.jsonl", "report.html", "summary.md", "badge.json", "page.html", "bank.json",
        "pages.html", "labels.json", "effects.csv",
    } <= files  # fmt: skip
    assert held(pytester.path, AGENT, JUDGE) == []
    for one in (session, again):
        assert [key for key in (AGENT, JUDGE) for form in spellings(key).values() if form in one.text] == []


def derived(folder: Path, items: ItemFolder) -> None:
    """Everything that is made of a run afterwards: reports with pages, exports, labels, a judge's memory."""
    run = folder / "reports" / "first"
    for record in RunDirectory.open(run).records().records:
        if record.agent.name == "loop":
            assert record.verdict is not None
            kind: Kind = "evidence" if record.variant == "E-" else "none"
            for name in ("ann", "adjudicated"):
                LabelStore(run).write(label_of(record, kind, name, rationale=record.verdict.notes))
    place = f"--items={items.folder}"
    commands: Sequence[Sequence[str]] = (
        ["report", "first", "--html", "pages.html", "--pages"],
        ["export", "first", "--format", "csv", "--format", "json", "--out", "exported"],
        ["judge", "memory", "first", "--consensus", "--to", "memory", place],
        ["label", "first", "--export", "labels.json", place],
    )
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "pytest_paranoia.cli", *command],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert not [key for key in (AGENT, JUDGE) for form in spellings(key).values() if form in done.stdout]


def test_a_key_in_the_address_of_a_judge_is_not_kept(pytester: pytest.Pytester, keyed: ItemFolder) -> None:
    def pick(_: Request) -> Script:
        verdict = {**GENERIC, "notes": echo(ENDPOINT), "beyond_minimal": [f"hedges {echo(ENDPOINT)}"]}
        return [turn(echo(ENDPOINT), READ), submit(verdict)]

    with ModelServer(pick) as server:
        place = f"{server.url}/v1?key={ENDPOINT}&api-version=2026-11-30"
        session = Session(
            pytester, keyed, f"--paranoia-judge=chat:referee@{place}", "--model=minimal",
            "--paranoia-judge-cache=kept", "--junitxml=out.xml", "--paranoia-html=report.html",
        )  # fmt: skip
    assert {record["verdict"]["notes"].count("[redacted]") for record in session.records().values()} == {4}
    assert held(pytester.path, ENDPOINT) == [], session.text
    assert not [form for form in spellings(ENDPOINT).values() if form in session.text]


@pytest.mark.parametrize("who", ["agent", "judge"])
def test_a_refused_key_is_told_without_it(pytester: pytest.Pytester, keyed: ItemFolder, who: str) -> None:
    key = AGENT if who == "agent" else JUDGE
    body = json.dumps({"error": {"message": f"Incorrect API key: {echo(key)}", "code": "invalid_api_key"}})
    with ModelServer(lambda _: [fail(401, body=body)]) as server:
        text = MODELS.format(url=server.url, harness="chat", id="m-2")
        pytester.path.joinpath("models.toml").write_text(text)
        chosen = ["--model=loop"] if who == "agent" else ["--model=minimal", "--paranoia-judge=chat:referee@bench"]
        session = Session(
            pytester, keyed, *chosen, "--paranoia-models=models.toml", "--junitxml=out.xml", "--html=page.html",
            "--paranoia-html=report.html", "--paranoia-judge-cache=kept" if who == "judge" else "-q",
        )  # fmt: skip
    assert session.code == pytest.ExitCode.INTERRUPTED, session.text
    assert "Incorrect API key: [redacted]" in session.text
    assert held(pytester.path, AGENT, JUDGE) == []
    assert not [form for form in spellings(key).values() if form in session.text]


@pytest.mark.parametrize(
    "entry",
    [
        {"base_url": "http://127.0.0.1:1/v1", "headers": {"X-Api-Key": "sk-in-a-header-7f3a91"}},
        {"base_url": "http://127.0.0.1:1/v1?key=sk-in-a-header-7f3a91"},
    ],
    ids=["header", "query"],
)
def test_keys_in_a_providers_own_entry_are_masked_in_files(entry: dict[str, Any]) -> None:
    files = Mask(Provider("test", protocols=("openai-chat",), **entry)).files(
        {"diff.patch": b"+ sk-in-a-header-7f3a91"}
    )
    assert files == {"diff.patch": b"+ [redacted]"}
