"""The model registry: what --model accepts, what it says about the rest, and what is missing before any trial."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from sessions import Session
from small_items import ItemFolder

from pytest_paranoia import __version__, cli, registry
from pytest_paranoia.agents.base import AgentChoice
from pytest_paranoia.agents.models import ModelRegistry, missing_key, resolve
from pytest_paranoia.schema.record import AgentInfo

ENDPOINT = "http://127.0.0.1:9/v1"
OWN = """
[providers.lab]
base_url = "http://lab.example/v1/"
key_env = "LAB_KEY"
protocols = ["openai-chat"]
concurrency = 2

[models.house]
harness = "chat"
provider = "lab"
id = "house-7b"
context = 32000

[models."opus-5"]
harness = "chat"
provider = "lab"
id = "not-opus"
"""


class Speaker:
    """A harness that only says what it speaks."""

    scripted = False
    calls_from = "inside"

    def __init__(self, name: str) -> None:
        self.name = name
        self.protocols = {
            "claude-code": ("anthropic-messages",),
            "codex": ("openai-responses",),
            "chat": ("openai-chat", "openai-responses"),
        }[name]

    def info(self, choice: AgentChoice) -> AgentInfo:
        """Any version can be had."""
        return AgentInfo(name=choice.name, harness=self.name, version=choice.version or "1")


def resolved(text: str, models: ModelRegistry | None = None, **options: object) -> AgentChoice:
    return resolve(text, models or ModelRegistry.read(), Speaker, **options)  # type: ignore[arg-type]


def test_the_papers_models_with_the_papers_settings() -> None:
    models = ModelRegistry.read()
    for paper, count in (("ParanoiaEval", 8), ("CAVE-Bench", 14)):
        assert sum(paper in entry.papers for entry in models.models.values()) == count
    for name in models.names():
        choice = resolved(name)
        assert choice.name == name
        assert choice.provider is not None
    # Table 11 and appendix J.1
    assert (resolved("opus-5").context, resolved("opus-5").max_output) == (1_000_000, 64_000)
    assert (resolved("haiku-4.5").context, resolved("haiku-4.5").max_output) == (200_000, 32_000)
    assert (resolved("gpt-5.5").context, resolved("gpt-5.5").max_output) == (400_000, 128_000)
    paranoia = [name for name, entry in models.models.items() if "ParanoiaEval" in entry.papers]
    assert {resolved(name).effort for name in paranoia} == {"high"}
    assert {resolved(name).harness for name in paranoia} == {"claude-code", "codex"}


@pytest.mark.parametrize(
    ("text", "name", "harness", "model", "provider"),
    [
        ("opus-5", "opus-5", "claude-code", "claude-opus-5", "anthropic"),
        ("claude-code:sonnet-5", "claude-code:sonnet-5", "claude-code", "claude-sonnet-5", "anthropic"),
        ("codex:o9-mini", "codex:o9-mini", "codex", "o9-mini", "openai"),
        ("chat:gpt-5.5", "chat:gpt-5.5", "chat", "gpt-5.5", "openai"),
        ("chat:qwen/qwen3-8b@openrouter", "chat:qwen-qwen3-8b", "chat", "qwen/qwen3-8b", "openrouter"),
        (f"chat:qwen3@{ENDPOINT}", "chat:qwen3", "chat", "qwen3", "127.0.0.1:9"),
        (f"chat:a@b@{ENDPOINT}", "chat:a-b", "chat", "a@b", "127.0.0.1:9"),
        ("claude-code@2.0.1:opus-5", "claude-code-2.0.1:opus-5", "claude-code", "claude-opus-5", "anthropic"),
    ],
)
def test_what_a_name_means(text: str, name: str, harness: str, model: str, provider: str) -> None:
    choice = resolved(text)
    assert (choice.name, choice.harness, choice.model) == (name, harness, model)
    assert choice.provider is not None
    assert choice.provider.name == provider
    assert choice.version == ("2.0.1" if "@2.0.1" in text else None)


def test_effort_and_turns_of_the_command_line_come_first() -> None:
    choice = resolved("opus-5", effort="low", max_turns=7)
    assert (choice.effort, choice.max_turns) == ("low", 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("chat:", "no model named; expected chat:MODEL"),
        ("chat:own-model", "its provider has to be named"),
        ("chat:gpt-5.5@openia", "unknown provider 'openia'; did you mean openai?"),
        ("chat:m@ftp://host/v1", "unknown provider 'ftp://host/v1'"),
        ("chat:m@http://user:secret@host/v1", "the endpoint holds credentials"),
        ("chat:m@ftp://user:secret@host/v1", "unknown provider 'ftp://…@host/v1'"),
        (
            "chat:opus-5",
            "chat speaks openai-chat, openai-responses, and provider 'anthropic' serves anthropic-messages",
        ),
        ("codex:haiku-4.5", "codex speaks openai-responses"),
    ],
)
def test_what_cannot_be_meant_is_said(text: str, message: str) -> None:
    with pytest.raises(pytest.UsageError) as raised:
        resolved(text)
    assert message in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_file_of_ones_own_comes_first(tmp_path: Path) -> None:
    own = tmp_path / "models.toml"
    own.write_text(OWN)
    models = ModelRegistry.read(own)
    house = resolved("house", models)
    assert house.provider is not None
    assert (house.model, house.context, house.provider.base_url) == ("house-7b", 32000, "http://lab.example/v1")
    assert house.provider.concurrency == 2
    assert resolved("opus-5", models).model == "not-opus"
    assert resolved("sonnet-5", models).model == "claude-sonnet-5"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[models.x]\nharness = 'chat'\nprovider = 'nowhere'\nid = 'x'", "key 'models.x.provider': found 'nowhere'"),
        ("[models.x]\nharnes = 'chat'\nprovider = 'openai'\nid = 'x'", "harnes"),
        ("[providers.x]\nbase_url = 'host/v1'\nprotocols = ['openai-chat']", "expected http://HOST"),
        ("[providers.x]\nbase_url = 'http://h/v1'\nprotocols = ['soap']", "protocols"),
        ("models =", "not readable as TOML"),
    ],
)
def test_a_bad_file_is_named_with_its_key(
    pytester: pytest.Pytester, items: ItemFolder, content: str, message: str
) -> None:
    items.pair()
    pytester.path.joinpath("own.toml").write_text(content)
    session = Session(pytester, items, "--paranoia-models", "own.toml")
    assert session.code == pytest.ExitCode.USAGE_ERROR
    assert "--paranoia-models" in session.text
    assert "own.toml" in session.text
    assert message in session.text
    assert not session.runs


def test_missing_keys_are_told_in_one_line_before_any_trial(
    pytester: pytest.Pytester, items: ItemFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    items.pair()
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    session = Session(pytester, items, "--model", "chat:gpt-5.5,chat:glm-5.2@openrouter,minimal")
    assert session.code == pytest.ExitCode.USAGE_ERROR
    lines = [line for line in session.text.splitlines() if "API_KEY" in line]
    assert lines == [
        "ERROR: --model: chat:gpt-5.5: $OPENAI_API_KEY is not set: put the key of openai into it",
        "--model: chat:glm-5.2: $OPENROUTER_API_KEY is not set: put the key of openrouter into it",
    ]
    assert not session.runs
    looked = Session(pytester, items, "--model", "chat:gpt-5.5", "--collect-only", "-q")
    assert looked.code == 0  # looking needs no key


def test_an_empty_key_is_a_missing_one() -> None:
    choice = resolved("opus-5")
    assert missing_key(choice, {"ANTHROPIC_API_KEY": " "}) is not None
    assert missing_key(choice, {"ANTHROPIC_API_KEY": "k"}) is None
    assert missing_key(resolved(f"chat:x@{ENDPOINT}"), {}) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "opus5"), "did you mean opus-5?"),
        (
            ("--model", "chat@9.9:x@http://127.0.0.1:1/v1"),
            f"chat is here in version {__version__} alone; leave out @9.9",
        ),
        (("--model", "claude-cod:x"), "unknown agent 'claude-cod:x'"),
        (("--model", "bogus"), "scripted:…, replay:RUN"),
        (("--paranoia-max-cost", "0"), "--paranoia-max-cost: 0.0 given, expected a number above 0"),
        (("--paranoia-trial-requests", "-1"), "--paranoia-trial-requests: -1 given"),
        (("--paranoia-max-turns", "0"), "--paranoia-max-turns: 0 given"),
        (("--paranoia-instructions", "none.md"), "--paranoia-instructions: none.md does not exist"),
        (("--paranoia-prices", "."), "--paranoia-prices: . is no file"),
        (("--paranoia-gate", "os"), "--paranoia-gate: 'os' given, expected irreversible, live-signal or MODULE:CLASS"),
        (("--paranoia-gate", "os:nothing"), "cannot be made"),
        (("--paranoia-gate", "collections:Counter"), "is no gate"),
        (("--model", "replay:none"), "--model: replay: no run 'none'"),
    ],
)
def test_usage_errors(pytester: pytest.Pytester, items: ItemFolder, arguments: Sequence[str], message: str) -> None:
    items.pair()
    session = Session(pytester, items, *arguments)
    assert session.code == pytest.ExitCode.USAGE_ERROR
    assert message in session.text
    assert not session.runs


def test_instructions_that_nobody_reads_are_refused(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    pytester.path.joinpath("CLAUDE.md").write_text("Keep it small.")
    session = Session(pytester, items, "--paranoia-instructions", "CLAUDE.md")
    assert session.code == pytest.ExitCode.USAGE_ERROR
    assert "the scripted agents read no instructions" in session.text


def test_replaying_scripted_agents_is_refused(pytester: pytest.Pytester, items: ItemFolder) -> None:
    items.pair()
    assert Session(pytester, items, "--model", "minimal", "--paranoia-run", "first").code == 0
    session = Session(pytester, items, "--model", "replay:first")
    assert session.code == pytest.ExitCode.USAGE_ERROR
    assert "none of its agents calls a model (minimal)" in session.text


def test_the_models_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert cli.main(["models"]) == 0
    text = capsys.readouterr().out
    for name in ModelRegistry.read().names():
        assert name in text
    assert "$ANTHROPIC_API_KEY is not set" in text
    assert cli.main(["models", "--json", "opus-5"]) == 1  # asked for, and not usable here
    [row] = json.loads(capsys.readouterr().out)
    assert row["id"] == "claude-opus-5"
    assert "$ANTHROPIC_API_KEY is not set: put the key of anthropic into it" in row["missing"]
    assert cli.main(["models", "opus5"]) == 2
    assert "did you mean opus-5?" in capsys.readouterr().err


def test_every_registered_harness_keeps_its_contract() -> None:
    for name in ("scripted", "chat", "claude-code", "codex", "opencode", "hermes"):
        harness = registry.harness(name)
        assert harness.name == name
        assert harness.scripted == (name == "scripted")
        assert harness.calls_from == {"scripted": None, "chat": "outside"}.get(name, "inside")
        assert bool(harness.protocols) == (name != "scripted")
