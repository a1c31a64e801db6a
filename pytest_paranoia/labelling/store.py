"""Labels on disk: one file for each annotator and trial, replaced whole at every save, so a crash loses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.labelling.labels import ADJUDICATED, Label, annotator_name
from pytest_paranoia.schema.problems import first_problem
from pytest_paranoia.store.files import StoreError, explained, to_json, write_atomic
from pytest_paranoia.store.names import trial_folder_name

LABELS: Final = "labels"


class Outdated(ParanoiaError):
    """A save that builds on another state than the one on disk: ``current`` is what is there."""

    def __init__(self, current: Label | None) -> None:
        super().__init__("the label was changed elsewhere in the meantime")
        self.current = current


class LabelStore:
    """The labels of one run directory."""

    def __init__(self, run: Path) -> None:
        self.folder = run / LABELS

    def _path(self, annotator: str, trial: str) -> Path:
        name = annotator if annotator == ADJUDICATED else annotator_name(annotator)
        return self.folder / name / f"{trial_folder_name(trial)}.json"

    def read(self, annotator: str, trial: str) -> Label | None:
        """Return the label of *trial* by *annotator*, None where there is none. Raises StoreError for a damaged one."""
        return _read(self._path(annotator, trial))

    def write(self, label: Label) -> Label:
        """Save *label* over the revision it builds on, and return it with the next one.

        Raises Outdated where another revision is there, StoreError where it cannot be written.
        """
        path = self._path(label.annotator, label.trial)
        current = _read(path)
        if (current.revision if current else 0) != label.revision:
            raise Outdated(current)
        saved = label.model_copy(update={"revision": label.revision + 1})
        with explained(path, "make its folder"):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, to_json(saved, indent=1) + b"\n")
        return saved

    def annotators(self) -> list[str]:
        """Return who has labelled here, sorted; not the adjudicated labels."""
        if not self.folder.is_dir():
            return []
        names = [path.name for path in self.folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
        return sorted(set(names) - {ADJUDICATED})

    def all(self, annotator: str) -> dict[str, Label]:
        """Return the labels by *annotator*, by trial. Raises StoreError for a damaged one: none is passed over."""
        return {label.trial: label for label in self._each(annotator)}

    def _each(self, annotator: str) -> Iterator[Label]:
        name = annotator if annotator == ADJUDICATED else annotator_name(annotator)
        for path in sorted((self.folder / name).glob("[!.]*.json")):
            if (label := _read(path)) is not None:
                yield label


def _read(path: Path) -> Label | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(path, f"cannot be read ({error.strerror})", "Check its rights") from None
    try:
        return Label.model_validate_json(content)
    except ValidationError as error:
        raise StoreError(
            path, f"is no label ({first_problem(error)})", "Mend the file, or remove it and label anew"
        ) from None
