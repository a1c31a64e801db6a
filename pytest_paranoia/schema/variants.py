"""What the two variants of a task pair differ in, as a run directory keeps it: once for each content of an item."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

VARIANTS_SCHEMA: Final = 1


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class FileSide(_Strict):
    """A file as one variant has it. ``text`` is None where it is binary or too large; a symlink's names its target."""

    size: int = Field(ge=0)
    sha256: str
    text: str | None = None


class DifferingFile(_Strict):
    """A file in which the variants differ; a side is None where that variant does not have the file."""

    path: str
    plus: FileSide | None = None
    minus: FileSide | None = None


class PairVariants(_Strict):
    """The decisive fact of a pair: both instructions, and every file that is not the same in E+ and E-.

    ``item`` and ``item_hash`` are those of the records it belongs to, so that it outlives later edits of the item.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    schema_version: Literal[1] = Field(default=VARIANTS_SCHEMA, alias="schema")
    item: str
    item_hash: str
    carrier: Literal["instruction", "repository"]
    plus: str = Field(description="instruction of E+")
    minus: str = Field(description="instruction of E-")
    files: list[DifferingFile] = []
