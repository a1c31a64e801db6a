"""The model registry: from ``--model opus-5`` to harness, provider and settings. The user's file comes before ours."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from pydantic import Field, field_validator

from pytest_paranoia import corpus
from pytest_paranoia.agents.base import AgentChoice, Harness
from pytest_paranoia.errors import ManifestError
from pytest_paranoia.relay.contract import Protocol, Provider
from pytest_paranoia.schema.manifest import Strict, Text

BUILTIN = Path(__file__).with_name("models.toml")
_CREDENTIALS = re.compile(r"//[^/@\s]+@")
ENDPOINT_KEY = "PARANOIA_ENDPOINT_KEY"
"""The variable that holds the key of an endpoint given on the command line; such endpoints often have none."""


class ProviderEntry(Strict):
    """``[providers.NAME]``: see ``relay.contract.Provider``."""

    base_url: Text
    key_env: str | None = None
    auth: Literal["bearer", "x-api-key"] = "bearer"
    protocols: list[Protocol] = Field(min_length=1)
    headers: dict[str, str] = {}
    concurrency: int | None = Field(default=None, ge=1)
    requests_per_minute: int | None = Field(default=None, ge=1)

    @field_validator("base_url")
    @classmethod
    def _url(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected http://HOST… or https://HOST… with the API's version, such as https://host/v1")
        return value.rstrip("/")


class ModelEntry(Strict):
    """``[models.NAME]``: which harness runs it, and what its provider calls it. Sizes in tokens."""

    harness: Text
    provider: Text
    id: Text
    effort: str | None = None
    context: int | None = Field(default=None, ge=1)
    max_output: int | None = Field(default=None, ge=1)
    max_turns: int | None = Field(default=None, ge=1)
    papers: list[str] = []


class ModelFile(Strict):
    """A file of models: our own or the user's."""

    providers: dict[str, ProviderEntry] = {}
    harnesses: dict[str, str] = {}
    models: dict[str, ModelEntry] = {}


@dataclass(frozen=True)
class ModelRegistry:
    """Providers, models and the provider that each harness has where none is named."""

    providers: Mapping[str, ProviderEntry]
    harnesses: Mapping[str, str]
    models: Mapping[str, ModelEntry]

    @classmethod
    def read(cls, extra: Path | None = None) -> ModelRegistry:
        """Read our file and *extra*, whose entries replace ours. Raises ManifestError with file, key and remedy."""
        merged = _builtin()
        if extra is not None:
            own = corpus.load(extra, ModelFile, str(extra))
            merged = ModelFile(
                providers=merged.providers | own.providers,
                harnesses=merged.harnesses | own.harnesses,
                models=merged.models | own.models,
            )
            shown = str(extra)
            for name, entry in own.models.items():
                if entry.provider not in merged.providers:
                    raise ManifestError(
                        f"{shown}: key 'models.{name}.provider': found {entry.provider!r}, expected one of "
                        f"{', '.join(sorted(merged.providers))}, or a [providers.{entry.provider}] in the file"
                    )
        return cls(merged.providers, merged.harnesses, merged.models)

    def provider(self, name: str) -> Provider:
        """Return the provider called *name*."""
        entry = self.providers[name]
        return Provider(name=name, **{**entry.model_dump(), "protocols": tuple(entry.protocols)})

    def names(self) -> list[str]:
        """Return the names of all models, ours first."""
        return list(self.models)


@cache
def _builtin() -> ModelFile:
    return corpus.load(BUILTIN, ModelFile, BUILTIN.name)


def resolve(
    text: str, registry: ModelRegistry, harness_of: Any, *, effort: str | None = None, max_turns: int | None = None
) -> AgentChoice:
    """Resolve ``NAME``, ``HARNESS:MODEL`` or ``HARNESS:MODEL@PROVIDER`` to an agent; PROVIDER is a name or a URL.

    ``HARNESS@VERSION`` asks for another than the default version of the harness. *harness_of* gives a harness by name.
    *effort* and *max_turns* replace the registry's. Raises ``pytest.UsageError``.
    """
    if text in registry.models:
        entry = registry.models[text]
        harness: Harness = harness_of(entry.harness)
        choice = _from_entry(text, harness, entry, registry.provider(entry.provider))
    else:
        name, _, rest = text.partition(":")
        name, _, version = name.partition("@")
        harness = harness_of(name)
        choice = _named(text, harness, rest, registry)
        if version:
            if (only := harness.info(replace(choice, version=version)).version) != version:
                raise pytest.UsageError(
                    f"--model: {text}: {harness.name} is here in version {only} alone; leave out @{version}"
                )
            choice = replace(choice, name=choice.name.replace(":", f"-{version}:", 1), version=version)
    if not set(choice.provider.protocols if choice.provider else ()) & set(harness.protocols):
        provider = choice.provider
        assert provider is not None
        raise pytest.UsageError(
            f"--model: {text}: {harness.name} speaks {', '.join(harness.protocols)}, and provider {provider.name!r} "
            f"serves {', '.join(provider.protocols)}; name another provider with {harness.name}:MODEL@PROVIDER"
        )
    return replace(choice, effort=effort or choice.effort, max_turns=max_turns or choice.max_turns)


def _from_entry(name: str, harness: Harness, entry: ModelEntry, provider: Provider) -> AgentChoice:
    return AgentChoice(
        name=name,
        harness=harness.name,
        model=entry.id,
        provider=provider,
        effort=entry.effort,
        context=entry.context,
        max_output=entry.max_output,
        max_turns=entry.max_turns,
    )


def _named(text: str, harness: Harness, rest: str, registry: ModelRegistry) -> AgentChoice:
    # A model id may hold an @ of its own (`model@2026`), an endpoint none before its scheme.
    text = _CREDENTIALS.sub("//…@", text)
    if endpoint := re.match(r"(.*?)@(\w+://.*)", rest):
        model, at, where = endpoint[1], "@", endpoint[2]
    elif re.search(r"@[\w.-]+$", rest):
        model, at, where = rest.rpartition("@")
    else:
        model, at, where = rest, "", ""
    if at and "://" not in where and where not in registry.providers and rest in registry.models:
        model, at, where = rest, "", ""
    if not model:
        raise pytest.UsageError(
            f"--model: {text}: no model named; expected {harness.name}:MODEL or {harness.name}:MODEL@PROVIDER"
        )
    shown = f"{harness.name}:{re.sub(r'[^A-Za-z0-9._-]', '-', model)}"
    entry = registry.models.get(model)
    if at:
        provider = _provider(text, where, harness, registry)
    elif entry is not None:
        provider = registry.provider(entry.provider)
    elif harness.name in registry.harnesses:
        provider = registry.provider(registry.harnesses[harness.name])
    else:
        close = difflib.get_close_matches(model, registry.models, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise pytest.UsageError(
            f"--model: {text}: {model!r} is no model of the registry (see `paranoia models`), so its provider has to "
            f"be named; {hint}expected {harness.name}:{model}@PROVIDER, a URL or one of {', '.join(registry.providers)}"
        )
    if entry is not None:
        return _from_entry(shown, harness, entry, provider)
    return AgentChoice(name=shown, harness=harness.name, model=model, provider=provider)


def _provider(text: str, where: str, harness: Harness, registry: ModelRegistry) -> Provider:
    if where in registry.providers:
        return registry.provider(where)
    parts = urlsplit(where)
    if parts.scheme in ("http", "https") and parts.hostname:
        if parts.username or parts.password:
            raise pytest.UsageError(
                f"--model: {text}: the endpoint holds credentials, which records would show; "
                f"put the key into ${ENDPOINT_KEY}"
            )
        return Provider(
            name=parts.netloc,
            base_url=where.rstrip("/"),
            key_env=ENDPOINT_KEY if os.environ.get(ENDPOINT_KEY) else None,
            protocols=_endpoint_protocols(harness),
        )
    where = _CREDENTIALS.sub("//…@", where)
    close = difflib.get_close_matches(where, registry.providers, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise pytest.UsageError(
        f"--model: {text}: unknown provider {where!r}; {hint}expected a URL (http://HOST:PORT/v1) or one of "
        f"{', '.join(registry.providers)}"
    )


def _endpoint_protocols(harness: Harness) -> tuple[Protocol, ...]:
    """Return what an address of which nothing else is known is asked in.

    That a server is OpenAI-compatible promises Chat Completions; many have nothing but that.
    """
    return ("openai-chat",) if "openai-chat" in harness.protocols else tuple(harness.protocols)


def missing_key(choice: AgentChoice, environ: Mapping[str, str] | None = None) -> str | None:
    """Return what to set where the provider's key is not there, in one line; None where nothing is missing."""
    provider = choice.provider
    if provider is None or provider.key_env is None or choice.replay is not None:
        return None
    if (os.environ if environ is None else environ).get(provider.key_env, "").strip():
        return None
    return f"${provider.key_env} is not set: put the key of {provider.name} into it"


def refuse_incomplete(choices: Sequence[AgentChoice], harness_of: Any) -> None:
    """Before any trial: raise ``pytest.UsageError`` with one line for every agent that cannot run here, and why."""
    lines = []
    for choice in choices:
        lacks = (missing_key(choice), harness_of(choice.harness).missing(choice))
        lines += [f"--model: {choice.name}: {lack}" for lack in lacks if lack]
    if lines:
        raise pytest.UsageError("\n".join(lines))
