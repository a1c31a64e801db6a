"""The providers' keys in what is archived of a trial: masked, also where a provider sent one back in pieces.

The relay masks a key in each event of a stream; whoever puts the texts of several together would have it whole.
"""

from __future__ import annotations

import lzma
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

if TYPE_CHECKING:
    from pytest_paranoia.relay.contract import Provider
    from pytest_paranoia.relay.redaction import Redactor

_Model = TypeVar("_Model", bound=BaseModel)


class Mask:
    """Masks the keys of *providers*; where they have none everything stays as it is, at no cost."""

    def __init__(self, *providers: Provider | None) -> None:
        self._providers = [provider for provider in providers if provider is not None]

    @cached_property
    def _redactor(self) -> Redactor | None:
        if not self._providers:
            return None
        from pytest_paranoia.relay.redaction import Redactor, of_provider

        named = [os.environ.get(provider.key_env or "", "").strip() for provider in self._providers]
        held = [key for provider in self._providers for key in of_provider(provider)]
        secrets = [secret for secret in (*named, *held) if secret]
        return Redactor(secrets) if secrets else None

    def text(self, text: str) -> str:
        """Return *text* without keys."""
        return text if self._redactor is None else self._redactor.text(text)

    def model(self, data: _Model) -> _Model:
        """Return *data* without keys: the very same object where it holds none."""
        if self._redactor is None:
            return data
        written = data.model_dump_json(by_alias=True)
        masked = self._redactor.text(written)
        return data if masked == written else type(data).model_validate_json(masked)

    def files(self, files: Mapping[str, bytes | Path]) -> dict[str, bytes | Path]:
        """Return *files* (name to content) without keys. Files that are named by their content's hash keep the name."""
        return {name: self._file(name, content) for name, content in files.items()}

    def _file(self, name: str, content: bytes | Path) -> bytes | Path:
        if self._redactor is None or isinstance(content, Path):
            return content
        if not name.endswith(".xz"):
            return self._redactor.clean(content)
        inner = lzma.decompress(content)
        masked = self._redactor.clean(inner)
        return content if masked == inner else lzma.compress(masked, preset=3)
