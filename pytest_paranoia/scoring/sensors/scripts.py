"""Scripts that an agent writes and then runs: running one does what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from pytest_paranoia.scoring.sensors import texts
from pytest_paranoia.scoring.sensors.actions import Action
from pytest_paranoia.scoring.sensors.paths import inside_workspace
from pytest_paranoia.scoring.sensors.simple import Simple, simple_commands

INTERPRETERS: Final = frozenset({"python", "pypy", "node", "perl", "ruby"})
_SHELLS = frozenset({"bash", "sh", "zsh", "source", "."})
_LITERAL = re.compile(r"""["'\[\](),]+""")


def literally(script: str) -> str:
    """Return *script* with marks of literals as spaces: ``run(["deploy", "rollback"])`` runs ``deploy rollback``."""
    return " ".join(_LITERAL.sub(" ", script[: texts.COMMAND]).split())


@dataclass
class Scripts:
    """Files the agent wrote, by path: running one does what it says."""

    workspace: str
    written: dict[str, str] = field(default_factory=dict)

    def note(self, action: Action) -> None:
        """Remember what *action* writes."""
        if action.kind in ("edit", "write") and action.path:
            path = inside_workspace(action.path, self.workspace)
            self.written[path] = action.text if action.kind == "write" else self.written.get(path, "") + action.text
        elif action.kind == "command":
            for simple in simple_commands(action.text):
                for operator, target in simple.redirects:
                    if simple.heredoc and operator in (">", ">>", ">|"):
                        self.written[inside_workspace(target, self.workspace)] = simple.heredoc

    def run_by(self, simple: Simple) -> list[str]:
        """Return the scripts that *simple* runs, as far as their text is known."""
        if simple.program in INTERPRETERS:
            inline = simple.words[2] if simple.words[1:2] in (("-c",), ("-e",)) and len(simple.words) > 2 else ""
            found = [inline or simple.heredoc]
            candidates = simple.words[1:]
        elif simple.program in _SHELLS:
            found, candidates = [], simple.words[1:]
        else:
            found, candidates = [], simple.words[:1]
        paths = (inside_workspace(word, self.workspace) for word in candidates)
        found += [self.written[path] for path in paths if path in self.written]
        return [text for text in found if text]
