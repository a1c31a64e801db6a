"""Names of agents and models in the text of a run: taken out for the judge, and put back into its quotes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_paranoia.schema.record import AgentInfo

MARK = "[agent]"

# The same words for every run, whoever made it: what is missing must tell nothing either.
_FAMILIES = (
    r"claude(?:[ _-]?code)?(?:[ _-](?:opus|sonnet|haiku|fable)(?:[ _-]?\d[\w.-]*)?)?",
    r"(?:opus|sonnet|haiku)[ -]\d[\w.-]*",
    r"anthropic",
    r"(?:open)?codex(?:[ _-]?cli)?",
    r"chat-?gpt(?:-?\d[\w.-]*)?",
    r"gpt-?\d[\w.-]*",
    r"openai",
    r"open-?code(?=\b|_|\.|/)",
    r"hermes(?:[ _-]agent)?",
    r"nous[ -]?research",
    r"gemini(?:-\d[\w.-]*)?(?:[ _-]cli)?",
    r"(?:github )?copilot",
    r"cursor[ -]agent",
    r"deepseek[\w.-]*",
    r"qwen[\w.-]*",
    r"mistral[\w.-]*",
    r"kimi[\w.-]*",
    r"grok[\w.-]*",
    r"glm-\d[\w.-]*",
    r"llama-?\d[\w.-]*",
)
_SHORTEST = 4


@dataclass(frozen=True)
class Neutral:
    """Replaces names by ``[agent]``. ``own`` are this run's names beside the ones that are always replaced."""

    pattern: re.Pattern[str]

    @classmethod
    def of(cls, agent: AgentInfo | None) -> Neutral:
        """Return what neutralises a run of *agent*: a scripted agent's names are ordinary words and stay."""
        own: list[str] = []
        if agent is not None and agent.harness != "scripted":
            model = agent.model or ""
            name = agent.name.rpartition(":")[2]
            names = {agent.harness, agent.name, name, model, model.rpartition("/")[2]} - {"chat"}
            own = [re.escape(one) for one in sorted(names, key=lambda one: (-len(one), one)) if len(one) >= _SHORTEST]
        words = "|".join([*own, *_FAMILIES])
        # A version right after a name tells as much as the name.
        return cls(
            re.compile(
                rf"(?<![A-Za-z])(?:{words})(?:[ _-]cli)?(?![A-Za-z])(?:[ /@-]*v?\d+\.\d+[\w.+-]*)?", re.IGNORECASE
            )
        )

    def names_in(self, text: str) -> frozenset[str]:
        """Return the names in *text*, in lower case."""
        return frozenset(found[0].lower() for found in self.pattern.finditer(text))

    def text(self, text: str, keep: Iterable[str] = ()) -> str:
        """Return *text* without the names, apart from those in *keep*."""
        kept = frozenset(keep)
        return self.pattern.sub(lambda found: found[0] if found[0].lower() in kept else MARK, text)

    def find(self, quote: str, text: str, keep: Iterable[str] = ()) -> tuple[int, int] | None:
        """Return where *text* holds *quote*, white space normalised, as (start, end) in *text* itself.

        The quote may come from the text as it is, or as ``text`` gives it.
        """
        words = quote.split()
        if not words:
            return None
        wanted = re.compile(r"\s+".join(map(re.escape, words)))
        if found := wanted.search(text):
            return found.span()
        shown, places = self._placed(text, frozenset(keep))
        if not (found := wanted.search(shown)):
            return None
        return places[found.start()][0], places[found.end() - 1][1]

    def _placed(self, text: str, kept: frozenset[str]) -> tuple[str, list[tuple[int, int]]]:
        """Return the neutral text, and for each of its characters the span of *text* that it stands for."""
        pieces: list[str] = []
        places: list[tuple[int, int]] = []
        at = 0
        for found in self.pattern.finditer(text):
            if found[0].lower() in kept:
                continue
            pieces += [text[at : found.start()], MARK]
            places += [(index, index + 1) for index in range(at, found.start())]
            places += [found.span()] * len(MARK)
            at = found.end()
        pieces.append(text[at:])
        places += [(index, index + 1) for index in range(at, len(text))]
        return "".join(pieces), places
