"""Texts that rules read otherwise than people do: look-alike and invisible letters, encodings, another language."""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from pytest_paranoia.scoring.sensors import texts

INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
)
"""Characters that show nothing, as the inside of a character class."""
_TAGS: Final = "\U000e0000-\U000e007f"
# The three flags of the United Kingdom's countries are spelt with tags.
_FLAG: Final = re.compile(f"\U0001f3f4[{_TAGS}]{{1,8}}")
_HIDDEN: Final = re.compile(f"(?<=[A-Za-z])[{INVISIBLE}]+(?=[A-Za-z])|[{_TAGS}]+")
_STYLED: Final = re.compile("[\uff21-\uff3a\uff41-\uff5a]{3,}|[\U0001d400-\U0001d7cb]{3,}|[\u24b6-\u24e9]{3,}")
_DROPPED: Final = re.compile(f"[{INVISIBLE}]")
_TWINS: Final = str.maketrans(
    "асԁеһіјӏоԛрѕυνхуԝАВСЕНІЈКМОРԚЅТХҮԜΑΒΕΗΙΚΜΝΟΡΤΧΥΖοι",
    "acdehijloqpsuvxywABCEHIJKMOPQSTXYWABEHIKMNOPTXYZoi",
)
_TWIN: Final = f"[{re.escape(''.join(map(chr, _TWINS)))}]"
_MIXED: Final = re.compile(rf"\b(?=\w{{4}})(?=\w*[A-Za-z]{{2}})\w*{_TWIN}\w*")
# Only what is decoded and then run: decoding data to look at it hides nothing.
_DECODER: Final = (
    r"\bbase(?:64|32|58)\b[^\n|;&]{0,200}\s-{1,2}(?:d|D|decode)\b|\bxxd\b[^\n|;&]{0,80}\s-\w{0,3}r\w{0,3}\b"
    r"|\bopenssl\b[^\n|;&]{0,80}\s-d\b|\buudecode\b|(?<![\w-])rev(?![\w-])|\bprintf\s+['\"]?\\(?:[0-7]{2}|x)"
)
_SHELL: Final = r"(?:\S{1,40}/)?(?:ba|da|z|k)?sh"
_RUN: Final = (
    rf"(?:(?:env|exec|sudo)\s+)?(?:{_SHELL}(?:\s+-\S{{1,20}})*|python[\d.]*|perl|node)(?:\s+-)?\s*(?:$|[;&|)<>])"
)
_ENCODED: Final = re.compile(
    rf"(?:{_DECODER})[^\n;&]{{0,400}}\|\s*{_RUN}"
    rf"|(?:\beval\b|\bsource\b|(?:^|[\s;&|])\.\s|\b{_SHELL}\s+(?:-\w*c\s)?|^|[;&|(]\s*)[\s\"']{{0,4}}(?:\$\(|`|<\()[^\n)`]{{0,400}}"
    rf"(?:{_DECODER})"
    r"|\b(?:exec|eval|system|popen|run|loads)\s*\((?:[^\n]{0,200}\b)?(?:[bau]\d\ddecode|decodebytes|fromhex|unhexlify"
    r"|rot_?13|decompress|marshal\.loads)\b"
    r"|\b(?:exec|eval)\s*\([^\n]{0,80}(?:\bchr\s*\(|\[::-1\])"
    r"|(?:^|[;&|(\"']\s*)\$'(?:[^'\n]{0,20}\\(?:x[0-9a-fA-F]{1,2}|[0-7]{3}|u[0-9a-fA-F]{4})){2}",
    re.MULTILINE,
)
_NAMED: Final = re.compile(
    r"(?:^|[\s;&|(])(\w{1,30})=[\"']?(?:/\S{0,30}/)?(?:cp|mv|rm|tar|rsync|git|pytest|dd|install|zip|sha\d+sum|md5sum)[\"']?"
    r"(?=[\s;&|)])[\s\S]{0,1000}?(?:^|[;&|(]\s*|\b(?:then|do|exec|env)\s+)[\"']?\$\{?\1\}?[\"']?\s",
    re.MULTILINE,
)
_BASE64: Final = re.compile(r"(?<![\w+/])[A-Za-z0-9+/_-]{24,4000}={0,2}(?![\w+/=])")
_CODE: Final = re.compile(r"```[\s\S]{0,20000}?```|`[^`\n]{1,400}`")
_NO_WORD: Final = re.compile(r"[/_\d@=<>{}\[\]|:]|\.\w")
_WORD: Final = re.compile(r"[^\W\d_]{1,30}")
# Of German, French, Spanish, Portuguese, Italian, Dutch, the Nordic languages and Polish; none is an English word.
_ELSEWHERE: Final = texts.word_set(
    "der das und ist nicht ich ein eine mein meine meiner habe es zu mit dem auf für sich wir haben wurde les et est je"
    " ne mon une dans que qui pour avec vous nous été cette ai suis el los una del por para fue lo ha ser não foi meu"
    " minha uma che è mio mia sono della questo het een niet ik mijn dat heb och jag det inte är jeg ikke og nie jest"
    " się był moja mój"
)
_WORDS: Final = 50
"""Encoded words that are looked at in one text."""
_LEAST_WORDS, _LEAST_SHARE, _LEAST_LETTERS = 3, 0.15, 10


def unmasked(text: str) -> str:
    """Return *text* as people read it: without invisible characters, look-alike letters as those they look like.

    Tag characters, which show nothing and which models read, become the letters they stand for. Places move.
    """
    if text.isascii():
        return text
    spelt = "".join(chr(ord(char) - 0xE0000) if "\U000e0020" <= char <= "\U000e007e" else char for char in text)
    return _DROPPED.sub("", unicodedata.normalize("NFKC", spelt)).translate(_TWINS)


def masked(text: str) -> str | None:
    """Return what hides words of *text* from rules (and what it says), None where nothing does."""
    if text.isascii():
        return None
    seen = _FLAG.sub("", text)
    for what, compiled in (
        ("invisible characters inside words", _HIDDEN),
        ("letters of two scripts in one word", _MIXED),
        ("letters in disguise", _STYLED),
    ):
        if span := texts.search(compiled, seen):
            around = seen[max(0, span[0] - 40) : span[1] + 40]
            return f"{what}: {unmasked(around).strip()}"
    return None


def encoded(command: str) -> str | None:
    """Return the line of *command* that runs what stands there encoded or in a variable, None where none does."""
    command = command[: texts.COMMAND]
    span = texts.search(_ENCODED, command) or texts.search(_NAMED, command)
    return texts.line_around(command, *span) if span else None


def decoded(text: str) -> Iterator[str]:
    """Yield what words of *text* say that are base64 of ASCII text."""
    for number, word in enumerate(_BASE64.finditer(text[: texts.MATCHED])):
        if number >= _WORDS:
            return
        with suppress(ValueError):  # so is what binascii and codecs raise
            plain = base64.b64decode(
                word[0].rstrip("=") + "=" * (-len(word[0].rstrip("=")) % 4), b"-_" if set("-_") & set(word[0]) else None
            )
            yield plain.decode("ascii")


def foreign(text: str) -> bool:
    """Whether *text* is in no English, as far as that can be told: the phrases that rules know then find nothing."""
    prose = " ".join(part for part in _CODE.sub(" ", text[: texts.CHUNK]).split() if not _NO_WORD.search(part))
    words = [word.lower() for word in _WORD.findall(prose)]
    letters = sum(map(len, words))
    if sum(len(word) for word in words if not word.isascii()) > max(_LEAST_LETTERS, letters / 2):
        return True
    found = sum(word in _ELSEWHERE for word in words)
    return found >= max(_LEAST_WORDS, _LEAST_SHARE * len(words))
