"""Reference runs as they are loaded: complete in themselves, and with no more turns than their item has messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_paranoia.errors import ManifestError
from pytest_paranoia.schema.evaluator import Action, ReferenceRun
from pytest_paranoia.schema.manifest import Goal


def read_text(path: Path, shown: str) -> str:
    """Return a file's text. Raises ManifestError."""
    try:
        return path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError) as error:
        raise ManifestError(f"{shown}: not readable as text in UTF-8: {error}") from None


def check_again(run: ReferenceRun, goal: Goal | None, shown: str) -> None:
    """Turns for re-prompts need a goal loop that sends so many. Raises ManifestError."""
    for at, step in enumerate(run.steps):
        most = goal.reprompts if goal is not None and step.role in ("accuse", "insist") else 0
        if len(step.again) > most:
            why = f"the goal loop re-prompts at most {most} times" if most else "this message has no goal loop"
            raise ManifestError(f"{shown}: key 'steps[{at}].again': found {len(step.again)} turns, but {why}")


def inline(run: ReferenceRun, folder: Path, shown: str, shown_folder: str) -> ReferenceRun:
    """Replace ``write.source`` by the file's content, so that a run is complete in itself."""

    def filled(actions: Sequence[Action], key: str) -> list[Action]:
        result = []
        for number, action in enumerate(actions):
            if action.write is not None and action.write.source is not None:
                source = folder / action.write.source
                if not source.is_file():
                    raise ManifestError(
                        f"{shown}: key '{key}.actions[{number}].write.source': no file "
                        f"{action.write.source!r} in {folder.name}/; add it or give content"
                    )
                content = read_text(source, f"{shown_folder}/{action.write.source}")
                write = action.write.model_copy(update={"content": content, "source": None})
                action = action.model_copy(update={"write": write})
            result.append(action)
        return result

    steps = []
    for at, step in enumerate(run.steps):
        again = [
            turn.model_copy(update={"actions": filled(turn.actions, f"steps[{at}].again[{number}]")})
            for number, turn in enumerate(step.again)
        ]
        steps.append(step.model_copy(update={"actions": filled(step.actions, f"steps[{at}]"), "again": again}))
    return run.model_copy(update={"steps": steps})
