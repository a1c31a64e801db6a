"""The phrases of judge/lexicon.toml, and finding them in prose without falling for quotes, denials and conditions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from pytest_paranoia.corpus import content_root
from pytest_paranoia.scoring.sensors.texts import MATCHED, phrase

_PROSE = MATCHED // 2
"""Characters of one message that are read at most."""


def judge_folder() -> Path:
    """Return the folder of the frozen judging contract, in a checkout or in an installed wheel."""
    return content_root() / "judge"


@dataclass(frozen=True)
class Lexicon:
    """Lists of phrases by name, each a pattern matched without regard to case."""

    data: dict[str, Any]

    def patterns(self, name: str) -> list[re.Pattern[str]]:
        """Return the compiled patterns of list *name*."""
        return [phrase(entry["pattern"]) for entry in self.data.get(name, ())]

    @cached_property
    def shields(self) -> dict[str, re.Pattern[str]]:
        """Return the alternatives of every kind of shield (what takes its force from a phrase), joined."""
        joined: dict[str, list[str]] = {}
        for entry in self.data.get("shield", ()):
            joined.setdefault(entry["kind"], []).append(f"(?:{entry['pattern']})")
        return {kind: phrase("|".join(parts)) for kind, parts in joined.items()}


@lru_cache(maxsize=4)
def lexicon(folder: Path | None = None) -> Lexicon:
    """Read ``lexicon.toml`` of *folder* (the judging contract of this installation unless given)."""
    path = (folder or judge_folder()) / "lexicon.toml"
    return Lexicon(tomllib.loads(path.read_text(encoding="utf-8")))


# What a message quotes is somebody else's words. Code spans may hold anything; a block quote begins with ">".
# Single quotes are apostrophes too often: they count only around words, with a boundary on both sides.
_QUOTES = re.compile(
    r"```[\s\S]{0,20000}?```|`[^`\n]{1,400}`|^[ \t]*>[^\n]*$"
    r"|\"[^\"\n]{1,600}\"|“[^”\n]{1,600}”|«[^»\n]{1,600}»|(?<![\w’'])['‘](?=\w)[^'’\n]{3,300}['’](?![\w])",
    re.MULTILINE,
)
# A line break inside a paragraph is layout; a blank line, a bullet or a heading ends a sentence.
_BREAK = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*•#|]|\d{1,3}[.)])[ \t])")
_END = re.compile(r"[.!?][\"'”’)\]]*(?=\s)|\x00")
_CLAUSE = re.compile(
    r"[,;:—–]|\s-\s|\b(?:but|however|yet|although|though|because|while|whereas|since|and)\b", re.IGNORECASE
)


_IF_AFTER = re.compile(r"[^,;:.]{0,20}\b(?:if|unless|provided|only once)\b", re.IGNORECASE)


def flowing(text: str) -> str:
    """Return *text* with the line breaks inside paragraphs as spaces and those between them as NUL, positions kept."""
    text = text[:_PROSE].replace("\0", " ")
    marked = _BREAK.sub(lambda match: "\0" + match.group()[1:], text)
    return marked.replace("\n", " ").replace("\r", " ").replace("\t", " ")


def unquoted(text: str, mark_code: bool = False) -> str:
    """Return *text* with everything quoted blanked out, positions kept; code spans as `___` where *mark_code*."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        if mark_code and found[0] == "`" and not found.startswith("```"):
            return "`" + "_" * (len(found) - 2) + "`"
        return re.sub(r"[^\n]", " ", found)

    return _QUOTES.sub(blank, text[:_PROSE])


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of *text* with their positions. A dot inside a word or number ends none."""
    flow = flowing(text)
    at = 0
    for end in [*(match.end() for match in _END.finditer(flow)), len(flow)]:
        piece = flow[at:end]
        stripped = piece.lstrip(" \0")
        if stripped.strip(" \0"):
            yield at + len(piece) - len(stripped), stripped.rstrip(" \0")
        at = end


@dataclass(frozen=True, slots=True)
class Said:
    """A phrase that stands: where it is in the message, and the sentence that holds it."""

    start: int
    end: int
    sentence: str


# Words of somebody else, or of a case that is only supposed, end where the speaker takes the word again.
_OWN_WORD = re.compile(
    r"[;—–]|, (?:and|so|but) (?:yes,? )?(?:I|my|this|that|it)\b|\bI (?:agree|admit|accept|concede|confess)\b",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(r"\bnot\b|n.t\b|\bnever\b|\bno\b", re.IGNORECASE)


def _last(pattern: re.Pattern[str], text: str) -> int:
    return max((match.end() for match in pattern.finditer(text)), default=0)


def _shielded(lex: Lexicon, sentence: str, match: re.Match[str], kinds: Iterable[str], question: bool) -> bool:
    """Return whether something takes the force of a phrase: see the shields of the lexicon."""
    # A pattern may begin with the punctuation in front of its phrase.
    start = match.start() + len(match.group()) - len(match.group().lstrip(" .,;:!?—–-"))
    before, after = sentence[:start], sentence[match.end() :]
    clause = before[max(_last(_CLAUSE, before), start - 60) :]
    supposed = before[_last(_OWN_WORD, before) :]
    reach = {"negation": clause, "condition": supposed, "attribution": supposed}
    for kind in kinds:
        shield = lex.shields.get(kind)
        if shield is not None and shield.search(reach.get(kind, sentence)):
            return True
    if "condition" in kinds and _IF_AFTER.match(after[:40]):
        return True
    # "My change could not have caused it": a denial inside a phrase whose pattern has none of its own.
    if "negation" in kinds and not _NEGATIVE.search(match.re.pattern) and _NEGATIVE.search(match.group()):
        return True
    return question and after.rstrip().endswith("?") and not re.search(r"[,;:—–]|\s-\s", after)


def said(
    message: str,
    patterns: Iterable[re.Pattern[str]],
    *,
    shields: Iterable[str] = ("negation", "condition", "attribution"),
    questions: bool = False,
    lex: Lexicon | None = None,
) -> list[Said]:
    """Return the phrases that *message* says in its own name.

    Quoted words do not count. ``shields`` names the kinds of shield that take a phrase's force; a question asserts
    nothing unless ``questions`` is true.
    """
    lex = lex or lexicon()
    kinds = tuple(shields)
    plain = unquoted(message)
    found = []
    compiled = tuple(patterns)
    for at, sentence in sentences(plain):
        piece = sentence[:2_000]
        for pattern in compiled:
            for match in pattern.finditer(piece):
                if not _shielded(lex, piece, match, kinds, not questions):
                    found.append(Said(at + match.start(), at + match.end(), sentence))
                    break
    return sorted(found, key=lambda one: one.start)
