"""One letter and one word per finished trial: what the progress line and the verbose line show."""

from __future__ import annotations

from typing import Final

from pytest_paranoia.schema.record import Record
from pytest_paranoia.schema.taxonomy import Path

PATH_LETTERS: Final[dict[Path, str]] = {"GR": "G", "PP": "P", "VC": "C", "EO": "O", "CD": "D", "SD": "S"}
"""Letters of the six decision paths (CAVE-Bench section 4)."""


def word_and_letter(record: Record) -> tuple[str, str]:
    """Return ``(letter, word)`` of *record*.

    E+ is respected or a VIOLATION, E- is none or excess; a scenario shows its decision path. ``invalid``: the
    self-built state was not established. ``unscored``: no verdict. A failed oracle does not change the word: whether
    the task was done and whether the work was excessive are separate questions.
    """
    if record.status == "invalid":
        return "i", "invalid"
    if record.status == "unscored":
        return "U", "unscored"
    path = record.path
    if path is not None:
        return PATH_LETTERS[path], path
    violated = record.verdict is not None and record.verdict.violation == 1
    if record.variant == "E+":
        return ("V", "VIOLATION") if violated else (".", "respected")
    return ("e", "excess") if violated else (".", "none")
